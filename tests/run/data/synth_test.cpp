#include "run/data/synth.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "run/data/synth_image.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
namespace fs = std::filesystem;

namespace {

struct Scratch {
  fs::path path = fs::temp_directory_path() / ("sluice-synth-" + std::to_string(::getpid()));
  Scratch() { fs::remove_all(path), fs::create_directories(path); }
  ~Scratch() { fs::remove_all(path); }
};

std::map<std::string, std::string> files(const fs::path& root) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    std::ostringstream out;
    out << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    all[fs::relative(entry.path(), root).string()] = out.str();
  }
  return all;
}

SynthOptions small(const fs::path& dir) {
  return {.dir = dir.string(), .classes = 3, .train_per_class = 4, .val_per_class = 2, .seed = 7, .size = 48};
}

using Features = std::vector<double>;

// The share of test pictures whose class has the nearest mean of features.
double accuracy(Features (*features)(const Painting&)) {
  const auto of = [&](int label, int number) {
    Random random(1, 0, static_cast<std::uint64_t>(label) << 32 | static_cast<std::uint32_t>(number),
                  Purpose::synth);
    return features(paint({.label = label, .classes = 10, .size = 96}, random));
  };
  std::array<Features, 10> means;
  for (int label = 0; label < 10; ++label) {
    for (int i = 0; i < 60; ++i) {
      const Features one = of(label, i);
      Features& mean = means[static_cast<std::size_t>(label)];
      mean.resize(one.size());
      for (std::size_t k = 0; k < one.size(); ++k) mean[k] += one[k] / 60;
    }
  }
  int right = 0;
  for (int label = 0; label < 10; ++label) {
    for (int i = 60; i < 80; ++i) {
      const Features one = of(label, i);
      std::size_t best = 0;
      double least = INFINITY;
      for (std::size_t c = 0; c < 10; ++c) {
        double distance = 0;
        for (std::size_t k = 0; k < one.size(); ++k) distance += std::pow(one[k] - means[c][k], 2);
        if (distance < least) least = distance, best = c;
      }
      right += best == static_cast<std::size_t>(label);
    }
  }
  return right / 200.0;
}

Features mean_colour(const Painting& p) {
  Features mean(3);
  for (std::size_t i = 0; i < p.rgb.size(); ++i)
    mean[i % 3] += p.rgb[i] / (static_cast<double>(p.rgb.size()) / 3);
  return mean;
}

// How much of the edges points in each of twelve directions.
Features edges(const Painting& p) {
  Features histogram(12);
  double sum = 0;
  const auto grey = [&](int x, int y) {
    const auto* pixel = &p.rgb[(static_cast<std::size_t>(y) * static_cast<std::size_t>(p.width) +
                                static_cast<std::size_t>(x)) *
                               3];
    return pixel[0] + pixel[1] + pixel[2];
  };
  for (int y = 1; y + 1 < p.height; ++y) {
    for (int x = 1; x + 1 < p.width; ++x) {
      const double dx = grey(x + 1, y) - grey(x - 1, y), dy = grey(x, y + 1) - grey(x, y - 1);
      const double angle = std::fmod(std::atan2(dy, dx) + 2 * M_PI, M_PI) / M_PI;
      const double strength = dx * dx + dy * dy;
      histogram[static_cast<std::size_t>(angle * 12) % 12] += strength;
      sum += strength;
    }
  }
  for (double& share : histogram) share /= sum;
  return histogram;
}

}  // namespace

TEST_CASE("the classes can be told by structure and not by mean colour") {
  CHECK(accuracy(edges) > 0.4);  // chance is 0.1
  CHECK(accuracy(mean_colour) < 0.2);
}

TEST_CASE("the pictures vary in size and storage as ImageNet's do") {
  int portrait = 0, grey = 0, progressive = 0, fine = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    Random random(3, 0, i, Purpose::synth);
    const Storage storage = choose_storage(random);
    grey += storage.grey, progressive += storage.progressive, fine += storage.subsampling == 1;
    const Painting picture = paint({.label = static_cast<int>(i % 10), .classes = 10, .size = 20}, random);
    portrait += picture.height > picture.width;
  }
  CHECK((grey > 5 && grey < 50));
  CHECK((progressive > 10 && progressive < 70));
  CHECK((fine > 200 && fine < 400));
  CHECK((portrait > 100 && portrait < 400));
}

TEST_CASE("grey and progressive files are what they say") {
  Random random(3, 0, 0, Purpose::synth);
  const Painting picture = paint({.label = 4, .classes = 10, .size = 64}, random);
  const auto has_frame = [](const std::vector<std::uint8_t>& jpeg, std::uint8_t marker,
                            std::uint8_t components) {
    for (std::size_t i = 0; i + 9 < jpeg.size(); ++i)
      if (jpeg[i] == 0xFF && jpeg[i + 1] == marker && jpeg[i + 9] == components) return true;
    return false;
  };
  CHECK(has_frame(encode_jpeg(picture, {}), 0xC0, 3));
  CHECK(has_frame(encode_jpeg(picture, {.grey = true}), 0xC0, 1));
  CHECK(has_frame(encode_jpeg(picture, {.progressive = true}), 0xC2, 3));
}

TEST_CASE("a tree is complete, and the same at any number of threads") {
  const Scratch scratch;
  SynthOptions one = small(scratch.path / "one"), two = small(scratch.path / "two/");
  one.threads = 1, two.threads = 3;
  std::int64_t last = 0;
  CHECK(synth(one, [&](std::int64_t done, std::int64_t total) {
    CHECK(done == last + 1);
    CHECK(total == 18);
    last = done;
  }));
  CHECK(last == 18);
  CHECK(synth(two));
  const auto tree = files(scratch.path / "one");
  CHECK(tree.size() == 19);  // with synth.json
  CHECK(tree.contains("train/n00000002/n00000002_3.JPEG"));
  CHECK(tree.contains("val/n00000000/n00000000_1.JPEG"));
  CHECK(tree == files(scratch.path / "two"));
  CHECK(tree.at("train/n00000000/n00000000_0.JPEG") != tree.at("val/n00000000/n00000000_0.JPEG"));
  CHECK_FALSE(fs::exists(scratch.path / "one.partial"));
}

TEST_CASE("an interrupted tree is finished by the next call") {
  const Scratch scratch;
  REQUIRE(synth(small(scratch.path / "whole")));
  const fs::path torn = scratch.path / "torn", partial = scratch.path / "torn.partial";
  fs::copy(scratch.path / "whole", partial, fs::copy_options::recursive);
  fs::remove(partial / "train/n00000001/n00000001_2.JPEG");
  fs::remove_all(partial / "val/n00000002");
  const auto kept = fs::last_write_time(partial / "train/n00000000/n00000000_0.JPEG");
  REQUIRE(synth(small(torn)));
  CHECK(files(torn) == files(scratch.path / "whole"));
  CHECK(fs::last_write_time(torn / "train/n00000000/n00000000_0.JPEG") == kept);  // not made again
}

TEST_CASE("what stands in the way of a tree's files is replaced, not waited for or written through") {
  const test::Watchdog watchdog("making a tree");
  const Scratch scratch;
  REQUIRE(synth(small(scratch.path / "whole")));
  const fs::path partial = scratch.path / "new.partial", precious = scratch.path / "precious";
  fs::create_directories(partial / "train/n00000001");
  fs::copy(scratch.path / "whole/synth.json", partial / "synth.json");
  std::ofstream(precious) << "precious";
  for (const char* fifo : {"train/n00000001/n00000001_2.JPEG.tmp", "train/n00000001/n00000001_3.JPEG"})
    REQUIRE(mkfifo((partial / fifo).c_str(), 0600) == 0);
  fs::create_symlink(precious, partial / "train/n00000001/n00000001_1.JPEG.tmp");
  REQUIRE(synth(small(scratch.path / "new")));
  CHECK(files(scratch.path / "new") == files(scratch.path / "whole"));
  CHECK(fs::file_size(precious) == 8);
}

TEST_CASE("what was begun with other options is begun anew") {
  const Scratch scratch;
  SynthOptions other = small(scratch.path / "a");
  other.seed = 8;
  REQUIRE(synth(other));
  REQUIRE(synth(small(scratch.path / "b")));
  fs::rename(scratch.path / "a", scratch.path / "c.partial");
  REQUIRE(synth(small(scratch.path / "c")));
  CHECK(files(scratch.path / "c") == files(scratch.path / "b"));
}

TEST_CASE("two calls at once make one tree") {
  const Scratch scratch;
  bool first = false, second = false;
  {
    const std::jthread a([&] { first = static_cast<bool>(synth(small(scratch.path / "t"))); });
    const std::jthread b([&] { second = static_cast<bool>(synth(small(scratch.path / "t"))); });
  }
  CHECK(first);
  CHECK(second);
  CHECK(files(scratch.path / "t").size() == 19);
  CHECK_FALSE(fs::exists(scratch.path / "t.partial"));
}

TEST_CASE("foreign folders and impossible options are refused, and nothing is touched") {
  const Scratch scratch;
  std::ofstream(scratch.path / "mine.txt") << "precious";
  const Status foreign = synth(small(scratch.path));
  REQUIRE_FALSE(foreign);
  CHECK(foreign.error().subject == scratch.path.string());
  CHECK(fs::exists(scratch.path / "mine.txt"));

  for (const auto change :
       {+[](SynthOptions& o) { o.classes = 1; }, +[](SynthOptions& o) { o.classes = 1001; },
        +[](SynthOptions& o) { o.train_per_class = 0; }, +[](SynthOptions& o) { o.size = 5; },
        +[](SynthOptions& o) { o.dir = ""; }, +[](SynthOptions& o) { o.threads = 0; }}) {
    SynthOptions options = small(scratch.path / "new");
    change(options);
    CHECK_FALSE(synth(options));
  }
  CHECK_FALSE(fs::exists(scratch.path / "new"));
  CHECK_FALSE(synth(small("/proc/sluice/tree")));
}
