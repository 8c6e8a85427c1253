// The store of the ranks: how it is reached, what is read from it, and torch's exceptions as errors. For
// model/ranks/ranks*.cpp alone.
#pragma once

#include <chrono>
#include <functional>

#include "model/ranks/listener.hpp"
#include "model/ranks/ranks.hpp"
#include "pch/torch.hpp"

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace sluice {

// A sentence of torch's for a message: it may quote keys, and with them the secret.
[[nodiscard]] std::string shown(std::string text, const std::string& secret);

// Torch's exceptions as our errors; their text has a stack trace after the first line.
template <class Body>
auto attempt(const std::string& secret, const std::string& subject, const std::string& hint, const Body& body)
    -> decltype(body()) {
  try {
    return body();
  } catch (const c10::Error& error) {
    return Error{"ranks", subject, shown(error.what_without_backtrace(), secret), hint};
  } catch (const std::exception& error) {
    return Error{"ranks", subject, shown(error.what(), secret), hint};
  }
}

[[nodiscard]] std::vector<std::uint8_t> bytes(const std::string& text);
[[nodiscard]] std::string text(const std::vector<std::uint8_t>& bytes);

// A connection to the store of this run; with a listener, the store itself as well. Throws as torch does, and
// may hang for as long as who listens there does not answer.
[[nodiscard]] c10::intrusive_ptr<c10d::Store> connect_store(const Seat& seat, const std::string& address,
                                                            std::chrono::milliseconds timeout,
                                                            Listener* listener);

// False after the deadline, or once it need not be waited for any longer.
[[nodiscard]] bool all_there(c10d::Store& store, const std::vector<std::string>& keys,
                             std::chrono::steady_clock::time_point deadline,
                             const std::function<bool()>& hopeless);
// The ranks whose keys are not there: "1, 3".
[[nodiscard]] std::string missing(c10d::Store& store, const std::vector<std::string>& keys);

}  // namespace sluice
