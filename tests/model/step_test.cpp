#include "nodes/step.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include "model/version.hpp"
#include "nodes/random.hpp"

#include "tests/support/folder.hpp"

using namespace sluice;

namespace {

constexpr int batch = 8, size = 32;

StepOptions tiny() {
  StepOptions options;
  options.arch = "resnet18";
  options.classes = 2;
  options.batch = batch;
  options.image_size = size;
  options.threads = 1;
  options.label_smoothing = 0.0;
  return options;
}

// Noise with a reddish (class 0) or bluish (class 1) tint; the same for the same number.
struct Images {
  explicit Images(int number) : pixels(batch * size * size * 3), labels(batch) {
    Random random(1, 0, static_cast<std::uint64_t>(number), Purpose::synth);
    for (int i = 0; i < batch; ++i) {
      labels[i] = i % 2;
      for (int p = 0; p < size * size; ++p)
        for (int c = 0; c < 3; ++c)
          pixels[(i * size * size + p) * 3 + c] =
              static_cast<std::uint8_t>(random.below(160) + (c == 2 * labels[i] ? 80 : 0));
    }
  }
  DeviceBatch give(int count = batch) {
    return {pixels.data(), labels.data(), count, size, [] {}, [this] { ++released; }};
  }
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  int released = 0;
};

double train_once(Step& step, int number, double rate = 0.02) {
  Images images(number);
  REQUIRE(step.train(images.give(), rate));
  CHECK(images.released == 1);
  const auto sums = step.read_back();
  REQUIRE(sums);
  REQUIRE(sums->finite);
  CHECK(sums->train.count == batch);
  return sums->train.loss / batch;
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

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
}

// The values of one tensor of a step's snapshot.
std::vector<float> stored(Step& step, const std::string& name) {
  Snapshot snapshot;
  REQUIRE(step.snapshot(snapshot));
  const StoredTensor* tensor = snapshot.find(name);
  REQUIRE_MESSAGE(tensor != nullptr, name);
  const auto bytes = snapshot.bytes(*tensor);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
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

TEST_CASE("step: zero_init silences the last norm of each block") {
  StepOptions options = tiny();
  options.zero_init = true;
  auto step = Step::create(options);
  REQUIRE(step);
  for (const float value : stored(*step, "model.layer2.1.bn2.weight")) REQUIRE(value == 0);
  for (const float value : stored(*step, "model.layer2.1.bn1.weight")) REQUIRE(value == 1);
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
  auto upload = Upload::create({});
  REQUIRE(upload);
  int released = 0;
  const std::uint8_t pixels[3] = {1, 2, 3};
  const std::int32_t labels[1] = {4};
  {
    auto given = upload->put({pixels, labels, 1, 1, [&] { ++released; }});
    REQUIRE(given);
    CHECK(given->pixels == pixels);
    CHECK(given->labels == labels);
    CHECK(released == 0);
    given->release();
  }
  CHECK(released == 1);
  CHECK(pin("cpu", nullptr, 0));
}

TEST_CASE("versions are told") {
  const Versions found = versions();
  CHECK(found.torch.starts_with("2."));
  CHECK(found.threads >= 1);
}
