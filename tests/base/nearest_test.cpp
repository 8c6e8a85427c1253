#include "base/nearest.hpp"

#include <doctest/doctest.h>

using namespace sluice;

TEST_CASE("edit distance counts slips of the hand") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("batch", "batch") == 0);
  CHECK(edit_distance("Batch", "bATCH") == 0);
  CHECK(edit_distance("imagesize", "image_size") == 1);
  CHECK(edit_distance("btach", "batch") == 1);  // two letters swapped
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("the nearest word is told only if it is near") {
  const std::vector<std::string_view> words{"resnet18", "resnet34", "resnet50", "resnet101"};
  CHECK(nearest("resnet5", words) == "resnet50");
  CHECK(nearest("ResNet-101", words) == "resnet101");
  CHECK_FALSE(nearest("vit", words));
  CHECK_FALSE(nearest("x", {}));
  CHECK(by_distance("resnet5", words).front() == "resnet50");
  CHECK(by_distance("resnet5", words).size() == words.size());
}

TEST_CASE("a key in the wrong section is found") {
  const std::vector<std::string_view> keys{"data.train", "train.batch", "train.epochs", "optim.lr"};
  CHECK(nearest_key("train.lr", keys) == "optim.lr");
  CHECK(nearest_key("epochs", keys) == "train.epochs");
  CHECK(nearest_key("trian.batch", keys) == "train.batch");
  CHECK_FALSE(nearest_key("train.temperature", keys));
}
