// Several trainers in one process, which exchange what ranks do.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>

#include "tests/support/fake_ranks.hpp"
#include "tests/support/fake_training.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;
using Calls = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

const std::string last_name = "checkpoints/last.ckpt";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Ended {
  Calls calls;
  Status run = Done{}, over = Done{};
  int signal = 0, given = 0, released = 0;
  std::int64_t steps = 0;
  bool stopped_early = false;
  std::size_t records = 0;
};

// Runs all ranks to their end; `during` is called on a rank's thread before each of its batches, and may end
// it by an error.
using During = std::function<Status(FakeTraining&, int rank, std::uint64_t number)>;
std::vector<Ended> train(int count, const fs::path& folder, const Config& config, FakeRanks& ranks,
                         const During& during, const StartPoint& start = {}, std::uint64_t from = 0) {
  std::vector<Ended> all(static_cast<std::size_t>(count));
  ranks.run([&](int rank) {
    StartPoint own = start;
    if (rank != 0) own.resume.reset();
    FakeTraining t(tiny_facts(folder, config, rank, count), std::move(own), ranks.of(rank));
    Ended& end = all[static_cast<std::size_t>(rank)];
    end.run = t.trainer.begin();
    for (std::uint64_t number = from;
         end.run && number < t.trainer.sequence().batches() && !t.stop.requested(); ++number) {
      end.run = during(t, rank, number);
      if (end.run) end.run = t.step(number);
    }
    end.over = t.trainer.over();
    (void)t.told();
    end = {t.network.calls, end.run,    end.over,          t.trainer.agreed_stop(),
           t.given,         t.released, t.trainer.steps(), t.trainer.stopped_early(),
           t.metrics.size()};
  });
  return all;
}

const During nothing = [](FakeTraining&, int, std::uint64_t) { return Status(Done{}); };

Position position(const fs::path& file) {
  const Result<Snapshot> read = read_checkpoint(file);
  REQUIRE_MESSAGE(read, read.error().text());
  const Result<Position> position = position_of(*read);
  REQUIRE_MESSAGE(position, position.error().text());
  return *position;
}

}  // namespace

TEST_CASE("trainer ranks: all ask the same of their networks, and the first one alone records and saves") {
  const Watchdog watchdog("trainer");
  const TemporaryFolder folder;
  FakeRanks ranks(3);
  const std::vector<Ended> all = train(3, folder.path(), tiny_config(), ranks, nothing);
  Calls expected = all[0].calls;
  CHECK(std::ranges::count(expected, "snapshot") == 2);
  std::erase(expected, "snapshot");
  for (const Ended& end : all) {
    CHECK(end.run);
    CHECK(end.over);
    CHECK(end.steps == 6);
    CHECK(end.released == end.given);
    CHECK(end.records == (&end == &all[0] ? 6 : 0));
    if (&end != &all[0]) CHECK(end.calls == expected);
  }
}

TEST_CASE("trainer ranks: a signal at one ends all before the same batch, and the first one saves") {
  const Watchdog watchdog("trainer");
  for (const int told : {0, 1}) {
    const TemporaryFolder folder;
    FakeRanks ranks(2);
    const std::vector<Ended> all =
        train(2, folder.path(), tiny_config(), ranks, [&](FakeTraining& t, int rank, std::uint64_t number) {
          if (rank == told && number == 1) t.signal = SIGTERM;
          return Status(Done{});
        });
    for (const Ended& end : all) {
      CHECK(end.run);
      CHECK(end.over);
      CHECK(end.signal == SIGTERM);
      CHECK(end.stopped_early);
      CHECK(end.steps == 2);
      CHECK(end.given == 3);  // the last one was not trained
      CHECK(end.released == 3);
    }
    CHECK(position(folder / last_name).step == 2);
  }
}

TEST_CASE("trainer ranks: rank 0's clock lets all save at the same batch") {
  const Watchdog watchdog("trainer");
  const TemporaryFolder folder;
  FakeRanks ranks(2);
  Config config = tiny_config();
  config.checkpoint.every_minutes = 1e-12;
  config.log.every = 100;
  const std::vector<Ended> all = train(2, folder.path(), config, ranks, nothing);
  Calls first = all[0].calls;
  // A wish told with one batch is heard with the next: after the second step of each epoch, and its
  // validation.
  CHECK(std::ranges::count(first, "snapshot") == 4);
  std::erase(first, "snapshot");
  CHECK(all[1].calls == first);
}

TEST_CASE("trainer ranks: a rank that is lost ends the others, and what they have is saved") {
  const Watchdog watchdog("trainer");
  const TemporaryFolder folder;
  FakeRanks ranks(2);
  const std::vector<Ended> all =
      train(2, folder.path(), tiny_config(), ranks, [&](FakeTraining&, int rank, std::uint64_t number) {
        if (rank != 1 || number != 2) return Status(Done{});
        ranks.lose(1);
        return Status(Error{"test", "rank 1", "goes", ""});
      });
  REQUIRE_FALSE(all[0].run);
  CHECK(has(all[0].run.error().text(), "rank 1: is lost"));
  CHECK(all[0].over);
  CHECK(all[0].released == all[0].given);
  CHECK(position(folder / last_name).step ==
        3);  // rank 1 had told of batch 1; its loss is heard of at batch 3
}

TEST_CASE("trainer ranks: where the step of one fails, the others save what it left alone") {
  const Watchdog watchdog("trainer");
  for (const bool intact : {true, false}) {
    const TemporaryFolder folder;
    FakeRanks ranks(2);
    const std::vector<Ended> all =
        train(2, folder.path(), tiny_config(), ranks, [&](FakeTraining& t, int, std::uint64_t number) {
          if (number != 2) return Status(Done{});
          t.network.intact = intact;
          t.network.injected = [](const std::string& call) {
            return call.starts_with("train") ? Status(Error{"ranks", "rank 1", "is lost", ""})
                                             : Status(Done{});
          };
          return Status(Done{});
        });
    for (const Ended& end : all) REQUIRE_FALSE(end.run);
    CHECK(fs::exists(folder / last_name) == intact);
    if (intact) CHECK(position(folder / last_name).step == 2);
  }
}

TEST_CASE("trainer ranks: a loss that is not finite is told with the learning rate of its step by all") {
  const Watchdog watchdog("trainer");
  const TemporaryFolder folder;
  FakeRanks ranks(2);
  Config config = tiny_config();
  config.log.every = 100;
  config.checkpoint.every_steps = 2;
  const std::vector<Ended> all =
      train(2, folder.path(), config, ranks, [&](FakeTraining& t, int, std::uint64_t) {
        t.network.finite = false;
        return Status(Done{});
      });
  for (const Ended& end : all) {
    REQUIRE_FALSE(end.run);
    // The peak is for two images, and two ranks have four.
    CHECK_MESSAGE(has(end.run.error().cause, "by step 2, at learning rate 0.180902"), end.run.error().cause);
    CHECK(end.over);
  }
  CHECK_FALSE(fs::exists(folder / last_name));
}

TEST_CASE("trainer ranks: the first one restores, and all share what it has") {
  const Watchdog watchdog("trainer");
  const TemporaryFolder folder;
  FakeRanks ranks(2), others(2);
  const std::vector<Ended> before =
      train(2, folder.path(), tiny_config(), ranks, [](FakeTraining& t, int, std::uint64_t number) {
        if (number == 1) t.signal = SIGINT;
        return Status(Done{});
      });
  REQUIRE(before[0].steps == 2);
  StartPoint start;
  start.resume = *read_checkpoint(folder / last_name);
  start.position = position(folder / last_name);
  const std::vector<Ended> after = train(2, folder.path(), tiny_config(), others, nothing, start, 2);
  REQUIRE(after[0].calls.size() > 2);
  CHECK(after[0].calls[0] == "restore");
  CHECK(after[0].calls[1] == "share");
  CHECK(after[1].calls[0] == "share");
  CHECK(has(after[0].calls[2], "train 2 "));
  CHECK(after[0].steps == 6);
  CHECK(position(folder / last_name).records == before[0].records + after[0].records);
}

TEST_CASE("trainer ranks: bad images of all are in the checkpoint of the first") {
  const Watchdog watchdog("trainer");
  const TemporaryFolder folder;
  FakeRanks ranks(2);
  Config config = tiny_config();
  config.data.max_bad = 1;
  config.checkpoint.every_steps = 3;
  const std::vector<Ended> all =
      train(2, folder.path(), config, ranks, [&](FakeTraining& t, int rank, std::uint64_t number) {
        t.bad = [rank](std::uint64_t) {
          return std::vector<Bad>(rank == 1 ? 2 : 0, Bad{0, "a.jpg", "empty file", "b.jpg"});
        };
        // After the epoch's last step and its checkpoint.
        return number < 3 ? Status(Done{}) : Status(Error{"test", "", "enough", ""});
      });
  CHECK_FALSE(all[0].run);
  const Position p = position(folder / last_name);
  CHECK(p.step == 3);
  CHECK(p.bad == BadCounts{.in_phase = 3, .lines = 0});  // one place a batch, however often it was replaced
}
