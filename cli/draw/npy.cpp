#include "cli/draw/npy.hpp"

#include <array>

#include "base/files/durable.hpp"

namespace sluice {

Status write_npy(const std::filesystem::path& file, const std::string& type,
                 const std::vector<std::size_t>& shape, std::span<const std::byte> data) {
  std::string sizes;
  for (const std::size_t size : shape) sizes += std::to_string(size) + ",";
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + sizes + "), }";
  constexpr std::size_t before = 10;  // magic, version, length of the header
  header.append(63 - (before + header.size()) % 64, ' ');
  header += '\n';
  std::string begin("\x93NUMPY\x01\x00", 8);
  begin += static_cast<char>(header.size() & 255);
  begin += static_cast<char>(header.size() >> 8);
  begin += header;
  const std::array parts = {std::as_bytes(std::span(begin)), data};
  return write_output("show", file, parts);
}

}  // namespace sluice
