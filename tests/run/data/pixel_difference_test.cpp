#include "run/data/pixel_difference.hpp"

#include <doctest/doctest.h>

#include "tests/support/decode_options.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/jpegs.hpp"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("pixel difference: none where nothing is left out, little where something is") {
  const TemporaryFolder folder;
  std::vector<std::string> files;
  for (int i = 0; i < 8; ++i) {
    files.push_back((folder / (std::to_string(i) + ".JPEG")).string());
    write_file(files.back(), make_jpeg({.size = {200 + i, 150}}));
  }
  files.push_back((folder / "not_there").string());
  DataPathOptions options;
  options.decode = decode_options(96, 256);
  options.read.max_file = 16 << 20;
  const PixelDifference exact = pixel_difference(files, options);
  CHECK(exact.largest == 0);
  CHECK(exact.changed == 0);
  CHECK(exact.reduced == 0);

  options.decode.fast = true;
  const PixelDifference fast = pixel_difference(files, options);
  CHECK(fast.largest == 1);
  CHECK(fast.changed > 0);
  CHECK(fast.changed < 0.05);

  options.decode.fast = false;
  options.decode.out = 24;
  const PixelDifference reduced = pixel_difference(files, options);
  CHECK(reduced.reduced > 0.5);
  CHECK(reduced.mean > 0);
  CHECK(reduced.mean < 4);
}
