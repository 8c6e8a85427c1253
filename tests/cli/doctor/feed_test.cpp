#include "cli/doctor/feed.hpp"

#include <doctest/doctest.h>

using namespace sluice;
using Verdict = Checklist::Verdict;

TEST_CASE("doctor, feed: names what the device would wait for") {
  const auto looked = [](const FeedFigures& f) {
    Checklist list;
    look_at_feed(list, f);
    return list.lines().empty() ? Checklist::Line{"", Verdict::ok, "", ""} : list.lines().back();
  };
  CHECK(looked({5000, 300, 60, 1}).verdict == Verdict::ok);
  const Checklist::Line storage = looked({190, 3000, 1000, 8, true});
  CHECK(storage.verdict == Verdict::warning);
  CHECK(storage.hint.find("wait for storage") != std::string::npos);
  const Checklist::Line decode = looked({5000, 300, 1000, 1, true});
  CHECK(decode.hint.find("wait for decoding") != std::string::npos);
  CHECK(looked({0, 300, 1000, 1, true}).name.empty());
}
