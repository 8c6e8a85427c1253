#include "model/device/kept_memory.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "base/random.hpp"

using namespace sluice;

namespace {

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;

struct Block {
  std::uint8_t* data;
  std::size_t size;
  std::uint8_t mark;
};

// Marks both ends, as whole blocks would take long to fill.
Block take(KeptMemory& memory, std::size_t size, std::uint8_t mark) {
  auto* data = static_cast<std::uint8_t*>(memory.allocate(size));
  REQUIRE(data != nullptr);
  data[0] = data[size - 1] = mark;
  return {data, size, mark};
}

bool intact(const Block& b) { return b.data[0] == b.mark && b.data[b.size - 1] == b.mark; }

std::size_t held(const KeptMemory& memory) { return memory.usage().in_use + memory.usage().kept; }

// As a network does: allocates layer by layer, and frees from the last to the first with a temporary each.
void pass(KeptMemory& memory, std::size_t images) {
  std::vector<Block> layers;
  for (std::size_t i = 0; i < 12; ++i)
    layers.push_back(take(memory, images * ((12 - i) * 48 * KiB + 512), static_cast<std::uint8_t>(i)));
  for (; !layers.empty(); layers.pop_back()) {
    const Block gradient = take(memory, layers.back().size, 99);
    CHECK(intact(layers.back()));
    memory.free(layers.back().data);
    memory.free(gradient.data);
  }
}

}  // namespace

TEST_CASE("kept memory: a freed block is there again, untouched by the kernel") {
  const auto memory = KeptMemory::reserve(64 * MiB);
  REQUIRE(memory);
  const Block first = take(*memory, MiB, 7);
  CHECK(memory->owns(first.data));
  CHECK(memory->owns(first.data + MiB - 1));
  CHECK_FALSE(memory->owns(&first));
  CHECK(reinterpret_cast<std::uintptr_t>(first.data) % 64 == 0);
  memory->free(first.data);
  CHECK(memory->usage().kept == MiB);
  auto* again = static_cast<std::uint8_t*>(memory->allocate(MiB - 100));
  REQUIRE(again == first.data);
  CHECK(again[0] == 7);
  CHECK(memory->usage().kept == 0);
  CHECK(memory->usage().in_use == MiB);
  memory->free(again);
}

TEST_CASE("kept memory: free neighbours serve a block larger than each") {
  const auto memory = KeptMemory::reserve(64 * MiB);
  REQUIRE(memory);
  std::vector<Block> small;
  for (int i = 0; i < 4; ++i) small.push_back(take(*memory, MiB, 1));
  for (const int i : {0, 2, 1, 3}) memory->free(small[static_cast<std::size_t>(i)].data);
  const Block large = take(*memory, 4 * MiB, 2);
  CHECK(large.data == small[0].data);
  CHECK(held(*memory) == 4 * MiB);
  memory->free(large.data);
  const Block larger = take(*memory, 5 * MiB, 3);  // goes on from what is free at the end
  CHECK(larger.data == small[0].data);
  CHECK(held(*memory) == 5 * MiB);
  memory->free(larger.data);
}

TEST_CASE("kept memory: what cannot serve goes back to the kernel") {
  const auto memory = KeptMemory::reserve(64 * MiB);
  REQUIRE(memory);
  const Block free = take(*memory, 4 * MiB, 5);
  const Block wall = take(*memory, 256 * KiB, 6);
  memory->free(free.data);
  const Block large = take(*memory, 5 * MiB, 7);
  CHECK(memory->usage().returned == 4 * MiB);
  CHECK(held(*memory) == memory->usage().peak);
  const auto* zeroed = static_cast<std::uint8_t*>(memory->allocate(4 * MiB));
  REQUIRE(zeroed == free.data);
  CHECK(zeroed[0] == 0);
  CHECK(intact(wall));
  CHECK(intact(large));
}

TEST_CASE("kept memory: steps repeat without new memory, and other shapes do not add up") {
  const auto memory = KeptMemory::reserve(1024 * MiB);
  REQUIRE(memory);
  pass(*memory, 8);
  pass(*memory, 8);
  const KeptMemory::Usage first = memory->usage();
  CHECK(first.in_use == 0);
  for (int i = 0; i < 3; ++i) pass(*memory, 8);
  CHECK(memory->usage().kept == first.kept);
  CHECK(memory->usage().returned == first.returned);
  for (int i = 0; i < 4; ++i)
    for (const std::size_t images : {8u, 5u, 3u, 7u}) pass(*memory, images);
  CHECK(memory->usage().peak == first.peak);
  CHECK(held(*memory) <= first.peak + first.peak / 8);
}

TEST_CASE("kept memory: any order of blocks keeps them apart and within the bound") {
  const auto memory = KeptMemory::reserve(256 * MiB);
  REQUIRE(memory);
  Random random(3, 0, 0, Purpose::synth);
  std::vector<Block> blocks;
  std::size_t pages = 0;
  const auto whole = [](std::size_t bytes) { return (bytes + 4095) / 4096; };
  for (int i = 0; i < 4000; ++i) {
    if (blocks.size() < 40 && random.below(2) == 0) {
      const std::size_t size = 1 + random.below(i % 3 == 0 ? 2 * MiB : 200 * KiB);
      blocks.push_back(take(*memory, size, static_cast<std::uint8_t>(i)));
      pages += whole(size);
    } else if (!blocks.empty()) {
      const std::size_t which = random.below(static_cast<std::uint32_t>(blocks.size()));
      REQUIRE(intact(blocks[which]));
      memory->free(blocks[which].data);
      pages -= whole(blocks[which].size);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(which));
    }
    const KeptMemory::Usage usage = memory->usage();
    REQUIRE(usage.in_use == 4096 * pages);
    REQUIRE(usage.in_use + usage.kept <= usage.peak + usage.peak / 8);
  }
}

TEST_CASE("kept memory: says so where there is no room") {
  CHECK(KeptMemory::reserve(std::size_t{1} << 62) == nullptr);
  const auto memory = KeptMemory::reserve(MiB);
  REQUIRE(memory);
  CHECK(memory->allocate(0) == nullptr);
  CHECK(memory->allocate(2 * MiB) == nullptr);
  CHECK(memory->allocate(SIZE_MAX) == nullptr);
  void* all = memory->allocate(MiB);
  REQUIRE(all);
  CHECK(memory->allocate(1) == nullptr);
  memory->free(all);
  CHECK(memory->allocate(1) != nullptr);
}

TEST_CASE("kept memory: many threads take and free blocks while others look; no two share a byte") {
  const auto memory = KeptMemory::reserve(256 * MiB);
  REQUIRE(memory);
  std::atomic<int> spoilt = 0, beyond = 0, at_work = 4;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        Random random(5, 0, static_cast<std::uint64_t>(t), Purpose::synth);
        std::vector<Block> blocks;
        for (int i = 0; i < 1500; ++i) {
          if (blocks.size() < 10 && random.below(2) == 0) {
            const std::size_t size = 1 + random.below(i % 3 == 0 ? MiB : 64 * KiB);
            auto* data = static_cast<std::uint8_t*>(memory->allocate(size));
            if (data == nullptr) continue;
            const auto mark = static_cast<std::uint8_t>(16 * t + i % 16);
            data[0] = data[size - 1] = mark;
            blocks.push_back({data, size, mark});
          } else if (!blocks.empty()) {
            const Block block = blocks[random.below(static_cast<std::uint32_t>(blocks.size()))];
            std::erase_if(blocks, [&](const Block& b) { return b.data == block.data; });
            spoilt += !intact(block);
            memory->free(block.data);
          }
        }
        for (const Block& block : blocks) spoilt += !intact(block), memory->free(block.data);
        --at_work;
      });
    threads.emplace_back([&] {
      while (at_work > 0) {
        const KeptMemory::Usage usage = memory->usage();
        beyond += usage.in_use + usage.kept > usage.peak + usage.peak / 8 || usage.recent > usage.peak;
        memory->mark();
      }
    });
  }
  CHECK(spoilt == 0);
  CHECK(beyond == 0);
  CHECK(memory->usage().in_use == 0);
}
