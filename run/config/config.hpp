// What a run is told to do: one plain struct, read from a TOML file and `--set` overrides. Nothing is
// guessed: every problem is reported, all at once, with its place and what to do.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "run/config/units.hpp"

namespace sluice {

using Count = std::optional<std::int64_t>;  // none = "auto"
using SizeOrAuto = std::optional<Size>;     // none = "auto"
using Range = std::array<double, 2>;        // low, high

// The initial values are the defaults; run/config/keys.cpp says what each key means and may hold.
struct Config {
  struct Data {
    std::filesystem::path train, val;
    bool synth = false;
    std::int64_t classes = 0, subset_seed = 42, per_class = 0;
    std::int64_t image_size = 224, val_resize = 256;
    Size max_file{16u << 20}, max_scratch{64u << 20};
    std::int64_t max_pixels = 178'956'970;
    double max_bad = 0.01;
    std::vector<std::string> exclude;
  } data;
  struct Budget {
    SizeOrAuto ram;
    bool enforce = true;
  } budget;
  struct Pipeline {
    Count read_threads, read_ahead, decode_threads, prefetch;
  } pipeline;
  struct Augment {
    Range scale{0.08, 1.0}, ratio{3.0 / 4.0, 4.0 / 3.0};
    double flip = 0.5, erase = 0.0;
    std::string policy = "none", decode = "exact";
    double mixup = 0.0, cutmix = 0.0, mix = 1.0, mix_switch = 0.5;
  } augment;
  struct Model {
    std::string arch = "resnet50", device = "auto", precision = "fp32";
    bool channels_last = true, zero_init = false;
    std::string compile = "none";
    std::filesystem::path weights;
    bool sync_bn = false, recompute = false;
  } model;
  struct Train {
    std::int64_t epochs = 90, batch = 256, accumulate = 1, seed = 42, max_steps = 0;
    Count threads;
    double label_smoothing = 0.1;
  } train;
  struct Optim {
    std::string kind = "sgd";
    double lr = 0.1;
    std::int64_t base_batch = 256;
    double momentum = 0.9, weight_decay = 1e-4;
    bool nesterov = false, decay_all = true;
    double clip = 0.0, ema = 0.0;
  } optim;
  struct Schedule {
    std::string kind = "cosine";
    std::int64_t warmup_epochs = 5;
    double warmup_start = 0.01;
    std::string interval = "epoch";
  } schedule;
  struct Dist {
    double timeout = 600, heartbeat = 60;
  } dist;
  struct Checkpoint {
    std::int64_t keep = 5, every_steps = 0;
    double every_minutes = 0;
    std::string monitor = "val/acc1";
  } checkpoint;
  struct Log {
    std::filesystem::path dir = "runs";
    std::string name;
    std::int64_t every = 10;
    bool tensorboard = true;
  } log;
};

// Where a configuration comes from.
struct ConfigArguments {
  std::string file;
  std::vector<std::string> sets;  // the words after `--set`
};

struct Loaded {
  Config config;
  std::vector<Error>
      errors;  // in the order of the file, then of the overrides; the config counts only if empty
};

// `sets` are the words after `--set`, "key=value" each; later ones win.
[[nodiscard]] Loaded load_config(const std::filesystem::path& file, std::span<const std::string> sets = {});

// The same from text; `name` stands for the file in errors.
[[nodiscard]] Loaded parse_config(std::string_view text, const std::string& name,
                                  std::span<const std::string> sets = {});

// The whole configuration as TOML that reads back equal (`sluice config`).
[[nodiscard]] std::string to_toml(const Config& config);

// docs/configuration.md.
[[nodiscard]] std::string reference();

}  // namespace sluice
