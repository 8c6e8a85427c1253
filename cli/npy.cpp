#include "cli/npy.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace sluice {

Status write_npy(const std::filesystem::path& file, const std::string& type,
                 const std::vector<std::size_t>& shape, std::span<const std::byte> data) {
  std::string sizes;
  for (const std::size_t size : shape) sizes += std::to_string(size) + ",";
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + sizes + "), }";
  constexpr std::size_t before = 10;  // magic, version, length of the header
  header.append(63 - (before + header.size()) % 64, ' ');
  header += '\n';
  std::ofstream out(file, std::ios::binary);
  out.write("\x93NUMPY\x01\x00", 8);
  out.put(static_cast<char>(header.size() & 255)).put(static_cast<char>(header.size() >> 8));
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  out.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  out.close();
  if (!out) return Error{"show", file.string(), std::strerror(errno), "choose a file that can be written"};
  return Done{};
}

}  // namespace sluice
