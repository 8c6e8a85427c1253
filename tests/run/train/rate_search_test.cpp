#include "run/train/rate_search.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/random.hpp"

using namespace sluice;

namespace {

constexpr double nan_loss = std::numeric_limits<double>::quiet_NaN();

// The loss as a function of the decade of the rate, from -6 to 1.
RateSearchOutcome play(const std::function<double(double)>& loss, const RateSearchOptions& options = {}) {
  Result<RateSearch> test = RateSearch::make(options);
  REQUIRE(test);
  for (std::int64_t i = 0; test->add(loss(std::log10(test->rate(i)))); ++i) REQUIRE(i < options.steps);
  return test->outcome();
}

// Falls from 7 to 4, steepest at `middle`, and leaves upwards beyond `edge`.
double curve(double decade, double middle, double edge) {
  return 7 - 3 / (1 + std::exp(-4 * (decade - middle))) + std::exp(12 * (decade - edge));
}

// Of the steepest fall.
double decade_of(const RateSearchOutcome& outcome) {
  REQUIRE(outcome.steepest);
  return std::log10(outcome.points[*outcome.steepest].rate);
}

// Repeatable noise of about the given spread.
std::function<double()> noise(std::uint64_t seed, double spread) {
  return [random = Random(seed, 0, 0, Purpose::augment), spread]() mutable {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += random.uniform();
    return spread * (sum - 6);
  };
}

}  // namespace

TEST_CASE("range test: the rate rises by the same factor at each step, from low to high") {
  const Result<RateSearch> test = RateSearch::make({1e-6, 10, 100});
  REQUIRE(test);
  CHECK(test->rate(0) == doctest::Approx(1e-6).epsilon(1e-12));
  CHECK(test->rate(99) == doctest::Approx(10).epsilon(1e-12));
  for (int i = 1; i < 99; ++i)
    CHECK(test->rate(i + 1) / test->rate(i) == doctest::Approx(test->rate(1) / test->rate(0)));
}

TEST_CASE("range test: finds where a clean curve falls fastest, without lag") {
  for (const double middle : {-3.0, -2.0, -1.2}) {
    const RateSearchOutcome outcome = play([&](double d) { return curve(d, middle, 0.5); });
    CAPTURE(middle);
    CHECK(std::abs(decade_of(outcome) - middle) < 0.2);
    CHECK(outcome.lowest > *outcome.steepest);
    CHECK(outcome.end == "the loss rose");
    CHECK(outcome.points.size() < 150);
  }
}

TEST_CASE("range test: noise of a usual size moves the steepest fall by less than half a decade") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const auto more = noise(seed, 0.15);
    CAPTURE(seed);
    CHECK(std::abs(decade_of(play([&](double d) { return curve(d, -2, 0) + more(); })) - -2) < 0.5);
  }
}

TEST_CASE("range test: suggests a quarter of what broke it, wherever it fell fastest") {
  for (const double middle : {-3.0, -2.0, -1.2}) {
    const RateSearchOutcome outcome = play([&](double d) { return curve(d, middle, 0.2); });
    CAPTURE(middle);
    REQUIRE(outcome.broken);
    CHECK(*outcome.suggestion() == doctest::Approx(outcome.points[*outcome.broken].rate / 4));
    CHECK(std::abs(std::log10(*outcome.suggestion()) - (0.2 - std::log10(4))) < 0.25);
    CHECK(range_table(outcome).find("a quarter of what is too high") != std::string::npos);
  }
  const RateSearchOutcome late =
      play([](double d) { return curve(d, -0.4, -0.1); });  // fell just before it broke
  CHECK(*late.suggestion() >= late.points[*late.steepest].rate);
}

TEST_CASE("range test: where no rate was too high, suggests the lowest loss and says so") {
  const RateSearchOutcome outcome = play([](double d) { return curve(d, -2, 9); }, {1e-4, 0.1, 150});
  CHECK_FALSE(outcome.broken);
  CHECK(*outcome.suggestion() == outcome.points[outcome.lowest].rate);
  CHECK(range_table(outcome).find("try a higher --high") != std::string::npos);
}

TEST_CASE("range test: a curve that never falls gives no suggestion and says why") {
  const auto flat = play([](double) { return 2.3; });
  const auto rising = play([](double d) { return 2.3 + 0.1 * (d + 6); });
  for (const RateSearchOutcome& outcome : {flat, rising}) {
    CHECK_FALSE(outcome.suggestion());
    CHECK(outcome.end == "all steps");
    CHECK(outcome.why_none.find("never fell") != std::string::npos);
    CHECK(range_table(outcome).find("no suggestion: the loss never fell") != std::string::npos);
  }
  int fooled = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto more = noise(seed, 0.2);
    fooled += play([&](double) { return 2.3 + more(); }).suggestion().has_value();
  }
  CHECK(fooled <= 2);  // of 50
}

TEST_CASE("range test: a loss that is not finite ends it, and the descent before still counts") {
  const RateSearchOutcome outcome = play([](double d) { return d > 0 ? nan_loss : curve(d, -2, 9); });
  CHECK(outcome.end == "not finite");
  CHECK(std::isnan(outcome.points.back().loss));
  CHECK(outcome.broken == outcome.points.size() - 1);
  for (std::size_t i = 0; i < *outcome.broken; ++i) CHECK(std::isfinite(outcome.points[i].smooth));
  CHECK(std::abs(decade_of(outcome) - -2) < 0.2);

  const RateSearchOutcome at_once = play([](double) { return nan_loss; });
  CHECK(at_once.points.size() == 1);
  CHECK_FALSE(at_once.suggestion());
  CHECK(at_once.why_none.find("--low") != std::string::npos);
}

TEST_CASE("range test: one huge loss at the end does not bury the descent") {
  const RateSearchOutcome outcome = play([](double d) { return d > -0.5 ? 1e9 : curve(d, -2, 9); });
  CHECK(outcome.end == "the loss rose");
  CHECK(std::abs(decade_of(outcome) - -2) < 0.25);
}

TEST_CASE("range test: an explosion that comes back down does not hide a weak fall before it") {
  const auto more = noise(7, 0.05);
  const RateSearchOutcome outcome = play([&](double d) {
    const double fall = 2.4 - 0.25 / (1 + std::exp(-4 * (d - -2.5)));
    return (d > -0.3 && d < 0.5 ? 8.0 : fall) + more();
  });
  CHECK(outcome.end == "all steps");
  CHECK(std::abs(decade_of(outcome) - -2.5) < 0.6);
  REQUIRE(outcome.broken);
  CHECK(std::abs(std::log10(outcome.points[*outcome.broken].rate) - -0.3) < 0.2);
  CHECK(range_json(outcome)["too_high"] == outcome.points[*outcome.broken].rate);
  CHECK(range_table(outcome).find("too high: optim.lr = 0.") != std::string::npos);
}

TEST_CASE("range test: a rise in the first ten steps is not the end yet") {
  int step = 0;
  const RateSearchOutcome outcome = play([&](double d) { return step++ == 3 ? 40.0 : curve(d, -2, 0.5); });
  CHECK(outcome.points.size() > 60);
}

TEST_CASE("range test: other numbers of steps and ends work alike") {
  for (const std::int64_t steps : {20, 50, 1000}) {
    const RateSearchOutcome outcome = play([](double d) { return curve(d, -2, 0.3); }, {1e-4, 1, steps});
    CAPTURE(steps);
    CHECK(std::abs(decade_of(outcome) - -2) < 0.3);
  }
  for (const RateSearchOptions& bad : std::vector<RateSearchOptions>{{0, 1, 100},
                                                                     {-1, 1, 100},
                                                                     {1, 1, 100},
                                                                     {2, 1, 100},
                                                                     {1e-6, INFINITY, 100},
                                                                     {nan_loss, 1, 100},
                                                                     {1e-6, nan_loss, 100},
                                                                     {1e-6, 10, 19},
                                                                     {1e-6, 10, 2'000'000}})
    CHECK_FALSE(RateSearch::make(bad));
}

TEST_CASE("range test: table and JSON tell the same") {
  const RateSearchOutcome outcome = play([](double d) { return d > 0 ? nan_loss : curve(d, -2, 9); });
  const auto json = nlohmann::json::parse(range_json(outcome).dump());
  CHECK(json["suggestion"] == *outcome.suggestion());
  CHECK(json["end"] == "not finite");
  REQUIRE(json["points"].size() == outcome.points.size());
  CHECK(json["points"][5]["lr"] == outcome.points[5].rate);
  CHECK(json["points"][5]["loss"] == outcome.points[5].loss);
  CHECK(json["points"].back()["loss"].is_null());
  CHECK(json["steepest"] == outcome.points[*outcome.steepest].rate);
  CHECK(json["lowest"] == outcome.points[outcome.lowest].rate);
  const std::string table = range_table(outcome);
  CHECK(std::ranges::count(table, '\n') == static_cast<long>(outcome.points.size()) + 4);
  CHECK(table.find("steepest fall") != std::string::npos);
  CHECK(table.find("suggestion: optim.lr = 0.") != std::string::npos);
}
