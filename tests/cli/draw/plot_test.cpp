#include "cli/draw/plot.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "cli/draw/axis.hpp"
#include "tests/support/folder.hpp"

using namespace sluice;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> out;
  for (const Tick& tick : axis.ticks()) out.push_back(tick.label);
  return out;
}

// The numbers of an attribute, wherever it occurs; NaN for what is none.
std::vector<double> numbers(const std::string& svg, const std::string& attribute) {
  std::vector<double> out;
  const std::string begin = " " + attribute + "=\"";
  for (std::size_t at = svg.find(begin); at != std::string::npos; at = svg.find(begin, at + 1)) {
    const char* text = svg.c_str() + at + begin.size();
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    out.push_back(*end == '"' && end != text ? value : NAN);
  }
  return out;
}

void check_numbers(const std::string& svg) {
  for (const char* attribute : {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"})
    for (const double value : numbers(svg, attribute)) {
      CAPTURE(attribute);
      CHECK(value >= -1);
      CHECK(value <= 801);
    }
  for (std::size_t at = svg.find(" d=\""); at != std::string::npos; at = svg.find(" d=\"", at + 1)) {
    const std::string path = svg.substr(at + 4, svg.find('"', at + 4) - at - 4);
    CHECK(path.find_first_not_of("ML0123456789.- ") == std::string::npos);
  }
}

Plot with(std::vector<PlotPoint> points) {
  Plot plot;
  plot.title = "t";
  plot.curves = {{"c", std::move(points)}};
  return plot;
}

constexpr double inf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("plot: ticks are 1, 2 or 5 times a power of ten, with as many digits as they need") {
  CHECK(labels(Axis::linear(0, 0.1)) ==
        std::vector<std::string>{"0", "0.02", "0.04", "0.06", "0.08", "0.10"});
  CHECK(labels(Axis::linear(0, 90, Axis::Ends::exact)) ==
        std::vector<std::string>{"0", "20", "40", "60", "80"});
  CHECK(Axis::linear(0, 90, Axis::Ends::exact).high() == 90);
  CHECK(Axis::linear(0, 90).high() == 100);
  CHECK(labels(Axis::linear(-1, 1)).front() == "-1.0");
  CHECK(labels(Axis::linear(0, 4e8)).back() == "4.0e+08");
  CHECK(Axis::linear(3, 10).low() == 0);  // zero is near
  CHECK(Axis::linear(8, 10).low() == 8);
}

TEST_CASE("plot: a logarithmic axis names decades, and 2 and 5 when there are few") {
  const Axis wide = Axis::logarithmic(1e-6, 10);
  CHECK(wide.at(1e-6) == doctest::Approx(0));
  CHECK(wide.at(10) == doctest::Approx(1));
  CHECK(wide.at(std::sqrt(1e-5)) == doctest::Approx(0.5));
  std::vector<std::string> named;
  for (const std::string& label : labels(wide))
    if (!label.empty()) named.push_back(label);
  CHECK(named == std::vector<std::string>{"1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1", "10"});
  CHECK(labels(Axis::logarithmic(0.1, 1)) == std::vector<std::string>{"0.1", "0.2", "0.5", "1"});
  CHECK(labels(Axis::logarithmic(1.1, 1.3)) == std::vector<std::string>{"1.1", "1.3"});
  CHECK(Axis::logarithmic(1e-300, 1e299).ticks().size() < 12);
}

TEST_CASE("plot: any two finite ends give an axis that holds them, with some ticks") {
  for (const double low : {-1e299, -5.0, -1e-300, 0.0, 5e-324, 1e-7, 1.0, 1 + 1e-12, 1e299})
    for (const double high : {-1e299, -5.0, 0.0, 5e-324, 1e-7, 1.0, 1 + 1e-12, 3.7e5, 1e299}) {
      CAPTURE(low);
      CAPTURE(high);
      for (const Axis& axis : {Axis::linear(low, high), Axis::linear(low, high, Axis::Ends::exact)}) {
        CHECK(axis.low() < axis.high());
        CHECK(axis.ticks().size() >= 2);
        CHECK(axis.ticks().size() <= 12);
        if (low <= high) CHECK((axis.has(low) && axis.has(high)));
      }
      if (low > 0 && high >= low) CHECK(Axis::logarithmic(low, high).ticks().size() >= 2);
    }
}

TEST_CASE("plot: a curve begins and ends where its first and last point are") {
  const std::string svg = plot_svg(with({{0, 0}, {1, 2}, {2, 1}}));
  check_numbers(svg);
  CHECK(has(svg, "d=\"M84.0 392.0L430.0 44.0L776.0 218.0\""));
  CHECK(count(svg, "<path") == 1);
  CHECK_FALSE(has(svg, "class=\"label\""));
}

TEST_CASE("plot: values that are not finite leave a gap, and a lonely point is a dot") {
  const std::string svg =
      plot_svg(with({{0, 1}, {1, 2}, {2, NAN}, {3, 1}, {4, inf}, {5, 1}, {6, -inf}, {NAN, 1}}));
  check_numbers(svg);
  CHECK(count(svg, "<path") == 1);
  CHECK(count(svg, "<circle") == 2);
  Plot logarithmic = with({{-1, 1}, {0, 1}, {1, 1}, {10, 2}});
  logarithmic.log_x = true;
  const std::string cut = plot_svg(logarithmic);
  check_numbers(cut);
  CHECK(has(cut, "M84.0 "));
}

TEST_CASE("plot: one point, a constant, nothing at all and huge values are drawn without odd numbers") {
  for (const bool log_x : {false, true})
    for (const auto& points : std::vector<std::vector<PlotPoint>>{{},
                                                                  {{3, 5}},
                                                                  {{0, 0}},
                                                                  {{1, 0.1}, {2, 0.1}, {3, 0.1}},
                                                                  {{1, NAN}},
                                                                  {{1, 1e308}, {2, -1e308}, {3, 4}},
                                                                  {{1, 1e299}, {1e-290, -1e299}}}) {
      Plot plot = with(points);
      plot.log_x = log_x;
      plot.mark = PlotMark{{2, NAN}, "m"};
      check_numbers(plot_svg(plot));
    }
}

TEST_CASE("plot: a limit on y keeps an explosion from flattening the curve") {
  Plot plot = with({{0, 2}, {1, 1}, {2, 1e9}});
  CHECK(has(plot_svg(plot), ">1.0e+09<"));
  plot.y_top = 4;
  const std::string svg = plot_svg(plot);
  check_numbers(svg);
  CHECK(has(svg, ">4.0<"));
  CHECK(has(svg, "clip-path"));
}

TEST_CASE("plot: text is escaped, whatever it holds") {
  Plot plot = with({{0, 1}, {1, 2}});
  plot.title = "a<b & \"c\" \x01\xff é";
  plot.mark = PlotMark{{1, 2}, "<best>"};
  const std::string svg = plot_svg(plot);
  CHECK(has(svg, "a&lt;b &amp; &quot;c&quot; \\x01\\xff é"));
  CHECK(has(svg, "text-anchor=\"end\" class=\"label\">&lt;best&gt;<"));  // no room on its right
}

TEST_CASE("plot: several curves get a legend and colours of their own; it grows when names are long") {
  Plot plot;
  for (int i = 0; i < 3; ++i)
    plot.curves.push_back({"curve " + std::to_string(i), {{0.0, double(i)}, {1.0, double(i)}}, i == 0});
  const std::string svg = plot_svg(plot);
  for (const char* part : {">curve 0<", ">curve 2<", "\"curve c0 faint\"", "\"curve c1\"", "\"curve c2\""})
    CHECK(has(svg, part));
  for (Curve& curve : plot.curves) curve.name = std::string(60, 'n');
  const std::vector<double> heights = numbers(plot_svg(plot), "height"), before = numbers(svg, "height");
  CHECK(heights[2] == before[2] - 40);  // the frame: two rows more above it
}

TEST_CASE("plot: thousands of points do not make a large file") {
  std::vector<PlotPoint> points;
  for (int i = 0; i <= 100000; ++i) points.push_back({double(i), std::sin(i * 1e-4)});
  const std::string svg = plot_svg(with(points));
  CHECK(svg.size() < 60000);
  CHECK(has(svg, "L776.0 "));  // the last one is always there
}

TEST_CASE("plot: is written to a file of its kind only") {
  const test::TemporaryFolder folder;
  const Plot plot = with({{0, 1}});
  REQUIRE(write_plot("schedule", folder / "a.svg", plot));
  CHECK(test::read_text(folder / "a.svg") == plot_svg(plot));
  const Status png = write_plot("schedule", folder / "a.png", plot);
  REQUIRE_FALSE(png);
  CHECK(has(png.error().text(), ".svg"));
  CHECK_FALSE(std::filesystem::exists(folder / "a.png"));
  CHECK(check_plot_file("schedule", "here.svg"));
  CHECK_FALSE(check_plot_file("schedule", folder / "nowhere/a.svg"));
}
