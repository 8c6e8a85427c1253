#include "model/train/train_step.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include "tests/support/folder.hpp"
#include "tests/support/two_colours.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("step: a run that goes on from a checkpoint repeats its losses bit for bit") {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "last.ckpt";
  std::vector<double> losses;
  {
    auto step = Step::create(tiny());
    REQUIRE(step);
    for (int i = 0; i < 3; ++i) train_once(*step, i);
    Snapshot snapshot;
    snapshot.state = {{"epoch", 1}};
    REQUIRE(step->snapshot(snapshot));
    REQUIRE(write_checkpoint(snapshot, path));
    for (int i = 3; i < 6; ++i) losses.push_back(train_once(*step, i));
  }
  StepOptions options = tiny();
  options.seed = 7;
  auto fresh = Step::create(options);
  REQUIRE(fresh);
  const auto read = read_checkpoint(path);
  REQUIRE(read);
  CHECK(read->state.at("epoch") == 1);
  REQUIRE(fresh->restore(*read));
  for (int i = 3; i < 6; ++i) CHECK(same_bits(train_once(*fresh, i), losses[i - 3]));

  Snapshot damaged = *read;
  damaged.tensors.pop_back();
  const Status missing = fresh->restore(damaged);
  REQUIRE_FALSE(missing);
  CHECK(has(missing.error().text(), "momentum.fc.bias is missing"));
  CHECK(has(missing.error().text(), "last.ckpt"));
  CHECK(fresh->start_from(damaged));

  options.classes = 3;
  auto other = Step::create(options);
  REQUIRE(other);
  const Status refused = other->restore(*read);
  REQUIRE_FALSE(refused);
  CHECK(has(refused.error().text(), "2 classes"));

  Snapshot forged = *read;
  forged.arch = "resnet\x1b[2J\nerror: lost";
  for (const Status& told : {other->restore(forged), Step::would_restore(options, forged)}) {
    REQUIRE_FALSE(told);
    CHECK(has(told.error().cause, "holds a resnet\\x1b[2J\\nerror: lost with 2 classes"));
  }
}

TEST_CASE("step: what restore will refuse is known before there is a step") {
  std::vector<StepOptions> kinds(4, tiny());
  kinds[1].ema = 0.9;
  kinds[2].momentum = 0;
  kinds[3].precision = "fp64";
  std::vector<Snapshot> saved(kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    auto step = Step::create(kinds[i]);
    REQUIRE(step);
    REQUIRE(step->snapshot(saved[i]));
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    auto step = Step::create(kinds[i]);
    REQUIRE(step);
    for (std::size_t j = 0; j < saved.size(); ++j) {
      CAPTURE(i);
      CAPTURE(j);
      const Status before = Step::would_restore(kinds[i], saved[j]), then = step->restore(saved[j]);
      REQUIRE(static_cast<bool>(before) == static_cast<bool>(then));
      CHECK(static_cast<bool>(then) == (i == j || (j == 1 && i != 3) || (i == 2 && j == 0)));
      if (!then) CHECK(before.error().text() == then.error().text());
      const auto begun = step->start_from(saved[j]);
      CHECK(static_cast<bool>(Step::would_start_from(kinds[i], saved[j])) == static_cast<bool>(begun));
    }
  }
  StepOptions other = tiny();
  other.classes = 3;
  CHECK(has(Step::would_restore(other, saved[0]).error().text(), "2 classes"));
  CHECK(Step::would_start_from(other, saved[0]));  // with a new classifier
  other.arch = "resnet50";
  CHECK_FALSE(Step::would_start_from(other, saved[0]));
}

TEST_CASE("step: accumulated batches change the weights once, by the mean of their gradients") {
  StepOptions options = tiny();
  options.weight_decay = 0;
  options.accumulate = 2;
  auto both = Step::create(options);
  options.accumulate = 1;
  auto one = Step::create(options), other = Step::create(options);
  REQUIRE(both);
  REQUIRE(one);
  REQUIRE(other);
  const auto name = "momentum.layer1.0.conv1.weight";
  Images a(0), b(1);
  REQUIRE(both->train(a.give(), 0.1));
  CHECK(both->read_back()->train.batches == 0);  // the step is not finished yet
  CHECK(stored(*both, name) == std::vector<float>(64 * 64 * 9, 0.0f));
  REQUIRE(both->train(b.give(), 0.1));
  CHECK(both->read_back()->train.batches == 2);
  REQUIRE(one->train(a.give(), 0.1));
  REQUIRE(other->train(b.give(), 0.1));
  const auto sum = stored(*both, name), first = stored(*one, name), second = stored(*other, name);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    difference += std::abs(sum[i] - 0.5 * (first[i] + second[i]));
    size += std::abs(sum[i]);
  }
  CHECK(size > 0);
  CHECK(difference < 1e-4 * size);
}

TEST_CASE("step: a checkpoint amid accumulated batches is that of the last finished step") {
  StepOptions options = tiny();
  options.accumulate = 3;
  auto step = Step::create(options);
  REQUIRE(step);
  for (int i = 0; i < 3; ++i) {
    Images images(i);
    REQUIRE(step->train(images.give(), 0.02));
  }
  Snapshot finished, amid;
  REQUIRE(step->snapshot(finished));
  Images images(3);
  REQUIRE(step->train(images.give(), 0.02));
  REQUIRE(step->snapshot(amid));
  CHECK((finished.data == amid.data));
  for (int i = 4; i < 6; ++i) {
    Images more(i);
    REQUIRE(step->train(more.give(), 0.02));
  }
  REQUIRE(step->snapshot(amid));
  CHECK_FALSE((finished.data == amid.data));
}

TEST_CASE("step: clipping bounds the change, the average follows the weights") {
  StepOptions options = tiny();
  options.clip = 1e-3;
  options.weight_decay = 0;
  options.ema = 0.5;
  auto step = Step::create(options);
  REQUIRE(step);
  const auto name = "layer4.1.conv2.weight";
  const auto start = stored(*step, std::string("model.") + name);
  CHECK(stored(*step, std::string("ema.") + name) == start);
  Images images(0);
  REQUIRE(step->train(images.give(), {1.0, 100}));
  const auto weights = stored(*step, std::string("model.") + name),
             average = stored(*step, std::string("ema.") + name);
  double moved = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    moved += (weights[i] - start[i]) * (weights[i] - start[i]);
    CHECK(average[i] == doctest::Approx(0.5 * (weights[i] + start[i])));
  }
  CHECK(moved > 0);
  CHECK(std::sqrt(moved) < 1.1e-3);
  // The averaged network is evaluated beside the trained one.
  REQUIRE(step->eval(images.give()));
  const auto sums = step->read_back();
  CHECK(sums->ema.count == batch);
  CHECK(sums->ema.loss != sums->eval.loss);
}

TEST_CASE("step: mixed batches train and are not judged") {
  auto step = Step::create(tiny());
  REQUIRE(step);
  Images images(0);
  const Mix cut{Mix::Kind::cutmix, 0.5f, 0.5f, {0, 0, size, size / 2}};
  REQUIRE(step->train(images.give(), {0.01, 0, cut}));
  auto sums = step->read_back();
  CHECK(sums->train.count == batch);
  CHECK(sums->train.judged == 0);
  CHECK(sums->train.correct1 == 0);
  CHECK_FALSE(step->train(images.give(3), {0.01, 0, cut}));  // no pairs
  CHECK(images.released == 2);
}

TEST_CASE("step: starts from the weights of another training") {
  StepOptions options = tiny();
  options.seed = 1;
  options.ema = 0.9;
  auto teacher = Step::create(options);
  REQUIRE(teacher);
  Snapshot weights;
  REQUIRE(teacher->snapshot(weights));
  weights.source = "teacher.ckpt";
  options.seed = 2;
  auto same = Step::create(options);
  REQUIRE(same);
  const Result<bool> anew = same->start_from(weights);
  REQUIRE(anew);
  CHECK_FALSE(*anew);
  CHECK(stored(*same, "model.fc.weight") == stored(*teacher, "model.fc.weight"));
  CHECK(stored(*same, "ema.conv1.weight") == stored(*teacher, "model.conv1.weight"));

  options.classes = 5;
  auto more = Step::create(options);
  REQUIRE(more);
  const auto classifier = stored(*more, "model.fc.weight");
  REQUIRE(more->start_from(weights));
  CHECK(*more->start_from(weights));
  CHECK(stored(*more, "model.fc.weight") == classifier);
  CHECK(stored(*more, "model.conv1.weight") == stored(*teacher, "model.conv1.weight"));

  options.arch = "resnet50";
  auto other = Step::create(options);
  REQUIRE(other);
  const auto refused = other->start_from(weights);
  REQUIRE_FALSE(refused);
  CHECK(has(refused.error().text(), "teacher.ckpt"));
  options.arch = "resnet34";
  auto deeper = Step::create(options);
  CHECK(has(deeper->start_from(weights).error().text(), "is missing"));
}
