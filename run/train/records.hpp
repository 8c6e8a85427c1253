// The records of a run folder: where a checkpoint stands among the lines of metrics.jsonl, and how lines that
// should be there and are not are told. A "gap" is a line that stands for the records lost before it, a
// "fork" one that tells where a run came from and stands for none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace sluice {

// As a checkpoint has it: so many records were made by then, none of them later than its step, nor the
// validation after that unless it was finished.
struct RecordPosition {
  std::size_t records = 0;
  std::int64_t epoch = 0, step = 0;
  bool validated = false;
};

struct KeptRecords {
  std::uintmax_t bytes = 0;     // of the file's beginning, whole lines
  std::size_t records = 0;      // that these lines stand for; fewer than the position has: some are lost
  std::size_t lines = 0;        // that hold a record
  std::int64_t last_step = -1;  // of the last of them
};

// What of a metrics.jsonl belongs to the position. A file that is not there holds none, and one that cannot
// be read is an error.
[[nodiscard]] Result<KeptRecords> kept_records(const std::filesystem::path& metrics,
                                               const RecordPosition& at);

// To be put behind the kept ones, so that they stand for as many as the position has.
[[nodiscard]] std::string gap_line(const RecordPosition& at, const KeptRecords& kept);
[[nodiscard]] std::string fork_line(const RecordPosition& at, const std::string& from);

// Cuts the file back to the position and tells what is missing, in the file and in the result's records.
[[nodiscard]] Result<KeptRecords> cut_records(const std::filesystem::path& metrics, const RecordPosition& at);

// What a run that begins again would write over: records, messages, events, configuration. None if all of
// them are empty.
[[nodiscard]] Result<std::vector<std::filesystem::path>> former_records(const std::filesystem::path& run);
// Moves them into a new folder of the run, before-1, before-2, ...; its path.
Result<std::filesystem::path> set_records_aside(const std::filesystem::path& run,
                                                const std::vector<std::filesystem::path>& files);

}  // namespace sluice
