// JPEGs that no camera writes: tables missing or foreign, markers doubled or out of place, impossible sizes,
// scans that lack, ends too early. Made in memory. Also sound files changed at random.
#pragma once

#include <string>
#include <vector>

#include "base/random.hpp"
#include "tests/support/jpegs.hpp"

namespace sluice::test {

// One marker with what belongs to it: its segment, and after a start of scan the image data too.
struct Segment {
  std::uint8_t marker = 0;
  Bytes bytes;  // from 0xFF on
};
std::vector<Segment> segments_of(const Bytes& jpeg);
Bytes join(const std::vector<Segment>& segments);

enum class Fate { sound, bad, either };  // `either`: all that counts is that it is always the same

struct OddJpeg {
  std::string name;
  Bytes bytes;
  Fate fate = Fate::either;
  std::string same_as = {};  // the name of one whose pixels it must have
};
std::vector<OddJpeg> crafted_jpegs();

// Small sound files of every kind, to be changed.
std::vector<Bytes> sound_jpegs();
// A few bytes changed, removed or doubled; in the headers as often as in the data.
Bytes mutate(Bytes file, Random& random);
// The same, or whole segments dropped, doubled, swapped or taken from another file.
Bytes mutate_segments(const Bytes& file, const Bytes& other, Random& random);
// Number `number` of a storm of them.
Bytes mutant(const std::vector<Bytes>& from, std::uint64_t seed, std::uint64_t number);

}  // namespace sluice::test
