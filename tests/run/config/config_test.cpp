#include "run/config/config.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "run/config/keys.hpp"
#include "run/config/rules.hpp"

using namespace sluice;

namespace {

const std::string minimal = "[data]\ntrain = \"t\"\nval = \"v\"\n";

Loaded parsed(const std::string& text, std::vector<std::string> sets = {}) {
  return parse_config(text, "x.toml", sets);
}

std::string errors(const Loaded& loaded) {
  std::string all;
  for (const Error& error : loaded.errors) all += error.text() + "\n";
  return all;
}

// The tests may run in the source tree or in a build folder inside it.
std::filesystem::path source_root() {
  for (auto folder = std::filesystem::current_path(); folder != folder.root_path();
       folder = folder.parent_path())
    if (std::filesystem::exists(folder / "configs/quickstart.toml")) return folder;
  return {};
}

}  // namespace

TEST_CASE("the defaults hold where nothing is said") {
  const Loaded loaded = parsed(minimal);
  CHECK(errors(loaded) == "");
  const Config& c = loaded.config;
  CHECK(c.data.train == "t");
  CHECK(c.data.image_size == 224);
  CHECK(c.data.max_file.bytes == 16u << 20);
  CHECK(c.data.max_pixels == 178'956'970);  // twice Pillow's MAX_IMAGE_PIXELS
  CHECK_FALSE(c.budget.ram);
  CHECK_FALSE(c.pipeline.prefetch);
  CHECK(c.augment.ratio == Range{0.75, 1.3333333333333333});
  CHECK(c.model.arch == "resnet50");
  CHECK(c.optim.weight_decay == 1e-4);
}

TEST_CASE("values of every type are read") {
  const Loaded loaded = parsed(minimal +
                               "synth = false\nexclude = [\"a/b.JPEG\", \"c/*\"]\nmax_file = 2048\n"
                               "[budget]\nram = \"1.5GiB\"\n[pipeline]\nprefetch = 3\nread_ahead = \"auto\"\n"
                               "[augment]\nscale = [0.25, 1]\nflip = 0\n[model]\nchannels_last = false\n");
  CHECK(errors(loaded) == "");
  const Config& c = loaded.config;
  CHECK(c.data.exclude == std::vector<std::string>{"a/b.JPEG", "c/*"});
  CHECK(c.data.max_file.bytes == 2048);
  CHECK(c.budget.ram->bytes == 3ull << 29);
  CHECK(c.pipeline.prefetch == 3);
  CHECK_FALSE(c.pipeline.read_ahead);
  CHECK(c.augment.scale == Range{0.25, 1.0});
  CHECK(c.augment.flip == 0.0);
  CHECK_FALSE(c.model.channels_last);
}

TEST_CASE("all errors come at once, in the order of the file, with place and hint") {
  const Loaded loaded = parsed(
      "[train]\nbatch = \"big\"\nepochs = 0\n[data]\nimagesize = 3\ntrain = \"t\"\n[dta]\n[model]\narch = "
      "\"resnet5\"\n",
      {"nonsense"});
  REQUIRE(loaded.errors.size() == 7);
  const auto is = [&](std::size_t i, const char* subject, const char* cause, const char* hint) {
    CHECK(loaded.errors[i].stage == "config");
    CHECK(loaded.errors[i].subject == subject);
    CHECK(loaded.errors[i].cause == cause);
    CHECK(loaded.errors[i].hint == hint);
  };
  is(0, "x.toml:2:9", "train.batch must be a whole number, is a string (\"big\")", "the default is 256");
  is(1, "x.toml:3:10", "train.epochs must be from 1 to 1000000, is 0", "");
  is(2, "x.toml:5:1", "unknown key data.imagesize", "did you mean data.image_size?");
  is(3, "x.toml:7:2", "unknown section [dta]", "did you mean [data]?");
  is(4, "x.toml:9:8",
     "model.arch is \"resnet5\", which is not one of \"resnet50\", \"resnet18\", \"resnet34\", \"resnet101\"",
     "did you mean \"resnet50\"?");
  is(5, "--set nonsense", "there is no \"=\"", "write --set section.key=value");
  is(6, "x.toml", "data.val is missing", "add val = \"path/to/val\" below [data]");
}

TEST_CASE("each wrong value is refused") {
  const std::pair<const char*, const char*> wrong[] = {
      {"[train]\nbatch = 1.5", "must be a whole number, is a number with a fraction"},
      {"[train]\nbatch = 65537", "must be from 1 to 65536, is 65537"},
      {"[augment]\nscale = [0.5]", "must be two numbers [low, high], is a list"},
      {"[augment]\nscale = [0.0, 1.0]", "must be above 0 and at most 1, is 0.0"},
      {"[augment]\nscale = [1.0, 0.5]", "starts at 1.0 and ends at 0.5"},
      {"[augment]\nflip = nan", "must be a finite number, is nan"},
      {"[optim]\nlr = 0", "must be above 0"},
      {"[budget]\nram = \"8G\"", "\"8G\" is not a size; write GiB (1024s) or GB (1000s)"},
      {"[budget]\nram = -5", "a size cannot be negative"},
      {"[budget]\nram = true", "must be a size such as \"8GiB\", or \"auto\", is true or false"},
      {"[pipeline]\nprefetch = \"some\"", "must be a whole number or \"auto\", is a string (\"some\")"},
      {"[model]\nchannels_last = 1", "must be true or false, is a whole number"},
      {"[data]\nexclude = [1]", "must be a list of strings, is a list"},
      {"[data]\ntrain = 1979-05-27", "must be a path (a string), is a date or time"},
      {"epochs = 3", "unknown key epochs; did you mean train.epochs?"},
      {"train = 3", "train must be a section"},
      {"[[train]]\nbatch = 3", "train must be a section"},
      {"[train]\nbatch = ", "not TOML: "},
      {"[train]\nbatch = 1\nbatch = 2", "not TOML: "},
  };
  for (const auto& [text, message] : wrong) {
    CAPTURE(text);
    const std::string all = errors(parsed(text));
    CHECK_MESSAGE(all.find(message) != std::string::npos, all);
  }
}

TEST_CASE("a file with a syntax error is not blamed for what is missing in it") {
  const Loaded loaded = parsed("[train\n");
  REQUIRE(loaded.errors.size() == 1);
  CHECK(loaded.errors[0].subject == "x.toml:1:7");
}

TEST_CASE("overrides are TOML values, or plain strings where the key holds one") {
  const Loaded loaded =
      parsed(minimal, {"train.batch=8", "train.batch = 16", "budget.ram=4GiB", "data.max_file=4096",
                       "log.name=12", "model.arch=resnet18", "data.train=\"q=t\"", "data.val=a=b",
                       "augment.scale=[0.5, 1.0]", "pipeline.prefetch=auto", "optim.nesterov=true"});
  CHECK(errors(loaded) == "");
  const Config& c = loaded.config;
  CHECK(c.train.batch == 16);
  CHECK(c.budget.ram->bytes == 4ull << 30);
  CHECK(c.data.max_file.bytes == 4096);
  CHECK(c.log.name == "12");
  CHECK(c.model.arch == "resnet18");
  CHECK(c.data.train == "q=t");
  CHECK(c.data.val == "a=b");
  CHECK(c.augment.scale == Range{0.5, 1.0});
  CHECK(c.optim.nesterov);
}

TEST_CASE("wrong overrides are named as they were written") {
  const Loaded loaded = parsed(minimal, {"data.x=1", "train.batch=lots", "train.batch=1\nseed=2", "data=3",
                                         "schedule.warmup_epochs=500"});
  REQUIRE(loaded.errors.size() == 5);
  CHECK(loaded.errors[0].text().starts_with(
      "config: --set data.x=1: unknown key data.x; [data] has train, val"));
  CHECK(loaded.errors[1].text().starts_with(
      "config: --set train.batch=lots: train.batch must be a whole number"));
  CHECK(loaded.errors[2].cause.starts_with("train.batch must be a whole number"));
  CHECK(loaded.errors[3].cause == "data is a section");
  CHECK(loaded.errors[4].subject == "--set schedule.warmup_epochs=500");
  CHECK(loaded.config.train.seed == 42);
}

TEST_CASE("values that make no sense together are refused at the key to blame") {
  const Loaded loaded =
      parsed(minimal + "val_resize = 64\n[schedule]\nwarmup_epochs = 7\n[train]\nepochs = 3\n");
  REQUIRE(loaded.errors.size() == 2);
  CHECK(loaded.errors[0].subject == "x.toml:4:1");
  CHECK(loaded.errors[0].cause.ends_with("(data.val_resize = 64, data.image_size = 224)"));
  CHECK(loaded.errors[1].subject == "x.toml:6:1");

  CHECK(errors(parsed(minimal, {"optim.nesterov=true", "optim.momentum=0"})).find("needs a momentum") !=
        std::string::npos);
  CHECK(errors(parsed(minimal, {"data.synth=true"})).find("named differently") != std::string::npos);
  CHECK(errors(parsed(minimal, {"data.synth=true", "data.train=d/train", "data.val=d/val"})) == "");
  CHECK(errors(parsed(minimal, {"log.name=a/b"})).find("not the name of a folder") != std::string::npos);
  // A value that is wrong in itself is not compared.
  CHECK(parsed(minimal + "val_resize = \"x\"\nimage_size = 4000\n").errors.size() == 1);
}

TEST_CASE("a file that is not there, or is a folder, is an error that names it") {
  const Loaded none = load_config("no/such.toml");
  REQUIRE(none.errors.size() == 1);
  CHECK(
      none.errors[0].text().starts_with("config: no/such.toml: cannot be read: No such file or directory; "));
  CHECK(load_config(".").errors.at(0).cause == "cannot be read: is a folder, not a file");
  CHECK(load_config("no/such.toml", std::vector<std::string>{"train.x=1"}).errors.size() == 2);
}

TEST_CASE("what is printed reads back equal, also when nothing is as it was") {
  Config config;
  for (const Key& key : config_keys()) {
    const ValueRef value = key.value(config);
    if (auto* v = std::get_if<double*>(&value)) **v = 0.1 + 0.2;
    if (auto* v = std::get_if<bool*>(&value)) **v = false;
    if (auto* v = std::get_if<std::int64_t*>(&value)) **v = 78;
    if (auto* v = std::get_if<Count*>(&value)) **v = 5;
    if (auto* v = std::get_if<Size*>(&value)) **v = Size{(3u << 20) + 1};
    if (auto* v = std::get_if<SizeOrAuto*>(&value)) **v = Size{3u << 29};
    if (auto* v = std::get_if<Range*>(&value)) **v = {1e-7, 1.0 / 3};
    if (auto* v = std::get_if<std::filesystem::path*>(&value)) **v = "a \"b\"\\c\n\x7f ü";
    if (auto* v = std::get_if<std::vector<std::string>*>(&value)) **v = {"x", "", "y, z"};
    if (auto* v = std::get_if<std::string*>(&value); v && key.choices.size() > 1) **v = key.choices.back();
  }
  config.log.name = "tab\there";
  config.dist.timeout = 2 * config.dist.heartbeat;
  const std::string text = to_toml(config);
  Loaded back = parsed(text);
  CHECK(errors(back) == "");
  CHECK(to_toml(back.config) == text);
  CHECK(back.config.data.train == config.data.train);
  CHECK(back.config.data.max_bad == 0.1 + 0.2);
  CHECK(back.config.data.max_file == config.data.max_file);
}

TEST_CASE("the table is sound: no key twice, each with a meaning, a section and a default that is allowed") {
  std::set<std::string_view> names, sections;
  for (const Section& section : config_sections()) sections.insert(section.name);
  for (const Key& key : config_keys()) {
    CAPTURE(key.name);
    CHECK(names.insert(key.name).second);
    CHECK(sections.contains(key.section()));
    CHECK(key.meaning.ends_with("."));
  }
  // Reading the printed defaults checks each against its own limits.
  Config config;
  config.data.train = "t", config.data.val = "v";
  CHECK(errors(parsed(to_toml(config))) == "");
  for (const Rule& rule : config_rules())
    for (const std::string_view key : rule.keys) CHECK_MESSAGE(find_key(key), key);
}

TEST_CASE("docs/configuration.md is the reference, and the presets are sound") {
  const auto root = source_root();
  REQUIRE_MESSAGE(!root.empty(), "run the tests inside the source tree");
  std::ifstream in(root / "docs/configuration.md");
  std::ostringstream text;
  text << in.rdbuf();
  CHECK_MESSAGE((text.str() == reference()),
                "docs/configuration.md is not what reference() gives: write it anew");
  for (const auto& entry : std::filesystem::directory_iterator(root / "configs")) {
    if (entry.path().extension() != ".toml") continue;
    CAPTURE(entry.path());
    CHECK(errors(load_config(entry.path())) == "");
  }
}
