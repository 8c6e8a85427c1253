// A keeper's folder in tests: checkpoints whose content is a mark that can be told again.
#pragma once

#include <doctest/doctest.h>

#include <set>

#include "run/train/keeper.hpp"

namespace sluice::test {

using Names = std::set<std::string>;

// What is there, but for the one before `last`, which has a test of its own.
inline Names files(const std::filesystem::path& folder) {
  Names names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  names.erase("previous.ckpt");
  return names;
}

// Fills a snapshot as the trainer does: the same memory each time, other content.
inline std::function<Status(Snapshot&, const std::vector<Keeper::Best>&)> content(int mark) {
  return [mark](Snapshot& s, const std::vector<Keeper::Best>&) -> Status {
    s.clear_tensors();
    s.arch = "resnet18";
    s.state = {{"mark", mark}};
    for (std::byte& byte : s.add("weights", "f32", {1000})) byte = static_cast<std::byte>(mark);
    return Done{};
  };
}

// Which content a checkpoint has; it must be sound and all of one piece.
inline int mark(const std::filesystem::path& file) {
  const Result<Snapshot> read = read_checkpoint(file);
  REQUIRE_MESSAGE(read, read.error().text());
  const int found = read->state.at("mark");
  const StoredTensor* weights = read->find("weights");
  REQUIRE(weights);
  CHECK(weights->bytes == 4000);
  for (const std::byte byte : read->bytes(*weights))
    if (byte != static_cast<std::byte>(found)) FAIL(file.string() << " mixes two contents");
  return found;
}

// Saves with a value of the metric; the mark is the epoch.
inline void save(Keeper& keeper, int epoch, double value) {
  const Status saved = keeper.save(content(epoch), epoch, &value);
  REQUIRE_MESSAGE(saved, saved.error().text());
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::vector<std::string> names_of(const std::vector<Keeper::Best>& list) {
  std::vector<std::string> names;
  for (const Keeper::Best& best : list) names.push_back(best.file);
  return names;
}

}  // namespace sluice::test
