#include "graph/memory/split.hpp"

#include <doctest/doctest.h>

#include "graph/memory/chunks.hpp"
#include "graph/memory/slots.hpp"

using namespace sluice;

namespace {

constexpr std::size_t MiB = 1024 * 1024;

// ResNet-50 at batch 256, 224 px, on a machine with 8 decode threads.
SplitRequest imagenet(std::size_t budget) {
  SplitRequest r;
  r.budget = budget;
  r.index = 30 * MiB;
  r.batch = 256;
  r.place_bytes = 224 * 224 * 3;
  r.decode_threads = 8;
  r.thread_scratch = 4 * MiB;
  r.max_file = 16 * MiB;
  r.max_scratch = 64 * MiB;
  r.grant = 256 * 1024;
  return r;
}

}  // namespace

TEST_CASE("split: a batch of 256 at 224 px takes 38.5 MB") {
  CHECK(Slot::bytes_for(256, 224 * 224 * 3) == doctest::Approx(38.5e6).epsilon(0.002));
}

TEST_CASE("split: what it gives out never exceeds the budget and always holds the minimum") {
  for (std::size_t budget = 200 * MiB; budget <= 8192 * MiB; budget += 97 * MiB) {
    CAPTURE(budget);
    const auto s = split_budget(imagenet(budget));
    if (!s) continue;
    CHECK(s->total() <= budget);
    CHECK(s->slots >= 2);
    CHECK(s->chunks >= s->grant_chunks * 9);
  }
}

TEST_CASE(
    "split: a budget too small for two slots is refused with the arithmetic and the smallest that works") {
  const auto refused = split_budget(imagenet(150 * MiB));
  REQUIRE_FALSE(refused);
  const std::string text = refused.error().text();
  CHECK(text.find("budget.ram = 150.0 MiB") != std::string::npos);
  CHECK(text.find("2 x 36.8 MiB") != std::string::npos);
  CHECK(text.find("big lane") != std::string::npos);

  const std::string before = "set budget.ram to \"";
  const std::size_t at = text.find(before);
  REQUIRE(at != std::string::npos);
  const std::size_t least = std::stoul(text.substr(at + before.size()));
  CHECK(split_budget(imagenet(least * MiB)));
  CHECK_FALSE(split_budget(imagenet((least - 1) * MiB)));
}

TEST_CASE("split: a prefetch that does not fit is refused, and told how many would") {
  SplitRequest r = imagenet(400 * MiB);
  r.slots = 20;
  const auto refused = split_budget(r);
  REQUIRE_FALSE(refused);
  const std::string before = "pipeline.prefetch to ";
  const std::string text = refused.error().text();
  REQUIRE(text.find(before) != std::string::npos);
  r.slots = static_cast<unsigned>(std::stoul(text.substr(text.find(before) + before.size())));
  CHECK(split_budget(r));
  ++*r.slots;
  CHECK_FALSE(split_budget(r));
}

TEST_CASE("split: copies for augmentation come out of the same budget") {
  SplitRequest r = imagenet(400 * MiB);
  r.read_ahead = 100'000;  // all that fits
  const auto without = split_budget(r);
  REQUIRE(without);
  r.thread_copy = 10 * MiB - 1;
  const auto with = split_budget(r);
  REQUIRE(with);
  CHECK(with->copies == 80 * MiB);
  CHECK(with->total() <= 400 * MiB);
  CHECK(with->chunks < without->chunks);
  r.thread_copy = 50 * MiB;
  const auto refused = split_budget(r);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text().find("augment         400.0 MiB") != std::string::npos);
}

TEST_CASE("split: what was asked for is what one gets") {
  SplitRequest r = imagenet(4096 * MiB);
  r.slots = 5;
  r.read_ahead = 64;
  const auto s = split_budget(r);
  REQUIRE(s);
  CHECK(s->slots == 5);
  CHECK(s->read_ahead == 64);
  CHECK(s->chunks == 64 * s->grant_chunks);
}
