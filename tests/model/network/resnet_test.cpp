#include "model/network/resnet.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace sluice;

namespace {

std::int64_t count(const ResNet& network) {
  std::int64_t sum = 0;
  for (const auto& parameter : network->parameters()) sum += parameter.numel();
  return sum;
}

// Names and shapes as torchvision has them, put together from the published description of the network.
using Shapes = std::map<std::string, std::vector<std::int64_t>>;

void add_norm(Shapes& shapes, const std::string& name, std::int64_t channels) {
  for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"})
    shapes[name + part] = {channels};
  shapes[name + ".num_batches_tracked"] = {};
}

Shapes expected(std::array<int, 4> blocks, bool bottleneck, std::int64_t classes) {
  Shapes shapes{{"conv1.weight", {64, 3, 7, 7}}};
  add_norm(shapes, "bn1", 64);
  std::int64_t in = 64;
  for (int layer = 0; layer < 4; ++layer) {
    const std::int64_t width = 64 << layer, out = bottleneck ? 4 * width : width;
    for (int block = 0; block < blocks[layer]; ++block) {
      const std::string at = "layer" + std::to_string(layer + 1) + "." + std::to_string(block) + ".";
      if (bottleneck) {
        shapes[at + "conv1.weight"] = {width, in, 1, 1};
        shapes[at + "conv2.weight"] = {width, width, 3, 3};
        shapes[at + "conv3.weight"] = {out, width, 1, 1};
        add_norm(shapes, at + "bn3", out);
      } else {
        shapes[at + "conv1.weight"] = {width, in, 3, 3};
        shapes[at + "conv2.weight"] = {width, width, 3, 3};
      }
      add_norm(shapes, at + "bn1", width);
      add_norm(shapes, at + "bn2", width);
      if (block == 0 && (layer > 0 || bottleneck)) {
        shapes[at + "downsample.0.weight"] = {out, in, 1, 1};
        add_norm(shapes, at + "downsample.1", out);
      }
      in = out;
    }
  }
  shapes["fc.weight"] = {classes, in};
  shapes["fc.bias"] = {classes};
  return shapes;
}

Shapes actual(const ResNet& network) {
  Shapes shapes;
  for (const auto& item : network->named_parameters()) shapes[item.key()] = item.value().sizes().vec();
  for (const auto& item : network->named_buffers()) shapes[item.key()] = item.value().sizes().vec();
  return shapes;
}

}  // namespace

TEST_CASE("resnet: names, shapes and parameter counts are torchvision's") {
  const struct {
    const char* arch;
    std::array<int, 4> blocks;
    bool bottleneck;
    std::int64_t parameters;
  } rows[] = {{"resnet18", {2, 2, 2, 2}, false, 11689512},
              {"resnet34", {3, 4, 6, 3}, false, 21797672},
              {"resnet50", {3, 4, 6, 3}, true, 25557032},
              {"resnet101", {3, 4, 23, 3}, true, 44549160}};
  for (const auto& row : rows) {
    INFO(row.arch);
    const auto network = make_resnet(row.arch, 1000, 1);
    REQUIRE(network);
    CHECK(count(*network) == row.parameters);
    CHECK((actual(*network) == expected(row.blocks, row.bottleneck, 1000)));
  }
}

TEST_CASE("resnet: one score per class, at any image size") {
  const at::NoGradGuard no_grad;
  for (const char* arch : {"resnet18", "resnet50"}) {
    auto network = *make_resnet(arch, 7, 1);
    network->eval();
    CHECK(network->forward(at::zeros({2, 3, 64, 64})).sizes() == at::IntArrayRef{2, 7});
    CHECK(network->forward(at::zeros({1, 3, 33, 47})).sizes() == at::IntArrayRef{1, 7});
  }
}

TEST_CASE("resnet: a stage halves the image in the 3x3 convolution") {
  auto network = *make_resnet("resnet50", 2, 1);
  for (const auto& item : network->named_modules())
    if (auto* conv = item.value()->as<torch::nn::Conv2dImpl>()) {
      const bool halves = conv->options.stride()->at(0) == 2;
      const std::string& name = item.key();
      const bool first = name.find(".0.") != std::string::npos && name.find("layer1") == std::string::npos;
      const bool should =
          name == "conv1" || (first && (name.ends_with("conv2") || name.ends_with("downsample.0")));
      INFO(name);
      CHECK(halves == should);
    }
}

TEST_CASE("resnet: initial weights have the prescribed spread and depend on the seed alone") {
  auto network = *make_resnet("resnet50", 1000, 3);
  for (const auto& item : network->named_parameters()) {
    const at::Tensor& value = item.value();
    INFO(item.key());
    if (value.dim() == 4) {
      const double wanted =
          std::sqrt(2.0 / static_cast<double>(value.size(0) * value.size(2) * value.size(3)));
      CHECK(value.std().item<double>() == doctest::Approx(wanted).epsilon(0.05));
      CHECK(std::abs(value.mean().item<double>()) < 0.05 * wanted);
    } else if (item.key().starts_with("fc.")) {
      CHECK(value.abs().max().item<double>() <= 1.0 / std::sqrt(2048.0));
      CHECK(value.abs().max().item<double>() > 0.95 / std::sqrt(2048.0));
    } else {
      CHECK(value.eq(item.key().ends_with("weight") ? 1 : 0).all().item<bool>());
    }
  }
  auto same = *make_resnet("resnet50", 1000, 3), other = *make_resnet("resnet50", 1000, 4);
  const auto a = network->parameters(), b = same->parameters(), c = other->parameters();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].equal(b[i]));
  CHECK_FALSE(a[0].equal(c[0]));
}

TEST_CASE("resnet: an unknown name or no class is refused with what there is") {
  const auto unknown = make_resnet("resnet19", 10, 1);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().text().find("resnet101") != std::string::npos);
  CHECK_FALSE(make_resnet("resnet18", 0, 1));
}
