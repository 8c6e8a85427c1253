#include "cli/draw/plot.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/files/durable.hpp"
#include "base/printable.hpp"
#include "cli/draw/axis.hpp"

namespace sluice {
namespace {

constexpr double width = 800, height = 450, left = 84, right = 24, bottom = 58, row = 20;
constexpr int colours = 6;

// Colours that tell curves apart for the colour-blind too, lighter on a dark page.
constexpr const char* style = R"(<style>
text{font:13px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#3a4149}
.title{font-size:16px;font-weight:600;fill:#15181c}
.page{fill:#ffffff}.frame{fill:none;stroke:#8a929b}.grid{stroke:#e3e6ea}
.curve{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.faint{stroke-width:1.3;opacity:.55}
.c0{stroke:#0b62b0}.c1{stroke:#c2510c}.c2{stroke:#11785a}.c3{stroke:#a3367f}.c4{stroke:#7a5c00}.c5{stroke:#51565c}
.mark{fill:#c2510c;stroke:#ffffff;stroke-width:1.5}.drop{stroke:#c2510c;stroke-dasharray:4 4}
.label{font-weight:600;paint-order:stroke;stroke:#ffffff;stroke-width:4;stroke-linejoin:round}
@media (prefers-color-scheme:dark){
text{fill:#c3cad2}.title{fill:#f1f4f7}.page{fill:#14171b}.frame{stroke:#737c86}.grid{stroke:#2b3138}
.c0{stroke:#5ab0f7}.c1{stroke:#f79b52}.c2{stroke:#43c79c}.c3{stroke:#e58bc6}.c4{stroke:#e0c04a}.c5{stroke:#adb4bb}
.mark{fill:#f79b52;stroke:#14171b}.drop{stroke:#f79b52}.label{stroke:#14171b}}
</style>
)";

// Text as XML takes it.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string px(double value) { return fmt::format("{:.1f}", value); }

std::string line(const char* kind, double x1, double y1, double x2, double y2) {
  return "<line class=\"" + std::string(kind) + "\" x1=\"" + px(x1) + "\" y1=\"" + px(y1) + "\" x2=\"" +
         px(x2) + "\" y2=\"" + px(y2) + "\"/>\n";
}

std::string text(double x, double y, const char* anchor, const std::string& words,
                 const std::string& more = "") {
  return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" text-anchor=\"" + anchor + "\"" + more + ">" +
         escaped(words) + "</text>\n";
}

std::string dot(const std::string& kind, double x, double y, double radius) {
  return "<circle class=\"" + kind + "\" cx=\"" + px(x) + "\" cy=\"" + px(y) + "\" r=\"" + px(radius) +
         "\"/>\n";
}

// What a browser will roughly need; fonts differ.
double text_width(const std::string& words) {
  return 7.2 * static_cast<double>(std::ranges::count_if(words, [](char c) { return (c & 0xC0) != 0x80; }));
}

bool drawable(const Plot& plot, const PlotPoint& p) {
  return std::abs(p.x) < 1e300 && std::abs(p.y) < 1e300 && (!plot.log_x || p.x > 0);
}

struct Frame {
  Axis x, y;
  double top = 0;
  [[nodiscard]] double px_x(double value) const { return left + x.at(value) * (width - left - right); }
  [[nodiscard]] double px_y(double value) const {
    return height - bottom - y.at(value) * (height - bottom - top);
  }
};

Frame frame_of(const Plot& plot, double top) {
  constexpr double none = std::numeric_limits<double>::infinity();
  double x_low = none, x_high = -none, y_low = none, y_high = -none;
  const auto cover = [&](const PlotPoint& p) {
    if (!drawable(plot, p)) return;
    x_low = std::min(x_low, p.x), x_high = std::max(x_high, p.x);
    const double y = plot.y_top ? std::min(p.y, *plot.y_top) : p.y;
    y_low = std::min(y_low, y), y_high = std::max(y_high, y);
  };
  for (const Curve& curve : plot.curves) std::ranges::for_each(curve.points, cover);
  if (plot.mark) cover(plot.mark->at);
  return {plot.log_x ? Axis::logarithmic(x_low, x_high) : Axis::linear(x_low, x_high, Axis::Ends::exact),
          Axis::linear(y_low, y_high), top};
}

// The points between two gaps; a point alone becomes a dot. Points that would fall onto the last one drawn
// are left out: a file of thousands of points stays small.
std::string stretch(const Frame& f, std::span<const PlotPoint> points, const std::string& kind) {
  double x = 0, y = 0;
  std::string path;
  std::size_t drawn = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double next_x = f.px_x(points[i].x);
    // Far outside the frame is as good as at its edge, and keeps the numbers short.
    const double next_y = std::clamp(f.px_y(points[i].y), -10 * height, 11 * height);
    const bool near = std::abs(next_x - x) < 0.4 && std::abs(next_y - y) < 0.4;
    if (drawn > 0 && near && i + 1 < points.size()) continue;
    x = next_x, y = next_y;
    path += (drawn++ == 0 ? "M" : "L") + px(x) + " " + px(y);
  }
  if (drawn == 1) return dot("curve " + kind, x, y, 1.5);
  return "<path class=\"curve " + kind + "\" d=\"" + path + "\"/>\n";
}

std::string kind_of(const Plot& plot, std::size_t curve) {
  return "c" + std::to_string(curve % colours) + (plot.curves[curve].faint ? " faint" : "");
}

std::string curve_svg(const Plot& plot, const Frame& f, std::size_t number) {
  const std::vector<PlotPoint>& points = plot.curves[number].points;
  std::string out;
  for (std::size_t i = 0; i < points.size();) {
    const auto usable = [&](const PlotPoint& p) { return drawable(plot, p); };
    const auto begin = std::find_if(points.begin() + static_cast<std::ptrdiff_t>(i), points.end(), usable);
    const auto end = std::find_if_not(begin, points.end(), usable);
    if (begin != end) out += stretch(f, {begin, end}, kind_of(plot, number));
    i = static_cast<std::size_t>(end - points.begin());
  }
  return out;
}

std::string axes_svg(const Plot& plot, const Frame& f) {
  const double base = height - bottom, edge = width - right;
  std::string out;
  for (const Tick& tick : f.x.ticks()) {
    const double x = f.px_x(tick.value);
    out += line("grid", x, f.top, x, base) +
           (tick.label.empty() ? "" : text(x, base + 19, "middle", tick.label));
  }
  for (const Tick& tick : f.y.ticks()) {
    const double y = f.px_y(tick.value);
    out += line("grid", left, y, edge, y) + text(left - 8, y + 4.5, "end", tick.label);
  }
  out += "<rect class=\"frame\" x=\"" + px(left) + "\" y=\"" + px(f.top) + "\" width=\"" + px(edge - left) +
         "\" height=\"" + px(base - f.top) + "\"/>\n";
  out += text((left + edge) / 2, height - 16, "middle", plot.x_label);
  const double middle = (f.top + base) / 2;
  return out + text(20, middle, "middle", plot.y_label, " transform=\"rotate(-90 20 " + px(middle) + ")\"");
}

std::string mark_svg(const Plot& plot, const Frame& f) {
  if (!plot.mark || !drawable(plot, plot.mark->at)) return "";
  const double x = f.px_x(plot.mark->at.x), y = std::max(f.px_y(plot.mark->at.y), f.top);
  const bool to_the_left = x + 12 + text_width(plot.mark->label) > width - right;
  return line("drop", x, f.top, x, height - bottom) + dot("mark", x, y, 5) +
         text(x + (to_the_left ? -12 : 12), std::max(y - 10, f.top + 18), to_the_left ? "end" : "start",
              plot.mark->label, " class=\"label\"");
}

// One row below the title, more if the names need them. Returns where the frame may begin.
double legend_svg(const Plot& plot, double y, std::string& out) {
  if (plot.curves.size() < 2) return y;
  double x = left;
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const double needs = 34 + text_width(plot.curves[i].name) + 20;
    if (x > left && x + needs > width - right) x = left, y += row;
    out += line(("curve " + kind_of(plot, i)).c_str(), x, y + 8, x + 26, y + 8) +
           text(x + 34, y + 12.5, "start", plot.curves[i].name);
    x += needs;
  }
  return y + row + 6;
}

}  // namespace

std::string plot_svg(const Plot& plot) {
  std::string legend;
  const double below_title = plot.title.empty() ? 18 : 44;
  const Frame f = frame_of(plot, legend_svg(plot, below_title, legend));
  const std::string size = px(width) + "\" height=\"" + px(height);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " +
                    px(width) + " " + px(height) + "\" role=\"img\">\n<title>" + escaped(plot.title) +
                    "</title>\n" + style + "<rect class=\"page\" width=\"" + size + "\"/>\n";
  if (!plot.title.empty()) out += text(left, 30, "start", plot.title, " class=\"title\"");
  // Room for the stroke of a curve that runs along the frame.
  out += legend + axes_svg(plot, f) + "<clipPath id=\"inside\"><rect x=\"" + px(left - 3) + "\" y=\"" +
         px(f.top - 3) + "\" width=\"" + px(width - left - right + 6) + "\" height=\"" +
         px(height - bottom - f.top + 6) + "\"/></clipPath>\n<g clip-path=\"url(#inside)\">\n";
  for (std::size_t i = 0; i < plot.curves.size(); ++i) out += curve_svg(plot, f, i);
  return out + "</g>\n" + mark_svg(plot, f) + "</svg>\n";
}

Status check_plot_file(const std::string& stage, const std::filesystem::path& file) {
  if (file.extension() != ".svg")
    return Error{stage, file.string(), "plots are written as SVG", "let the name end in .svg"};
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(folder))
    return Error{stage, file.string(), "its folder is not there", "make it first"};
  return Done{};
}

Status write_plot(const std::string& stage, const std::filesystem::path& file, const Plot& plot) {
  if (Status fine = check_plot_file(stage, file); !fine) return fine;
  const std::string svg = plot_svg(plot);
  const std::span<const std::byte> part = std::as_bytes(std::span(svg));
  return write_output(stage, file, {&part, 1});
}

}  // namespace sluice
