// The commands that look at the data path alone: show, bench data.
#include <doctest/doctest.h>

#include "tests/program/workshop.hpp"

using namespace sluice::test;
using nlohmann::json;

namespace {

std::string array_header(const std::string& file) { return file.substr(10, file.find('\n') - 10); }

}  // namespace

TEST_CASE("show: the same batch for every number of threads, as an array with labels and as a sheet") {
  const Workshop shop;
  const Ended one = shop.run({"show", "tiny.toml", "--batch", "5", "--npy", "a.npy", "--sheet", "a.jpg"});
  INFO(one.err);
  REQUIRE(one.code == 0);
  CHECK(has(one.out, "train batch 5 (epoch 1): 5 images of 32 x 32"));
  const std::string pixels = read_text(shop.folder / "a.npy");
  CHECK(pixels.starts_with("\x93NUMPY"));
  CHECK(has(array_header(pixels), "'descr': '|u1', 'fortran_order': False, 'shape': (5,32,32,3,)"));
  CHECK(pixels.size() == 128 + 5 * 32 * 32 * 3);
  const std::string labels = read_text(shop.folder / "a.labels.npy");
  CHECK(has(array_header(labels), "'<i4'"));
  CHECK(labels.size() == 128 + 5 * 4);
  int components = 0;
  const std::string sheet = read_text(shop.folder / "a.jpg");
  const Bytes file(sheet.begin(), sheet.end());
  CHECK(full_decode(file, components).size() > 5 * 32 * 32 * 3);

  REQUIRE(shop.run({"show", "tiny.toml", "--batch", "5", "--npy", "b.npy", "--set",
                    "pipeline.decode_threads=3", "--set", "model.device=cuda"})
              .code == 0);
  CHECK(read_text(shop.folder / "b.npy") == pixels);
  REQUIRE(shop.run({"show", "tiny.toml", "--batch", "1", "--npy", "c.npy"}).code == 0);
  CHECK(read_text(shop.folder / "c.npy") != pixels);
}

TEST_CASE("show: validation in order and whole, without anything random") {
  const Workshop shop;
  for (const char* seed : {"1", "2"})
    REQUIRE(shop.run({"show", "tiny.toml", "--split", "val", "--batch", "4", "--npy",
                      std::string(seed) + ".npy", "--set", std::string("train.seed=") + seed})
                .code == 0);
  CHECK(read_text(shop.folder / "1.npy") == read_text(shop.folder / "2.npy"));
  CHECK(has(array_header(read_text(shop.folder / "1.npy")), "(4,32,32,3,)"));  // 24 images, 5 a batch
  const Ended past = shop.run({"show", "tiny.toml", "--split", "val", "--batch", "5"});
  CHECK(past.code == 2);
  CHECK(has(past.err, "there are 5"));
}

TEST_CASE("show: a bad image is told, and a file that cannot be written") {
  const Workshop shop;
  write_file(shop.folder.path() / "val" / "ant" / "10.JPEG", "not a JPEG");
  const Ended told = shop.run({"show", "tiny.toml", "--split", "val"});
  CHECK(told.code == 0);
  CHECK(has(told.out, "place 0: val/ant/10.JPEG: not a JPEG"));
  const Ended nowhere = shop.run({"show", "tiny.toml", "--sheet", "no/such/folder.jpg"});
  CHECK(nowhere.code == 1);
  CHECK(has(nowhere.err, "No such file"));
}

TEST_CASE("show: storage that fails is a failure of the run, not of its words") {
  const Workshop shop;
  const Ended ended =
      run_program({"/usr/bin/env", std::string("LD_PRELOAD=") + SLUICE_FAILING_FILES, "SLUICE_FAIL_CALL=open",
                   "SLUICE_FAIL_PATH=val/ant/11.JPEG", "SLUICE_FAIL_ERRNO=" + std::to_string(EIO),
                   std::getenv("SLUICE_BINARY"), "show", "tiny.toml", "--split", "val", "--npy", "a.npy"},
                  shop.folder.path());
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(has(ended.err, "val/ant/11.JPEG: "));
  CHECK(ended.out.empty());
  CHECK_FALSE(std::filesystem::exists(shop.folder / "a.npy"));
}

TEST_CASE("bench data: figures of both, for a set smaller than a batch too") {
  const Workshop shop;
  for (const char* batch : {"5", "64"}) {
    const Ended ended =
        shop.run({"bench", "data", "tiny.toml", "--images", "64", "--rounds", "2", "--threads", "1", "--json",
                  "--set", std::string("train.batch=") + batch, "--set", "model.device=cuda"});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    REQUIRE(json::accept(ended.out));
    const json told = json::parse(ended.out);
    for (const char* key :
         {"images_per_s", "full_decode_images_per_s", "ratio", "peak_rss_bytes", "peak_ledger_bytes"}) {
      CAPTURE(key);
      CHECK(told[key] > 0);
    }
    CHECK(told["threads"] == 1);
    CHECK(told["images"] >= 64);
    CHECK(told["bad_images"] == 0);
    for (const char* part : {"read_ms", "entropy_idct_ms", "resample_ms", "rest_ms"})
      CHECK((told[part].is_null() || told[part] > 0));  // null: within noise
  }
  CHECK(shop.run({"bench", "data", "tiny.toml", "--set", "data.train=nowhere"}).code == 2);
}
