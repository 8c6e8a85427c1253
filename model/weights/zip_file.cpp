#include "model/weights/zip_file.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "base/printable.hpp"

namespace sluice {
namespace {

static_assert(std::endian::native == std::endian::little, "zip files are little-endian");

// Signatures and sizes of the fixed parts, as APPNOTE.TXT of PKWARE gives them.
constexpr std::uint32_t local_mark = 0x04034b50, entry_mark = 0x02014b50, end_mark = 0x06054b50,
                        end64_mark = 0x06064b50, locator_mark = 0x07064b50;
constexpr std::size_t local_size = 30, entry_size = 46, end_size = 22, end64_size = 56, locator_size = 20;
constexpr std::uint64_t longest_directory = 64 << 20;  // a network has some hundreds of entries
constexpr std::uint32_t in_extra = 0xFFFFFFFF;         // the value is in the zip64 extra field

Error refusal(const std::string& cause, std::string hint = "save it again") {
  return Error{"weights", "", printable(cause), std::move(hint)};
}
Error damaged(const std::string& cause) { return refusal("damaged: " + cause); }
Error unreadable() { return refusal("cannot be read: " + std::generic_category().message(errno), ""); }

template <class T>
T number(std::span<const char> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Directory {
  std::uint64_t offset = 0, size = 0, count = 0;
  std::uint64_t end = 0;  // where what follows it begins
};

Result<Directory> find_directory(const SourceFile& file) {
  // The end record is the last thing in the file, but for a comment.
  const std::uint64_t size = file.size();
  std::vector<char> tail(std::min<std::uint64_t>(size, end_size + 0xFFFF));
  if (tail.size() < end_size) return damaged("too short for a zip file");
  const std::uint64_t tail_at = size - tail.size();
  if (!file.read(tail_at, tail.data(), tail.size())) return unreadable();
  std::size_t at = tail.size() - end_size;
  while (number<std::uint32_t>(tail, at) != end_mark ||
         at + end_size + number<std::uint16_t>(tail, at + 20) != tail.size())
    if (at-- == 0) return damaged("no zip directory at its end");
  Directory found{number<std::uint32_t>(tail, at + 16), number<std::uint32_t>(tail, at + 12),
                  number<std::uint16_t>(tail, at + 10), tail_at + at};
  if (at >= locator_size && number<std::uint32_t>(tail, at - locator_size) == locator_mark) {
    const auto end64 = number<std::uint64_t>(tail, at - locator_size + 8);
    std::vector<char> record(end64_size);
    const std::uint64_t locator = tail_at + at - locator_size;
    if (end64 > locator || locator - end64 < end64_size)
      return damaged("its zip64 directory is not where it should be");
    if (!file.read(end64, record.data(), record.size())) return unreadable();
    if (number<std::uint32_t>(record, 0) != end64_mark) return damaged("its zip64 directory has no mark");
    found = {number<std::uint64_t>(record, 48), number<std::uint64_t>(record, 40),
             number<std::uint64_t>(record, 32), end64};
  }
  if (found.offset > found.end || found.size > found.end - found.offset || found.size > longest_directory ||
      found.count > found.size / entry_size)
    return damaged("its zip directory does not fit into it");
  return found;
}

struct Member {
  std::string name;
  std::uint64_t header = 0;  // where its local header begins
  ZipEntry data;
};

// Sizes and place from 32 bits, or from the extra field where those are full.
bool widen(std::span<const char> extra, std::uint64_t& size, std::uint64_t& packed, std::uint64_t& header) {
  while (extra.size() >= 4) {
    const auto id = number<std::uint16_t>(extra, 0), length = number<std::uint16_t>(extra, 2);
    extra = extra.subspan(4);
    if (length > extra.size()) return false;
    if (id == 1) {
      std::span<const char> values = extra.first(length);
      for (std::uint64_t* value : {&size, &packed, &header})
        if (*value == in_extra) {
          if (values.size() < 8) return false;
          *value = number<std::uint64_t>(values, 0);
          values = values.subspan(8);
        }
      return true;
    }
    extra = extra.subspan(length);
  }
  return size != in_extra && packed != in_extra && header != in_extra;
}

// The member that begins at the front of `from`, which goes on to the next one.
Result<Member> take_member(const SourceFile& file, std::span<const char>& from, std::uint64_t directory) {
  if (from.size() < entry_size || number<std::uint32_t>(from, 0) != entry_mark)
    return damaged("its zip directory is cut off");
  const std::size_t name_size = number<std::uint16_t>(from, 28), extra_size = number<std::uint16_t>(from, 30),
                    comment_size = number<std::uint16_t>(from, 32);
  if (from.size() - entry_size < name_size + extra_size + comment_size)
    return damaged("its zip directory is cut off");
  Member member;
  member.name.assign(from.data() + entry_size, name_size);
  const std::string entry = "its entry " + member.name + " ";
  std::uint64_t size = number<std::uint32_t>(from, 24), packed = number<std::uint32_t>(from, 20);
  member.header = number<std::uint32_t>(from, 42);
  if (!widen(from.subspan(entry_size + name_size, extra_size), size, packed, member.header))
    return damaged(entry + "has no sound sizes");
  if (const auto flags = number<std::uint16_t>(from, 8); flags & 1) return refusal(entry + "is encrypted");
  if (number<std::uint16_t>(from, 10) != 0 || size != packed)
    return refusal(entry + "is compressed, which torch.save never does", "save it with torch.save");
  from = from.subspan(entry_size + name_size + extra_size + comment_size);

  char local[local_size];
  if (member.header > directory || directory - member.header < local_size)
    return damaged(entry + "lies outside the file");
  if (!file.read(member.header, local, sizeof local)) return unreadable();
  if (number<std::uint32_t>(local, 0) != local_mark) return damaged(entry + "has no header");
  member.data = {
      member.header + local_size + number<std::uint16_t>(local, 26) + number<std::uint16_t>(local, 28), size};
  if (member.data.offset > directory || size > directory - member.data.offset)
    return damaged(entry + "tells of " + std::to_string(size) + " bytes, more than the file holds");
  return member;
}

}  // namespace

Result<std::map<std::string, ZipEntry>> read_zip_directory(const SourceFile& file) {
  const Result<Directory> directory = find_directory(file);
  if (!directory) return directory.error();
  std::vector<char> bytes(directory->size);
  if (!file.read(directory->offset, bytes.data(), bytes.size())) return unreadable();
  std::vector<Member> members;
  std::span<const char> from(bytes);
  for (std::uint64_t i = 0; i < directory->count; ++i) {
    Result<Member> member = take_member(file, from, directory->offset);
    if (!member) return member.error();
    members.push_back(std::move(*member));
  }
  std::ranges::sort(members, {}, &Member::header);
  std::map<std::string, ZipEntry> entries;
  std::uint64_t end = 0;
  for (Member& member : members) {
    if (member.header < end) return damaged("its entry " + member.name + " overlaps the one before it");
    end = member.data.offset + member.data.size;
    if (!entries.emplace(member.name, member.data).second)
      return damaged("its entry " + member.name + " is there more than once");
  }
  return entries;
}

}  // namespace sluice
