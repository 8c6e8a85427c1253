// Where torch's exceptions end.
#pragma once

#include <memory>

#include "base/function_ref.hpp"
#include "base/result.hpp"
#include "model/ranks/ranks.hpp"

namespace sluice {

// Runs `body`, which may throw as torch does, and gives its failure the shape of ours. With ranks, a
// connection ends before it is known whose end it was: what is known a while later says more.
Status attempt(const char* subject, const std::shared_ptr<Ranks>& ranks, FunctionRef<Status()> body);

}  // namespace sluice
