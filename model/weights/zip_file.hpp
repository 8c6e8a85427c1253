// The directory of a zip file whose entries are stored, not compressed, as torch.save writes it: an entry is
// a stretch of the file. Every size is checked against the file's before anybody reads an entry, so that a
// small file never becomes a large one.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/files/source.hpp"
#include "base/result.hpp"

namespace sluice {

struct ZipEntry {
  std::uint64_t offset = 0, size = 0;  // of its bytes, within the file
};

// By name. Entries lie within the file and do not overlap. Checksums are not looked at: torch.save leaves
// them out when told to (set_crc32_options). An error leaves its subject, the file, to the caller.
Result<std::map<std::string, ZipEntry>> read_zip_directory(const SourceFile& file);

}  // namespace sluice
