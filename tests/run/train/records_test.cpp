#include "run/train/records.hpp"

#include <doctest/doctest.h>

#include "nodes/record/metrics.hpp"
#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string line(const std::string& event, std::int64_t step) {
  return json_line({event, step / 4, step, {{"train/loss", 1.5}}}) + "\n";
}
std::string train(std::int64_t step) { return line("train", step); }
std::string val(std::int64_t step) { return line("val", step); }

// Three steps and the validation after them; as one that goes on would find it.
const std::string whole = train(1) + train(2) + train(3) + val(3);
constexpr RecordPosition after_val{4, 0, 3, true};

// What cut_records leaves of a file with this text, behind what it tells.
std::string cut(const std::string& text, const RecordPosition& at) {
  const TemporaryFolder folder;
  write_file(folder / "metrics.jsonl", text);
  const Result<KeptRecords> kept = cut_records(folder / "metrics.jsonl", at);
  REQUIRE_MESSAGE(kept, kept.error().text());
  return std::to_string(kept->records) + "/" + std::to_string(kept->lines) + ":" +
         read_text(folder / "metrics.jsonl");
}

std::string gap(std::size_t missing, std::int64_t step, std::int64_t after) {
  return R"({"event":"gap","epoch":0,"step":)" + std::to_string(step) + R"(,"records":{"missing":)" +
         std::to_string(missing) + R"(,"after_step":)" + std::to_string(after) + "}}\n";
}

}  // namespace

TEST_CASE("records: what came after the position is cut away") {
  CHECK(cut(whole, after_val) == "4/4:" + whole);
  CHECK(cut(whole + line("end", 3), after_val) == "4/4:" + whole);
  CHECK(cut(whole + train(4) + "{\"event\":\"tr", after_val) == "4/4:" + whole);
  CHECK(cut(whole, {3, 0, 3, false}) == "3/3:" + train(1) + train(2) + train(3));
  CHECK(cut(whole, {2, 0, 2, false}) == "2/2:" + train(1) + train(2));
  CHECK(cut(whole, {0, 0, 0, false}) == "0/0:");
  // A checkpoint between two records.
  CHECK(cut(train(2) + train(4) + train(6), {2, 1, 5, false}) == "2/2:" + train(2) + train(4));
}

TEST_CASE("records: fewer than the checkpoint counts leave a gap that stands for them") {
  CHECK(cut(train(1), after_val) == "1/1:" + train(1) + gap(3, 3, 1));
  CHECK(cut("", after_val) == "0/0:" + gap(4, 3, 0));
  CHECK(cut("{\"event\":\"tr", after_val) == "0/0:" + gap(4, 3, 0));
  // Those of the future do not fill it.
  CHECK(cut(train(1) + train(2) + train(4) + train(5) + line("end", 5), after_val) ==
        "2/2:" + train(1) + train(2) + gap(2, 3, 2));
  CHECK(cut(train(3) + val(3) + line("end", 3), {4, 0, 3, false}) == "1/1:" + train(3) + gap(3, 3, 3));

  const TemporaryFolder folder;
  const Result<KeptRecords> none = cut_records(folder / "metrics.jsonl", after_val);
  REQUIRE(none);
  CHECK(none->records == 0);
  CHECK(read_text(folder / "metrics.jsonl") == gap(4, 3, 0));
  REQUIRE(cut_records(folder / "other.jsonl", {0, 0, 0, false}));
  CHECK_FALSE(fs::exists(folder / "other.jsonl"));
}

TEST_CASE("records: a gap counts as what it stands for, however often the run goes on") {
  const std::string mended = train(1) + gap(3, 3, 1);
  CHECK(cut(mended, after_val) == "4/1:" + mended);
  CHECK(cut(mended + train(4) + train(5), after_val) == "4/1:" + mended);
  CHECK(cut(mended + train(4) + train(5), {5, 1, 4, false}) == "5/2:" + mended + train(4));
  // A position before the gap leaves it behind, and tells of what is missing there.
  CHECK(cut(mended, {2, 0, 2, false}) == "1/1:" + train(1) + gap(1, 2, 1));
  // One that says nonsense stands for nothing.
  const std::string odd = R"({"event":"gap","epoch":0,"step":1,"records":{"missing":-3}})"
                          "\n";
  CHECK(cut(odd + train(1), {1, 0, 1, false}) == "1/1:" + odd + train(1));
  const std::string huge = R"({"event":"gap","epoch":0,"step":1,"records":{"missing":18446744073709551615}})"
                           "\n";
  CHECK(cut(train(1) + huge, {1, 0, 1, false}) == "1/1:" + train(1));
  const std::string list = R"({"event":"gap","epoch":0,"step":1,"records":[1]})"
                           "\n";
  CHECK(cut(list + train(1), {1, 0, 1, false}) == "1/1:" + list + train(1));
}

TEST_CASE("records: a fork stands for none, and is kept") {
  const std::string fork = fork_line(after_val, "/runs/a\n\xff.ckpt");
  CHECK(std::count(fork.begin(), fork.end(), '\n') == 1);
  CHECK(has(fork, R"({"event":"fork","epoch":0,"step":3,"from":"/runs/a\n)"));
  CHECK(cut(whole + fork, after_val) == "4/4:" + whole + fork);
  CHECK(cut(whole + fork + train(4), {5, 1, 4, false}) == "5/5:" + whole + fork + train(4));
}

TEST_CASE("records: lines that somebody else wrote are taken for records") {
  CHECK(cut("note\n\n" + train(1), {3, 0, 1, false}) == "3/3:note\n\n" + train(1));
}

TEST_CASE("records: a file that cannot be read is not an empty one") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "folder");
  fs::create_symlink("loop", folder / "loop");
  fs::create_symlink("nowhere", folder / "link");
  const auto why = [&](const std::string& name) {
    const Result<KeptRecords> kept = cut_records(folder / name, after_val);
    REQUIRE_FALSE(kept);
    return kept.error().text();
  };
  CHECK(has(why("folder"), "is a folder, not a file"));
  CHECK(has(why("loop"), "Too many levels of symbolic links"));
  CHECK(has(why("link"), "No such file"));
  CHECK_FALSE(fs::exists(folder / "nowhere"));
}

TEST_CASE("records: a line nested without end is taken for one that says nonsense") {
  const std::string deep = R"({"event":"gap","epoch":0,"step":1,"records":)" + std::string(400'000, '[') +
                           std::string(400'000, ']') + "}\n";
  CHECK(cut(deep + train(1), {1, 0, 1, false}) == "1/1:" + deep + train(1));
}

TEST_CASE("records: a line that is too long is refused by the file's name, and nothing is cut") {
  const TemporaryFolder folder;
  const fs::path metrics = folder / "metrics.jsonl";
  write_file(metrics, train(1));
  fs::resize_file(metrics, std::uintmax_t{30} << 30);  // a hole, as a crash of the machine leaves
  const Result<KeptRecords> kept = cut_records(metrics, after_val);
  REQUIRE_FALSE(kept);
  CHECK(has(kept.error().text(), metrics.string() + ": its line 2 is longer than 1 MiB"));
  CHECK(fs::file_size(metrics) == std::uintmax_t{30} << 30);
}

TEST_CASE("records: what a run would write over is set aside, under the first free number") {
  const TemporaryFolder folder;
  const std::vector<std::string> names = {"metrics.jsonl",
                                          "train.log",
                                          "config.toml",
                                          "quarantine.jsonl",
                                          "quarantine.rank3.jsonl",
                                          "events.out.tfevents.1.host.2"};
  const auto again = [&] {
    const Result<std::vector<fs::path>> files = former_records(folder.path());
    REQUIRE(files);
    return *files;
  };
  for (const char* name : {"metrics.jsonl", "quarantine.jsonl"}) write_file(folder / name, "");
  CHECK(again().empty());  // nothing in them to keep
  fs::create_directory(folder / "before-1");
  write_file(folder / "before-2", "somebody's file");
  for (const std::string& name : names) write_file(folder / name, name);
  write_file(folder / "notes.txt", "not ours");
  CHECK(again().size() == names.size());
  const Result<fs::path> aside = set_records_aside(folder.path(), again());
  REQUIRE_MESSAGE(aside, aside.error().text());
  CHECK(*aside == folder / "before-3");
  for (const std::string& name : names) {
    CHECK(read_text(*aside / name) == name);
    CHECK_FALSE(fs::exists(folder / name));
  }
  CHECK(read_text(folder / "notes.txt") == "not ours");
  CHECK(read_text(folder / "before-2") == "somebody's file");
  CHECK_FALSE(former_records(folder / "nowhere"));
}
