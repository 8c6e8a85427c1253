#include "model/task.hpp"

#include <doctest/doctest.h>

#include "model/train/train_step.hpp"

using namespace sluice;

TEST_CASE("task: an image is size x size x 3 bytes and a class number") {
  const Task task = image_classification(224);
  CHECK(task.sample.bytes() == 224 * 224 * 3);
  CHECK(task.sample.values() == task.sample.bytes());
  CHECK(task.sample.label_bytes == 4);
  CHECK(task.sample.width() == 224);
  CHECK(task.sample.text() == "3 x 224 x 224");
  CHECK(task.size == "224 px");
  CHECK(task.facts == std::vector<std::pair<std::string, std::int64_t>>{{"image_size", 224}});
}

TEST_CASE("task: a layout carries volumes with a label for each voxel") {
  const SampleLayout volume{{2, 16, 64, 96}, 4, 16 * 64 * 96};
  CHECK(volume.values() == 2 * 16 * 64 * 96);
  CHECK(volume.bytes() == 4 * volume.values());
  CHECK(volume.text() == "2 x 16 x 64 x 96");
}

TEST_CASE("task: what a step holds is asked for samples of the size given") {
  const Task task = image_classification(224);
  StepShape shape{.arch = "resnet18", .classes = 10, .image_size = 64, .batch = 8};
  const std::size_t small = step_memory(shape).peak;
  REQUIRE(small > 0);
  shape.image_size = 0;
  CHECK(task.step_memory(image_layout(64), shape).peak == small);
  CHECK(task.step_memory(task.sample, shape).peak > small);
}

TEST_CASE("task: figures leave out what cannot be told") {
  const Task task = image_classification(224);
  CHECK(task.figures("val/", {}).empty());
  CHECK(task.figures("train/", {.loss = 6, .count = 4}) == Values{{"train/loss", 1.5}});
  CHECK(task.figures("val/", {.loss = 6, .count = 4, .judged = 4, .correct1 = 1, .correct5 = 3}) ==
        Values{{"val/loss", 1.5}, {"val/acc1", 25}, {"val/acc5", 75}});
}
