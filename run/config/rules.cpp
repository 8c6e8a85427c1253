#include "run/config/rules.hpp"

namespace sluice {
namespace {

const std::vector<Rule> rules{
    {{"data.val_resize", "data.image_size"},
     [](const Config& c) { return c.data.val_resize < c.data.image_size; },
     "data.val_resize is smaller than data.image_size, so the centre cannot be cut out",
     "the usual ratio is 256 to 224"},
    {{"schedule.warmup_epochs", "train.epochs"},
     [](const Config& c) { return c.schedule.warmup_epochs > c.train.epochs; },
     "schedule.warmup_epochs is larger than train.epochs, so the peak learning rate is never reached",
     "warm up for about a twentieth of the run"},
    {{"optim.nesterov", "optim.momentum"},
     [](const Config& c) { return c.optim.nesterov && c.optim.momentum == 0; },
     "optim.nesterov needs a momentum, and optim.momentum is 0",
     "set optim.momentum to 0.9 or optim.nesterov to false"},
    {{"augment.mixup", "augment.cutmix", "train.batch"},
     [](const Config& c) { return (c.augment.mixup > 0 || c.augment.cutmix > 0) && c.train.batch % 2 != 0; },
     "mixup and cutmix work on pairs of images, and train.batch is odd",
     "take an even train.batch"},
    {{"checkpoint.monitor", "optim.ema"},
     [](const Config& c) { return c.checkpoint.monitor.starts_with("val/ema") && c.optim.ema == 0; },
     "checkpoint.monitor is a figure of the averaged weights, and optim.ema is 0",
     "set optim.ema, or monitor val/acc1"},
    {{"dist.timeout", "dist.heartbeat"},
     [](const Config& c) { return c.dist.timeout <= c.dist.heartbeat; },
     "dist.timeout is not longer than dist.heartbeat, so exchanges would fail before it is known who is lost",
     "the defaults are 600 and 60 seconds"},
    {{"data.synth", "data.train", "data.val"},
     [](const Config& c) {
       return c.data.synth && (c.data.train.filename() != "train" || c.data.val.filename() != "val" ||
                               c.data.train.parent_path() != c.data.val.parent_path());
     },
     "data.synth makes <folder>/train and <folder>/val, and data.train and data.val are named differently",
     "name them so, or set data.synth to false and run `sluice synth`"},
    {{"log.name"},
     [](const Config& c) {
       return c.log.name == "." || c.log.name == ".." || c.log.name.find('/') != std::string::npos;
     },
     "log.name is not the name of a folder",
     "leave out \"/\"; log.dir says where the folder goes"},
};

}  // namespace

std::span<const Rule> config_rules() { return rules; }

}  // namespace sluice
