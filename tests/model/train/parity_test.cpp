// ResNet-50 against torchvision: tests/parity/resnet50.json, which tests/interop/golden.py makes.
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/network/resnet.hpp"
#include "model/train/input.hpp"

// After torch, which has a CHECK of its own.
#include <doctest/doctest.h>

#include "tests/support/parity.hpp"

using namespace sluice;
using nlohmann::json;

namespace {

constexpr double tolerance = 1e-5;

json golden() {
  std::ifstream file("tests/parity/resnet50.json");
  REQUIRE(file);
  return json::parse(file);
}

// Norm, and products with vectors of signs.
using Digest = std::array<double, 5>;

template <class Value>
Digest digest(const std::string& name, std::size_t count, const Value& value) {
  const test::Bits bits("probe." + name);
  Digest sums{};
  for (std::size_t i = 0; i < count; ++i) {
    const double v = value(i);
    const std::uint32_t signs = bits(i);
    sums[0] += v * v;
    for (std::size_t k = 1; k < sums.size(); ++k) sums[k] += (signs >> (k - 1) & 1) ? -v : v;
  }
  sums[0] = std::sqrt(sums[0]);
  return sums;
}

// An estimate of the norm of the difference.
double distance(const Digest& a, const Digest& b) {
  double sum = 0;
  for (std::size_t k = 1; k < a.size(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return std::max(std::sqrt(sum / (a.size() - 1)), std::abs(a[0] - b[0]));
}

struct Floats {
  Floats(const Snapshot& snapshot, const std::string& name) {
    const StoredTensor* tensor = snapshot.find(name);
    REQUIRE_MESSAGE(tensor != nullptr, name);
    begin = reinterpret_cast<const float*>(snapshot.bytes(*tensor).data());
    count = tensor->bytes / sizeof(float);
  }
  double operator()(std::size_t i) const { return begin[i]; }
  const float* begin;
  std::size_t count;
};

// What a difference in a gradient or a momentum is measured by: the norm of the tensor, but weight and bias
// of a norm count as one. Where most activations pass a ReLU, the next norm takes a shift away again: the
// bias's gradient is what is left of large terms that cancel. The classifier's bias counts with its weight as
// well: four products estimate the error of so few values too coarsely. tests/interop/parity.py compares
// whole tensors.
double measure(const json& tensors, const std::string& name, const std::string& key) {
  const Digest own = tensors.at(name).at(key);
  const std::size_t dot = name.rfind('.');
  const std::string layer = name.substr(0, dot);
  if (layer != "fc" && !tensors.contains(layer + ".running_mean")) return own[0];
  const std::string sibling = name.substr(dot) == ".bias" ? ".weight" : ".bias";
  const Digest other = tensors.at(layer + sibling).at(key);
  return std::hypot(own[0], other[0]);
}

class Comparison {
 public:
  void add(const std::string& what, const Digest& ours, const Digest& theirs, double norm) {
    const double difference = distance(ours, theirs) / norm;
    ++compared;
    if (difference <= worst) return;
    worst = difference;
    where = what;
  }
  int compared = 0;
  double worst = 0;
  std::string where;
};

void check(const Comparison& comparison, int count) {
  CAPTURE(comparison.where);
  CHECK(comparison.compared == count);
  CHECK(comparison.worst < tolerance);
}

constexpr int parameters = 161, buffers = 106;

void compare_gradients(const json& tensors, const Snapshot& snapshot) {
  Comparison gradients;
  for (const auto& [name, theirs] : tensors.items()) {
    if (!theirs.contains("gradients")) continue;
    const Floats momentum(snapshot, "momentum." + name);
    const test::Formula weight("resnet50", name, snapshot.find("model." + name)->shape);
    // The first momentum is the gradient with weight decay.
    const auto gradient = [&](std::size_t i) { return momentum(i) - test::parity::decay * weight(i); };
    gradients.add(name, digest(name, momentum.count, gradient), theirs.at("gradients"),
                  measure(tensors, name, "gradients"));
  }
  check(gradients, parameters);
}

void compare_end(const json& tensors, const Snapshot& snapshot, const std::string& kind) {
  Comparison momenta, state;
  for (const auto& [name, theirs] : tensors.items()) {
    const Floats ours(snapshot, "model." + name);
    const Digest wanted = theirs.at(kind + "state");
    state.add(name, digest(name, ours.count, ours), wanted, wanted[0]);
    if (!theirs.contains(kind + "momenta")) continue;
    const Floats momentum(snapshot, "momentum." + name);
    momenta.add(name, digest(name, momentum.count, momentum), theirs.at(kind + "momenta"),
                measure(tensors, name, kind + "momenta"));
  }
  check(momenta, parameters);
  check(state, parameters + buffers);
}

void train(const json& wanted, bool nesterov) {
  auto step = test::formula_step("resnet50", nesterov);
  REQUIRE(step);
  const std::string kind = nesterov ? "nesterov " : "";
  Snapshot snapshot;
  for (int i = 0; i < test::parity::steps; ++i) {
    const auto loss = test::formula_train(*step, i);
    REQUIRE(loss);
    CHECK(*loss == doctest::Approx(wanted.at(kind + "losses")[i].get<double>()).epsilon(tolerance));
    if (i > 0 || nesterov) continue;
    REQUIRE(step->snapshot(snapshot));
    compare_gradients(wanted.at("tensors"), snapshot);
  }
  REQUIRE(step->snapshot(snapshot));
  compare_end(wanted.at("tensors"), snapshot, kind);
}

void fill(const ResNet& network) {
  const at::NoGradGuard no_grad;
  const auto set = [](const std::string& name, at::Tensor tensor) {
    if (tensor.dim() == 0) return;
    const test::Formula formula("resnet50", name, tensor.sizes().vec());
    float* values = tensor.data_ptr<float>();
    for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = formula(static_cast<std::size_t>(i));
  };
  for (const auto& item : network->named_parameters()) set(item.key(), item.value());
  for (const auto& item : network->named_buffers()) set(item.key(), item.value());
}

}  // namespace

TEST_CASE("parity: the logits of ResNet-50 are torchvision's") {
  at::set_num_threads(1);
  const json wanted = golden();
  auto network = make_resnet("resnet50", test::parity::classes, 1);
  REQUIRE(network);
  fill(*network);
  const test::FormulaBatch batch(0);
  const StepOptions defaults;
  Input input(*open_device("cpu"), at::kCPU, at::kFloat,
              test::parity::batch * test::parity::size * test::parity::size,
              make_affine(defaults.mean, defaults.std));
  const at::Tensor images = input.images(batch.pixels.data(), test::parity::batch, test::parity::size);
  const at::NoGradGuard no_grad;
  // Evaluation first: training moves the running statistics.
  for (const bool training : {false, true}) {
    (*network)->train(training);
    const at::Tensor logits = (*network)->forward(images).contiguous();
    const float* values = logits.const_data_ptr<float>();
    const Digest theirs = wanted.at(training ? "training logits" : "evaluation logits");
    Comparison comparison;
    comparison.add(
        "logits",
        digest("logits", static_cast<std::size_t>(logits.numel()), [&](std::size_t i) { return values[i]; }),
        theirs, theirs[0]);
    check(comparison, 1);
  }
}

TEST_CASE("parity: loss, gradients and three steps of ResNet-50 are torchvision's") {
  train(golden(), false);
}

TEST_SUITE("long") {
  TEST_CASE("parity: three steps with Nesterov's momentum are torchvision's") { train(golden(), true); }
}
