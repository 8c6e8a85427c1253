// A line chart as SVG text: no library, no fonts to install, legible on a light and on a dark page.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace sluice {

struct PlotPoint {
  double x = 0, y = 0;
};

// Points in drawing order. One that is not finite (or not positive on a logarithmic axis) leaves a gap.
struct Curve {
  std::string name;  // for the legend
  std::vector<PlotPoint> points;
  bool faint = false;  // in the background: the raw values behind a smoothed curve
};

struct PlotMark {
  PlotPoint at;
  std::string label;
};

struct Plot {
  std::string title, x_label, y_label;
  bool log_x = false;
  std::optional<double> y_top;  // curves are cut off above; by default everything is shown
  std::vector<Curve> curves;
  std::optional<PlotMark> mark;
};

[[nodiscard]] std::string plot_svg(const Plot& plot);

// Whether the file's name ends in .svg and its folder is there, for asking before long work. `stage` names
// the caller in errors.
Status check_plot_file(const std::string& stage, const std::filesystem::path& file);
Status write_plot(const std::string& stage, const std::filesystem::path& file, const Plot& plot);

}  // namespace sluice
