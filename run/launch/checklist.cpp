#include "run/launch/checklist.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"

namespace sluice {
namespace {

const char* word(Checklist::Verdict verdict) {
  switch (verdict) {
    case Checklist::Verdict::ok:
      return "ok";
    case Checklist::Verdict::warning:
      return "warning";
    default:
      return "fail";
  }
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

}  // namespace

void Checklist::ok(std::string name, const std::string& found) {
  lines_.push_back({std::move(name), Verdict::ok, printable(found), "", {}});
}

void Checklist::warn(std::string name, const std::string& found, std::string hint) {
  lines_.push_back({std::move(name), Verdict::warning, printable(found), std::move(hint), {}});
}

void Checklist::fail(std::string name, const std::string& found, std::string hint) {
  lines_.push_back({std::move(name), Verdict::fail, printable(found), std::move(hint), {}});
}

void Checklist::fail(std::string name, const Error& error) {
  Error told = error;
  told.hint.clear();
  lines_.push_back({std::move(name), Verdict::fail, told.text(), printable_lines(error.hint), {}});
}

void Checklist::figure(std::string name, double value) {
  lines_.back().figures.emplace_back(std::move(name), value);
}

bool Checklist::failed() const {
  return std::ranges::any_of(lines_, [](const Line& line) { return line.verdict == Verdict::fail; });
}

std::string Checklist::table() const {
  std::size_t width = 0;
  for (const Line& line : lines_) width = std::max(width, line.name.size());
  std::string text;
  for (const Line& line : lines_) {
    text += padded(word(line.verdict), 9) + padded(line.name, width + 2) + line.found + "\n";
    if (!line.hint.empty()) text += std::string(11 + width, ' ') + "-> " + line.hint + "\n";
  }
  return text;
}

nlohmann::ordered_json Checklist::json() const {
  nlohmann::ordered_json out = {{"ok", !failed()}, {"checks", nlohmann::ordered_json::array()}};
  for (const Line& line : lines_) {
    nlohmann::ordered_json check = {
        {"name", line.name}, {"verdict", word(line.verdict)}, {"found", line.found}};
    if (!line.hint.empty()) check["hint"] = line.hint;
    for (const auto& [name, value] : line.figures) check["figures"][name] = value;
    out["checks"].push_back(std::move(check));
  }
  return out;
}

}  // namespace sluice
