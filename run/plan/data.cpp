#include "run/plan/data.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "run/data/synth.hpp"
#include "run/plan/run_plan.hpp"

namespace sluice {
namespace {

namespace fs = std::filesystem;

struct Known {
  std::int64_t classes;
  std::uint64_t train, val;
  std::size_t train_name, val_name;  // bytes of a name in the index: its letters and five
};
constexpr Known imagenet{1000, 1'281'167, 50'000, 26, 33};

void take_given(PlanData& data, const ImageCounts& given) {
  if (!given.train && !given.val) return;
  data.train_images = given.train.value_or(data.train_images);
  data.val_images = given.val.value_or(data.val_images);
  const char* which = given.train && given.val ? "--images and --val-images"
                      : given.train            ? "--images"
                                               : "--val-images";
  data.source = given.train && given.val ? which : std::string(which) + ", else " + data.source;
}

std::size_t index_of(const PlanData& d) {
  return d.train_images * imagenet.train_name + d.val_images * imagenet.val_name;
}

}  // namespace

PlanData assumed_data(const Config& c, const ImageCounts& given) {
  PlanData d;
  if (c.data.synth) {
    const SynthOptions synth;
    d.classes = synth.classes;
    d.train_images = static_cast<std::uint64_t>(synth.classes) * static_cast<unsigned>(synth.train_per_class);
    d.val_images = static_cast<std::uint64_t>(synth.classes) * static_cast<unsigned>(synth.val_per_class);
    d.source = "what data.synth will make";
  } else {
    d.classes = imagenet.classes;
    d.train_images = imagenet.train;
    d.val_images = imagenet.val;
    d.source = "ImageNet's numbers: " + printable(c.data.train.string()) + " is not there";
  }
  if (c.data.classes > 0 && !given.train && c.data.classes < d.classes) {
    const auto share = [&](std::uint64_t images) {
      return images * static_cast<std::uint64_t>(c.data.classes) / static_cast<std::uint64_t>(d.classes);
    };
    d.source += ", in proportion to " + std::to_string(c.data.classes) + " of " + std::to_string(d.classes) +
                " classes";
    d.train_images = share(d.train_images);
    d.val_images = share(d.val_images);
  }
  if (c.data.classes > 0) d.classes = c.data.classes;
  if (c.data.per_class > 0)
    d.train_images = std::min(d.train_images, static_cast<std::uint64_t>(c.data.per_class * d.classes));
  take_given(d, given);
  d.index_bytes = index_of(d);
  return d;
}

PlanData data_of(const DataSets& sets) {
  return {sets.train->size(), sets.val->size(), static_cast<std::int64_t>(sets.train->class_names().size()),
          sets.index_bytes(), "counted in the folders"};
}

Result<PlanData> plan_data(const Config& c, const ImageCounts& given) {
  if (!fs::exists(c.data.train) || !fs::exists(c.data.val)) return assumed_data(c, given);
  const Result<DataSets> sets = scan_data(c);
  if (!sets) return sets.error();
  PlanData d = data_of(*sets);
  take_given(d, given);
  if (given.train || given.val) d.index_bytes = std::max(d.index_bytes, index_of(d));
  return d;
}

}  // namespace sluice
