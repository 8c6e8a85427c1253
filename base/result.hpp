// A value or the reason why there is none. Stages never throw across the graph: they return one of these,
// so that a failure always names its stage, the file or key concerned, the cause and what to do about it.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace sluice {

struct Error {
  std::string stage;    // which part of the program: "read", "decode", "config", ...
  std::string subject;  // the file, key or batch concerned; may be empty
  std::string cause;    // what is wrong
  std::string hint;     // what to do; may be empty

  // "stage: subject: cause; hint", without the parts that are empty, printable: a subject is foreign and
  // stays on its line, cause and hint may have lines. Foreign text within a cause is made printable() where
  // it is quoted.
  [[nodiscard]] std::string text() const;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::move(value)) {}
  Result(Error error) : held_(std::move(error)) {}

  explicit operator bool() const { return held_.index() == 0; }
  T& operator*() { return std::get<0>(held_); }
  const T& operator*() const { return std::get<0>(held_); }
  T* operator->() { return &std::get<0>(held_); }
  const T* operator->() const { return &std::get<0>(held_); }
  Error& error() { return std::get<1>(held_); }
  const Error& error() const { return std::get<1>(held_); }

 private:
  std::variant<T, Error> held_;
};

struct Done {};
using Status = Result<Done>;  // `return Done{};` or `return Error{...};`

}  // namespace sluice
