#include "model/train/train_step.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include "model/device/version.hpp"

#include "tests/support/folder.hpp"
#include "tests/support/two_colours.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("step: learns two colours") {
  auto step = Step::create(tiny());
  REQUIRE(step);
  const double first = train_once(*step, 0);
  double last = 0;
  for (int i = 1; i < 25; ++i) last = train_once(*step, i % 4);
  for (int i = 0; i < 15; ++i) train_once(*step, i % 4, 0.0005);  // lets the running statistics catch up
  CHECK(first > 0.3);
  CHECK(last < 0.1);
  Images unseen(100);
  REQUIRE(step->eval(unseen.give()));
  CHECK(unseen.released == 1);
  const auto sums = step->read_back();
  REQUIRE(sums);
  CHECK(sums->train.batches == 0);
  CHECK(sums->eval.batches == 1);
  CHECK(sums->eval.correct1 == batch);
}

TEST_CASE("step: both layouts compute the same network") {
  StepOptions options = tiny();
  auto last = Step::create(options);
  options.channels_last = false;
  auto first = Step::create(options);
  REQUIRE(last);
  REQUIRE(first);
  for (int i = 0; i < 3; ++i)
    CHECK(train_once(*first, i) == doctest::Approx(train_once(*last, i)).epsilon(1e-3));
}

TEST_CASE("step: bf16 computes nearly the same, and not the very same") {
  StepOptions options = tiny();
  auto exact = Step::create(options);
  options.precision = "bf16";
  auto coarse = Step::create(options);
  REQUIRE(exact);
  REQUIRE(coarse);
  const double loss = train_once(*exact, 0);
  const double rounded = train_once(*coarse, 0);
  CHECK(rounded == doctest::Approx(loss).epsilon(0.1));
  CHECK(rounded != loss);
}

TEST_CASE("step: evaluation changes nothing and leaves masked images out") {
  auto step = Step::create(tiny());
  REQUIRE(step);
  train_once(*step, 0);
  Snapshot before, after;
  REQUIRE(step->snapshot(before));
  Images images(1);
  images.labels[2] = images.labels[5] = -1;
  REQUIRE(step->eval(images.give()));
  REQUIRE(step->eval(images.give(3)));
  const auto sums = step->read_back();
  REQUIRE(sums);
  CHECK(sums->eval.count == 6 + 2);
  CHECK(sums->eval.correct5 == 6 + 2);
  REQUIRE(step->snapshot(after));
  CHECK((before.data == after.data));
  CHECK(train_once(*step, 1) > 0);
}

TEST_CASE("step: zero_init silences the last norm of each block") {
  StepOptions options = tiny();
  options.zero_init = true;
  auto step = Step::create(options);
  REQUIRE(step);
  for (const float value : stored(*step, "model.layer2.1.bn2.weight")) REQUIRE(value == 0);
  for (const float value : stored(*step, "model.layer2.1.bn1.weight")) REQUIRE(value == 1);
}

TEST_CASE("step: a loss that is not finite is told") {
  StepOptions options = tiny();
  auto step = Step::create(options);
  REQUIRE(step);
  Images images(0);
  for (int i = 0; i < 3; ++i) REQUIRE(step->train(images.give(), 1e30));
  const auto sums = step->read_back();
  REQUIRE(sums);
  CHECK_FALSE(sums->finite);
  CHECK(sums->train.not_finite > 0);
  CHECK(sums->train.batches == 3);
  Snapshot snapshot;
  const Status refused = step->snapshot(snapshot);
  REQUIRE_FALSE(refused);
  CHECK(has(refused.error().text(), "weights: are not finite"));
}

TEST_CASE("step: a batch that was not prepared for is refused, and released all the same") {
  StepOptions options = tiny();
  options.batch = 4;
  auto step = Step::create(options);
  REQUIRE(step);
  Images images(0);
  const Status status = step->train(images.give(), 0.1);
  REQUIRE_FALSE(status);
  CHECK(has(status.error().text(), "larger than what was prepared"));
  CHECK(images.released == 1);
}

TEST_CASE("step: devices, precisions and networks that cannot be had are refused by name") {
  CHECK(*resolve_device("cpu") == "cpu");
  CHECK(resolve_device("auto"));
  CHECK(has(resolve_device("tpu").error().text(), "auto, cpu, cuda"));
  if (*resolve_device("auto") == "cpu") CHECK(has(resolve_device("cuda").error().text(), "model.device=cpu"));
  StepOptions options = tiny();
  options.precision = "fp16";
  CHECK(has(Step::create(options).error().text(), "fp16 needs a GPU"));
  options.precision = "int4";
  CHECK(has(Step::create(options).error().text(), "bf16"));
  options = tiny();
  options.arch = "vgg";
  CHECK(has(Step::create(options).error().text(), "resnet50"));
}

TEST_CASE("upload: on the CPU the batch passes through and is released once") {
  auto upload = Upload::create(*open_device("cpu"), {});
  REQUIRE(upload);
  int released = 0;
  const std::uint8_t pixels[3] = {1, 2, 3};
  const std::int32_t labels[1] = {4};
  {
    auto given = upload->put({pixels, labels, 1, image_layout(1), [&] { ++released; }});
    REQUIRE(given);
    CHECK(given->samples == pixels);
    CHECK(given->labels == labels);
    CHECK(released == 0);
    given->release();
  }
  CHECK(released == 1);
  CHECK((*open_device("cpu"))->pin(nullptr, 0));
}

TEST_CASE("versions are told") {
  const Versions found = versions();
  CHECK(found.torch.starts_with("2."));
  CHECK(found.threads >= 1);
}
