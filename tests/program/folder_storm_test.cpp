// Many run folders, each damaged in its own way, and every one of them goes on to the same end, or is refused
// and stays as it is. Nothing in between.
#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include "model/weights/checkpoint_file.hpp"
#include "tests/program/workshop.hpp"
#include "tests/support/tree.hpp"

using namespace sluice;
using namespace sluice::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

Words words(const std::string& name, Words more = {}) {
  Words all;
  for (const std::string& set :
       {"log.name=" + name, std::string("train.epochs=3"), std::string("checkpoint.keep=2"),
        std::string("checkpoint.every_steps=3"), std::string("optim.ema=0.9")})
    all.insert(all.end(), {"--set", set});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::istringstream in(read_text(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string timeless(json record) {
  forget_clock(record);
  return record.dump();
}

class Storm {
 public:
  Storm() {
    REQUIRE(place_.train(words("whole")).code == 0);
    REQUIRE(place_.train(words("golden", {"--set", "train.max_steps=8"})).code == 0);
    for (const json& record : place_.metrics("whole")) expected_.push_back(timeless(record));
    const Result<Snapshot> last = read_checkpoint(place_.runs() / "whole" / "checkpoints" / "last.ckpt");
    REQUIRE(last);
    weights_ = last->data;
  }

  // A copy of the golden run; checkpoints are shared until they are damaged, which no run does to its own.
  fs::path copy() {
    const fs::path golden = place_.runs() / "golden", run = place_.runs() / ("run" + std::to_string(++runs_));
    fs::copy(golden, run, fs::copy_options::recursive | fs::copy_options::create_hard_links);
    for (const auto& entry : fs::directory_iterator(run))
      if (entry.is_regular_file()) own(entry.path());
    return run;
  }

  static void own(const fs::path& file) {
    fs::copy_file(file, file.string() + ".own");
    fs::rename(file.string() + ".own", file);
  }

  // Goes on with it and judges how.
  void judge(const fs::path& run, const Words& before = {}) {
    const std::string seen = tree(run), name = run.filename().string();
    std::vector<std::string> lines;
    if (fs::is_regular_file(run / "metrics.jsonl", *std::make_unique<std::error_code>()))
      lines = lines_of(run / "metrics.jsonl");
    Words all = before;
    all.insert(all.end(), {std::getenv("SLUICE_BINARY"), "train", "tiny.toml"});
    for (const std::string& word : words(name, {"--resume", "auto"})) all.push_back(word);
    const Ended ended = run_program(all, place_.folder.path());
    INFO(ended.err);
    REQUIRE((ended.code == 0 || ended.code == 2));
    if (ended.code == 2) {
      ++refused;
      CHECK(tree(run) == seen);
      CHECK(has(ended.err, name));
    } else {
      went_on(run, lines, ended);
    }
    fs::remove_all(run);
  }

  int refused = 0, resumed = 0, gaps = 0, anew = 0, passed_over = 0;
  [[nodiscard]] int runs() const { return runs_; }

 private:
  void went_on(const fs::path& run, const std::vector<std::string>& lines, const Ended& ended) {
    const bool began_again = has(ended.err, "starting anew");
    anew += began_again;
    resumed += !began_again;
    passed_over += has(ended.err, "passed over");
    const std::vector<json> records = place_.metrics(run.filename().string());
    std::size_t next = 0;
    for (const json& record : records) {
      if (record["event"] == "gap") {
        ++gaps;
        CHECK(has(ended.err, "warning: "));
        continue;
      }
      // Those behind a gap are where they would be without it.
      const auto found =
          std::find(expected_.begin() + static_cast<std::ptrdiff_t>(next), expected_.end(), timeless(record));
      REQUIRE(found != expected_.end());
      next = static_cast<std::size_t>(found - expected_.begin()) + 1;
    }
    CHECK(next == expected_.size());
    std::size_t stood_for = 0;
    for (const json& record : records)
      stood_for += record["event"] == "gap" ? record["records"]["missing"].get<std::size_t>() : 1;
    CHECK(stood_for == expected_.size());
    // Nothing that was recorded is gone: it is there, or made again, or set aside.
    if (began_again) CHECK((lines.empty() || lines_of(run / "before-1" / "metrics.jsonl") == lines));
    const Result<Snapshot> last = read_checkpoint(run / "checkpoints" / "last.ckpt");
    REQUIRE(last);
    REQUIRE(last->data.size() == weights_.size());
    CHECK(std::memcmp(last->data.data(), weights_.data(), weights_.size()) == 0);
  }

  sluice::test::Workshop place_;
  std::vector<std::string> expected_;
  std::vector<std::byte> weights_;
  int runs_ = 0;
};

// The ways to spoil a checkpoint, or a file of records.
void spoil(const fs::path& file, int kind, std::minstd_rand& random) {
  const std::uintmax_t size = fs::file_size(file), at = size == 0 ? 0 : random() % size;
  Storm::own(file);
  if (kind >= 4) fs::remove(file);  // 4: that is all
  std::fstream stream;
  if (kind == 2 || kind == 3) stream.open(file, std::ios::in | std::ios::out | std::ios::binary);
  switch (kind) {
    case 0:
      return fs::resize_file(file, at);
    case 1:
      return fs::resize_file(file, 0);
    case 2: {
      const int byte = stream.seekg(static_cast<std::streamoff>(at)).get();
      stream.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(byte ^ (1 << random() % 8)));
      return;
    }
    case 3:
      stream.seekp(0, std::ios::end) << "more";
      return;
    case 5:
      return fs::create_symlink(file.filename(), file);
    case 6:
      return fs::create_symlink("/no/such/disk/file", file);
    case 7:
      fs::create_directory(file);
      return;
    case 8:
      return write_file(file, std::string(200, '\0'));
    default:
      return;
  }
}

}  // namespace

TEST_SUITE("long") {
  TEST_CASE("storm: run folders damaged in many ways go on to the same end, or are refused untouched") {
    Storm storm;
    std::minstd_rand random(1);
    std::map<std::string, int> kinds;

    // One, two or all of the checkpoints.
    for (int i = 0; i < 18; ++i) {
      const fs::path run = storm.copy();
      std::vector<fs::path> files;
      for (const auto& entry : fs::directory_iterator(run / "checkpoints")) files.push_back(entry.path());
      std::sort(
          files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {  // `last`, `previous`, ...
            return std::pair(a.filename() != "last.ckpt", a) < std::pair(b.filename() != "last.ckpt", b);
          });
      const std::size_t some = i % 3 == 0 ? 1 : i % 3 == 1 ? 2 : files.size();
      for (std::size_t k = 0; k < some; ++k)
        spoil(files[k], i / 3 % 2 == 0 ? static_cast<int>(random() % 5) : i % 9, random);
      CAPTURE(i);
      storm.judge(run);
      ++kinds["checkpoints"];
    }
    // Only records: metrics.jsonl as a whole, and lines of it.
    for (int i = 0; i < 12; ++i) {
      const fs::path run = storm.copy(), metrics = run / "metrics.jsonl";
      CAPTURE(i);
      if (i < 9 && i != 2 && i != 3 && i != 8) {  // a changed byte in a record cannot be known
        spoil(metrics, i, random);
      } else {
        std::vector<std::string> lines = lines_of(metrics);
        std::string text;
        for (const std::string& line : lines)
          if (random() % 3 != 0) text += line + "\n";
        write_file(metrics, text);
      }
      storm.judge(run);
      ++kinds["records"];
    }
    // Folders.
    for (int i = 0; i < 5; ++i) {
      const fs::path run = storm.copy(), checkpoints = run / "checkpoints";
      CAPTURE(i);
      fs::remove_all(checkpoints);
      if (i == 0) fs::create_directory_symlink("checkpoints", checkpoints);
      if (i == 1) write_file(checkpoints, "a file");
      if (i == 2) fs::create_directory_symlink(std::string(300, 'x'), checkpoints);
      if (i == 3) fs::create_directory_symlink("/no/such/disk", checkpoints);
      storm.judge(run);  // 4: none, which is a run that has not come to its first checkpoint
      ++kinds["folders"];
    }
    // Disks and mounts that give errors.
    for (const int error : {EACCES, EIO, ESTALE})
      for (const auto& [call, path] :
           std::vector<std::pair<std::string, std::string>>{{"open", "/checkpoints"},
                                                            {"list", "/checkpoints"},
                                                            {"open", "/checkpoints/last.ckpt"},
                                                            {"read", "/checkpoints/last.ckpt"},
                                                            {"open", "/metrics.jsonl"},
                                                            {"read", "/metrics.jsonl"}}) {
        const fs::path run = storm.copy();
        CAPTURE(error);
        CAPTURE(call);
        CAPTURE(path);
        const int before = storm.refused;
        storm.judge(run, {"/usr/bin/env", std::string("LD_PRELOAD=") + SLUICE_FAILING_FILES,
                          "SLUICE_FAIL_CALL=" + call, "SLUICE_FAIL_PATH=" + run.filename().string() + path,
                          "SLUICE_FAIL_ERRNO=" + std::to_string(error)});
        CHECK(storm.refused == before + 1);
        ++kinds["errors of the system"];
      }

    std::string counts;
    for (const auto& [kind, count] : kinds) counts += std::to_string(count) + " " + kind + ", ";
    MESSAGE("damaged run folders: " << storm.runs() << " (" << counts << "all judged): " << storm.refused
                                    << " refused and unchanged, " << storm.resumed
                                    << " resumed to the same end (" << storm.passed_over
                                    << " from an older checkpoint, " << storm.gaps << " gaps told), "
                                    << storm.anew << " begun again with their records set aside");
    CHECK(storm.resumed > 10);
    CHECK(storm.refused > 20);
    CHECK(storm.anew > 0);
    CHECK(storm.gaps > 3);
  }
}
