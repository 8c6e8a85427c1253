#include "nodes/record/tensorboard.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <ctime>
#include <limits>
#include <map>

#include "tests/support/folder.hpp"

using namespace sluice;
namespace fs = std::filesystem;

namespace {

// Bit by bit, so that it shares nothing with the table of the writer.
std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const bool odd = ((crc ^ (static_cast<unsigned char>(byte) >> bit)) & 1) != 0;
      crc = odd ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
    }
  return ~crc;
}

std::uint32_t masked(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

template <class T>
T take(std::string_view& from) {
  T value{};
  REQUIRE(from.size() >= sizeof value);
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return value;
}

std::uint64_t take_varint(std::string_view& from) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    const auto byte = take<unsigned char>(from);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  FAIL("a varint without end");
  return 0;
}

std::string_view take_bytes(std::string_view& from, std::size_t count) {
  REQUIRE(from.size() >= count);
  const std::string_view bytes = from.substr(0, count);
  from.remove_prefix(count);
  return bytes;
}

// A message's fields by number; numbers of any width as their bits.
struct Field {
  std::uint64_t number = 0;
  std::string_view bytes;
};
std::multimap<std::uint64_t, Field> fields(std::string_view message) {
  std::multimap<std::uint64_t, Field> all;
  while (!message.empty()) {
    const std::uint64_t key = take_varint(message);
    Field field;
    switch (key & 7) {
      case 0:
        field.number = take_varint(message);
        break;
      case 1:
        field.number = take<std::uint64_t>(message);
        break;
      case 2:
        field.bytes = take_bytes(message, take_varint(message));
        break;
      case 5:
        field.number = take<std::uint32_t>(message);
        break;
      default:
        FAIL("wire type " << (key & 7));
    }
    all.emplace(key >> 3, field);
  }
  return all;
}

struct Event {
  double wall = 0;
  std::int64_t step = 0;
  std::string version;
  bool start = false;
  std::vector<std::pair<std::string, float>> scalars;
};

Event parse(std::string_view message) {
  Event event;
  for (const auto& [number, field] : fields(message)) {
    if (number == 1) event.wall = std::bit_cast<double>(field.number);
    if (number == 2) event.step = static_cast<std::int64_t>(field.number);
    if (number == 3) event.version = field.bytes;
    if (number == 7) event.start = fields(field.bytes).find(1)->second.number == 1;
    if (number != 5) continue;
    for (const auto& [one, value] : fields(field.bytes)) {
      CHECK(one == 1);
      const auto parts = fields(value.bytes);
      event.scalars.emplace_back(
          parts.find(1)->second.bytes,
          std::bit_cast<float>(static_cast<std::uint32_t>(parts.find(2)->second.number)));
    }
  }
  return event;
}

std::vector<Event> read_events(const fs::path& path) {
  const std::string bytes = test::read_text(path);
  std::vector<Event> events;
  for (std::string_view rest = bytes; !rest.empty();) {
    const std::string_view length_bytes = rest.substr(0, 8);
    const auto length = take<std::uint64_t>(rest);
    CHECK(take<std::uint32_t>(rest) == masked(length_bytes));
    const std::string_view message = take_bytes(rest, length);
    CHECK(take<std::uint32_t>(rest) == masked(message));
    events.push_back(parse(message));
  }
  return events;
}

std::vector<fs::path> event_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

TEST_CASE("an event per record, as TensorBoard's format wants it") {
  REQUIRE(crc32c("123456789") == 0xe3069283);  // the check value that CRC catalogues give
  const test::TemporaryFolder folder;
  const double infinite = std::numeric_limits<double>::infinity();
  {
    auto file = EventFile::open(folder.path());
    REQUIRE(file);
    CHECK((*file)->write({"train", 0, 1, {{"train/loss", 2.3}, {"train/lr", 1e-9}}, {{"note", "text"}}}));
    CHECK((*file)->write({"note", 0, 1, {}, {{"reason", "nothing to draw"}}}));
    CHECK((*file)->write({"val", 3, 5'000'000'000, {{"a", infinite}, {"b", -infinite}, {"c", 1e300}}}));
    CHECK((*file)->write({"val", 3, 6'000'000'000, {{std::string(300, 'x'), std::nan("")}}}));
    CHECK((*file)->sync());
  }
  const auto files = event_files(folder.path());
  REQUIRE(files.size() == 1);
  const std::vector<Event> events = read_events(files[0]);
  REQUIRE(events.size() == 5);
  CHECK(events[0].version == "brain.Event:2");
  CHECK(events[1].start);
  CHECK(events[1].step == 0);
  using Scalars = std::vector<std::pair<std::string, float>>;
  CHECK(events[2].step == 1);
  CHECK(events[2].scalars == Scalars{{"train/loss", 2.3F}, {"train/lr", 1e-9F}});
  CHECK(events[3].step == 5'000'000'000);
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(events[3].scalars == Scalars{{"a", inf}, {"b", -inf}, {"c", inf}});
  REQUIRE(events[4].scalars.size() == 1);
  CHECK(events[4].scalars[0].first == std::string(300, 'x'));
  CHECK(std::isnan(events[4].scalars[0].second));
  const double now = static_cast<double>(std::time(nullptr));
  for (const Event& event : events) CHECK(std::abs(event.wall - now) < 60);
}

TEST_CASE("a later file sorts behind the earlier ones, even within a second or with the clock set back") {
  const test::TemporaryFolder folder;
  std::vector<fs::path> before;
  const auto open_one = [&] {
    REQUIRE(EventFile::open(folder.path()));
    const std::vector<fs::path> now = event_files(folder.path());
    REQUIRE(now.size() == before.size() + 1);
    CHECK(std::equal(before.begin(), before.end(), now.begin()));
    before = now;
  };
  for (int i = 0; i < 3; ++i) open_one();
  const fs::path future = folder / "events.out.tfevents.4000000000.host.1";
  test::write_file(future, std::string());
  before.push_back(future);
  open_one();
  test::write_file(folder / "events.out.tfevents.odd", std::string());
  before.push_back(folder / "events.out.tfevents.odd");
  CHECK(EventFile::open(folder.path()));
}

TEST_CASE("going on from a step: later events are dropped, and what the metrics keep of it is told again") {
  const test::TemporaryFolder folder;
  const fs::path metrics = folder / "metrics.jsonl";
  std::string lines;
  for (const Record& r :
       {Record{"train", 0, 2, {{"train/loss", 3}}}, Record{"train", 0, 20, {{"train/loss", 2}}},
        Record{"val", 0, 20, {{"val/loss", 0.1}, {"odd", std::nan("")}}, {{"t", "\"step\":20"}}},
        Record{"x", 0, 200, {{"y", 1}}, {{"t", "\"step\":20"}}}})
    lines += json_line(r) + "\n";
  test::write_file(metrics, lines + "{\"event\":\"tr");
  {
    auto file = EventFile::open(folder.path(), 20, metrics);
    REQUIRE(file);
    CHECK((*file)->write({"train", 0, 21, {{"train/loss", 1}}}));
  }
  const std::vector<Event> events = read_events(event_files(folder.path()).at(0));
  REQUIRE(events.size() == 5);
  CHECK(events[1].start);
  CHECK(events[1].step == 20);
  for (std::size_t i = 2; i < 4; ++i) CHECK(events[i].step == 20);
  using Scalars = std::vector<std::pair<std::string, float>>;
  CHECK(events[2].scalars == Scalars{{"train/loss", 2}});
  REQUIRE(events[3].scalars.size() == 2);
  const std::map<std::string, float> told(events[3].scalars.begin(), events[3].scalars.end());
  CHECK(told.at("val/loss") == 0.1F);
  CHECK(std::isnan(told.at("odd")));
  CHECK(events[4].step == 21);
}

TEST_CASE("where no file tells them yet, all records that are kept are told again") {
  const test::TemporaryFolder folder;
  const fs::path metrics = folder / "metrics.jsonl";
  std::string lines = "no record\n[1]\n{\"step\":\"odd\",\"x\":1}\n";
  for (const Record& r :
       {Record{"train", 0, 2, {{"train/loss", 3}}}, Record{"val", 0, 4, {{"val/loss", 0.1}}}})
    lines += json_line(r) + "\n";
  test::write_file(metrics, lines + R"({"event":"fork","epoch":0,"step":4,"from":"x"})" + "\n");
  CHECK_FALSE(has_events(folder.path()));
  REQUIRE(EventFile::open(folder.path(), 4, metrics, true));
  CHECK(has_events(folder.path()));
  const std::vector<Event> events = read_events(event_files(folder.path()).at(0));
  REQUIRE(events.size() == 4);
  CHECK(events[1].start);
  CHECK(events[1].step == 0);
  CHECK(events[2].step == 2);
  CHECK(events[3].step == 4);
  CHECK_FALSE(has_events("/no/such/folder"));
}

TEST_CASE("records that are nested without end are left out, and a line that is too long is refused") {
  const test::TemporaryFolder folder;
  const fs::path metrics = folder / "metrics.jsonl";
  const std::string deep = "{\"step\":" + std::string(400'000, '[') + std::string(400'000, ']') +
                           "}\n{\"step\":2,\"x\":" + std::string(400'000, '[') + std::string(400'000, ']') +
                           "}\n";
  test::write_file(metrics, deep + json_line({"train", 0, 4, {{"train/loss", 3}}}) + "\n");
  REQUIRE(EventFile::open(folder.path(), 4, metrics, true));
  const std::vector<Event> events = read_events(event_files(folder.path()).at(0));
  REQUIRE(events.size() == 3);
  CHECK(events[2].step == 4);

  fs::resize_file(metrics, std::uintmax_t{30} << 30);
  const auto refused = EventFile::open(folder.path(), 4, metrics);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text().find(metrics.string() + ": its line 4 is longer than 1 MiB") !=
        std::string::npos);
}

TEST_CASE("a folder that cannot be written to is an error that names the file") {
  const auto file = EventFile::open("/no/such/folder");
  REQUIRE_FALSE(file);
  CHECK(file.error().subject.starts_with("/no/such/folder/events.out.tfevents."));
}
