#include "nodes/jpeg/library.hpp"

#include <link.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>

#include <jpeglib.h>

namespace sluice {
namespace {

constexpr std::string_view words = "libjpeg-turbo version ";

struct Search {
  std::uintptr_t inside;  // an address of the library
  std::string version;
};

// Calls see(begin, bytes) for what the file has put into memory to be read and never written.
template <class See>
void each_constant_part(const dl_phdr_info& object, const See& see) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && (part.p_flags & PF_R) && !(part.p_flags & PF_W))
      see(object.dlpi_addr + part.p_vaddr, part.p_filesz);
  }
}

int look(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool mine = false;
  each_constant_part(*object, [&](std::uintptr_t begin, std::size_t bytes) {
    mine = mine || (search.inside >= begin && search.inside - begin < bytes);
  });
  if (!mine) return 0;
  each_constant_part(*object, [&](std::uintptr_t begin, std::size_t bytes) {
    if (search.version.empty())
      search.version = find_libjpeg_version({reinterpret_cast<const char*>(begin), bytes});
  });
  return 1;
}

}  // namespace

bool is_checked_libjpeg(std::string_view version) {
  std::array<int, 3> parts{};
  const char *at = version.data(), *const end = at + version.size();
  for (int& part : parts) {
    const auto [behind, error] = std::from_chars(at, end, part);
    if (error != std::errc() || part < 0 || part > 999) return false;
    at = behind;
    if (&part == &parts.back()) break;
    if (at == end || *at != '.') return false;
    ++at;
  }
  if (at != end && *at != '.') return false;  // 2.1.5.1 is 2.1.5 once more
  const int number = 1'000'000 * parts[0] + 1000 * parts[1] + parts[2];
  return number >= oldest_checked_libjpeg && number <= newest_checked_libjpeg;
}

std::string_view find_libjpeg_version(std::string_view bytes) {
  for (std::size_t at = bytes.find(words); at != bytes.npos; at = bytes.find(words, at + 1)) {
    const std::string_view rest = bytes.substr(at + words.size());
    const std::size_t length = std::min(rest.find_first_not_of("0123456789."), rest.size());
    if (length > 0) return rest.substr(0, length);
  }
  return {};
}

const std::string& loaded_libjpeg() {
  static const std::string version = [] {
    jpeg_error_mgr errors{};
    jpeg_std_error(&errors);  // its functions are the library's own
    Search search{reinterpret_cast<std::uintptr_t>(errors.error_exit), {}};
    dl_iterate_phdr(look, &search);
    return search.version;
  }();
  return version;
}

}  // namespace sluice
