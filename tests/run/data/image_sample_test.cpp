#include "run/data/image_sample.hpp"

#include <doctest/doctest.h>

#include "nodes/source/folder.hpp"
#include "tests/support/decode_options.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/image_counts.hpp"
#include "tests/support/jpegs.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

// Twelve images a class; `broken` of the first class of the training tree are not JPEGs.
struct Trees {
  explicit Trees(int broken) {
    for (const char* split : {"train", "val"})
      for (const char* name : {"ant", "bee"})
        for (int i = 0; i < 12; ++i) {
          const auto file = folder.path() / split / name / (std::to_string(10 + i) + ".JPEG");
          if (split[0] == 't' && name[0] == 'a' && i < broken)
            write_file(file, std::string("no image"));
          else
            write_file(file, make_jpeg({}));
        }
    options.decode = decode_options(32, 36);
    options.read.max_file = 16 << 20;
  }
  [[nodiscard]] DataSets scan() const {
    const auto scanned = [&](const char* split) {
      return std::make_shared<ImageFolder>(*ImageFolder::scan((folder / split).string(), {}));
    };
    return {scanned("train"), scanned("val")};
  }
  TemporaryFolder folder;
  DataPathOptions options;
};

}  // namespace

TEST_CASE("image sample: spread over the set, bad ones counted and the first named") {
  const Trees trees(3);
  const DataSets sets = trees.scan();
  const ImageSample all = sample_images(sets, Split::train, 100, trees.options);
  CHECK(all.looked_at == 24);
  CHECK(all.whole == 24);
  CHECK(all.bad == 3);
  CHECK(all.first_bad.find("train/ant/10.JPEG: not a JPEG") != std::string::npos);
  CHECK(all.ms > 0);
  CHECK_FALSE(all.fatal);
  const ImageSample some = sample_images(sets, Split::train, 6, trees.options);
  CHECK(some.looked_at == 6);
  CHECK(some.bad == 1);  // the first of every four: 10, 14, 18 of the ants
  CHECK(sample_images(sets, Split::val, 100, trees.options).bad == 0);
}

TEST_CASE("image sample: limits of the configuration count; a file that is gone would end a run") {
  const Trees trees(0);
  const DataSets sets = trees.scan();
  DataPathOptions small = trees.options;
  small.read.max_file = 10;
  const ImageSample all_too_big = sample_images(sets, Split::val, 5, small);
  CHECK(all_too_big.bad == 5);
  CHECK(all_too_big.ms == 0);
  CHECK(all_too_big.first_bad.find("data.max_file") != std::string::npos);
  std::filesystem::remove(trees.folder.path() / "val/ant/10.JPEG");
  const ImageSample gone = sample_images(sets, Split::val, 5, trees.options);
  REQUIRE(gone.fatal);
  CHECK(gone.fatal->cause == "No such file or directory");
}

TEST_CASE("image sample: how many bad ones stop a run") {
  CHECK_FALSE(too_many_bad(counts(64, 0, 1000), 0));
  CHECK(too_many_bad(counts(64, 1, 1000), 0));
  CHECK_FALSE(too_many_bad(counts(64, 1, 1000), 0.01));  // may be chance
  CHECK_FALSE(too_many_bad(counts(64, 3, 1000), 0.01));
  CHECK(too_many_bad(counts(64, 4, 1000), 0.01));
  CHECK(too_many_bad(counts(64, 1, 64), 0.01));  // all were looked at: this is no chance
  CHECK_FALSE(too_many_bad(counts(64, 1, 64), 0.02));
  CHECK(too_many_bad(counts(2, 2, 1000), 0.5));
}
