// Passes on what comes through a pipe, line by line, each with a prefix: lines of several processes do not
// mix.
#pragma once

#include <string>

namespace sluice {

class PrefixedLines {
 public:
  // Owns `from`, not `to`.
  PrefixedLines(int from, int to, std::string prefix);
  PrefixedLines(PrefixedLines&& other) noexcept;
  PrefixedLines& operator=(PrefixedLines&&) = delete;
  ~PrefixedLines();

  [[nodiscard]] bool open() const { return from_ >= 0; }
  [[nodiscard]] int fd() const { return from_; }
  void pass_on();  // what is there now; closes at the end
  void drain();    // all that is there, and the last line even if it has no end; closes

 private:
  bool take();
  void write_lines(bool all);
  int from_, to_;
  std::string prefix_, held_;
};

}  // namespace sluice
