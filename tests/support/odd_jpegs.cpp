#include "tests/support/odd_jpegs.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace sluice::test {
namespace {

constexpr std::uint8_t soi = 0xD8, eoi = 0xD9, sos = 0xDA, dqt = 0xDB, dht = 0xC4, dri = 0xDD, dnl = 0xDC,
                       dac = 0xCC, sof0 = 0xC0, app0 = 0xE0, app1 = 0xE1, app2 = 0xE2, app14 = 0xEE,
                       com = 0xFE;

using Segments = std::vector<Segment>;
using Change = std::function<void(Segments&)>;

bool is_frame(std::uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != dht && marker != 0xC8 && marker != dac;
}
bool stands_alone(std::uint8_t marker) {
  return marker == soi || marker == eoi || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7);
}

Segment alone(std::uint8_t marker) { return {marker, {0xFF, marker}}; }
Segment segment(std::uint8_t marker, const Bytes& payload) {
  const std::size_t length = payload.size() + 2;
  Segment made{marker,
               {0xFF, marker, static_cast<std::uint8_t>(length >> 8), static_cast<std::uint8_t>(length)}};
  made.bytes.insert(made.bytes.end(), payload.begin(), payload.end());
  return made;
}
Bytes text(std::string_view words) { return {words.begin(), words.end()}; }

Bytes changed(const Bytes& jpeg, const Change& change) {
  Segments all = segments_of(jpeg);
  change(all);
  return join(all);
}

Segment& first(Segments& all, std::uint8_t marker) {
  for (Segment& s : all)
    if (s.marker == marker) return s;
  throw std::runtime_error("test JPEG: no such marker");
}
Segment& frame(Segments& all) {
  for (Segment& s : all)
    if (is_frame(s.marker)) return s;
  throw std::runtime_error("test JPEG: no frame");
}
std::size_t place_of(const Segments& all, std::uint8_t marker, std::size_t number = 0) {
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].marker == marker && number-- == 0) return i;
  throw std::runtime_error("test JPEG: no such marker");
}
void insert(Segments& all, std::size_t at, Segment what) {
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), std::move(what));
}
void drop(Segments& all, std::size_t at) { all.erase(all.begin() + static_cast<std::ptrdiff_t>(at)); }

Change without(std::uint8_t marker) {
  return
      [marker](Segments& all) { std::erase_if(all, [&](const Segment& s) { return s.marker == marker; }); };
}
// Tables by class and number, as the first byte of a payload has them; libjpeg writes one a segment.
Change without_table(std::uint8_t marker, std::uint8_t which) {
  return [=](Segments& all) {
    std::erase_if(all, [&](const Segment& s) { return s.marker == marker && s.bytes[4] == which; });
  };
}
Change before(std::uint8_t marker, Segment what) {
  return [=](Segments& all) { insert(all, place_of(all, marker), what); };
}
Change before_frame(Segment what) {
  return [=](Segments& all) { insert(all, static_cast<std::size_t>(&frame(all) - all.data()), what); };
}
Change in_frame(std::size_t at, std::uint8_t value) {  // counted from the precision
  return [=](Segments& all) { frame(all).bytes[4 + at] = value; };
}
Change sized(int width, int height) {
  return [=](Segments& all) {
    Bytes& b = frame(all).bytes;
    b[5] = static_cast<std::uint8_t>(height >> 8), b[6] = static_cast<std::uint8_t>(height);
    b[7] = static_cast<std::uint8_t>(width >> 8), b[8] = static_cast<std::uint8_t>(width);
  };
}
Change frame_marker(std::uint8_t marker) {
  return [=](Segments& all) { frame(all).marker = frame(all).bytes[1] = marker; };
}
Change in_scan(std::size_t at, std::uint8_t value) {  // counted from the number of components
  return [=](Segments& all) { first(all, sos).bytes[4 + at] = value; };
}

Segment quantisation(std::uint8_t which, std::uint8_t value, bool wide = false) {
  Bytes payload{static_cast<std::uint8_t>(which | (wide ? 0x10 : 0))};
  for (int i = 0; i < 64; ++i) {
    if (wide) payload.push_back(0);
    payload.push_back(value);
  }
  return segment(dqt, payload);
}
Segment codes(std::uint8_t which, const Bytes& lengths, const Bytes& symbols) {
  Bytes payload{which};
  payload.insert(payload.end(), lengths.begin(), lengths.end());
  payload.resize(17);
  payload.insert(payload.end(), symbols.begin(), symbols.end());
  return segment(dht, payload);
}
Segment adobe(std::uint8_t transform) {
  Bytes payload = text("Adobe");
  payload.insert(payload.end(), {0, 100, 0, 0, 0, 0, transform});
  return segment(app14, payload);
}
Segment restart_interval(std::uint16_t mcus) {
  return segment(dri, {static_cast<std::uint8_t>(mcus >> 8), static_cast<std::uint8_t>(mcus)});
}

// The number-th restart marker in the image data.
std::size_t restart_at(const Bytes& data, int number) {
  for (std::size_t i = 14; i + 1 < data.size(); ++i)
    if (data[i] == 0xFF && data[i + 1] >= 0xD0 && data[i + 1] <= 0xD7 && number-- == 0) return i;
  throw std::runtime_error("test JPEG: no restart marker");
}

struct Workshop {
  std::vector<OddJpeg> made;

  void add(std::string name, Bytes bytes, Fate fate, std::string same_as = {}) {
    made.push_back({std::move(name), std::move(bytes), fate, std::move(same_as)});
  }
  void add(std::string name, const Bytes& from, const Change& change, Fate fate, std::string same_as = {}) {
    add(std::move(name), changed(from, change), fate, std::move(same_as));
  }
};

constexpr ImageSize size{61, 47};

void plain(Workshop& w) {
  w.add("plain", make_jpeg({.size = size}), Fate::sound);
  w.add("plain 4:4:4", make_jpeg({.size = size, .h = 1, .v = 1}), Fate::sound);
  w.add("grey", make_jpeg({.size = size, .components = 1, .h = 1, .v = 1}), Fate::sound);
  w.add("restarts", make_jpeg({.size = size, .restart = 3}), Fate::sound);
  w.add("progressive", make_jpeg({.size = size, .progressive = true}), Fate::sound);
  w.add("three scans", make_jpeg({.size = size, .separate_scans = true}), Fate::sound);
  w.add("own codes", make_jpeg({.size = size, .noise = true, .optimised = true}), Fate::sound);
  w.add("coarse", make_jpeg({.size = size, .quality = 5}), Fate::sound);
  w.add("inks", make_jpeg({.size = size, .components = 4, .h = 1, .v = 1}), Fate::sound);
  w.add("YCCK", make_jpeg({.size = size, .components = 4, .ycck = true}), Fate::sound);
  for (const auto& [h, v] : {std::pair{1, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}, {3, 1}, {1, 3}})
    w.add("sampling " + std::to_string(h) + " x " + std::to_string(v),
          make_jpeg({.size = size, .h = h, .v = v}), Fate::sound);
}

void huffman_codes(Workshop& w) {
  const Bytes plain = make_jpeg({.size = size}),
              own = make_jpeg({.size = size, .noise = true, .optimised = true}),
              progressive = make_jpeg({.size = size, .progressive = true}),
              scans = make_jpeg({.size = size, .separate_scans = true});
  w.add("no codes (motion JPEG)", plain, without(dht), Fate::sound, "plain");
  w.add("no codes, 4:4:4", make_jpeg({.size = size, .h = 1, .v = 1}), without(dht), Fate::sound,
        "plain 4:4:4");
  w.add("no codes, grey", make_jpeg({.size = size, .components = 1, .h = 1, .v = 1}), without(dht),
        Fate::sound, "grey");
  w.add("no codes, restarts", make_jpeg({.size = size, .restart = 3}), without(dht), Fate::sound, "restarts");
  w.add("no codes, three scans", scans, without(dht), Fate::sound, "three scans");
  for (const int which : {0x00, 0x10, 0x01, 0x11})
    w.add("no codes " + std::to_string(which), plain, without_table(dht, static_cast<std::uint8_t>(which)),
          Fate::sound, "plain");
  w.add("no codes although it needs its own", own, without(dht), Fate::either);
  for (const int which : {0x00, 0x10, 0x01, 0x11})
    w.add("own codes without " + std::to_string(which), own,
          without_table(dht, static_cast<std::uint8_t>(which)), Fate::either);
  w.add("progressive without codes", progressive, without(dht), Fate::bad);
  w.add(
      "progressive without codes of its first scan", progressive,
      [](Segments& all) { drop(all, place_of(all, dht)); }, Fate::either);
  w.add(
      "codes twice", plain, [](Segments& all) { insert(all, place_of(all, dht), first(all, dht)); },
      Fate::sound, "plain");
  w.add("foreign codes, then its own", plain, before(dht, codes(0x00, {0, 2, 2, 3}, {0, 1, 2, 3, 4, 5, 6})),
        Fate::sound, "plain");
  w.add("foreign codes after its own", plain, before(sos, codes(0x00, {0, 2, 2, 3}, {0, 1, 2, 3, 4, 5, 6})),
        Fate::either);
  w.add(
      "codes between scans", scans,
      [](Segments& all) {
        insert(all, place_of(all, sos, 1), codes(0x11, {0, 2, 1}, {0, 1, 2}));
      },
      Fate::either);
  w.add(
      "codes in places 2 and 3", plain,
      [](Segments& all) {
        for (Segment& s : all)
          if (s.marker == dht) s.bytes[4] = static_cast<std::uint8_t>(s.bytes[4] + 2);
        for (const std::size_t at : {6u, 8u, 10u})
          first(all, sos).bytes[at] = static_cast<std::uint8_t>(first(all, sos).bytes[at] + 0x22);
      },
      Fate::sound, "plain");
  w.add("a scan with codes that nobody sent", plain, in_scan(2, 0x33), Fate::bad);
  w.add("codes in place 4", plain, before(dht, codes(0x04, {0, 1}, {0})), Fate::bad);
  w.add("more codes than fit", plain, before(sos, codes(0x00, {3}, {0, 1, 2})), Fate::bad);
  w.add("more than 256 symbols", plain, before(dht, codes(0x00, Bytes(16, 255), Bytes(300))), Fate::bad);
  w.add("no code at all", plain, before(sos, codes(0x10, {}, {})), Fate::either);
  w.add("a code of ones", plain, before(sos, codes(0x00, {2}, {0, 1})), Fate::either);
  w.add("a difference of 17 bits", plain, before(sos, codes(0x00, {0, 1}, {17})), Fate::bad);
  w.add("codes cut short", plain, before(dht, segment(dht, {0x00, 0, 9})), Fate::bad);
}

void quantisation_tables(Workshop& w) {
  const Bytes plain = make_jpeg({.size = size}), progressive = make_jpeg({.size = size, .progressive = true}),
              scans = make_jpeg({.size = size, .separate_scans = true});
  w.add("no quantisation", plain, without(dqt), Fate::bad);
  w.add("no quantisation 0", plain, without_table(dqt, 0), Fate::bad);
  w.add("no quantisation 1", plain, without_table(dqt, 1), Fate::bad);
  w.add("no quantisation, grey", make_jpeg({.size = size, .components = 1, .h = 1, .v = 1}), without(dqt),
        Fate::bad);
  w.add("no quantisation, inks", make_jpeg({.size = size, .components = 4, .h = 1, .v = 1}), without(dqt),
        Fate::bad);
  w.add("no quantisation, progressive", progressive, without(dqt), Fate::bad);
  w.add("no quantisation 1, three scans", scans, without_table(dqt, 1), Fate::bad);
  w.add(
      "no tables at all", plain, [](Segments& all) { without(dqt)(all), without(dht)(all); }, Fate::bad);
  w.add("no quantisation and restarts", make_jpeg({.size = size, .restart = 3}), without(dqt), Fate::bad);
  w.add(
      "quantisation twice", plain, [](Segments& all) { insert(all, place_of(all, dqt), first(all, dqt)); },
      Fate::sound, "plain");
  w.add("foreign quantisation, then its own", plain, before(dqt, quantisation(0, 77)), Fate::sound, "plain");
  w.add("foreign quantisation after its own", plain, before(sos, quantisation(0, 77)), Fate::sound);
  w.add(
      "quantisation after the frame", plain,
      [](Segments& all) {
        const Segment table = first(all, dqt);
        drop(all, place_of(all, dqt));
        insert(all, place_of(all, sos), table);
      },
      Fate::sound, "plain");
  w.add(
      "quantisation between scans", scans,
      [](Segments& all) { insert(all, place_of(all, sos, 1), quantisation(1, 99)); }, Fate::sound);
  w.add(
      "quantisation changed between scans of a component", progressive,
      [](Segments& all) { insert(all, place_of(all, sos, 3), quantisation(0, 99)); }, Fate::sound);
  w.add(
      "quantisation that comes too late", scans,
      [](Segments& all) {
        const Segment table = first(all, dqt);
        drop(all, place_of(all, dqt));
        insert(all, place_of(all, sos, 1), table);
      },
      Fate::bad);
  w.add("quantisation of 16 bits", plain, before(sos, quantisation(0, 9, true)), Fate::sound);
  w.add("quantisation by zero", plain, before(sos, quantisation(0, 0)), Fate::either);
  w.add(
      "quantisation in place 3", plain,
      [](Segments& all) {
        for (Segment& s : all)
          if (s.marker == dqt && s.bytes[4] == 1) s.bytes[4] = 3;
        frame(all).bytes[15] = frame(all).bytes[18] = 3;
      },
      Fate::sound, "plain");
  w.add("quantisation in place 4", plain, before(sos, quantisation(4, 9)), Fate::bad);
  w.add("a component with quantisation 7", plain, in_frame(8, 7), Fate::bad);
  w.add("quantisation cut short", plain, before(sos, segment(dqt, {0x00, 1, 2, 3})), Fate::either);
}

void restarts(Workshop& w) {
  const Bytes plain = make_jpeg({.size = size}), with = make_jpeg({.size = size, .restart = 3}),
              progressive = make_jpeg({.size = size, .progressive = true, .restart = 3});
  const auto data = [](const std::function<void(Bytes&)>& change) {
    return [=](Segments& all) { change(first(all, sos).bytes); };
  };
  w.add("progressive with restarts", progressive, Fate::sound);
  w.add("restart interval 0", plain, before(sos, restart_interval(0)), Fate::sound, "plain");
  w.add("restart interval past the end", plain, before(sos, restart_interval(65535)), Fate::sound, "plain");
  w.add("restart interval without markers", plain, before(sos, restart_interval(2)), Fate::bad);
  w.add("restart interval twice", with, before(dri, restart_interval(9)), Fate::sound, "restarts");
  w.add("restart interval of three bytes", with, before(sos, segment(dri, {0, 3, 0})), Fate::bad);
  w.add("markers without an interval", with, without(dri), Fate::bad);
  w.add("a restart marker lost", with, data([](Bytes& b) {
          b.erase(b.begin() + static_cast<std::ptrdiff_t>(restart_at(b, 1)),
                  b.begin() + static_cast<std::ptrdiff_t>(restart_at(b, 1)) + 2);
        }),
        Fate::bad);
  w.add("a restart marker of another number", with, data([](Bytes& b) { b[restart_at(b, 1) + 1] = 0xD6; }),
        Fate::bad);
  w.add("a restart marker doubled", with, data([](Bytes& b) {
          b.insert(b.begin() + static_cast<std::ptrdiff_t>(restart_at(b, 1)), {0xFF, 0xD1});
        }),
        Fate::bad);
  w.add("a restart marker with fill bytes", with,
        data([](Bytes& b) { b.insert(b.begin() + static_cast<std::ptrdiff_t>(restart_at(b, 1)), 5, 0xFF); }),
        Fate::either);
  w.add("data lost before a restart marker", with, data([](Bytes& b) {
          const auto at = static_cast<std::ptrdiff_t>(restart_at(b, 1));
          b.erase(b.begin() + at - 6, b.begin() + at);
        }),
        Fate::bad);
  w.add("a stray restart marker", plain, data([](Bytes& b) {
          b.insert(b.begin() + 40, {0xFF, 0xD3});
        }),
        Fate::bad);
  w.add("progressive, a restart marker lost", progressive,
        data([](Bytes& b) { b[restart_at(b, 0) + 1] = 0xD5; }), Fate::bad);
}

void application_markers(Workshop& w) {
  const Bytes plain = make_jpeg({.size = size}),
              inks = make_jpeg({.size = size, .components = 4, .h = 1, .v = 1}),
              ycck = make_jpeg({.size = size, .components = 4, .ycck = true});
  for (const int transform : {0, 1, 2, 255}) {
    const auto t = static_cast<std::uint8_t>(transform);
    const std::string name = "Adobe transform " + std::to_string(transform);
    w.add(name + ", colour", plain, before_frame(adobe(t)), Fate::sound);
    w.add(
        name + ", colour, no JFIF", plain,
        [=](Segments& all) { without(app0)(all), before_frame(adobe(t))(all); }, Fate::sound);
    w.add(
        name + ", inks", inks, [=](Segments& all) { without(app14)(all), before_frame(adobe(t))(all); },
        Fate::sound);
    w.add(
        name + ", YCCK", ycck, [=](Segments& all) { without(app14)(all), before_frame(adobe(t))(all); },
        Fate::sound);
  }
  w.add("Adobe cut short", plain, before_frame(segment(app14, text("Adobe"))), Fate::sound, "plain");
  w.add(
      "no JFIF, components called R, G, B", plain,
      [](Segments& all) {
        without(app0)(all);
        const std::string names = "RGB";
        for (std::size_t i = 0; i < 3; ++i)
          frame(all).bytes[10 + 3 * i] = first(all, sos).bytes[5 + 2 * i] =
              static_cast<std::uint8_t>(names[i]);
      },
      Fate::sound);
  w.add(
      "no JFIF, components called 0, 1, 2", plain,
      [](Segments& all) {
        without(app0)(all);
        for (std::size_t i = 0; i < 3; ++i)
          frame(all).bytes[10 + 3 * i] = first(all, sos).bytes[5 + 2 * i] = static_cast<std::uint8_t>(i);
      },
      Fate::sound);
  w.add("no JFIF", plain, without(app0), Fate::sound, "plain");
  w.add(
      "JFIF 9.9", plain, [](Segments& all) { first(all, app0).bytes[9] = first(all, app0).bytes[10] = 9; },
      Fate::sound, "plain");
  w.add("JFIF cut short", plain, before(app0, segment(app0, text("JFIF"))), Fate::sound, "plain");
  w.add(
      "JFIF twice", plain, [](Segments& all) { insert(all, 1, first(all, app0)); }, Fate::sound, "plain");
  w.add("an EXIF thumbnail", plain, before_frame(segment(app1, make_jpeg({.size = {16, 12}, .quality = 30}))),
        Fate::sound, "plain");
  w.add("a profile that is none", plain, before_frame(segment(app2, text("ICC_PROFILE\0\x05\x02nothing"))),
        Fate::sound, "plain");
  w.add("an empty segment", plain, before_frame(segment(app2, {})), Fate::sound, "plain");
  w.add("a segment of length 0", plain, before_frame({app2, {0xFF, app2, 0, 0}}), Fate::sound, "plain");
  w.add("a segment past the end", plain, before_frame({app2, {0xFF, app2, 0xFF, 0xFF}}), Fate::bad);
  w.add("a long comment", plain, before_frame(segment(com, Bytes(60000, 0xFF))), Fate::sound, "plain");
  w.add("fill bytes", plain, before_frame({com, Bytes(50, 0xFF)}), Fate::sound, "plain");
  w.add("stray bytes", plain, before_frame({com, Bytes(50, 0x00)}), Fate::sound, "plain");
  w.add("a reserved marker", plain, before_frame({0x02, {0xFF, 0x02, 0, 4, 0, 0}}), Fate::bad);
}

void structure(Workshop& w) {
  const Bytes plain = make_jpeg({.size = size}), coarse = make_jpeg({.size = size, .quality = 5});
  w.add("two starts", plain, before_frame(alone(soi)), Fate::bad);
  w.add(
      "two frames", plain, [](Segments& all) { before_frame(Segment(frame(all)))(all); }, Fate::bad);
  w.add("no frame", plain, without(sof0), Fate::bad);
  w.add("no scan", plain, without(sos), Fate::bad);
  w.add(
      "the frame after the scan", plain, [](Segments& all) { std::swap(frame(all), first(all, sos)); },
      Fate::bad);
  w.add("no end", plain, without(eoi), Fate::bad);
  w.add(
      "two ends", plain, [](Segments& all) { all.push_back(alone(eoi)); }, Fate::sound, "plain");
  w.add("an end before the scan", plain, before(sos, alone(eoi)), Fate::bad);
  Bytes two = plain;
  two.insert(two.end(), coarse.begin(), coarse.end());
  w.add("another image behind it", two, Fate::sound, "plain");
  Bytes trailing = plain;
  trailing.insert(trailing.end(), 3000, 0x20);
  w.add("bytes behind it", trailing, Fate::sound, "plain");
  w.add("width 0", plain, sized(0, 47), Fate::bad);
  w.add("height 0", plain, sized(61, 0), Fate::bad);
  w.add(
      "height told behind the scan", plain,
      [](Segments& all) {
        sized(61, 0)(all), before(eoi, segment(dnl, {0, 47}))(all);
      },
      Fate::bad);
  w.add("height told again", plain, before(eoi, segment(dnl, {0, 47})), Fate::sound, "plain");
  w.add("65535 x 65535", plain, sized(65535, 65535), Fate::bad);
  w.add("65500 x 65500", plain, sized(65500, 65500), Fate::bad);
  w.add("13000 x 13000 in a few bytes", plain, sized(13000, 13000), Fate::bad);
  w.add("65500 x 1", plain, sized(65500, 1), Fate::bad);
  w.add("1 x 65500", plain, sized(1, 65500), Fate::bad);
  w.add("smaller than its data", plain, sized(20, 20), Fate::either);
  w.add("progressive, 65500 x 65500", make_jpeg({.size = size, .progressive = true}), sized(65500, 65500),
        Fate::bad);
  for (const int precision : {0, 1, 12, 16})
    w.add("precision " + std::to_string(precision), plain, in_frame(0, static_cast<std::uint8_t>(precision)),
          Fate::bad);
  for (const int components : {0, 1, 2, 4, 5, 255})
    w.add("frame of " + std::to_string(components) + " components", plain,
          in_frame(5, static_cast<std::uint8_t>(components)), Fate::bad);
  for (const int factors : {0x00, 0x11, 0x12, 0x21, 0x31, 0x13, 0x33, 0x44, 0x51, 0xFF})
    w.add("first component sampled " + std::to_string(factors), plain,
          in_frame(7, static_cast<std::uint8_t>(factors)), Fate::either);
  for (const int factors : {0x22, 0x12, 0x41, 0x31, 0x44})
    w.add("second component sampled " + std::to_string(factors), plain,
          in_frame(10, static_cast<std::uint8_t>(factors)), Fate::either);
  w.add("components of one name", plain, in_frame(9, 1), Fate::either);
  w.add("extended sequential", plain, frame_marker(0xC1), Fate::sound, "plain");
  for (const int marker : {0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD})
    w.add("frame marker " + std::to_string(marker), plain, frame_marker(static_cast<std::uint8_t>(marker)),
          Fate::bad);
  w.add("scan of no component", plain, in_scan(0, 0), Fate::bad);
  w.add("scan of 4 components", plain, in_scan(0, 4), Fate::bad);
  w.add("scan of a component that is not there", plain, in_scan(1, 9), Fate::bad);
  w.add("scan of one component twice", plain, in_scan(3, 1), Fate::bad);
  w.add("sequential with odd spectral bounds", plain, in_scan(8, 40), Fate::sound, "plain");
}

void arithmetic(Workshop& w) {
  const Bytes sequential = make_jpeg({.size = size, .arithmetic = true});
  const Bytes progressive = make_jpeg({.size = size, .progressive = true, .arithmetic = true});
  w.add("arithmetic", sequential, Fate::bad);
  w.add("arithmetic, progressive", progressive, Fate::bad);
  w.add("arithmetic, conditioning told", sequential, before(sos, segment(dac, {0x00, 0x42, 0x10, 0x09})),
        Fate::bad);
  w.add("arithmetic, conditioning out of range", sequential, before(sos, segment(dac, {0x00, 0x0F})),
        Fate::bad);
  w.add("arithmetic without quantisation", sequential, without(dqt), Fate::bad);
  for (const std::size_t kept : {14u, 15u, 40u, 200u})
    w.add(
        "arithmetic, ends after " + std::to_string(kept), sequential,
        [=](Segments& all) { first(all, sos).bytes.resize(kept); }, Fate::bad);
  w.add(
      "arithmetic, 13000 x 13000 in no bytes", sequential,
      [](Segments& all) { sized(13000, 13000)(all), first(all, sos).bytes.resize(14); }, Fate::bad);
  w.add("conditioning without arithmetic codes", make_jpeg({.size = size}),
        before(sos, segment(dac, {0x00, 0x42, 0x10, 0x09})), Fate::either);
}

void scans(Workshop& w) {
  const Bytes whole = make_jpeg({.size = size, .progressive = true}),
              separate = make_jpeg({.size = size, .separate_scans = true});
  const auto count = static_cast<std::size_t>(std::ranges::count(segments_of(whole), sos, &Segment::marker));
  for (std::size_t i = 0; i < count; ++i) {
    w.add(
        "progressive without scan " + std::to_string(i), whole,
        [=](Segments& all) { drop(all, place_of(all, sos, i)); }, Fate::either);
    w.add(
        "progressive up to scan " + std::to_string(i), whole,
        [=](Segments& all) {
          all.erase(all.begin() + static_cast<std::ptrdiff_t>(place_of(all, sos, i)) + 1, all.end());
          all.push_back(alone(eoi));
        },
        Fate::either);
  }
  w.add(
      "progressive, a scan twice", whole,
      [](Segments& all) { insert(all, place_of(all, sos, 2), Segment(all[place_of(all, sos, 1)])); },
      Fate::either);
  w.add(
      "progressive, two scans swapped", whole,
      [](Segments& all) { std::swap(all[place_of(all, sos, 1)], all[place_of(all, sos, 5)]); }, Fate::either);
  w.add(
      "progressive, 600 scans", whole,
      [](Segments& all) {
        const std::size_t last = place_of(all, eoi);
        const Segment again = all[place_of(all, sos)];
        all.insert(all.begin() + static_cast<std::ptrdiff_t>(last), 600, again);
      },
      Fate::bad);
  for (const auto& [at, value] : {std::pair{7, 1}, {8, 63}, {8, 64}, {9, 0x10}, {9, 0x1F}, {9, 0xFF}})
    w.add("progressive, first scan with " + std::to_string(at) + " = " + std::to_string(value), whole,
          in_scan(static_cast<std::size_t>(at), static_cast<std::uint8_t>(value)), Fate::either);
  w.add(
      "a component without a scan", separate, [](Segments& all) { drop(all, place_of(all, sos, 2)); },
      Fate::either);
  w.add(
      "a component with two scans", separate,
      [](Segments& all) { insert(all, place_of(all, sos, 1), Segment(all[place_of(all, sos, 1)])); },
      Fate::either);
}

void truncated(Workshop& w) {
  for (const bool progressive : {false, true}) {
    const Bytes whole = make_jpeg({.size = size, .progressive = progressive});
    for (std::size_t part = 1; part < 12; ++part) {
      Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(whole.size() * part / 12));
      const std::string name = (progressive ? "progressive, " : "") + std::to_string(part) + " twelfths";
      w.add(name, cut, Fate::bad);
      cut.insert(cut.end(), {0xFF, eoi});
      w.add(name + " and an end", cut, progressive ? Fate::either : Fate::bad);
    }
  }
  w.add("nothing", Bytes{}, Fate::bad);
  w.add("a start alone", Bytes{0xFF, soi}, Fate::bad);
  w.add("a start and an end", Bytes{0xFF, soi, 0xFF, eoi}, Fate::bad);
  w.add("a start and fill bytes", Bytes{0xFF, soi, 0xFF, 0xFF, 0xFF, 0xFF}, Fate::bad);
  w.add("zeros", Bytes(100, 0), Fate::bad);
  w.add("text", text("<html>404 not found</html>"), Fate::bad);
}

}  // namespace

std::vector<Segment> segments_of(const Bytes& jpeg) {
  Segments all;
  std::size_t at = 0;
  while (at + 1 < jpeg.size() && jpeg[at] == 0xFF) {
    const std::uint8_t marker = jpeg[at + 1];
    std::size_t end = at + 2;
    if (!stands_alone(marker)) {
      if (end + 1 >= jpeg.size()) break;
      end += static_cast<std::size_t>(jpeg[end] << 8 | jpeg[end + 1]);
    }
    if (marker == sos)  // the image data too, with its stuffing and restart markers
      while (end + 1 < jpeg.size() &&
             (jpeg[end] != 0xFF || jpeg[end + 1] == 0 || (jpeg[end + 1] >= 0xD0 && jpeg[end + 1] <= 0xD7)))
        ++end;
    end = std::min(end, jpeg.size());
    all.push_back({marker, Bytes(jpeg.begin() + static_cast<std::ptrdiff_t>(at),
                                 jpeg.begin() + static_cast<std::ptrdiff_t>(end))});
    at = end;
  }
  if (at < jpeg.size()) all.push_back({0, Bytes(jpeg.begin() + static_cast<std::ptrdiff_t>(at), jpeg.end())});
  return all;
}

Bytes join(const std::vector<Segment>& segments) {
  Bytes jpeg;
  for (const Segment& s : segments) jpeg.insert(jpeg.end(), s.bytes.begin(), s.bytes.end());
  return jpeg;
}

std::vector<OddJpeg> crafted_jpegs() {
  Workshop w;
  plain(w);
  huffman_codes(w);
  quantisation_tables(w);
  restarts(w);
  application_markers(w);
  structure(w);
  arithmetic(w);
  scans(w);
  truncated(w);
  return std::move(w.made);
}

std::vector<Bytes> sound_jpegs() {
  std::vector<Bytes> all;
  for (const int components : {1, 3, 4})
    for (const bool progressive : {false, true})
      for (const int sampling : {1, 2}) {
        JpegRecipe r;
        r.size = {61 + 8 * components, 47};
        r.components = components;
        r.progressive = progressive;
        r.h = r.v = components == 3 ? sampling : 1;
        r.restart = sampling == 2 ? 4 : 0;
        r.separate_scans = !progressive && sampling == 2 && components == 3;
        all.push_back(make_jpeg(r));
      }
  for (const int sampling : {1, 2})  // one scan without restarts: what nodes/jpeg/huffman reads
    for (const int quality : {60, 100}) {
      const bool own_codes = quality == 100;
      all.push_back(make_jpeg({.size = {93, 70},
                               .h = sampling,
                               .v = sampling,
                               .quality = quality,
                               .noise = own_codes,
                               .optimised = own_codes}));
    }
  return all;
}

Bytes mutate(Bytes file, Random& random) {
  for (std::uint32_t n = 1 + random.below(4); n > 0 && file.size() > 8; --n) {
    const auto bytes = static_cast<std::uint32_t>(file.size());
    const std::uint32_t at = random.below(random.below(2) ? std::min(bytes, 700u) : bytes);
    switch (random.below(5)) {
      case 0:
        file[at] ^= static_cast<std::uint8_t>(1u << random.below(8));
        break;
      case 1:
        file[at] = static_cast<std::uint8_t>(random.bits());
        break;
      case 2:
        file[at] = random.below(2) ? 0xFF : 0x00;
        break;
      case 3:
        file.erase(file.begin() + at, file.begin() + std::min(bytes, at + 1 + random.below(30)));
        break;
      default:
        file.insert(file.begin() + at, file.begin() + at / 2,
                    file.begin() + at / 2 + std::min(20u, bytes - at / 2));
        break;
    }
  }
  return file;
}

Bytes mutate_segments(const Bytes& file, const Bytes& other, Random& random) {
  Segments all = segments_of(file);
  const Segments others = segments_of(other);
  const auto any = [&](const Segments& of) { return random.below(static_cast<std::uint32_t>(of.size())); };
  for (std::uint32_t n = 1 + random.below(3); n > 0 && all.size() > 2; --n) {
    const std::size_t at = 1 + random.below(static_cast<std::uint32_t>(all.size() - 1));
    switch (random.below(4)) {
      case 0:
        drop(all, at);
        break;
      case 1:
        insert(all, at, Segment(all[any(all)]));
        break;
      case 2:
        std::swap(all[at], all[any(all)]);
        break;
      default:
        insert(all, at, others[any(others)]);
        break;
    }
  }
  return random.below(3) ? join(all) : mutate(join(all), random);
}

Bytes mutant(const std::vector<Bytes>& from, std::uint64_t seed, std::uint64_t number) {
  Random random(seed, 0, number, Purpose::synth);
  const auto any = [&]() -> const Bytes& {
    return from[random.below(static_cast<std::uint32_t>(from.size()))];
  };
  const Bytes& file = any();
  return random.below(2) ? mutate(file, random) : mutate_segments(file, any(), random);
}

}  // namespace sluice::test
