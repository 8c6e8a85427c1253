#include "model/train/attempt.hpp"

#include <c10/util/Exception.h>

#include "base/printable.hpp"

namespace sluice {
namespace {

Error told(const std::shared_ptr<Ranks>& ranks, Error error) {
  return ranks ? ranks->verdict(ranks->patience()).value_or(std::move(error)) : error;
}

}  // namespace

Status attempt(const char* subject, const std::shared_ptr<Ranks>& ranks, FunctionRef<Status()> body) {
  try {
    return body();
  } catch (const c10::DistError& error) {
    return told(ranks, {"step", subject, error.what_without_backtrace(), ""});
  } catch (const c10::Error& error) {
    return Error{"step", subject, error.what_without_backtrace(), ""};
  } catch (const std::exception& error) {
    return told(ranks, {"step", subject, printable(error.what()), ""});
  }
}

}  // namespace sluice
