#include "cli/tune/table.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace sluice;

namespace {

TuneReport report() {
  TuneReport r;
  r.as_configured.batch = 32;
  r.train_images = 1200;
  r.base_lr = 0.08;
  TuneSetting twice = r.as_configured, large = r.as_configured;
  twice.batch = 64;
  large.batch = 128;
  r.rows = {{r.as_configured, TrialFigures{60, 0.01, std::size_t{600} << 20, 0, "step"}, "", 9},
            {twice, TrialFigures{75, 0.07, std::size_t{900} << 20, 0, "decode"}, "", 9},
            {large, std::nullopt, "killed: out of memory?", 3}};
  return r;
}

}  // namespace

TEST_CASE("tune table: a row for each trial, failed ones too, then three options") {
  const std::string text = tune_text(report());
  CHECK(text.starts_with(
      "setting          images/s  data wait        RAM  VRAM  epoch  verdict\n"
      "as configured        60.0        1 %  600.0 MiB     -   20 s  20 % slower\n"
      "train.batch=64       75.0        7 %  900.0 MiB     -   16 s  conservative, balanced, "
      "aggressive\n"
      "train.batch=128         -          -          -     -      -  killed: out of memory?\n"));
  CHECK(text.find("balanced      75.0 images/s, total batch 64, learning rate 0.02 at its peak: --set "
                  "train.batch=64\n") != std::string::npos);
  CHECK(text.find("optim.lr stays 0.08") != std::string::npos);
}

TEST_CASE("tune table: JSON tells the same") {
  TuneReport r = report();
  r.written = "out.toml";
  const nlohmann::json told = nlohmann::json::parse(tune_json(r).dump());
  REQUIRE(told["rows"].size() == 3);
  CHECK(told["rows"][1]["set"] == nlohmann::json{"train.batch=64"});
  CHECK(told["rows"][1]["epoch_seconds"] == 16);
  CHECK(told["rows"][2]["verdict"] == "killed: out of memory?");
  CHECK_FALSE(told["rows"][2].contains("images_per_s"));
  CHECK(told["options"]["aggressive"]["row"] == 1);
  CHECK(told["options"]["aggressive"]["lr"] == doctest::Approx(0.02));
  CHECK(told["written"] == "out.toml");
  CHECK(told["interrupted"] == false);
}

TEST_CASE("tune table: without figures there is no option") {
  TuneReport r = report();
  r.rows.erase(r.rows.begin(), r.rows.begin() + 2);
  CHECK(tune_text(r).find("no trial came to figures") != std::string::npos);
  CHECK_FALSE(tune_json(r).contains("options"));
}
