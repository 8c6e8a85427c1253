// A folder with a small tree and a configuration that trains on it in seconds, and the program to run there.
#pragma once

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/folder.hpp"
#include "tests/support/jpegs.hpp"
#include "tests/support/process.hpp"
#include "tests/support/timeless.hpp"

namespace sluice::test {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Workshop {
  TemporaryFolder folder;

  explicit Workshop(const std::filesystem::path& root = temporary_root()) : folder(root) {
    int n = 0;
    for (const char* split : {"train", "val"})
      for (const char* name : {"ant", "bee"})
        for (int i = 0; i < 12; ++i) {
          JpegRecipe r;
          r.size = {60 + 3 * (n++ % 7), 48};
          r.components = name[0] == 'a' ? 1 : 3;
          write_file(folder.path() / split / name / (std::to_string(10 + i) + ".JPEG"), make_jpeg(r));
        }
    write_file(folder / "tiny.toml", R"([data]
train = "train"
val = "val"
image_size = 32
val_resize = 36
max_scratch = "8MiB"
max_file = "1MiB"
[budget]
ram = "64MiB"
[model]
arch = "resnet18"
device = "cpu"
[train]
epochs = 2
batch = 5
threads = 1
[optim]
lr = 0.1
[schedule]
warmup_epochs = 0
[log]
every = 1
)");
  }

  Ended run(std::vector<std::string> words, When when = {}) const {
    words.insert(words.begin(), std::getenv("SLUICE_BINARY"));
    return run_program(words, folder.path(), std::move(when));
  }
  Ended train(std::vector<std::string> more = {}, When when = {}) const {
    std::vector<std::string> words = {"train", "tiny.toml"};
    words.insert(words.end(), more.begin(), more.end());
    return run(std::move(words), std::move(when));
  }
  std::vector<nlohmann::json> metrics(const std::string& run) const {
    std::vector<nlohmann::json> lines;
    std::istringstream in(read_text(folder.path() / "runs" / run / "metrics.jsonl"));
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  std::filesystem::path runs() const { return folder / "runs"; }
};

}  // namespace sluice::test
