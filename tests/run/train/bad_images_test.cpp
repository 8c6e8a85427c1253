#include "run/train/bad_images.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "run/train/run_folder.hpp"
#include "tests/support/folder.hpp"

using namespace sluice;
using namespace sluice::test;
using nlohmann::json;

namespace {

// Batch `in_phase` of a phase.
BatchPlan batch(std::uint64_t in_phase, Split split = Split::train, std::uint32_t epoch = 0) {
  BatchPlan plan;
  plan.split = split;
  plan.epoch = epoch;
  plan.in_phase = in_phase;
  plan.phase_batches = 1000;
  return plan;
}

std::vector<Bad> some(std::size_t count) {
  std::vector<Bad> bad;
  for (std::uint32_t i = 0; i < count; ++i)
    bad.push_back({i, "a/" + std::to_string(i) + ".jpg", "empty file", ""});
  return bad;
}

std::vector<json> lines(const std::filesystem::path& file) {
  std::istringstream in(read_text(file));
  std::vector<json> all;
  for (std::string line; std::getline(in, line);) all.push_back(json::parse(line));
  return all;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("bad images: each is listed with where it stood and what took its place") {
  const TemporaryFolder folder;
  BadImages bad(folder / "quarantine.jsonl", 1.0);
  REQUIRE(bad.note(batch(0), 100, {}));
  CHECK_FALSE(std::filesystem::exists(folder / "quarantine.jsonl"));  // a sound data set leaves no list
  REQUIRE(
      bad.note(batch(3, Split::train, 2), 100,
               {{5, "t/a/1.jpg", "not a JPEG", "t/a/9.jpg"}, {7, "t/b/2.jpg", "empty file", "t/b/8.jpg"}}));
  REQUIRE(bad.note(batch(0, Split::val, 2), 50, {{1, "v/a/1.jpg", "empty file", ""}}));
  const std::vector<json> listed = lines(folder / "quarantine.jsonl");
  REQUIRE(listed.size() == 3);
  CHECK(listed[0] == json{{"file", "t/a/1.jpg"},
                          {"cause", "not a JPEG"},
                          {"split", "train"},
                          {"epoch", 2},
                          {"batch", 3},
                          {"place", 5},
                          {"replacement", "t/a/9.jpg"}});
  CHECK(listed[1].at("file") == "t/b/2.jpg");
  CHECK(listed[1].at("place") == 7);
  CHECK(listed[2].at("split") == "val");
  CHECK(listed[2].at("batch") == 0);
  CHECK(listed[2].at("replacement") == "");
}

TEST_CASE("bad images: odd file names make lines that read back") {
  const TemporaryFolder folder;
  BadImages bad(folder / "quarantine.jsonl", 1.0);
  const std::vector<std::string> sound{
      "a/\"quoted\".jpg",    "a/back\\slash.jpg", "a/line\nfeed\r\t.jpg", std::string("a/\x01\x1f\x7f.jpg"),
      "a/f\u00fc\u00df.jpg", "a/\U0001F600.jpg",  "a/{\"file\":1}.jpg",   "a/\u2028.jpg"};
  std::vector<Bad> all;
  for (const std::string& name : sound) all.push_back({0, name, "cause of " + name, name});
  const std::vector<std::string> broken{"a/latin-\xfc.jpg", "a/\xff\xfe", "a/cut \xe2\x82", "a/\xc0\xaf.jpg"};
  for (const std::string& name : broken) all.push_back({0, name, name, name});
  REQUIRE(bad.note(batch(0), 100, all));

  const std::vector<json> listed = lines(folder / "quarantine.jsonl");
  REQUIRE(listed.size() == sound.size() + broken.size());
  for (std::size_t i = 0; i < sound.size(); ++i) {
    CHECK(listed[i].at("file") == sound[i]);
    CHECK(listed[i].at("cause") == "cause of " + sound[i]);
    CHECK(listed[i].at("replacement") == sound[i]);
  }
  // JSON holds no bytes that are not UTF-8: each turns into the replacement character, the rest stays.
  CHECK(listed[sound.size()].at("file") == "a/latin-\ufffd.jpg");
  CHECK(listed[sound.size() + 1].at("file") == "a/\ufffd\ufffd");
  CHECK(listed[sound.size() + 2].at("file") == "a/cut \ufffd");
  CHECK(has(listed[sound.size() + 3].at("file"), ".jpg"));
}

TEST_CASE("bad images: as many as data.max_bad are allowed, and one more ends the run") {
  const TemporaryFolder folder;
  BadImages bad(folder / "quarantine.jsonl", 0.01);
  CHECK(bad.note(batch(0), 300, some(1)));
  CHECK(bad.note(batch(1), 300, {}));
  CHECK(bad.note(batch(2), 300, some(2)));
  const Status over = bad.note(batch(3), 300, {{0, "a/last.jpg", "empty file", ""}});
  REQUIRE_FALSE(over);
  const std::string text = over.error().text();
  CHECK(has(text, "4 of 300 train images (1.33 %)"));
  CHECK(has(text, "data.max_bad"));
  CHECK(has(text, "a/last.jpg: empty file"));
  CHECK(has(text, (folder / "quarantine.jsonl").string()));
  CHECK(lines(folder / "quarantine.jsonl").size() == 4);  // the last one is on the list as well
}

TEST_CASE("bad images: the edge is exact for shares that binary fractions only come near") {
  const TemporaryFolder folder;
  for (int percent = 0; percent <= 100; ++percent) {
    CAPTURE(percent);
    for (const std::size_t images : {100u, 1'000u, 50'000u, 1'281'100u}) {
      const std::size_t allowed = images / 100 * static_cast<std::size_t>(percent);
      BadImages bad(folder / "quarantine.jsonl", percent / 100.0);
      bad.resume({.in_phase = allowed > 0 ? allowed - 1 : 0, .lines = 0});
      if (allowed > 0) CHECK(bad.note(batch(1), images, some(1)));
      CHECK_FALSE(bad.note(batch(2), images, some(1)));
    }
  }
}

TEST_CASE("bad images: none allowed means none") {
  const TemporaryFolder folder;
  BadImages bad(folder / "quarantine.jsonl", 0);
  CHECK(bad.note(batch(0), 1'281'167, {}));
  CHECK_FALSE(bad.note(batch(1), 1'281'167, some(1)));
}

TEST_CASE("bad images: the share is told in plain digits") {
  const TemporaryFolder folder;
  const auto text = [&](std::size_t count, std::uint64_t images) {
    BadImages bad(folder / "quarantine.jsonl", 0);
    const Status over = bad.note(batch(0, Split::val), images, some(count));
    REQUIRE_FALSE(over);
    return over.error().text();
  };
  CHECK(has(text(10, 10), "10 of 10 val images (100 %)"));
  CHECK(has(text(1, 8), "(12.5 %)"));
  CHECK(has(text(1, 1000), "(0.1 %)"));
}

TEST_CASE("bad images: each training and each validation is counted for itself") {
  const TemporaryFolder folder;
  BadImages bad(folder / "quarantine.jsonl", 0.02);
  CHECK(bad.note(batch(0), 100, some(1)));
  CHECK(bad.note(batch(1), 100, some(1)));
  CHECK(bad.note(batch(0, Split::val), 50, some(1)));
  CHECK(bad.note(batch(1, Split::val), 50, {}));
  CHECK(bad.note(batch(0, Split::train, 1), 100, {}));  // a clean first batch starts anew, too
  CHECK(bad.note(batch(1, Split::train, 1), 100, some(2)));
  CHECK_FALSE(bad.note(batch(2, Split::train, 1), 100, some(1)));
}

TEST_CASE("bad images: a place counts once, however many replacements were bad as well") {
  const TemporaryFolder folder;
  BadImages bad(folder / "quarantine.jsonl", 0.02);
  CHECK(bad.note(batch(0), 100,
                 {{3, "a/1.jpg", "empty file", "a/2.jpg"},
                  {3, "a/2.jpg", "empty file", "a/3.jpg"},
                  {3, "a/3.jpg", "empty file", "a/4.jpg"},
                  {4, "b/1.jpg", "empty file", "b/2.jpg"}}));
  CHECK(bad.counts() == BadCounts{2, 4});
  CHECK(lines(folder / "quarantine.jsonl").size() == 4);
  CHECK_FALSE(
      bad.note(batch(1), 100, {{3, "c/1.jpg", "empty file", "c/2.jpg"}}));  // a place of another batch
}

TEST_CASE("bad images: a resumed run goes on counting where it was, and lists nothing twice") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "quarantine.jsonl";
  BadCounts state;
  std::string before;
  {
    BadImages bad(file, 0.03);
    REQUIRE(bad.note(batch(0), 100, some(1)));
    REQUIRE(bad.note(batch(0, Split::val), 100, some(1)));
    REQUIRE(bad.note(batch(0, Split::train, 1), 100, some(2)));
    state = bad.counts();
    REQUIRE(bad.note(batch(1, Split::train, 1), 100, some(1)));
    before = read_text(file);
  }
  CHECK(state == BadCounts{2, 4});
  write_file(file, before + "{\"file\":\"a/to");  // killed while it wrote a line
  REQUIRE(cut_lines(file, state.lines));
  BadImages bad(file, 0.03);
  bad.resume(state);
  CHECK(bad.counts() == state);
  CHECK(bad.note(batch(1, Split::train, 1), 100, some(1)));
  CHECK(read_text(file) == before);
  CHECK(bad.counts() == BadCounts{3, 5});
  CHECK_FALSE(bad.note(batch(2, Split::train, 1), 100, some(1)));
}

TEST_CASE("bad images: a torn line is not built upon") {
  const TemporaryFolder folder;
  write_file(folder / "quarantine.jsonl", "{\"file\":\"a/1.jpg\"}\n{\"file\":\"a/to");
  BadImages bad(folder / "quarantine.jsonl", 1.0);
  REQUIRE(bad.note(batch(1), 100, some(1)));
  CHECK(lines(folder / "quarantine.jsonl").size() == 2);
}

TEST_CASE("bad images: a batch that ends the run is not counted, so that it can be noted again") {
  const TemporaryFolder folder;
  BadImages bad(folder / "quarantine.jsonl", 0.02);
  REQUIRE(bad.note(batch(0), 100, some(1)));
  const BadCounts before = bad.counts();
  REQUIRE_FALSE(bad.note(batch(1), 100, some(2)));
  CHECK(bad.counts() == before);
  BadImages more_allowed(folder / "quarantine.jsonl", 0.03);
  more_allowed.resume(before);
  CHECK(more_allowed.note(batch(1), 100, some(2)));
}

TEST_CASE("bad images: a list that cannot be written is an error by name") {
  const TemporaryFolder folder;
  BadImages nowhere(folder / "none/quarantine.jsonl", 1.0);
  CHECK(nowhere.note(batch(0), 100, {}));
  const Status lost = nowhere.note(batch(1), 100, some(1));
  REQUIRE_FALSE(lost);
  CHECK(has(lost.error().text(), (folder / "none/quarantine.jsonl").string()));
  CHECK(has(lost.error().text(), "No such file"));

  BadImages full("/dev/full", 1.0);
  const Status no_space = full.note(batch(0), 100, some(1));
  REQUIRE_FALSE(no_space);
  CHECK(has(no_space.error().text(), "No space left"));
  CHECK(full.counts() == BadCounts{0, 0});
}

TEST_CASE("bad images: ranks list their own and count together") {
  const TemporaryFolder folder;
  CHECK(quarantine_name(0) == "quarantine.jsonl");
  const std::filesystem::path file = folder / quarantine_name(3);
  CHECK(file.filename() == "quarantine.rank3.jsonl");
  BadImages bad(file, 0.05);
  REQUIRE(bad.list(batch(0), some(2)));
  REQUIRE(bad.count(batch(0), 100, 4));  // two of them another rank's
  REQUIRE(bad.list(batch(1), {}));
  REQUIRE(bad.count(batch(1), 100, 1));
  CHECK(bad.counts() == BadCounts{5, 2});
  const Status over = bad.count(batch(2), 100, 1);
  REQUIRE_FALSE(over);
  CHECK(has(over.error().text(), "6 of 100 train images (6 %)"));
  CHECK(lines(file).size() == 2);
  REQUIRE(bad.count(batch(0, Split::val), 100, 5));  // each phase has a count of its own
  const std::vector<Bad> twice = {{1, "a", "x", ""}, {1, "b", "x", ""}, {4, "c", "x", ""}};
  CHECK(BadImages::places(twice) == 2);
}

TEST_CASE("bad images: another rank's list goes back to the position of the checkpoint") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / quarantine_name(1);
  BadImages bad(file, 1.0);
  for (const std::uint32_t epoch : {0u, 1u})
    for (const Split split : {Split::train, Split::val})
      for (const std::uint64_t number : {2u, 5u}) REQUIRE(bad.list(batch(number, split, epoch), some(1)));
  REQUIRE(lines(file).size() == 8);
  const auto left = [&](const BatchPlan& next) {
    const Result<std::size_t> kept = cut_quarantine(file, next);
    REQUIRE(kept);
    CHECK(lines(file).size() == *kept);
    return *kept;
  };
  CHECK(left(batch(0, Split::train, 2)) == 8);
  CHECK(left(batch(5, Split::val, 1)) == 7);
  CHECK(left(batch(0, Split::val, 1)) == 6);
  CHECK(left(batch(3, Split::train, 1)) == 5);
  CHECK(left(batch(0)) == 0);
  write_file(file, "{\"epoch\":\"x\",\"split\":1,\"batch\":-3}\n{\"epoch\":1}\nno line of ours\n");
  CHECK(*cut_quarantine(file, batch(0, Split::train, 9)) == 3);
  std::filesystem::remove(file);
  CHECK(*cut_quarantine(file, batch(0)) == 0);
  std::filesystem::create_directory(file);
  CHECK_FALSE(cut_quarantine(file, batch(0)));
}

TEST_CASE("bad images: a line that is none of ours cuts off nothing behind it") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / quarantine_name(1);
  const auto line = [](int number) { return "{\"epoch\":0,\"batch\":" + std::to_string(number) + "}\n"; };
  // The last of them is cut off in the middle.
  const std::string nested = "{\"epoch\":" + std::string(400'000, '[') + std::string(400'000, ']') + "}\n";
  const std::string text = line(1) + "a note\n\n[1]\n" + line(2) + nested + line(3);
  write_file(file, text + line(7) + line(8) + "{\"epoch\":0,\"ba");
  CHECK(*cut_quarantine(file, batch(7)) == 7);
  CHECK(read_text(file) == text);
  REQUIRE(copy_quarantine(file, folder / "copy", batch(3)));
  CHECK(read_text(folder / "copy") == text.substr(0, text.size() - line(3).size()));
}

TEST_CASE("bad images: a list with a line that is too long is refused by its name") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / quarantine_name(1);
  write_file(file, std::string("{\"epoch\":0,\"batch\":1}\n"));
  std::filesystem::resize_file(file, std::uintmax_t{30} << 30);
  for (const auto& refused : {cut_quarantine(file, batch(0, Split::train, 9)), cut_lines(file, 5)}) {
    REQUIRE_FALSE(refused);
    CHECK(has(refused.error().text(), file.string() + ": its line 2 is longer than 1 MiB"));
  }
  CHECK(std::filesystem::file_size(file) == std::uintmax_t{30} << 30);
}
