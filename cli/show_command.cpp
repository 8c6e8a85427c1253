#include <cmath>
#include <cstdio>
#include <span>

#include "base/files/durable.hpp"
#include "base/printable.hpp"
#include "cli/commands.hpp"
#include "cli/draw/lettering.hpp"
#include "cli/draw/npy.hpp"
#include "run/config/step_options.hpp"
#include "run/data/synth_image.hpp"
#include "run/data/synth_tree.hpp"
#include "run/plan/run_plan.hpp"
#include "run/session/session.hpp"

namespace sluice {
namespace {

struct ShowArguments {
  ConfigArguments config;
  std::string split = "train";
  std::uint64_t batch = 0;
  std::string npy, sheet;  // files to write, if not empty
};

// What one batch holds, after the graph that made it is gone.
struct Shown {
  Ending ending;  // only after a good one is the rest there
  BatchPlan plan;
  std::size_t places = 0, size = 0;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  std::vector<Bad> bad;
};

Result<Shown> make_batch(const Config& config, const std::shared_ptr<const DataSets>& sets,
                         const ShowArguments& asked) {
  Result<RunPlan> plan = plan_run(config, this_machine(), "cuda", sets->index_bytes());
  if (!plan) return plan.error();
  const Result<Sequence> sequence = Sequence::make(run_shape(config, *sets));
  if (!sequence) return sequence.error();
  // The sequence has an epoch's training, its validation, the next epoch.
  const bool train = asked.split == "train";
  const std::uint64_t training = sequence->steps_per_epoch() * sequence->shape().accumulate,
                      validation = sequence->val_batches();
  const std::uint64_t number = train
                                   ? asked.batch / training * (training + validation) + asked.batch % training
                                   : training + asked.batch;
  if (number >= sequence->batches() || (!train && asked.batch >= validation))
    return Error{
        "show", "--batch",
        std::to_string(asked.batch) + ", and there are " +
            std::to_string(train ? training * static_cast<std::uint64_t>(config.train.epochs) : validation),
        "they count from 0"};
  plan->pipeline.first_batch = plan->data.first_batch = number;
  plan->pipeline.batches = number + 1;
  Shown shown;
  shown.plan = sequence->at(number);
  shown.size = static_cast<std::size_t>(task_of(config).sample.width());
  Stages stages = data_path(sets, *sequence, plan->data);
  stages.upload = [](Batch&) { return Status(Done{}); };
  stages.step = [&](Batch& batch) {
    shown.places = batch.slot->places();
    for (std::uint32_t i = 0; i < batch.slot->places(); ++i) {
      const auto place = batch.slot->place(i);
      shown.pixels.insert(shown.pixels.end(), place.begin(), place.end());
    }
    shown.labels.assign(batch.slot->labels().begin(), batch.slot->labels().end());
    shown.bad = batch.slot->take_bad();
    return Status(Done{});
  };
  Session session(plan->pipeline, std::move(stages));
  shown.ending = session.run();
  return shown;
}

Canvas contact_sheet(const Shown& shown, const std::vector<std::string>& classes) {
  const int size = static_cast<int>(shown.size), scale = size >= 128 ? 2 : 1, gap = 4;
  const int strip = letter_height * scale + gap;
  const int columns = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(shown.places))));
  const int rows = (static_cast<int>(shown.places) + columns - 1) / columns;
  Canvas sheet(columns * (size + gap) + gap, rows * (size + strip + gap) + gap, 255);
  for (std::size_t i = 0; i < shown.places; ++i) {
    const int x = gap + static_cast<int>(i) % columns * (size + gap);
    const int y = gap + static_cast<int>(i) / columns * (size + strip + gap);
    for (std::size_t row = 0; row < shown.size; ++row) {
      const std::uint8_t* from = &shown.pixels[(i * shown.size + row) * shown.size * 3];
      const std::size_t to = (static_cast<std::size_t>(y) + row) * static_cast<std::size_t>(sheet.width) +
                             static_cast<std::size_t>(x);
      std::copy_n(from, shown.size * 3, &sheet.rgb[to * 3]);
    }
    const std::int32_t label = shown.labels[i];
    const std::string text =
        label < 0 ? "not used"
                  : std::to_string(label) + " " + printable(classes[static_cast<std::size_t>(label)]);
    write_text(sheet, x, y + size + gap / 2, size, scale, text, 0);
  }
  return sheet;
}

Status write_sheet(const std::string& file, const Canvas& sheet) {
  if (sheet.width > 65500 || sheet.height > 65500)
    return Error{"show", file, "the sheet is larger than a JPEG can be", "lower train.batch for it"};
  const std::vector<std::uint8_t> jpeg = encode_jpeg({sheet.width, sheet.height, sheet.rgb}, {});
  const std::span<const std::byte> part = std::as_bytes(std::span(jpeg));
  return write_output("show", file, {&part, 1});
}

// Beside FILE.npy: FILE.labels.npy.
std::filesystem::path labels_file(std::filesystem::path file) {
  return file.replace_extension(".labels.npy");
}

Status write_files(const Shown& shown, const std::vector<std::string>& classes, const ShowArguments& asked) {
  if (!asked.npy.empty()) {
    Status written = write_npy(asked.npy, "|u1", {shown.places, shown.size, shown.size, 3},
                               std::as_bytes(std::span(shown.pixels)));
    if (!written) return written;
    written =
        write_npy(labels_file(asked.npy), "<i4", {shown.places}, std::as_bytes(std::span(shown.labels)));
    if (!written) return written;
  }
  return asked.sheet.empty() ? Status(Done{}) : write_sheet(asked.sheet, contact_sheet(shown, classes));
}

void describe(const Config& config, const Shown& shown, const std::vector<std::string>& classes,
              const ShowArguments& asked) {
  std::printf("%s batch %llu (epoch %u): %zu images of %zu x %zu, uint8 NHWC\n", asked.split.c_str(),
              static_cast<unsigned long long>(asked.batch), shown.plan.epoch, shown.places, shown.size,
              shown.size);
  if (shown.plan.split == Split::train) {
    const std::uint64_t number =
        shown.plan.step * static_cast<std::uint64_t>(config.train.accumulate) + shown.plan.in_step;
    const Mix mix = choose_mix(mix_options(config), static_cast<std::uint64_t>(config.train.seed), number,
                               static_cast<int>(shown.size));
    if (mix.kind == Mix::Kind::mixup)
      std::printf("the device will blend images 0 and 1, 2 and 3, ... (mixup, %.3f of each one's own)\n",
                  mix.own);
    if (mix.kind == Mix::Kind::cutmix)
      std::printf(
          "the device will paste a part of images 0 and 1, 2 and 3, ... into each other (cutmix, %d x %d at "
          "%d, %d)\n",
          mix.box.width, mix.box.height, mix.box.x, mix.box.y);
  }
  for (const Bad& bad : shown.bad)
    std::printf("place %u: %s: %s; %s\n", bad.place, printable(bad.file).c_str(),
                printable(bad.cause).c_str(),
                bad.replacement.empty() ? "left out" : ("replaced by " + printable(bad.replacement)).c_str());
  std::printf("labels:");
  for (std::size_t i = 0; i < shown.places && i < 16; ++i)
    std::printf(" %s", shown.labels[i] < 0
                           ? "-"
                           : printable(classes[static_cast<std::size_t>(shown.labels[i])]).c_str());
  std::printf(shown.places > 16 ? " ...\n" : "\n");
  if (!asked.npy.empty())
    std::printf("wrote %s and %s\n", printable(asked.npy).c_str(),
                printable(labels_file(asked.npy).string()).c_str());
  if (!asked.sheet.empty()) std::printf("wrote %s\n", printable(asked.sheet).c_str());
}

}  // namespace

static int show_command(const ConfigArguments& arguments, const ShowArguments& asked) {
  const std::optional<Config> config = load_or_complain(arguments);
  if (!config) return exit_usage;
  const auto refuse = [](const Error& error, int code) {
    complain(error);
    return code;
  };
  if (Status made = make_synth_tree(*config); !made) return refuse(made.error(), exit_usage);
  Result<DataSets> scanned = scan_data(*config);
  if (!scanned) return refuse(scanned.error(), exit_usage);
  const auto sets = std::make_shared<const DataSets>(std::move(*scanned));
  const Result<Shown> shown = make_batch(*config, sets, asked);
  if (!shown) return refuse(shown.error(), exit_usage);
  if (!shown->ending.well()) return told(shown->ending);
  const std::vector<std::string>& classes = sets->train->class_names();
  if (Status written = write_files(*shown, classes, asked); !written)
    return refuse(written.error(), exit_failed);
  describe(*config, *shown, classes, asked);
  return exit_done;
}

Run add_show(Options& to) {
  const auto asked = std::make_shared<ShowArguments>();
  to.config(asked->config).required();
  to.option("--split", &asked->split, "train or val").one_of({"train", "val"});
  to.option("--batch", &asked->batch, "Which, from 0").shows_default();
  to.option("--npy", &asked->npy, "Write pixels as a NumPy array, and labels beside it").type("FILE.npy");
  to.option("--sheet", &asked->sheet, "Write a contact sheet with labels").type("FILE.jpg");
  return [asked] { return show_command(asked->config, *asked); };
}

}  // namespace sluice
