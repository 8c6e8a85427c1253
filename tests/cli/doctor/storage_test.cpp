#include "cli/doctor/storage.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace sluice;
using Verdict = Checklist::Verdict;

namespace {

ReadFigures figures(unsigned in_flight, std::size_t files, double seconds, double each_ms) {
  ReadFigures f;
  f.in_flight = in_flight;
  f.files = files;
  f.bytes = files * 110'000;
  f.seconds = seconds;
  f.median_ms = each_ms;
  f.slowest_ms = 2 * each_ms;
  return f;
}

Checklist::Line judged(const StorageReport& f) {
  Checklist list;
  look_at_storage(list, f);
  REQUIRE(list.lines().size() == 1);
  return list.lines().front();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

double value(const Checklist::Line& line, const std::string& name) {
  const auto at = std::ranges::find(line.figures, name, &std::pair<std::string, double>::first);
  REQUIRE(at != line.figures.end());
  return at->second;
}

}  // namespace

TEST_CASE("doctor, storage: a fast disk passes, with what it allows") {
  const Checklist::Line line = judged({figures(1, 48, 0.024, 0.5), figures(16, 256, 0.064, 1.0)});
  CHECK(line.verdict == Verdict::ok);
  CHECK(has(line.found, "0.50 ms a file of 110 KB"));
  CHECK(has(line.found, "1 in flight: 2000 images/s, 220 MB/s"));
  CHECK(has(line.found, "16 in flight: 4000 images/s, 440 MB/s"));
  CHECK(has(line.found, "read cold"));
  CHECK(value(line, "images_per_s") == doctest::Approx(4000));
  CHECK(value(line, "images_per_s_1_in_flight") == doctest::Approx(2000));
}

TEST_CASE("doctor, storage: a slow mount is a warning that counts how many files must be in flight") {
  const Checklist::Line line = judged({figures(1, 30, 2.52, 84), figures(16, 256, 1.344, 84)});
  CHECK(line.verdict == Verdict::warning);
  CHECK(has(line.hint, "about 84 files must be in flight"));
  CHECK(has(line.hint, "pipeline.read_threads"));
}

TEST_CASE("doctor, storage: slow each, but fast together is fine") {
  CHECK(judged({figures(1, 30, 2.52, 84), figures(256, 1024, 0.4, 84)}).verdict == Verdict::ok);
}

TEST_CASE("doctor, storage: says when figures may not be storage's own") {
  StorageReport f{figures(1, 48, 0.024, 0.5), figures(16, 256, 0.064, 1.0)};
  f.many.cached = 7;
  CHECK(has(judged(f).found, "7 of 304 files were read from memory"));
  f.many.cached = 0;
  f.one.unknown = 48;
  CHECK(has(judged(f).found, "may have been read from memory"));
}

TEST_CASE("doctor, storage: a file that cannot be read fails; so does storage that gives nothing") {
  StorageReport f{figures(1, 47, 0.024, 0.5), figures(16, 256, 0.064, 1.0)};
  f.one.failed = 1;
  f.one.failure = Error{"storage", "train/a/x.JPEG", "Permission denied", "mend it"};
  const Checklist::Line line = judged(f);
  CHECK(line.verdict == Verdict::fail);
  CHECK(has(line.found, "train/a/x.JPEG: Permission denied (1 of 304 files that were tried)"));
  CHECK(judged({figures(1, 0, 3, 0), figures(16, 0, 3, 0)}).verdict == Verdict::fail);
}
