#include "graph/memory/slots.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "graph/memory/split.hpp"

using namespace sluice;

TEST_CASE("slots: samples and labels of any size stand apart, within what the budget was asked for") {
  for (const std::size_t label_bytes : {1u, 4u, 8u, 4097u}) {
    CAPTURE(label_bytes);
    constexpr std::uint32_t places = 5;
    constexpr std::size_t place_bytes = 1001;
    Slot slot(places, place_bytes, label_bytes);
    slot.bind(0);
    slot.open(places);
    CHECK(slot.memory().size() == Slot::bytes_for(places, place_bytes, label_bytes));
    for (std::uint32_t i = 0; i < places; ++i) {
      std::ranges::fill(slot.place(i), static_cast<std::uint8_t>(1 + i));
      std::ranges::fill(slot.label(i), static_cast<std::uint8_t>(101 + i));
    }
    for (std::uint32_t i = 0; i < places; ++i) {
      CHECK(std::ranges::count(slot.place(i), 1 + i) == place_bytes);
      CHECK(std::ranges::count(slot.label(i), 101 + i) == static_cast<std::ptrdiff_t>(label_bytes));
    }
    const auto end = slot.memory().data() + slot.memory().size();
    CHECK(slot.label(places - 1).data() + label_bytes == end);

    SplitRequest r;
    r.batch = places, r.place_bytes = place_bytes, r.label_bytes = label_bytes;
    r.slots = 2, r.grant = 1, r.max_file = 1, r.budget = 1 << 24;
    const Result<BudgetSplit> split = split_budget(r);
    REQUIRE(split);
    CHECK(split->slot_bytes == slot.memory().size());
  }
}

TEST_CASE("slots: labels are numbers only where each is one") {
  Slot numbers(3, 10), wide(3, 10, 12);
  for (Slot* slot : {&numbers, &wide}) {
    slot->bind(0);
    slot->open(3);
  }
  numbers.labels()[2] = -1;
  CHECK(std::ranges::count(numbers.label(2), 0xFF) == 4);
  CHECK_THROWS_AS((void)wide.labels(), std::logic_error);
  CHECK_THROWS_AS((void)numbers.labels<std::int64_t>(), std::logic_error);
}
