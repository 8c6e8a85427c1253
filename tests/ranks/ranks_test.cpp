// Ranks as processes of their own, over Gloo: the same training at any number of them, and how it ends when
// one is gone. SLUICE_RANKS_WORKER names the program that is one rank.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "tests/support/free_port.hpp"
#include "tests/support/process.hpp"

using namespace sluice;

namespace {

struct Line {
  int step = 0;
  double loss = 0;
  std::string params, state;
};

struct Rank {
  test::Ended ended;
  std::vector<Line> lines;
  std::string kept;  // the state after a failure, if it is that of a finished step
};

Rank read(test::Ended ended) {
  Rank rank;
  std::istringstream text(ended.out);
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string word, loss, intact;
    Line l;
    words >> word;
    if (word == "step") {
      words >> l.step >> word >> loss >> word >> l.params >> word >> l.state;
      l.loss = std::strtod(loss.c_str(), nullptr);
      rank.lines.push_back(l);
    }
    if (word == "kept") {
      words >> rank.kept >> word >> intact;
      if (intact != "1") rank.kept = "not intact";
    }
  }
  rank.ended = std::move(ended);
  return rank;
}

using Words = std::vector<std::string>;

// One process per rank; `only` are further words for one of them. With `outlives`, that one stays until the
// others have ended, and is killed then.
std::vector<Rank> run(int world, const Words& words, int one = -1, const Words& only = {},
                      bool outlives = false) {
  const char* const worker = std::getenv("SLUICE_RANKS_WORKER");
  REQUIRE(worker != nullptr);
  const std::string port = std::to_string(test::free_port());
  std::vector<Rank> ranks(static_cast<std::size_t>(world));
  std::atomic<int> running = world;
  test::When kill_last;
  if (outlives)
    kill_last = test::send_signal(SIGKILL, std::function<bool()>([&running] { return running == 1; }));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    Words all{worker, "--rank", std::to_string(rank), "--world", std::to_string(world), "--port", port};
    all.insert(all.end(), words.begin(), words.end());
    if (rank == one) all.insert(all.end(), only.begin(), only.end());
    threads.emplace_back([&, all, rank] {
      ranks[static_cast<std::size_t>(rank)] =
          read(test::run_program(all, "/", rank == one ? kill_last : test::When{}));
      --running;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const Words exact{"--precision", "fp64", "--sync-bn", "--mix"};

// The first steps of each rank against those of one that is alone.
void check_alike(const std::vector<Rank>& ranks, const Rank& alone, std::size_t steps) {
  for (const Rank& rank : ranks) {
    CAPTURE(rank.ended.err);
    REQUIRE(rank.lines.size() == steps);
    REQUIRE(alone.lines.size() >= steps);
    for (std::size_t i = 0; i < steps; ++i) {
      CHECK(std::abs(rank.lines[i].loss / alone.lines[i].loss - 1) < 1e-9);
      CHECK(rank.lines[i].params == ranks[0].lines[i].params);
      CHECK(rank.lines[i].state == ranks[0].lines[i].state);
    }
    CHECK(rank.lines.front().params != rank.lines.back().params);
  }
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void check_ended_by(const Rank& rank, const std::string& reason) {
  CAPTURE(rank.ended.err);
  CHECK(rank.ended.code == 1);
  CHECK(has(rank.ended.err, "lost: ranks: " + reason));
  CHECK(has(rank.ended.err, "failed: ranks: " + reason));
  REQUIRE(!rank.lines.empty());
  CHECK(rank.kept == rank.lines.back().state);
}

}  // namespace

TEST_SUITE("long") {
  TEST_CASE("ranks: two train as one does; when one freezes, the other ends with the last finished step") {
    const Words words = exact + Words{"--size", "16", "--heartbeat", "1500"};
    const Rank alone = run(1, words + Words{"--batch", "4", "--steps", "2"})[0];
    CHECK(alone.ended.code == 0);
    const auto two = run(2, words + Words{"--batch", "2", "--steps", "3"}, 1, {"--freeze-at", "2"},
                         /*outlives=*/true);
    check_alike(two, alone, 2);
    check_ended_by(two[0], "rank 1 (");
    CHECK(two[1].ended.code == 128 + SIGKILL);
  }

  TEST_CASE("ranks: 1 x 64, 2 x 32 and 4 x 16 train alike") {
    const Words words = exact + Words{"--size", "16", "--steps", "20", "--batch"};
    const Rank alone = run(1, words + Words{"64"})[0];
    for (const int world : {2, 4}) {
      const auto ranks = run(world, words + Words{std::to_string(64 / world)});
      check_alike(ranks, alone, 20);
      for (const Rank& rank : ranks) CHECK(rank.ended.code == 0);
    }
  }

  TEST_CASE("ranks: without synchronised norms, and in parts, parameters are the same bits on all") {
    const auto ranks = run(3, {"--steps", "3", "--size", "32", "--batch", "4", "--accumulate", "2", "--mix"});
    for (const Rank& rank : ranks) {
      CAPTURE(rank.ended.err);
      REQUIRE(rank.lines.size() == 3);
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK(rank.lines[i].params == ranks[0].lines[i].params);
        CHECK(rank.lines[i].loss == ranks[0].lines[i].loss);
      }
    }
  }

  TEST_CASE("ranks: a killed rank ends the others, whoever it was") {
    const Words words{"--steps", "4", "--size", "16", "--batch", "2", "--heartbeat", "3000"};
    const auto third = run(3, words, 2, {"--die-at", "2"});
    CHECK(third[2].ended.code == 128 + SIGKILL);
    check_ended_by(third[0], "rank 2 (");
    check_ended_by(third[1], "rank 2 (");
    const auto keeper = run(2, words, 0, {"--die-at", "2"});  // takes the store with it
    check_ended_by(keeper[1], "rank 0 (");
  }

  TEST_CASE("ranks: a rank that fails says why, and the others repeat it") {
    const Words words{"--steps", "4", "--size", "16", "--batch", "2", "--heartbeat", "6000"};
    for (const int one : {0, 1}) {
      const auto ranks = run(2, words, one, {"--fail-at", "2"});
      check_ended_by(ranks[static_cast<std::size_t>(1 - one)], "rank " + std::to_string(one) + " (");
      CHECK(has(ranks[static_cast<std::size_t>(1 - one)].ended.err, "fails as it was told to"));
    }
  }
}
