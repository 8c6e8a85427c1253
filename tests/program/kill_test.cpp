// `kill -9` at any moment loses nothing: a run that is resumed ends with the records of one that was never
// killed.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <random>

#include "tests/program/place.hpp"

using namespace sluice::test;
namespace fs = std::filesystem;

namespace {

// Everything that has a state of its own to lose is on.
std::vector<std::string> words(const std::string& name, int epochs) {
  std::vector<std::string> words;
  for (const std::string& set :
       {"log.name=" + name, "train.epochs=" + std::to_string(epochs), std::string("train.batch=2"),
        std::string("train.accumulate=2"), std::string("checkpoint.every_steps=2"),
        std::string("checkpoint.keep=2"), std::string("augment.mixup=0.2"), std::string("augment.cutmix=1"),
        std::string("augment.mix=0.7"), std::string("augment.erase=0.5"),
        std::string("augment.policy=trivial_wide"), std::string("optim.ema=0.9"), std::string("optim.clip=5"),
        std::string("schedule.interval=step")})
    words.insert(words.end(), {"--set", set});
  return words;
}

// The records without what depends on the clock.
std::vector<nlohmann::json> timeless(const Place& place, const std::string& run) {
  std::vector<nlohmann::json> records = place.metrics(run);
  for (nlohmann::json& record : records)
    for (const char* key : {"step_ms", "images_per_s", "data_wait", "peak_ledger_bytes", "diagnosis"})
      record.erase(key);
  return records;
}

class Killer {
 public:
  explicit Killer(unsigned seed) : random_(seed) {}

  // Starts the run, or goes on with it, and kills it: either when it has made some more records, or while it
  // writes a checkpoint. False if it came to its end first.
  bool once(const Place& place, const std::string& name, int epochs, bool while_writing) {
    const fs::path folder = place.runs() / name;
    std::vector<std::string> on = words(name, epochs);
    on.insert(on.end(), {"--resume", "auto"});
    const auto lines = [file = folder / "metrics.jsonl"] {
      const std::string text = fs::exists(file) ? read_text(file) : "";
      return std::count(text.begin(), text.end(), '\n');
    };
    const auto until = lines() + 1 + static_cast<long>(random_() % 7);
    const auto writing = [partial = folder / "checkpoints" / "last.ckpt.partial", more = random_() % 3,
                          was = false, seen = 0u]() mutable {
      const bool is = fs::exists(partial);
      seen += is && !was;
      was = is;
      return is && seen > more;
    };
    const Ended ended =
        place.train(on, while_writing ? send_signal(SIGKILL, writing)
                                      : send_signal(SIGKILL, [=] { return lines() >= until; }));
    INFO(ended.err);
    REQUIRE((ended.code == 0 || ended.code == 128 + SIGKILL));
    return ended.code != 0;
  }

 private:
  std::minstd_rand random_;
};

void killed_and_resumed(unsigned seed, int epochs, int kills) {
  const Place place;
  const Ended whole = place.train(words("whole", epochs));
  INFO(whole.err);
  REQUIRE(whole.code == 0);
  Killer killer(seed);
  int killed = 0;
  bool going = true;
  for (int i = 0; i < kills && going; ++i) {
    going = killer.once(place, "killed", epochs, i % 2 == 1);
    killed += going;
  }
  CAPTURE(killed);
  CHECK(killed >= (kills + 1) / 2);  // a kill may come too late, but not most of them
  if (going) {
    std::vector<std::string> on = words("killed", epochs);
    on.insert(on.end(), {"--resume", "auto"});
    REQUIRE(place.train(on).code == 0);
  }
  const std::vector<nlohmann::json> a = timeless(place, "whole"), b = timeless(place, "killed");
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(a[i].dump() == b[i].dump());
  }
}

}  // namespace

TEST_CASE("train: killed at random steps and amid a checkpoint, a resumed run ends with the same records") {
  killed_and_resumed(1, 3, 3);
}

TEST_SUITE("long") {
  TEST_CASE("train: killed twenty times, runs still end with the same records") {
    for (const unsigned seed : {2u, 3u, 4u, 5u}) {
      CAPTURE(seed);
      killed_and_resumed(seed, 6, 5);
    }
  }
}
