#include "run/data/pixel_difference.hpp"

#include <doctest/doctest.h>

#include "nodes/source/folder.hpp"
#include "tests/support/decode_options.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/jpegs.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("pixel difference: none where nothing is left out, little where something is") {
  const TemporaryFolder folder;
  std::vector<std::size_t> items;
  for (int i = 0; i < 9; ++i) {
    items.push_back(static_cast<std::size_t>(i));
    write_file(folder / "ant" / (std::to_string(i) + ".JPEG"), make_jpeg({.size = {200 + i, 150}}));
  }
  const Result<ImageFolder> files = ImageFolder::scan(folder.path().string(), {});
  REQUIRE(files);
  std::filesystem::remove(folder / "ant" / "8.JPEG");
  DataPathOptions options;
  options.decode = decode_options(96, 256);
  options.read.max_file = 16 << 20;
  const PixelDifference exact = pixel_difference(*files, items, options);
  CHECK(exact.largest == 0);
  CHECK(exact.changed == 0);
  CHECK(exact.reduced == 0);

  options.decode.fast = true;
  const PixelDifference fast = pixel_difference(*files, items, options);
  CHECK(fast.largest == 1);
  CHECK(fast.changed > 0);
  CHECK(fast.changed < 0.05);

  options.decode.fast = false;
  options.decode.out = 24;
  const PixelDifference reduced = pixel_difference(*files, items, options);
  CHECK(reduced.reduced > 0.5);
  CHECK(reduced.mean > 0);
  CHECK(reduced.mean < 4);
}
