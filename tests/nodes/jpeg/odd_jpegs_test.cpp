// What a file gives, pixels or a verdict, depends on the file alone: not on what the decoder read before it,
// and not on what lay in the memory it got.
#include <doctest/doctest.h>

#include <malloc.h>

#include <algorithm>
#include <map>

#include "nodes/decode.hpp"
#include "tests/support/decode_options.hpp"
#include "tests/support/odd_jpegs.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t plenty = 8 << 20;

// What memory holds that nobody has written: something else each time.
struct Litter {
  explicit Litter(int byte) { mallopt(M_PERTURB, byte); }
  ~Litter() { mallopt(M_PERTURB, 0); }
  Litter(const Litter&) = delete;
};

struct Verdict {
  std::string cause;  // "": pixels
  Bytes pixels;
  bool operator==(const Verdict&) const = default;
  [[nodiscard]] bool sound() const { return cause.empty(); }
};

Verdict verdict(JpegDecoder& decoder, const Bytes& file, bool train, std::uint8_t litter) {
  DecodeOptions options = decode_options(24, 28);
  options.max_scratch = plenty;
  const auto pieces = in_pieces(file, 1000);
  Bytes out(24 * 24 * 3, litter);
  const DecodeOutcome outcome =
      decode_sample(decoder, pieces, train, DecodeStreams(5, 1, file.size()), options, plenty, out.data());
  if (const Error* error = std::get_if<Error>(&outcome)) return {error->cause, {}};
  if (!std::holds_alternative<Done>(outcome)) return {"not settled", {}};
  return {"", std::move(out)};
}

Verdict alone(const Bytes& file, bool train) {
  const Litter litter(0x5A);
  JpegDecoder decoder;
  return verdict(decoder, file, train, 0x11);
}

struct Tally {
  int files = 0, sound = 0, bad = 0, compared = 0;
  std::vector<std::string> differ;
};

// Each file alone in a new decoder and after each of twenty others in one that has seen them all.
template <class Name>
Tally after_others(const std::vector<Bytes>& files, const std::vector<Bytes>& others, Name&& name) {
  Tally tally;
  JpegDecoder used;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool train = i % 2 == 0;
    const Verdict expected = alone(files[i], train);
    ++tally.files;
    ++(expected.sound() ? tally.sound : tally.bad);
    const Litter litter(0xC3);
    bool same = true;
    for (std::size_t k = 0; k < 20; ++k) {
      (void)verdict(used, others[(i * 131 + k * 37) % others.size()], k % 2 == 0, 0x22);
      same = verdict(used, files[i], train, 0x77) == expected && same;
      ++tally.compared;
    }
    if (!same) tally.differ.push_back(name(i));
  }
  return tally;
}

void report(const std::string& what, const Tally& t) {
  MESSAGE(what << ": " << t.files << " files, " << t.sound << " decoded, " << t.bad << " refused, "
               << t.compared << " comparisons with a new decoder, " << t.differ.size() << " files differ");
  for (std::size_t i = 0; i < std::min<std::size_t>(t.differ.size(), 20); ++i)
    MESSAGE("differs: " << t.differ[i]);
  CHECK(t.differ.empty());
}

std::vector<Bytes> bytes_of(const std::vector<OddJpeg>& odd) {
  std::vector<Bytes> all;
  for (const OddJpeg& o : odd) all.push_back(o.bytes);
  return all;
}

std::vector<Bytes> mutants(std::uint64_t seed, std::uint64_t count) {
  const std::vector<Bytes> from = sound_jpegs();
  std::vector<Bytes> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(mutant(from, seed, i));
  return all;
}

void storm(std::uint64_t seed, std::uint64_t count) {
  const std::vector<Bytes> files = mutants(seed, count);
  std::vector<Bytes> others = files;
  for (Bytes& file : sound_jpegs()) others.push_back(std::move(file));
  const Tally t = after_others(files, others, [](std::size_t i) { return "mutant " + std::to_string(i); });
  report("mutated JPEGs", t);
  CHECK(t.sound > t.files / 20);
  CHECK(t.bad > t.files / 10);
}

}  // namespace

TEST_CASE("odd JPEGs: each crafted file is what it was made to be") {
  const std::vector<OddJpeg> odd = crafted_jpegs();
  std::map<std::string, Verdict> whole;
  int sound = 0, bad = 0;
  for (const OddJpeg& file : odd) {
    CAPTURE(file.name);
    const Verdict v = alone(file.bytes, false);
    CAPTURE(v.cause);
    if (file.fate != Fate::either) CHECK(v.sound() == (file.fate == Fate::sound));
    if (!file.same_as.empty()) CHECK((v.pixels == whole.at(file.same_as).pixels));
    REQUIRE(whole.emplace(file.name, v).second);
    ++(v.sound() ? sound : bad);
  }
  MESSAGE(odd.size() << " crafted JPEGs: " << sound << " decoded, " << bad << " refused");
  CHECK(odd.size() >= 79);
}

TEST_CASE("odd JPEGs: a crafted file gives the same after each of twenty others") {
  const std::vector<OddJpeg> odd = crafted_jpegs();
  const std::vector<Bytes> files = bytes_of(odd);
  report("crafted JPEGs", after_others(files, files, [&](std::size_t i) { return odd[i].name; }));
}

TEST_CASE("odd JPEGs: so do a hundred mutated files") { storm(21, 100); }

TEST_SUITE("long") {
  TEST_CASE("odd JPEGs: so do two thousand mutated files") { storm(22, 2000); }
}
