// Tells once, early, when a run takes more memory than was planned for it, and who holds it. Free of torch;
// what it looks at is handed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace sluice {

struct MemoryFigures {
  std::size_t resident = 0;    // of the process
  std::size_t data_path = 0;   // held by the ledger's accounts
  std::size_t torch_pool = 0;  // tensors, and what is kept of freed ones; 0 where torch's own is not counted
};

class MemoryWatch {
 public:
  using Read = std::function<MemoryFigures()>;
  static constexpr std::int64_t every = 2'000'000'000;  // ns between looks

  // `planned` is RAM of the process in all; a tenth of it, at least 256 MiB, may be taken besides.
  MemoryWatch(std::size_t planned, Read read);

  // The warning, the first time that it is due. Looks at most every two seconds of the clock it is given.
  [[nodiscard]] std::optional<std::string> look(std::int64_t now_ns);
  [[nodiscard]] std::size_t allowed() const { return planned_ + margin_; }

 private:
  std::size_t planned_, margin_;
  Read read_;
  std::optional<std::int64_t> looked_;
  bool told_ = false;
};

// VmRSS of this process; 0 where the kernel does not tell. `root` is put before /proc, for tests.
[[nodiscard]] std::size_t resident_bytes(const std::string& root = "");

}  // namespace sluice
