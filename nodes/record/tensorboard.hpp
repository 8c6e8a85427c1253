// The records as TensorBoard reads them: an event file, one event per record, its values as scalars over the
// record's step. Each run of the program writes a file of its own; together they make one curve.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/files/append.hpp"
#include "base/result.hpp"
#include "nodes/record/metrics.hpp"

namespace sluice {

class EventFile {
 public:
  // A new file in `folder`, whose name sorts behind those that are there: TensorBoard reads them in this
  // order. What they say from step `from` on no longer counts; what `kept`, a metrics.jsonl that was cut back
  // to a checkpoint, has of that step is told again; all that it has, if `whole`: where no other file tells
  // it.
  [[nodiscard]] static Result<std::shared_ptr<EventFile>> open(const std::filesystem::path& folder,
                                                               std::int64_t from = 0,
                                                               const std::filesystem::path& kept = {},
                                                               bool whole = false);

  explicit EventFile(std::shared_ptr<AppendFile> file) : file_(std::move(file)) {}

  Status write(const Record& record);  // a record without values leaves no event
  Status sync() { return file_->sync(); }

 private:
  Status tell_again(const std::filesystem::path& kept, std::int64_t step, bool whole);

  std::shared_ptr<AppendFile> file_;
};

// Whether a folder has event files already.
[[nodiscard]] bool has_events(const std::filesystem::path& folder);

}  // namespace sluice
