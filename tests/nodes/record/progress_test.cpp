#include "nodes/record/progress.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace sluice;

namespace {

const Progress fifty{.label = "Epoch 0",
                     .done = 50,
                     .total = 417,
                     .elapsed = 45.2,
                     .values = {{"train/loss", 2.312}, {"train/lr", 0.05}, {"img/s", 282.4}}};

}  // namespace

TEST_CASE("a line looks as it should where it just fits") {
  const std::string line =
      "Epoch 0:  12%|█▏        | 50/417 [00:45<05:31, 1.11it/s, train/loss=2.31, train/lr=0.05, img/s=282]";
  CHECK(progress_line(fifty, static_cast<int>(columns(line))) == line);
}

TEST_CASE("a line is never wider than the terminal, and loses values before the bar") {
  for (int width = 0; width < 200; ++width) {
    CAPTURE(width);
    CHECK(columns(progress_line(fifty, width)) <= static_cast<std::size_t>(width));
  }
  CHECK(progress_line(fifty, 60) == "Epoch 0:  12%|█▋            | 50/417 [00:45<05:31, 1.11it/s]");
  CHECK(progress_line(fifty, 30) == "Epoch 0:  12% 50/417 [00:45<05");
  CHECK(progress_line({.label = "Größe", .done = 1, .total = 2}, 3) == "Grö");
}

TEST_CASE("the bar moves by eighths and is full only at the end") {
  CHECK(progress_line({.label = "V", .done = 0, .total = 16, .elapsed = 1}, 41).find("|          |") !=
        std::string::npos);
  const std::string eighth = progress_line({.label = "V", .done = 1, .total = 80, .elapsed = 1}, 48);
  CHECK(eighth == "V:   1%|▏         | 1/80 [00:01<01:19, 1.00it/s]");
  CHECK(progress_line({.label = "V", .done = 999, .total = 1000, .elapsed = 1}, 45).find(" 99%|") !=
        std::string::npos);
  const std::string end =
      progress_line({.label = "Validation", .done = 196, .total = 196, .elapsed = 9.9}, 61);
  CHECK(end.find("Validation: 100%|██████████") == 0);
  CHECK(end.find("| 196/196 [00:09<00:00, 19.80it/s]") != std::string::npos);
  CHECK(progress_line({.label = "V", .done = 3, .total = 2, .elapsed = 1}, 50).find("100%") !=
        std::string::npos);
}

TEST_CASE("rates below one keep their digits, and what is unknown is a question mark") {
  CHECK(progress_line({.label = "E", .done = 1, .total = 9, .elapsed = 81}, 80)
            .find("1/9 [01:21<10:48, 0.0123it/s]") != std::string::npos);
  CHECK(progress_line({.label = "E", .total = 9}, 80).find("0/9 [00:00<?, ?it/s]") != std::string::npos);
  CHECK(progress_line({.label = "E", .done = 7, .elapsed = 2}, 80) == "E: 7it [00:02, 3.50it/s]");
}

TEST_CASE("what an earlier run did does not count in the rate") {
  const Progress resumed{.label = "E", .done = 60, .total = 100, .before = 50, .elapsed = 10};
  CHECK(progress_line(resumed, 80).find("60/100 [00:10<00:40, 1.00it/s]") != std::string::npos);
}

TEST_CASE("plain lines") {
  CHECK(plain_line(fifty) ==
        "epoch 0 step 50/417 train/loss 2.31 train/lr 0.05 img/s 282 elapsed 00:45 left 05:31");
  CHECK(plain_line({.label = "Validation", .plain = "epoch 0 validation", .total = 4}) ==
        "epoch 0 validation step 0/4 elapsed 00:00 left ?");
}

TEST_CASE("the summary of an epoch") {
  CHECK(summary_line(0, {{"train/loss", 1.23449}, {"val/loss", 0.98}, {"val/acc1", 71.2}, {"val/acc5", 99.1}},
                     34.12, 281.7) ==
        "Epoch 0: train/loss 1.2345 val/loss 0.9800 val/acc1 71.20 val/acc5 99.10 (34.1 s, 282 img/s)");
}

TEST_CASE("clock and numbers") {
  CHECK(clock_text(0) == "00:00");
  CHECK(clock_text(3599.9) == "59:59");
  CHECK(clock_text(3723) == "1:02:03");
  CHECK(clock_text(360000) == "100:00:00");
  CHECK(clock_text(INFINITY) == "?");
  CHECK(clock_text(NAN) == "?");
  CHECK(short_number(12345.6) == "12346");
  CHECK(short_number(999.7) == "1000");
  CHECK(short_number(0.00001234) == "1.23e-05");
  CHECK(short_number(NAN).find("nan") != std::string::npos);
}
