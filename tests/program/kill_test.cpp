// `kill -9` at any moment loses nothing: a run that is resumed ends with the records and the weights of one
// that was never killed.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <random>

#include "tests/program/workshop.hpp"

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
std::vector<nlohmann::json> timeless(const Workshop& shop, const std::string& run) {
  std::vector<nlohmann::json> records = shop.metrics(run);
  for (nlohmann::json& record : records) forget_clock(record);
  return records;
}

// When a kill comes: once the run has made some more records, while a checkpoint is being written, right
// after a new one has taken its name, or any time after the start, before the first step too.
enum class Moment { record, writing, published, any };
constexpr std::array<Moment, 4> moments = {Moment::record, Moment::writing, Moment::published, Moment::any};

class Killer {
 public:
  Killer(unsigned seed, const Workshop& shop, const std::string& name, int epochs)
      : random_(seed), place_(shop), folder_(shop.runs() / name), on_(words(name, epochs)) {
    on_.insert(on_.end(), {"--resume", "auto"});
  }

  // Starts the run, or goes on with it, and kills it. False if it came to its end first.
  bool once(Moment moment) {
    const Ended ended = place_.train(on_, send_signal(SIGKILL, ready(moment)));
    INFO(ended.err);
    REQUIRE((ended.code == 0 || ended.code == 128 + SIGKILL));
    return ended.code != 0;
  }

  Ended to_the_end() { return place_.train(on_); }

 private:
  std::function<bool()> ready(Moment moment) {
    const fs::path last = folder_ / "checkpoints" / "last.ckpt";
    switch (moment) {
      case Moment::record: {
        const auto lines = [file = folder_ / "metrics.jsonl"] {
          const std::string text = fs::exists(file) ? read_text(file) : "";
          return std::count(text.begin(), text.end(), '\n');
        };
        return [=, until = lines() + 1 + static_cast<long>(random_() % 7)] { return lines() >= until; };
      }
      case Moment::writing:
        return
            [partial = fs::path(last) += ".partial", more = random_() % 3, was = false, seen = 0u]() mutable {
              const bool is = fs::exists(partial);
              seen += is && !was;
              was = is;
              return is && seen > more;
            };
      case Moment::published:
        return [last, before = written(last)] { return written(last) != before; };
      case Moment::any:
        break;
    }
    return [until = std::chrono::steady_clock::now() + std::chrono::milliseconds(random_() % 2500)] {
      return std::chrono::steady_clock::now() >= until;
    };
  }

  static fs::file_time_type written(const fs::path& file) {
    std::error_code none;
    return fs::last_write_time(file, none);
  }

  std::minstd_rand random_;
  const Workshop& place_;
  fs::path folder_;
  std::vector<std::string> on_;
};

std::string weights(const Workshop& shop, const std::string& run, bool averaged) {
  std::vector<std::string> words = {"export", "runs/" + run + "/checkpoints/last.ckpt", "-o",
                                    run + ".safetensors"};
  if (averaged) words.push_back("--ema");
  REQUIRE(shop.run(words).code == 0);
  return read_text(shop.folder / (run + ".safetensors"));
}

void same_ends(const Workshop& shop, const std::string& run, const std::string& other) {
  const std::vector<nlohmann::json> a = timeless(shop, run), b = timeless(shop, other);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(a[i].dump() == b[i].dump());
  }
  for (const bool averaged : {false, true}) {
    const bool same = weights(shop, run, averaged) == weights(shop, other, averaged);
    CAPTURE(averaged);
    CHECK(same);
  }
}

// Runs that are killed again and again, until `kills` have hit; returns how many runs came to their end.
int killed_and_resumed(unsigned seed, int epochs, int kills) {
  const Workshop shop;
  const Ended whole = shop.train(words("whole", epochs));
  INFO(whole.err);
  REQUIRE(whole.code == 0);
  int ends = 0;
  for (int killed = 0; killed < kills; ++ends) {
    REQUIRE(ends < kills);  // else kills hardly ever hit
    const std::string name = "killed-" + std::to_string(ends);
    Killer killer(seed + static_cast<unsigned>(ends), shop, name, epochs);
    bool going = true;
    while (killed < kills &&
           (going = killer.once(moments[static_cast<std::size_t>(killed) % moments.size()])))
      ++killed;
    if (going) {
      const Ended ended = killer.to_the_end();
      INFO(ended.err);
      REQUIRE(ended.code == 0);
    }
    same_ends(shop, "whole", name);
  }
  return ends;
}

}  // namespace

TEST_CASE("train: killed at random steps and amid a checkpoint, a resumed run ends with the same records") {
  killed_and_resumed(1, 3, 3);
}

TEST_SUITE("long") {
  TEST_CASE("train: killed a hundred times, runs still end with the same records and weights") {
    const int ends = killed_and_resumed(2, 20, 100);
    std::printf("kill storm: 100 kills, %d runs, records and weights as without\n", ends);
  }
}
