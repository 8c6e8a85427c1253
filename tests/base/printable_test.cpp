#include "base/printable.hpp"

#include <doctest/doctest.h>

#include <array>

#include "base/result.hpp"

using namespace sluice;

TEST_CASE("printable: what a terminal would obey becomes visible, other text stays") {
  CHECK(printable("n01440764/plain name.JPEG") == "n01440764/plain name.JPEG");
  CHECK(printable("K\u00e4fer \u5b57 \U0001F41D C:\\x") == "K\u00e4fer \u5b57 \U0001F41D C:\\x");
  CHECK(printable("a\nb\rc\td") == "a\\nb\\rc\\td");
  CHECK(printable("\x1b]0;title\x07\x1b[2J\x7f") == "\\x1b]0;title\\x07\\x1b[2J\\x7f");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\u009b31m \u0085") == "\\u{009b}31m \\u{0085}");
  CHECK(printable("\u202egepj.exe\u2069 \u2028 \uffff") == "\\u{202e}gepj.exe\\u{2069} \\u{2028} \\u{ffff}");
}

TEST_CASE("printable: all that turns the direction of writing becomes visible, its neighbours stay") {
  for (const char* turning : {"\u061c", "\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e",
                              "\u2066", "\u2067", "\u2068", "\u2069"}) {
    CAPTURE(turning);
    CHECK(printable(turning).starts_with("\\u{"));
    CHECK(printable_lines(turning).starts_with("\\u{"));
  }
  CHECK(printable("\u061c\u200e\u200f") == "\\u{061c}\\u{200e}\\u{200f}");
  // Digits, letters and joiners on either side of them, which scripts need.
  for (const char* kept : {"\u061b", "\u061d", "\u200c", "\u200d", "\u2010", "\u202f", "\u2065", "\u05d0"})
    CHECK(printable(kept) == kept);
}

TEST_CASE("printable: bytes that are not UTF-8 are told one by one") {
  CHECK(printable("a\xff\x80z") == "a\\xff\\x80z");
  CHECK(printable("cut \xe5\xad") == "cut \\xe5\\xad");
  CHECK(printable("\xc0\x9b") == "\\xc0\\x9b");                    // ESC's long form
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  CHECK(printable("\x9b"
                  "31m") == "\\x9b31m");  // C1 as one byte
  CHECK_FALSE(is_utf8("a\xff"));
  CHECK(is_utf8("a\n\u5b57"));
}

// Every string of up to three bytes out of those at the borders of UTF-8.
TEST_CASE("printable: no control byte is left, and a second time changes nothing") {
  constexpr std::array<unsigned char, 18> edges{0,    7,    '\n', 0x1b, 'a',  0x7f, 0x80, 0x9b, 0xa8,
                                                0xbf, 0xc0, 0xc2, 0xe2, 0xed, 0xef, 0xf0, 0xf4, 0xff};
  for (std::size_t n = 0; n < edges.size() * edges.size() * edges.size(); ++n) {
    std::string text;
    for (std::size_t rest = n, i = 0; i < 3; ++i, rest /= edges.size())
      text += static_cast<char>(edges[rest % edges.size()]);
    const std::string once = printable(text);
    REQUIRE(is_utf8(once));
    for (const char c : once) REQUIRE((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
    REQUIRE(printable(once) == once);
    REQUIRE(once.find("\u009b") == std::string::npos);
  }
}

TEST_CASE("printable: lines of our own stay lines") {
  CHECK(printable_lines("table:\n  a\x1b[1m\n") == "table:\n  a\\x1b[1m\n");
}

TEST_CASE("error: a hostile subject stays on its line, a table in the cause stays a table") {
  const Error error{"read", "a\nsluice: all is well\x1b[2J.JPEG", "is bad:\n  row\x07", "mend \xff"};
  CHECK(error.text() == "read: a\\nsluice: all is well\\x1b[2J.JPEG: is bad:\n  row\\x07; mend \\xff");
}
