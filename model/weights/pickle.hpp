// A Python pickle, read as plain data. Nothing is imported and nothing is called: a call stays a value that
// tells the function's name and its arguments, so that a hostile file can do no more than be refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace sluice {

struct PickleValue {
  enum class Kind { none, boolean, integer, real, text, sequence, dictionary, global, call, persistent };
  Kind kind = Kind::none;
  std::int64_t number = 0;  // of a boolean or an integer
  // Text; "module.name" of a global or of the function that was called; the bytes of an integer above 64
  // bits.
  std::string text;
  std::vector<const PickleValue*> items;  // of a tuple, list or set; arguments of a call; a persistent id
  std::vector<std::pair<const PickleValue*, const PickleValue*>>
      entries;  // of a dictionary or a call's result
};

struct Pickle {
  std::deque<PickleValue> values;  // owns all of them; they may refer to each other in circles
  const PickleValue* root = nullptr;
  std::size_t size = 0;  // bytes up to and with its end; more may follow
};

// Protocols 2 and up. An error leaves its subject, the file, to the caller.
Result<Pickle> read_pickle(std::span<const std::byte> bytes);

}  // namespace sluice
