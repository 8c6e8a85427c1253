#include "run/config/toml_text.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.hpp"
#include "base/files/regular.hpp"

namespace sluice {
namespace {

constexpr std::size_t longest = 8 << 20;  // data.exclude may list many files; checkpoints hold it
constexpr int most_levels = 32;           // of brackets, and of the dots in a key

// Walks over the text as a TOML parser does, as far as strings and comments hide brackets and dots. Where the
// text is no TOML the two may part, but there the parser has stopped.
class Depth {
 public:
  explicit Depth(std::string_view text) : text_(text) {}

  void check() {
    while (at_ < text_.size()) {
      switch (const char c = text_[at_]) {
        case '#':
          skip_comment();
          continue;
        case '"':
        case '\'':
          skip_string(c);
          continue;
        case '.':
          if (++dots_ >= most_levels) refuse("a key has too many dots");
          break;
        case '[':
        case '{':
          dots_ = 0;
          if (++brackets_ > most_levels) refuse("values are nested too deep");
          break;
        case ']':
        case '}':
          if (brackets_ > 0) --brackets_;
          [[fallthrough]];
        case '\n':
        case '=':
        case ',':
          dots_ = 0;
          break;
        default:
          break;
      }
      step();
    }
  }

 private:
  void step() {
    if (text_[at_] == '\n') ++line_, line_start_ = at_ + 1;
    ++at_;
  }
  void skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }
  [[nodiscard]] bool triple(char quote) const {
    return text_.size() - at_ >= 3 && text_[at_] == quote && text_[at_ + 1] == quote &&
           text_[at_ + 2] == quote;
  }
  void skip_string(char quote) {
    const bool lines = triple(quote);
    for (at_ += lines ? 3 : 1; at_ < text_.size(); step()) {
      if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) {
        step();
      } else if (!lines && (text_[at_] == quote || text_[at_] == '\n')) {
        at_ += text_[at_] == quote;
        return;
      } else if (lines && triple(quote)) {
        at_ += 3;
        for (int more = 0; more < 2 && at_ < text_.size() && text_[at_] == quote; ++more) ++at_;
        return;
      }
    }
  }
  [[noreturn]] void refuse(const char* cause) const {
    const toml::source_position here{line_, static_cast<toml::source_index>(at_ - line_start_ + 1)};
    throw toml::parse_error(cause, toml::source_region{here, here, {}});
  }

  std::string_view text_;
  std::size_t at_ = 0, line_start_ = 0;
  toml::source_index line_ = 1;
  int dots_ = 0, brackets_ = 0;
};

Error failed(int error) { return {"", "", std::strerror(error), ""}; }

// A name that the system gives to open files and devices: /dev/stdin, /dev/fd/63, /proc/self/fd/0. Who says
// such a name means to wait for what comes through it. Not all below /dev is of that kind: in /dev/shm
// anybody may make a FIFO.
bool names_a_stream(const std::filesystem::path& file) {
  const std::filesystem::path name = file.lexically_normal();
  return name.parent_path() == "/dev" || name.parent_path() == "/dev/fd" ||
         name.string().starts_with("/proc/");
}

}  // namespace

toml::table parse_toml(std::string_view text) {
  Depth(text).check();
  return toml::parse(text);
}

Result<std::string> read_toml_file(const std::filesystem::path& file) {
  const OpenedFile there = names_a_stream(file) ? open_stream(file.c_str()) : open_regular(file.c_str());
  if (there.fd < 0) return Error{"", "", there.cause(), ""};
  const Descriptor opened(there.fd);
  std::string text;
  for (;;) {
    constexpr std::size_t piece = 64 << 10;
    const std::size_t held = text.size();
    text.resize(held + piece);
    const ssize_t got = read(opened.get(), text.data() + held, piece);
    const int error = errno;
    text.resize(held + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got < 0 && error == EINTR) continue;
    if (got < 0) return failed(error);
    if (got == 0) return text;
    if (text.size() > longest) return Error{"", "", "more than 8 MiB, too long for TOML", ""};
  }
}

}  // namespace sluice
