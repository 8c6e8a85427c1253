#include "run/train/bad_images.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "base/bounded_json.hpp"
#include "base/files/record_lines.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "run/train/run_folder.hpp"

namespace sluice {
namespace {

const char* name_of(Split split) { return split == Split::train ? "train" : "val"; }

std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// How many lines of a list were written before batch `next`. One that is none of ours stays where it is.
Result<std::size_t> lines_before(const std::filesystem::path& file, const BatchPlan& next) {
  const auto position = [](std::uint64_t epoch, bool validation, std::uint64_t batch) {
    return std::tuple(epoch, validation, batch);
  };
  const auto end = position(next.epoch, next.split == Split::val, next.in_phase);
  const Result<std::unique_ptr<RecordLines>> lines = RecordLines::open("resume", file);
  if (!lines) return lines.error();
  std::size_t keep = 0;
  if (!*lines) return keep;
  const auto number = [](const nlohmann::json& j, const char* key) {
    const auto value = j.find(key);
    return value != j.end() && value->is_number_unsigned() ? value->get<std::uint64_t>() : 0;
  };
  for (std::string line;; ++keep) {
    const Result<bool> more = (*lines)->next(line);
    if (!more) return more.error();
    if (!*more) return keep;
    const nlohmann::json j = parse_object(line);
    if (!j.is_object()) continue;
    const auto split = j.find("split");
    if (position(number(j, "epoch"), split != j.end() && *split == "val", number(j, "batch")) >= end)
      return keep;
  }
}

}  // namespace

Status BadImages::note(const BatchPlan& plan, std::uint64_t images, const std::vector<Bad>& bad) {
  const BadCounts before{.in_phase = plan.in_phase == 0 ? 0 : counts_.in_phase, .lines = counts_.lines};
  if (Status listed = list(plan, bad); !listed) return listed;
  Status counted = count(plan, images, places(bad));
  if (!counted) counts_ = before;
  return counted;
}

Status BadImages::list(const BatchPlan& plan, const std::vector<Bad>& bad) {
  if (bad.empty()) return Done{};
  if (!sink_) {
    Result<LineSink> opened = append_to(file_.string());
    if (!opened) return opened.error();
    sink_ = std::move(*opened);
  }
  for (const Bad& b : bad) {
    nlohmann::ordered_json line = {
        {"file", b.file},         {"cause", b.cause}, {"split", name_of(plan.split)}, {"epoch", plan.epoch},
        {"batch", plan.in_phase}, {"place", b.place}, {"replacement", b.replacement}};
    if (!is_utf8(b.file)) line["file_bytes"] = hexadecimal(b.file);  // the only way to tell such a name
    if (Status written = sink_(json_text(line)); !written) return written;
  }
  last_ = "; the last: " + printable(bad.back().file) + ": " + printable(bad.back().cause);
  counts_.lines += bad.size();
  return Done{};
}

std::uint64_t BadImages::places(const std::vector<Bad>& bad) {
  std::uint64_t places = 0;
  for (std::size_t i = 0; i < bad.size(); ++i) places += i == 0 || bad[i].place != bad[i - 1].place;
  return places;
}

Status BadImages::count(const BatchPlan& plan, std::uint64_t images, std::uint64_t places) {
  if (plan.in_phase == 0) counts_.in_phase = 0;
  counts_.in_phase += places;
  // 0.29 of 100 is a hair below 29 in binary; no count lies between.
  if (places == 0 || static_cast<double>(counts_.in_phase) <= max_share_ * static_cast<double>(images) + 1e-6)
    return Done{};
  const std::string share =
      fmt::format("{:.3g} %", 100.0 * static_cast<double>(counts_.in_phase) / static_cast<double>(images));
  return Error{"data", file_.string(),
               std::to_string(counts_.in_phase) + " of " + std::to_string(images) + " " +
                   name_of(plan.split) + " images (" + share +
                   ") cannot be used, more than data.max_bad allows" + last_,
               "mend or exclude the files listed there, or raise data.max_bad"};
}

std::string quarantine_name(int rank) {
  return rank == 0 ? "quarantine.jsonl" : "quarantine.rank" + std::to_string(rank) + ".jsonl";
}

Result<std::size_t> cut_quarantine(const std::filesystem::path& file, const BatchPlan& next) {
  const Result<std::size_t> keep = lines_before(file, next);
  return keep ? cut_lines(file, *keep) : keep;
}

Status copy_quarantine(const std::filesystem::path& from, const std::filesystem::path& to,
                       const BatchPlan& next) {
  const Result<std::size_t> keep = lines_before(from, next);
  if (!keep) return keep.error();
  return copy_lines(from, to, *keep);
}

}  // namespace sluice
