#include "nodes/record/tensorboard.hpp"

#include <unistd.h>
#include <cstring>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/bounded_json.hpp"
#include "base/files/record_lines.hpp"

namespace sluice {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view name_start = "events.out.tfevents.";

// CRC-32C (Castagnoli), lowest bit first.
constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78U : 0U);
    table[i] = crc;
  }
  return table;
}();

// Masked as record files do, so that the checksum of bytes that hold a checksum is none of its own.
std::uint32_t masked_crc(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) crc = crc_table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return std::rotr(~crc, 15) + 0xa282ead8U;
}

template <class Unsigned>
void add_little_endian(std::string& to, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i) to += static_cast<char>((value >> (8 * i)) & 0xff);
}

std::string framed(const std::string& event) {
  std::string record;
  add_little_endian(record, std::uint64_t{event.size()});
  add_little_endian(record, masked_crc(record));
  record += event;
  add_little_endian(record, masked_crc(event));
  return record;
}

// The few parts of protocol buffers that an event needs.
class Message {
 public:
  Message& integer(int field, std::int64_t value) {
    key(field, 0);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& real(int field, double value) {
    key(field, 1);
    add_little_endian(bytes_, std::bit_cast<std::uint64_t>(value));
    return *this;
  }
  Message& real(int field, float value) {
    key(field, 5);
    add_little_endian(bytes_, std::bit_cast<std::uint32_t>(value));
    return *this;
  }
  Message& bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return bytes_; }

 private:
  void key(int field, int kind) { varint(static_cast<std::uint64_t>(field << 3 | kind)); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// Field numbers of event.proto and summary.proto.
Message event_now() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return Message().real(1, now.count());
}

std::string version_event() { return event_now().bytes(3, "brain.Event:2").text(); }

// Status 1 is START. TensorBoard then forgets what it has read of this step and later ones.
std::string start_event(std::int64_t step) {
  return event_now().integer(2, step).bytes(7, Message().integer(1, 1).text()).text();
}

std::string scalars_event(const Record& record) {
  Message summary;
  for (const auto& [name, value] : record.values)
    summary.bytes(1, Message().bytes(1, name).real(2, static_cast<float>(value)).text());
  return event_now().integer(2, record.step).bytes(5, summary.text()).text();
}

// Seconds since 1970, unless that is not later than a file which is there: two runs may share a second, and
// clocks go back.
std::string new_name(const fs::path& folder) {
  std::int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  std::error_code ignored;  // a folder that cannot be listed is told of when the file is opened
  for (fs::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(name_start)) continue;
    std::int64_t then = 0;
    std::from_chars(name.data() + name_start.size(), name.data() + name.size(), then);
    if (then < 9'999'999'999) seconds = std::max(seconds, then + 1);  // ten digits sort like the number
  }
  std::string digits = std::to_string(seconds);
  digits.insert(0, 10 - std::min<std::size_t>(10, digits.size()), '0');
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"localhost"};
  return std::string(name_start) + digits + "." + host.data() + "." + std::to_string(::getpid());
}

// What a line of metrics.jsonl says in numbers; null stood for one that was not finite.
Record read_back(const nlohmann::json& line, std::int64_t step) {
  Record record{.event = {}, .step = step};
  for (const auto& [key, value] : line.items()) {
    if (key == "epoch" || key == "step") continue;
    if (value.is_number()) record.values.emplace_back(key, value.get<double>());
    if (value.is_null()) record.values.emplace_back(key, std::numeric_limits<double>::quiet_NaN());
  }
  return record;
}

}  // namespace

Result<std::shared_ptr<EventFile>> EventFile::open(const fs::path& folder, std::int64_t from,
                                                   const fs::path& kept, bool whole) {
  Result<std::shared_ptr<AppendFile>> file = AppendFile::open((folder / new_name(folder)).string());
  if (!file) return file.error();
  if (Status begun = (*file)->append(framed(version_event()) + framed(start_event(whole ? 0 : from))); !begun)
    return begun.error();
  auto events = std::make_shared<EventFile>(std::move(*file));
  if (Status told = kept.empty() ? Status(Done{}) : events->tell_again(kept, from, whole); !told)
    return told.error();
  return events;
}

Status EventFile::write(const Record& record) {
  if (record.values.empty()) return Done{};
  return file_->append(framed(scalars_event(record)));
}

// A step's training record is older than its checkpoint, the validation after it may be younger: TensorBoard
// can only forget both, so the one that stays is written anew.
Status EventFile::tell_again(const fs::path& kept, std::int64_t step, bool whole) {
  const std::string wanted = "\"step\":" + std::to_string(step);
  const Result<std::unique_ptr<RecordLines>> lines = RecordLines::open("log", kept);
  if (!lines) return lines.error();
  if (!*lines) return Done{};
  for (std::string line;;) {
    const Result<bool> more = (*lines)->next(line);
    if (!more) return more.error();
    if (!*more) return Done{};
    if (!whole && line.find(wanted) == std::string::npos) continue;  // most lines need no parsing
    const nlohmann::json parsed = parse_object(line);
    const auto at = parsed.find("step");
    if (at == parsed.end() || !at->is_number_integer() || (!whole && *at != step)) continue;
    if (Status written = write(read_back(parsed, at->get<std::int64_t>())); !written) return written;
  }
}

bool has_events(const fs::path& folder) {
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored))
    if (at->path().filename().string().starts_with(name_start)) return true;
  return false;
}

}  // namespace sluice
