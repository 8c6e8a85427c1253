// What `sluice doctor` finds: a line for each thing looked at, what is wrong with it and what to do.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace sluice {

class Checklist {
 public:
  enum class Verdict { ok, warning, fail };
  struct Line {
    std::string name;
    Verdict verdict;
    std::string found, hint;  // `hint`: what to do; empty where nothing is wrong
    std::vector<std::pair<std::string, double>> figures = {};  // for programs: only in the JSON
  };

  // What was found is one line, with foreign text in it made printable; an error may have lines.
  void ok(std::string name, const std::string& found);
  void warn(std::string name, const std::string& found, std::string hint);
  void fail(std::string name, const std::string& found, std::string hint);
  void fail(std::string name, const Error& error);
  void figure(std::string name, double value);  // of the last line

  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }
  [[nodiscard]] bool failed() const;
  [[nodiscard]] std::string table() const;
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  std::vector<Line> lines_;
};

}  // namespace sluice
