#include "cli/doctor/storage.hpp"

#include <fmt/core.h>

#include <cmath>

#include "base/text.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr double slow_ms = 10;       // a file that takes longer is not on a local disk
constexpr double usual_rate = 1000;  // images/s: what one GPU takes of ResNet-50 in fp16, about

std::vector<std::string> paths(const ImageFolder& folder, std::size_t count, double offset) {
  std::vector<std::string> all;
  for (const std::size_t i : spread(folder.size(), count, offset)) all.push_back(folder.path(i));
  return all;
}

std::string rate_text(const ReadFigures& f) {
  return fmt::format("{} in flight: {:.0f} images/s, {:.0f} MB/s", f.in_flight, f.images_per_s(),
                     f.bytes_per_s() / 1e6);
}

// Whether these are storage's own figures.
std::string cache_text(const ReadFigures& a, const ReadFigures& b) {
  const std::size_t files = a.files + b.files, cached = a.cached + b.cached, unknown = a.unknown + b.unknown;
  if (cached > 0)
    return std::to_string(cached) + " of " + std::to_string(files) + " files were read from memory";
  if (unknown > 0) return "may have been read from memory: this file system does not tell";
  return "read cold";
}

}  // namespace

StorageReport measure_storage(const ImageFolder& folder, unsigned read_threads) {
  StorageReport f;
  f.one = read_files(paths(folder, 48, 0.0), 1, 3s);
  f.many = read_files(paths(folder, std::max<std::size_t>(256, 4 * read_threads), 0.5), read_threads, 3s);
  return f;
}

void look_at_storage(Checklist& list, const StorageReport& f) {
  for (const ReadFigures* figures : {&f.one, &f.many})
    if (figures->failure) {
      Error told = *figures->failure;
      told.cause += " (" + std::to_string(f.one.failed + f.many.failed) + " of " +
                    std::to_string(f.one.failed + f.many.failed + f.one.files + f.many.files) +
                    " files that were tried)";
      return list.fail("storage", told);
    }
  if (f.one.files == 0 || f.many.files == 0)
    return list.fail("storage", "not one file was read in 3 s",
                     "check the mount; copy the data to a local disk");
  const std::string found =
      fmt::format("{:.2f} ms a file of {:.0f} KB (slowest {:.0f} ms); {}; {} ({})", f.one.median_ms,
                  static_cast<double>(f.one.bytes) / static_cast<double>(f.one.files) / 1e3, f.one.slowest_ms,
                  rate_text(f.one), rate_text(f.many), cache_text(f.one, f.many));
  if (f.many.median_ms > slow_ms && f.many.images_per_s() < usual_rate) {
    list.warn("storage", found,
              fmt::format("for {:.0f} images/s about {:.0f} files must be in flight: raise "
                          "pipeline.read_threads and pipeline.read_ahead, or copy the data to a local disk",
                          usual_rate, std::ceil(f.one.median_ms * usual_rate / 1e3)));
  } else {
    list.ok("storage", found);
  }
  list.figure("ms_a_file", f.one.median_ms);
  list.figure("images_per_s_1_in_flight", f.one.images_per_s());
  list.figure("in_flight", f.many.in_flight);
  list.figure("images_per_s", f.many.images_per_s());
  list.figure("bytes_per_s", f.many.bytes_per_s());
  list.figure("from_memory", static_cast<double>(f.one.cached + f.many.cached));
}

}  // namespace sluice
