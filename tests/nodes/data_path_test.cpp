#include "nodes/data_path.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <optional>
#include <random>

#include "graph/flow/pipeline.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/odd_jpegs.hpp"
#include "tests/support/watchdog.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr int out = 32;

// Three classes of small images of all kinds, with a validation set that does not fill its last batch.
void make_tree(const std::filesystem::path& root) {
  int n = 0;
  for (const char* split : {"train", "val"})
    for (const char* name : {"ant", "bee", "cat"})
      for (int i = 0; i < (split[0] == 't' ? 9 : 5); ++i, ++n) {
        JpegRecipe r;
        r.size = {50 + 7 * (n % 9), 40 + 5 * (n % 11)};
        r.components = n % 7 == 3 ? 1 : 3;
        r.progressive = n % 5 == 2;
        r.quality = 60 + n % 40;
        write_file(root / split / name / ("img" + std::to_string(100 + i) + ".JPEG"), make_jpeg(r));
      }
}

struct Run {
  std::vector<std::vector<std::uint8_t>> batches;  // pixels and labels
  std::vector<std::vector<std::int32_t>> labels;
  std::vector<Bad> bad;
  std::size_t peak = 0, budget = 0;
  RunEnd end;
};

struct Settings {
  unsigned decode_threads = 2;
  bool scramble_reads = false;
  Policy policy = Policy::trivial_wide;
  std::size_t max_file = 1 << 20, max_scratch = 4 << 20, thread_scratch = 1 << 20;
  std::size_t read_ahead = 8, grant = 64 * 1024;
  std::uint64_t max_pixels = 178'956'970;
  std::function<void(Stages&, const std::function<void()>& stop)> change = [](Stages&, const auto&) {};
};

Run run(const std::filesystem::path& root, const Settings& settings) {
  auto train = ImageFolder::scan((root / "train").string(), {});
  auto val = ImageFolder::scan((root / "val").string(), {});
  REQUIRE(train);
  REQUIRE(val);
  RunShape shape;
  shape.train_images = train->size(), shape.val_images = val->size(), shape.batch = 6, shape.epochs = 2,
  shape.seed = 11;
  const auto sequence = Sequence::make(shape);
  REQUIRE(sequence);
  auto sets = std::make_shared<const DataSets>(DataSets{std::move(*train), std::move(*val)});

  DataPathOptions options;
  options.decode.out = out;
  options.decode.resize = out + 4;
  options.decode.thread_scratch = settings.thread_scratch;
  options.decode.max_scratch = settings.max_scratch;
  options.decode.max_pixels = settings.max_pixels;
  options.read.max_file = settings.max_file;
  options.augment.erase = 0.3;
  options.augment.policy = settings.policy;
  options.decode_threads = settings.decode_threads;
  options.seed = shape.seed;
  Stages stages = data_path(sets, *sequence, options);
  if (settings.scramble_reads)
    stages.read = [inner = stages.read](const Ticket& t, const TakeChunks& take, const Stop& stop) {
      thread_local std::mt19937 engine(std::random_device{}());
      std::this_thread::sleep_for(std::chrono::microseconds(engine() % 3000));
      return inner(t, take, stop);
    };

  PipelineOptions o;
  o.read_threads = 4;
  o.decode_threads = settings.decode_threads;
  o.batch = shape.batch;
  o.place_bytes = out * out * 3;
  o.batches = sequence->batches();
  SplitRequest request;
  request.budget = 32 << 20;
  request.index = sets->train.index_bytes() + sets->val.index_bytes();
  request.batch = o.batch;
  request.place_bytes = o.place_bytes;
  request.decode_threads = o.decode_threads;
  request.thread_scratch = settings.thread_scratch;
  request.thread_copy = augment_bytes(settings.policy, {out, out});
  request.max_file = settings.max_file;
  request.max_scratch = settings.max_scratch;
  request.grant = settings.grant;
  request.slots = 2;
  request.read_ahead = settings.read_ahead;
  const auto split = split_budget(request);
  REQUIRE(split);
  o.split = *split;

  Run result;
  stages.upload = [](Batch&) { return Status(Done{}); };
  stages.step = [&](Batch& b) {
    std::vector<std::uint8_t> all;
    std::vector<std::int32_t> labels;
    for (std::uint32_t i = 0; i < b.slot->places(); ++i) {
      const auto place = b.slot->place(i);
      all.insert(all.end(), place.begin(), place.end());
      labels.push_back(b.slot->labels()[i]);
    }
    for (Bad& bad : b.slot->take_bad()) result.bad.push_back(std::move(bad));
    result.batches.push_back(std::move(all));
    result.labels.push_back(std::move(labels));
    return Status(Done{});
  };
  Ledger ledger(o.split.budget);
  std::optional<Pipeline> pipeline;
  settings.change(stages, [&] { pipeline->stop().request(); });
  pipeline.emplace(o, std::move(stages), ledger);
  result.end = pipeline->run();
  result.peak = ledger.peak();
  result.budget = ledger.budget();
  return result;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// As they stand in quarantine.jsonl, in order.
std::vector<std::string> records(const Run& run) {
  std::vector<std::string> all;
  for (const Bad& b : run.bad)
    all.push_back(std::to_string(b.place) + " " + b.file + ": " + b.cause + " -> " + b.replacement);
  return all;
}

// All crafted files and `mutants` mutated ones, half of each set in validation, among as many sound ones:
// with more bad images than good ones a run would find no replacements.
void same_records_twice(std::uint64_t mutants) {
  const Watchdog dog("odd files", std::chrono::seconds(1200));
  const TemporaryFolder folder;
  const std::vector<Bytes> sound = sound_jpegs();
  std::vector<Bytes> odd;
  for (OddJpeg& file : crafted_jpegs()) odd.push_back(std::move(file.bytes));
  for (std::uint64_t i = 0; i < mutants; ++i) odd.push_back(mutant(sound, 41, i));
  for (std::size_t i = 0; i < odd.size(); ++i) {
    const auto root = folder.path() / (i % 4 == 3 ? "val" : "train");
    const std::string name = std::to_string(10000 + i) + ".JPEG";
    write_file(root / "odd" / name, odd[i]);
    write_file(root / "sound" / name, sound[i % sound.size()]);
  }
  Settings settings;
  settings.decode_threads = 1;
  settings.thread_scratch = 300 << 10;  // so that some go through the lane
  const Run reference = run(folder.path(), settings);
  REQUIRE_FALSE(reference.end.failure);
  int alike = 1;
  for (const unsigned threads : {1u, 2u, 8u}) {
    CAPTURE(threads);
    settings.decode_threads = threads;
    settings.scramble_reads = threads != 1;
    const Run again = run(folder.path(), settings);
    REQUIRE_FALSE(again.end.failure);
    const bool same = again.batches == reference.batches && again.labels == reference.labels;
    CHECK(same);
    CHECK((records(again) == records(reference)));
    CHECK(again.peak <= again.budget);
    alike += same && records(again) == records(reference);
  }
  MESSAGE(odd.size() << " odd files of " << 2 * odd.size() << ": " << reference.batches.size() << " batches, "
                     << reference.bad.size() << " bad images; " << alike << " of 4 runs alike");
  CHECK(reference.bad.size() > odd.size() / 2);
}

}  // namespace

TEST_CASE("data path: same seed, same bytes, with 1, 2 and 8 decode threads and reads in random order") {
  const Watchdog dog("data path");
  const TemporaryFolder folder;
  make_tree(folder.path());
  Settings settings;
  settings.decode_threads = 1;
  const Run reference = run(folder.path(), settings);
  REQUIRE_FALSE(reference.end.failure);
  CHECK(reference.batches.size() == 2u * (27 / 6 + 3));
  CHECK(reference.batches[0] != reference.batches[7]);  // another epoch, another order
  for (const unsigned threads : {1u, 2u, 8u}) {
    CAPTURE(threads);
    settings.decode_threads = threads;
    settings.scramble_reads = true;
    const Run other = run(folder.path(), settings);
    CHECK(other.batches == reference.batches);
    CHECK(other.labels == reference.labels);
    CHECK(other.peak <= other.budget);
  }
}

TEST_CASE("data path: the same bytes through the ordinary path and the big lane") {
  const Watchdog dog("lane");
  const TemporaryFolder folder;
  make_tree(folder.path());
  const Run reference = run(folder.path(), {});
  Settings tiny;
  tiny.grant = 1;           // one chunk: files above 16 KiB are too large for it
  tiny.thread_scratch = 1;  // no image fits
  const Run lane = run(folder.path(), tiny);
  REQUIRE_FALSE(lane.end.failure);
  CHECK(lane.batches == reference.batches);
  CHECK(lane.labels == reference.labels);
  CHECK(lane.end.figures.node(NodeId::lane).items == lane.end.figures.node(NodeId::decode).items);
}

TEST_CASE("data path: a policy changes training and leaves validation alone") {
  const Watchdog dog("policy");
  const TemporaryFolder folder;
  make_tree(folder.path());
  const Run with = run(folder.path(), {});
  Settings off;
  off.policy = Policy::none;
  const Run without = run(folder.path(), off);
  REQUIRE(with.batches.size() == 14);
  REQUIRE(without.batches.size() == 14);
  for (std::size_t b = 0; b < 14; ++b) {
    CAPTURE(b);
    CHECK((with.batches[b] == without.batches[b]) == (b % 7 >= 4));  // four of training, three of validation
  }
  CHECK(with.peak == without.peak + 2 * 4096);  // a copy of 32 x 32 pixels for each of two threads
}

TEST_CASE("data path: bad images are replaced in training, masked in validation, and noted") {
  const Watchdog dog("bad images");
  const TemporaryFolder folder;
  make_tree(folder.path());
  JpegRecipe recipe;
  Bytes cut = make_jpeg(recipe);
  cut.resize(cut.size() / 2);
  const std::string png = "\x89PNG\r\n\x1a\n................................";
  JpegRecipe large;
  large.size = {2000, 2000};
  large.flat = large.progressive = true;  // its coefficients need 12 MB
  const std::map<std::string, std::string> causes = {{"cut.JPEG", "truncated"},
                                                     {"png.JPEG", "PNG signature"},
                                                     {"empty.JPEG", "empty file"},
                                                     {"huge.JPEG", "data.max_file"},
                                                     {"scratch.JPEG", "data.max_scratch"}};
  for (const char* split : {"train", "val"}) {
    const auto bee = folder.path() / split / "bee";
    write_file(bee / "cut.JPEG", cut);
    write_file(bee / "png.JPEG", png);
    write_file(bee / "empty.JPEG", std::string());
    write_file(bee / "huge.JPEG", std::string((1 << 20) + 1, 'x'));
    write_file(bee / "scratch.JPEG", make_jpeg(large));
  }
  const Run first = run(folder.path(), {});
  REQUIRE_FALSE(first.end.failure);

  std::map<std::string, int> replaced, masked;
  for (const Bad& bad : first.bad) {
    const std::string name = std::filesystem::path(bad.file).filename().string();
    REQUIRE(causes.count(name));
    CHECK(contains(bad.cause, causes.at(name)));
    if (contains(bad.file, "/val/"))
      ++masked[name];
    else
      ++replaced[name];
    CHECK(bad.replacement.empty() == contains(bad.file, "/val/"));
    if (!bad.replacement.empty())
      CHECK_FALSE(causes.count(std::filesystem::path(bad.replacement).filename().string()));
  }
  for (const auto& [name, cause] : causes) CHECK(masked[name] == 2);  // once an epoch
  CHECK(replaced.size() >= 4);  // an epoch leaves out the incomplete batch

  // Masked places carry no label; all others do.
  int without = 0;
  for (std::size_t b = 0; b < first.labels.size(); ++b)
    for (const std::int32_t label : first.labels[b]) {
      CHECK(label < 3);
      without += label == Slot::masked;
    }
  CHECK(without == 10);

  // And again: the same replacements, whatever the threads, with hardly any read-ahead.
  Settings other;
  other.decode_threads = 8;
  other.scramble_reads = true;
  other.read_ahead = 1;
  const Run second = run(folder.path(), other);
  CHECK(second.batches == first.batches);
  CHECK(second.labels == first.labels);
}

TEST_CASE("data path: too many pixels are noticed before the gate, by the header alone") {
  const TemporaryFolder folder;
  make_tree(folder.path());
  Bytes vast = make_jpeg({.size = {64, 48}});
  patch_size(vast, {60000, 60000});
  write_file(folder.path() / "train" / "bee" / "vast.JPEG", vast);
  write_file(folder.path() / "val" / "bee" / "vast.JPEG", vast);
  bool asked = false;
  Settings settings;
  settings.change = [&](Stages& stages, const auto&) {
    stages.decode = [&, name = stages.name, inner = stages.decode](const Ticket& t, Pieces pieces, Slot& slot,
                                                                   const Stop& stop) {
      if (contains(name(t), "vast")) asked = true;
      return inner(t, pieces, slot, stop);
    };
  };
  const Run ordinary = run(folder.path(), settings);
  REQUIRE_FALSE(ordinary.end.failure);
  CHECK_FALSE(asked);  // its bytes never came to the decode stage
  int noted = 0;
  for (const Bad& bad : ordinary.bad) {
    CHECK(bad.cause == "60000 x 60000 pixels, more than data.max_pixels (178956970)");
    noted += contains(bad.file, "vast.JPEG");
  }
  CHECK(noted >= 3);  // in both validations and at least one epoch

  // The big lane, which reads files by itself, says the same.
  Settings lane;
  lane.change = [](Stages& stages, const auto&) {
    stages.read = [](const Ticket&, const TakeChunks&, const Stop&) { return Outcome::big(); };
  };
  const Run other = run(folder.path(), lane);
  REQUIRE_FALSE(other.end.failure);
  CHECK(other.batches == ordinary.batches);
  CHECK(records(other) == records(ordinary));
}

TEST_CASE("data path: a stop inside an image ends the run without it, in the ordinary path and in the lane") {
  const TemporaryFolder folder;
  make_tree(folder.path());
  for (const bool lane : {false, true}) {
    const Watchdog dog("stop inside an image");
    CAPTURE(lane);
    std::atomic<int> stopped{0}, whole{0};
    Settings settings;
    settings.decode_threads = 1;
    if (lane) settings.thread_scratch = 1;  // no image fits
    settings.change = [&](Stages& stages, const std::function<void()>& stop_run) {
      // Stops the run once an image is about to be decoded, and looks at what became of its place.
      const auto inside = [&, stop_run](const Ticket& t, Slot& slot, const std::function<Outcome()>& decode) {
        if (t.batch < 1) return decode();
        stop_run();
        const auto place = slot.place(t.place);
        std::fill(place.begin(), place.end(), std::uint8_t{7});
        Outcome outcome = decode();
        const bool untouched = std::ranges::all_of(place, [](std::uint8_t byte) { return byte == 7; });
        ++(untouched ? stopped : whole);
        return outcome;
      };
      if (lane)
        stages.lane = [inside, inner = stages.lane](const Ticket& t, const std::optional<Error>& trouble,
                                                    Slot& slot, const Stop& stop) {
          return inside(t, slot, [&] { return inner(t, trouble, slot, stop); });
        };
      else
        stages.decode = [inside, inner = stages.decode](const Ticket& t, Pieces pieces, Slot& slot,
                                                        const Stop& stop) {
          return inside(t, slot, [&] { return inner(t, pieces, slot, stop); });
        };
    };
    const Run r = run(folder.path(), settings);
    CHECK_FALSE(r.end.failure);
    CHECK_FALSE(r.end.finished);
    CHECK(stopped == 1);
    CHECK(whole == 0);
  }
}

TEST_CASE("data path: a stop among replacements is no failure") {
  const Watchdog dog("stop among replacements");
  const TemporaryFolder folder;
  for (const char* split : {"train", "val"})
    for (int i = 0; i < 8; ++i)
      write_file(folder.path() / split / "ant" / (std::to_string(i) + ".JPEG"), std::string("no image"));
  Settings settings;
  settings.change = [&](Stages& stages, const std::function<void()>& stop_run) {
    stages.lane = [stop_run, inner = stages.lane](const Ticket& t, const std::optional<Error>& trouble,
                                                  Slot& slot, const Stop& stop) {
      stop_run();
      const Outcome outcome = inner(t, trouble, slot, stop);
      CHECK(outcome.kind == Outcome::Kind::done);
      return outcome;
    };
  };
  CHECK_FALSE(run(folder.path(), settings).end.failure);
}

TEST_CASE("data path: odd files give the same records twice, with 1, 2 and 8 decode threads") {
  same_records_twice(60);
}

TEST_SUITE("long") {
  TEST_CASE("data path: two thousand mutated files and all crafted ones give the same records twice") {
    same_records_twice(2000);
  }
}

TEST_CASE("data path: when nothing can be used the run ends and says so") {
  const Watchdog dog("hopeless");
  const TemporaryFolder folder;
  for (const char* split : {"train", "val"})
    for (int i = 0; i < 8; ++i)
      write_file(folder.path() / split / "ant" / (std::to_string(i) + ".JPEG"),
                 std::string("<html>not found</html>"));
  const Run r = run(folder.path(), {});
  REQUIRE(r.end.failure);
  CHECK(r.end.failure->stage == "big lane");
  CHECK(contains(r.end.failure->text(), "16 replacements"));
  CHECK(contains(r.end.failure->text(), "not a JPEG"));
}

TEST_CASE("data path: a file that vanishes ends the run and is named") {
  const Watchdog dog("vanished");
  const TemporaryFolder folder;
  make_tree(folder.path());
  std::filesystem::create_symlink("nowhere.JPEG", folder.path() / "train" / "cat" / "zzz.JPEG");
  auto scanned = ImageFolder::scan((folder / "train").string(), {});
  if (scanned && scanned->size() == 28) {  // a dangling link is listed like any other name
    const Run r = run(folder.path(), {});
    REQUIRE(r.end.failure);
    CHECK(contains(r.end.failure->text(), "zzz.JPEG: No such file or directory"));
  } else if (scanned) {
    CHECK(scanned->size() == 27);
  } else {
    CHECK(contains(scanned.error().text(), "zzz.JPEG"));
  }
}
