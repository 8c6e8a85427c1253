#include "cli/doctor/images.hpp"

#include <fmt/core.h>

namespace sluice {

ImageSamples sample_both(const DataSets& sets, const DataPathOptions& options) {
  return {sample_images(sets, Split::train, 64, options), sample_images(sets, Split::val, 32, options)};
}

void look_at_images(Checklist& list, const ImageSamples& s, double max_bad) {
  for (const ImageSample* sample : {&s.train, &s.val})
    if (sample->fatal) return list.fail("images", *sample->fatal);
  const auto count = [](std::size_t n) { return std::to_string(n); };
  const std::string time =
      fmt::format("; {:.1f} ms to decode one on one thread (validation {:.1f} ms)", s.train.ms, s.val.ms);
  const std::string looked = count(s.train.looked_at + s.val.looked_at) + " images (" +
                             count(s.train.looked_at) + " training, " + count(s.val.looked_at) +
                             " validation)";
  const std::size_t bad = s.train.bad + s.val.bad;
  if (bad == 0) {
    list.ok("images", looked + " read and decoded" + time);
  } else {
    const std::string found = count(bad) + " of " + looked + " cannot be used, the first " +
                              (s.train.bad > 0 ? s.train.first_bad : s.val.first_bad) + time;
    const std::string share = fmt::format("{:g} %", 100 * max_bad);
    if (too_many_bad(s.train, max_bad) || too_many_bad(s.val, max_bad))
      list.fail("images", found,
                std::string("a run stops when more than data.max_bad (") + share +
                    ") are bad: mend them, list them in data.exclude, or raise data.max_bad");
    else
      list.warn("images", found,
                std::string("a run replaces bad images (validation leaves them out) up to data.max_bad (") +
                    share + "); mend them or list them in data.exclude");
  }
  list.figure("looked_at", static_cast<double>(s.train.looked_at + s.val.looked_at));
  list.figure("bad", static_cast<double>(bad));
  list.figure("decode_ms", s.train.ms);
}

}  // namespace sluice
