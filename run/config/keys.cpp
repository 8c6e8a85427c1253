#include "run/config/keys.hpp"

#include <algorithm>

namespace sluice {
namespace {

template <auto section, auto member>
ValueRef at(Config& config) {
  return &(config.*section.*member);
}

constexpr double none = std::numeric_limits<double>::infinity();

const std::vector<Section> sections{
    {"data", "Which images, and what counts as too big or too broken."},
    {"budget", "How much memory the data path may take. It is a hard bound, kept by construction."},
    {"pipeline", "How the data path divides its budget; `\"auto\"` follows from the machine and the budget."},
    {"augment",
     "Random changes of training images. They depend on seed, epoch and image alone, never on threads."},
    {"model", "The network and where it runs."},
    {"train", "How long and in which steps."},
    {"optim", "The optimiser."},
    {"schedule", "The learning rate over the run."},
    {"dist", "Several processes (ranks) that train one network together."},
    {"checkpoint", "What is kept to resume from. The newest state is always kept besides."},
    {"log", "Where a run's files go and how often figures are read back."},
};

// clang-format off
const std::vector<Key> keys{
    {.name = "data.train", .value = at<&Config::data, &Config::Data::train>, .local = true, .required = true,
     .meaning = "Training images: a folder with one sub-folder of JPEGs for each class.",
     .memory = "the file index: one path per image"},
    {.name = "data.val", .value = at<&Config::data, &Config::Data::val>, .local = true, .required = true,
     .meaning = "Validation images, with the same classes as `data.train`.",
     .memory = "the file index: one path per image"},
    {.name = "data.synth", .value = at<&Config::data, &Config::Data::synth>, .local = true,
     .meaning = "Make a small learnable data set at the place of `data.train` and `data.val` if there is "
                "none yet."},
    {.name = "data.classes", .value = at<&Config::data, &Config::Data::classes>, .limits = {0, 1e6},
     .unit = "classes", .meaning = "Take this many classes, chosen by `data.subset_seed`; 0 takes all."},
    {.name = "data.subset_seed", .value = at<&Config::data, &Config::Data::subset_seed>, .limits = {0, none},
     .meaning = "Chooses which classes `data.classes` takes."},
    {.name = "data.per_class", .value = at<&Config::data, &Config::Data::per_class>, .limits = {0, none},
     .unit = "images", .meaning = "Take the first so many training images of each class; 0 takes all."},
    {.name = "data.image_size", .value = at<&Config::data, &Config::Data::image_size>, .limits = {8, 4096},
     .unit = "pixels", .meaning = "Width and height of the images that the network gets.",
     .memory = "each batch slot takes batch × image_size² × 3 bytes"},
    {.name = "data.val_resize", .value = at<&Config::data, &Config::Data::val_resize>, .limits = {8, 8192},
     .unit = "pixels",
     .meaning = "The shorter side of a validation image is resized to this before its centre is cut out."},
    {.name = "data.max_file", .value = at<&Config::data, &Config::Data::max_file>, .limits = {0x1p10, 0x1p40},
     .meaning = "A larger file counts as bad.",
     .memory = "the budget must hold one such file besides everything else"},
    {.name = "data.max_scratch", .value = at<&Config::data, &Config::Data::max_scratch>,
     .limits = {0x1p20, 0x1p40},
     .meaning = "An image whose decoding needs more working memory (judged from its header) counts as bad.",
     .memory = "the budget must hold it once besides everything else"},
    {.name = "data.max_pixels", .value = at<&Config::data, &Config::Data::max_pixels>, .limits = {1, 65500.0 * 65500.0},
     .unit = "pixels",
     .meaning = "An image of more pixels, width times height by its header, counts as bad and is not decoded: a file "
                "of a hundred bytes can claim four thousand million of them, each of which takes time. The default is "
                "where Pillow refuses an image as a decompression bomb: twice its MAX_IMAGE_PIXELS."},
    {.name = "data.max_bad", .value = at<&Config::data, &Config::Data::max_bad>, .limits = {0, 1},
     .unit = "share of an epoch",
     .meaning = "The run stops when more images than this cannot be used; up to there, training replaces "
                "them and validation leaves them out."},
    {.name = "data.exclude", .value = at<&Config::data, &Config::Data::exclude>,
     .meaning = "Images to leave out: `class/file` below the root, or patterns such as `n0144*/*_2.JPEG`."},

    {.name = "budget.ram", .value = at<&Config::budget, &Config::Budget::ram>, .local = true, .limits = {0x1p20, 0x1p50},
     .meaning = "Memory for files, decoding, batches and the file index together; `\"auto\"` takes what the "
                "machine (or the container) has left after the network, the weights and a reserve. Several ranks "
                "on a host share it evenly.",
     .memory = "itself: the data path never takes more"},
    {.name = "budget.enforce", .value = at<&Config::budget, &Config::Budget::enforce>, .local = true,
     .meaning = "Refuse a run that the plan (`sluice plan`) says does not fit into the RAM or VRAM of this machine. "
                "The plan's figures are estimates: `false` starts it all the same, and it may be killed."},

    {.name = "pipeline.read_threads", .value = at<&Config::pipeline, &Config::Pipeline::read_threads>, .local = true,
     .limits = {1, 1024}, .unit = "threads",
     .meaning = "Files read at the same time; slow storage needs more. `\"auto\"` begins with 16 and goes up to "
                "256 while reads hold the device up and more of them help.",
     .memory = "a thread's stack"},
    {.name = "pipeline.read_ahead", .value = at<&Config::pipeline, &Config::Pipeline::read_ahead>, .local = true,
     .limits = {1, 1 << 20}, .unit = "files",
     .meaning = "Files read or being read ahead of their decoding. `\"auto\"` begins with two batches and goes up "
                "to 512 as needed, within the budget.",
     .memory = "the compressed bytes of that many files, about 110 KB each in ImageNet"},
    {.name = "pipeline.decode_threads", .value = at<&Config::pipeline, &Config::Pipeline::decode_threads>, .local = true,
     .limits = {1, 1024}, .unit = "threads", .meaning = "Images decoded at the same time, by each rank.",
     .memory = "working memory for one image each"},
    {.name = "pipeline.prefetch", .value = at<&Config::pipeline, &Config::Pipeline::prefetch>, .local = true,
     .limits = {2, 4096},
     .unit = "batches",
     .meaning = "Batches being filled or waiting for the device: at least one of each. `\"auto\"` is 2 or 3, and "
                "in a roomy budget up to 6 where steps take unevenly long.",
     .memory = "one batch slot each: batch × image_size² × 3 bytes"},

    {.name = "augment.decode", .value = at<&Config::augment, &Config::Augment::decode>,
     .choices = {"exact", "fast"},
     .meaning = "How pixels of training images are computed: `\"exact\"` as Pillow resizes them, `\"fast\"` with shorter "
                "weights, one level off here and there. Both decode a crop at least twice the output at half its size. "
                "Validation is always exact and whole."},
    {.name = "augment.scale", .value = at<&Config::augment, &Config::Augment::scale>, .limits = {0, 1, true},
     .unit = "share of the area", .meaning = "How much of the image a random crop covers."},
    {.name = "augment.ratio", .value = at<&Config::augment, &Config::Augment::ratio>, .limits = {0, 100, true},
     .unit = "width / height", .meaning = "Shape of a random crop before it is made square."},
    {.name = "augment.flip", .value = at<&Config::augment, &Config::Augment::flip>, .limits = {0, 1},
     .unit = "probability", .meaning = "Mirror left and right."},
    {.name = "augment.erase", .value = at<&Config::augment, &Config::Augment::erase>, .limits = {0, 1},
     .unit = "probability", .meaning = "Blank out a random rectangle."},
    {.name = "augment.policy", .value = at<&Config::augment, &Config::Augment::policy>,
     .choices = {"none", "trivial_wide"},
     .meaning = "Random colour or geometry change after the flip: `\"trivial_wide\"` is torchvision's "
                "TrivialAugmentWide.",
     .memory = "one image (image_size² × 3 bytes) more for each decode thread"},
    {.name = "augment.mixup", .value = at<&Config::augment, &Config::Augment::mixup>, .limits = {0, 100},
     .unit = "alpha of the Beta distribution",
     .meaning = "Blend each image and its label with another of its batch; 0 turns it off."},
    {.name = "augment.cutmix", .value = at<&Config::augment, &Config::Augment::cutmix>, .limits = {0, 100},
     .unit = "alpha of the Beta distribution",
     .meaning = "Paste a rectangle of another image of the batch, and of its label in proportion; 0 turns it "
                "off."},
    {.name = "augment.mix", .value = at<&Config::augment, &Config::Augment::mix>, .limits = {0, 1},
     .unit = "probability",
     .meaning = "Share of the batches that mixup or cutmix works on; the others stay as they are."},
    {.name = "augment.mix_switch", .value = at<&Config::augment, &Config::Augment::mix_switch>,
     .limits = {0, 1}, .unit = "probability",
     .meaning = "Where mixup and cutmix are both on, how often a mixed batch gets cutmix."},

    {.name = "model.arch", .value = at<&Config::model, &Config::Model::arch>,
     .choices = {"resnet18", "resnet34", "resnet50", "resnet101"}, .meaning = "The network.",
     .memory = "weights, gradients, momentum and activations, outside the budget"},
    {.name = "model.device", .value = at<&Config::model, &Config::Model::device>,
     .choices = {"auto", "cpu", "cuda"},
     .meaning = "Where it runs; `\"auto\"` takes CUDA if there is a device."},
    {.name = "model.precision", .value = at<&Config::model, &Config::Model::precision>,
     .choices = {"fp32", "tf32", "fp16", "bf16", "fp64"},
     .meaning = "Arithmetic of the forward and backward pass. fp64 is for checks on the CPU, and slow.",
     .memory = "fp16 and bf16 halve the activations; fp64 doubles them, weights and checkpoints"},
    {.name = "model.channels_last", .value = at<&Config::model, &Config::Model::channels_last>,
     .meaning = "Keep activations in channels-last order, which is faster on most devices."},
    {.name = "model.zero_init", .value = at<&Config::model, &Config::Model::zero_init>,
     .meaning = "Start the last batch norm of each block at zero, so that each block begins as a shortcut."},
    {.name = "model.compile", .value = at<&Config::model, &Config::Model::compile>, .choices = {"none", "graph"},
     .meaning = "`\"graph\"` records a whole step as a CUDA graph and replays it, which saves launches and fuses "
                "nothing. On one GPU; elsewhere it has no effect, and the run says so.",
     .memory = "the recorded step keeps its activations between steps"},
    {.name = "model.recompute", .value = at<&Config::model, &Config::Model::recompute>,
     .meaning = "Compute each block's activations a second time in the backward pass instead of keeping them: the "
                "same gradients, in about a third more time.",
     .memory = "activations: the inputs of the blocks, and one block's own"},
    {.name = "model.weights", .value = at<&Config::model, &Config::Model::weights>,
     .meaning = "Start from these weights: a checkpoint, or a `.safetensors` or `.pt` file with torchvision's "
                "names. A classifier for another number of classes starts anew."},
    {.name = "model.sync_bn", .value = at<&Config::model, &Config::Model::sync_bn>,
     .meaning = "Batch norms take their statistics over the batches of all ranks instead of each rank's own."},

    {.name = "train.epochs", .value = at<&Config::train, &Config::Train::epochs>, .limits = {1, 1e6},
     .unit = "epochs",
     .meaning = "Passes over the training images; each is followed by a validation."},
    {.name = "train.batch", .value = at<&Config::train, &Config::Train::batch>, .limits = {1, 65536},
     .unit = "images per device",
     .meaning = "Images that go through the network at once; the total batch is this times the number of ranks.",
     .memory = "each batch slot takes batch × image_size² × 3 bytes; activations grow with it"},
    {.name = "train.accumulate", .value = at<&Config::train, &Config::Train::accumulate>,
     .limits = {1, 65536}, .unit = "batches",
     .meaning = "Batches whose gradients are added up for one optimiser step; the total batch, which scales "
                "the learning rate, grows with it."},
    {.name = "train.seed", .value = at<&Config::train, &Config::Train::seed>, .limits = {0, none},
     .meaning = "Decides order, augmentation and initial weights; equal seeds give equal batches on any "
                "machine."},
    {.name = "train.max_steps", .value = at<&Config::train, &Config::Train::max_steps>, .limits = {0, none},
     .unit = "steps", .meaning = "Stop after so many optimiser steps; 0 sets no limit."},
    {.name = "train.threads", .value = at<&Config::train, &Config::Train::threads>, .local = true, .limits = {1, 1024},
     .unit = "threads", .meaning = "Threads for the network's own arithmetic on a CPU."},
    {.name = "train.label_smoothing", .value = at<&Config::train, &Config::Train::label_smoothing>,
     .limits = {0, 0.999},
     .unit = "share", .meaning = "Share of the target that is spread evenly over all classes."},

    {.name = "optim.kind", .value = at<&Config::optim, &Config::Optim::kind>, .choices = {"sgd"},
     .meaning = "Stochastic gradient descent with momentum.", .memory = "one more copy of the weights"},
    {.name = "optim.lr", .value = at<&Config::optim, &Config::Optim::lr>, .limits = {0, 1000, true},
     .meaning = "Peak learning rate for a total batch of `optim.base_batch`; it is scaled in proportion to "
                "the batch."},
    {.name = "optim.base_batch", .value = at<&Config::optim, &Config::Optim::base_batch>,
     .limits = {1, 1 << 20},
     .unit = "images", .meaning = "The total batch that `optim.lr` is meant for."},
    {.name = "optim.momentum", .value = at<&Config::optim, &Config::Optim::momentum>, .limits = {0, 0.9999},
     .meaning = "Momentum."},
    {.name = "optim.weight_decay", .value = at<&Config::optim, &Config::Optim::weight_decay>, .limits = {0, 1},
     .meaning = "L2 penalty on the weights."},
    {.name = "optim.nesterov", .value = at<&Config::optim, &Config::Optim::nesterov>,
     .meaning = "Nesterov momentum."},
    {.name = "optim.decay_all", .value = at<&Config::optim, &Config::Optim::decay_all>,
     .meaning = "Weight decay on the parameters of norms and on biases too; false leaves them out."},
    {.name = "optim.clip", .value = at<&Config::optim, &Config::Optim::clip>, .limits = {0, none},
     .unit = "norm of all gradients together",
     .meaning = "Scale larger gradients down to this norm; 0 turns it off."},
    {.name = "optim.ema", .value = at<&Config::optim, &Config::Optim::ema>, .limits = {0, 0.999999},
     .unit = "decay per step",
     .meaning = "Keep a moving average of the weights and validate it too; 0 turns it off.",
     .memory = "one more copy of the weights, and of the checkpoint's copy"},

    {.name = "schedule.kind", .value = at<&Config::schedule, &Config::Schedule::kind>,
     .choices = {"cosine", "constant"}, .meaning = "What the learning rate does after the warm-up."},
    {.name = "schedule.warmup_epochs", .value = at<&Config::schedule, &Config::Schedule::warmup_epochs>,
     .limits = {0, 1e6}, .unit = "epochs", .meaning = "Linear warm-up to the peak learning rate."},
    {.name = "schedule.warmup_start", .value = at<&Config::schedule, &Config::Schedule::warmup_start>,
     .limits = {0, 1}, .unit = "share of the peak", .meaning = "Where the warm-up starts."},
    {.name = "schedule.interval", .value = at<&Config::schedule, &Config::Schedule::interval>,
     .choices = {"epoch", "step"}, .meaning = "How often the learning rate changes."},

    {.name = "dist.timeout", .value = at<&Config::dist, &Config::Dist::timeout>, .limits = {0.1, 1e6},
     .unit = "seconds",
     .meaning = "How long a rank waits until all have found each other, as one limit for all of it, and for an "
                "exchange with them. A rank that only reads slowly must not be given up, so this is longer than "
                "`dist.heartbeat`."},
    {.name = "dist.heartbeat", .value = at<&Config::dist, &Config::Dist::heartbeat>, .limits = {0.1, 1e6},
     .unit = "seconds",
     .meaning = "A rank that gives no sign of life for so long (killed, frozen, cut off) is lost; the others "
                "then save and end."},

    {.name = "checkpoint.keep", .value = at<&Config::checkpoint, &Config::Checkpoint::keep>,
     .limits = {0, 10000},
     .unit = "files", .meaning = "How many of the best checkpoints are kept.",
     .memory = "one copy of weights and momentum in RAM while one is written"},
    {.name = "checkpoint.every_steps", .value = at<&Config::checkpoint, &Config::Checkpoint::every_steps>,
     .limits = {0, none}, .unit = "steps",
     .meaning = "Save also every so many steps; 0 saves at the ends of epochs only."},
    {.name = "checkpoint.every_minutes", .value = at<&Config::checkpoint, &Config::Checkpoint::every_minutes>,
     .limits = {0, none}, .unit = "minutes",
     .meaning = "Save also when so much time has passed since the last save; 0 turns it off."},
    {.name = "checkpoint.monitor", .value = at<&Config::checkpoint, &Config::Checkpoint::monitor>,
     .choices = {"val/acc1", "val/acc5", "val/loss", "val/ema_acc1", "val/ema_acc5", "val/ema_loss"},
     .meaning = "The figure that makes a checkpoint one of the best: highest accuracy or lowest loss."},

    {.name = "log.dir", .value = at<&Config::log, &Config::Log::dir>, .local = true,
     .meaning = "Each run gets a folder of its own in here."},
    {.name = "log.name", .value = at<&Config::log, &Config::Log::name>, .local = true,
     .meaning = "Name of the run's folder; when empty, it is made from the configuration's file name and "
                "the time."},
    {.name = "log.every", .value = at<&Config::log, &Config::Log::every>, .limits = {1, none}, .unit = "steps",
     .meaning = "Read figures back from the device and record them every so many steps; "
                "each time, the device waits for a moment."},
    {.name = "log.tensorboard", .value = at<&Config::log, &Config::Log::tensorboard>, .local = true,
     .meaning = "Write the metrics as TensorBoard events into the run's folder too."},
};
// clang-format on

}  // namespace

std::span<const Key> config_keys() { return keys; }
std::span<const Section> config_sections() { return sections; }

const Key* find_key(std::string_view name) {
  const auto found = std::ranges::find(keys, name, &Key::name);
  return found == keys.end() ? nullptr : &*found;
}

}  // namespace sluice
