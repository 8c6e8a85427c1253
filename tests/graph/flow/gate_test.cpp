#include "graph/flow/gate.hpp"

#include <doctest/doctest.h>

using namespace sluice;

namespace {

Sample of(std::uint64_t batch, std::uint32_t place, std::uint32_t places = 2) {
  Sample s;
  s.ticket.batch = batch;
  s.ticket.place = place;
  s.ticket.places = places;
  return s;
}

}  // namespace

TEST_CASE("gate: slots go to batches in order; samples of later ones park") {
  Slot first(2, 10), second(2, 10);
  SlotGate gate({&first, &second}, 5);
  std::vector<Sample*> go;
  Sample a = of(5, 0), b = of(6, 1), c = of(7, 0), d = of(7, 1), e = of(8, 0);

  for (Sample* s : {&c, &b, &e, &d, &a}) gate.arrive(s, go);
  CHECK(go == std::vector<Sample*>{&b, &a});
  CHECK(a.slot == &first);
  CHECK(b.slot == &second);
  CHECK(gate.parked() == 3);

  go.clear();
  gate.slot_came_back(&second, go);  // whichever slot comes back first serves the next batch
  REQUIRE(go.size() == 2);
  CHECK(c.slot == &second);
  CHECK(d.slot == &second);
  CHECK(second.batch() == 7);
  CHECK(gate.parked() == 1);

  go.clear();
  gate.slot_came_back(&first, go);
  CHECK(go == std::vector<Sample*>{&e});
  CHECK(gate.parked() == 0);
}

TEST_CASE("gate: a batch knows from its first sample how many places it has") {
  Slot slot(4, 10);
  SlotGate gate({&slot}, 0);
  std::vector<Sample*> go;
  Sample a = of(0, 1, 3), b = of(0, 0, 3), c = of(0, 2, 3);
  CHECK_FALSE(slot.is_open());
  gate.arrive(&a, go);
  CHECK(slot.places() == 3);
  CHECK_FALSE(slot.fill_one());
  gate.arrive(&b, go);
  CHECK_FALSE(slot.fill_one());
  gate.arrive(&c, go);
  CHECK(slot.fill_one());
}

TEST_CASE("gate: a sample that no slot can take is a programming error") {
  Slot first(2, 10), second(2, 10);
  SlotGate gate({&first, &second}, 5);
  std::vector<Sample*> go;
  Sample gone = of(4, 0), many = of(6, 0, 3), outside = of(5, 2), sound = of(5, 0), other = of(5, 1, 1);
  CHECK_THROWS_WITH_AS(gate.arrive(&gone, go), "gate: batch 4 has no slot any more", std::logic_error);
  CHECK_THROWS_WITH_AS(gate.arrive(&many, go), "slot: 3 places in one of 2", std::logic_error);
  CHECK_THROWS_WITH_AS(gate.arrive(&outside, go), "gate: place 2 of 2 in batch 5, which has 2",
                       std::logic_error);
  gate.arrive(&sound, go);
  CHECK_THROWS_WITH_AS(gate.arrive(&other, go), "gate: place 1 of 1 in batch 5, which has 2",
                       std::logic_error);
  CHECK(go == std::vector<Sample*>{&sound});
  Sample parked = of(7, 0, 3);
  gate.arrive(&parked, go);
  CHECK_THROWS_AS(gate.slot_came_back(&first, go), std::logic_error);
}

TEST_CASE("slot: it cannot be opened for more places than it has, nor for none") {
  Slot slot(2, 10);
  CHECK_THROWS_WITH_AS(slot.open(3), "slot: 3 places in one of 2", std::logic_error);
  CHECK_THROWS_WITH_AS(slot.open(0), "slot: 0 places in one of 2", std::logic_error);
  CHECK_FALSE(slot.is_open());
  slot.open(2);
  CHECK(slot.places() == 2);
}

TEST_CASE("slot: places do not overlap each other or the labels") {
  Slot slot(3, 1001);
  slot.open(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    std::fill(slot.place(i).begin(), slot.place(i).end(), static_cast<std::uint8_t>(i + 1));
    slot.labels()[i] = static_cast<std::int32_t>(100 + i);
  }
  for (std::uint32_t i = 0; i < 3; ++i) {
    for (const std::uint8_t v : slot.place(i)) REQUIRE(v == i + 1);
    CHECK(slot.labels()[i] == static_cast<std::int32_t>(100 + i));
  }
  CHECK(slot.memory().size() == Slot::bytes_for(3, 1001));
}

TEST_CASE("slot: a lease gives its slot back exactly once") {
  Slot slot(1, 10);
  int back = 0;
  const std::function<void(Slot*)> give_back = [&](Slot* s) {
    CHECK(s == &slot);
    ++back;
  };
  {
    SlotLease lease(&slot, &give_back);
    SlotLease moved = std::move(lease);
    CHECK(back == 0);
    moved.release();
    CHECK(back == 1);
    moved.release();
  }
  CHECK(back == 1);
  { const SlotLease forgotten(&slot, &give_back); }
  CHECK(back == 2);
}
