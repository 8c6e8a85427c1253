// What the data path is measured against: a plain decode of whole files to RGB with libjpeg, accurate
// transform and fancy upsampling, nothing left out and nothing done after it.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "nodes/source/source.hpp"

namespace sluice {

class FullDecoder {  // one per thread
 public:
  explicit FullDecoder(const ReadOptions& read);
  ~FullDecoder();
  FullDecoder(const FullDecoder&) = delete;
  FullDecoder& operator=(const FullDecoder&) = delete;

  [[nodiscard]] Status decode(const Source& from, std::size_t item);  // reads it first

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
