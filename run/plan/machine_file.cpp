#include "run/plan/machine_file.hpp"

#include <algorithm>
#include <array>

#include "base/nearest.hpp"
#include "base/printable.hpp"
#include "run/config/toml_text.hpp"
#include "run/config/units.hpp"

namespace sluice {
namespace {

constexpr std::array<std::string_view, 6> keys{"name", "cpus", "memory", "gpus", "gpu_memory", "gpu_name"};

// The values of one file; remembers the first thing that is wrong.
class Reader {
 public:
  Reader(const toml::table& table, std::string file) : table_(table), file_(std::move(file)) {
    for (const auto& [key, value] : table_) known(key.str());
  }

  std::string text(const char* key) {
    const auto value = table_[key].value<std::string>();
    if (!value || value->empty()) wrong(key, "must be a text", "");
    return value.value_or("");
  }
  unsigned count(const char* key, std::int64_t least) {
    const auto value = table_[key].value_exact<std::int64_t>();
    if (value && *value >= least && *value <= 1 << 20) return static_cast<unsigned>(*value);
    wrong(key, "must be a whole number from " + std::to_string(least), "");
    return 0;
  }
  std::size_t size(const char* key) {
    const auto value = table_[key].value<std::string>();
    if (!value) return wrong(key, "must be a size", "write " + std::string(key) + " = \"62GiB\""), 0;
    const Result<Size> size = parse_size(*value);
    if (!size) return wrong(key, size.error().cause, size.error().hint), 0;
    if (size->bytes == 0) wrong(key, "must be more than nothing", "");
    return size->bytes;
  }

  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  void known(std::string_view key) {
    if (std::ranges::find(keys, key) != keys.end()) return;
    const auto meant = nearest(key, keys);
    wrong(key, "is not a key of a machine",
          meant ? "did you mean " + std::string(*meant) + "?"
                : "the keys are name, cpus, memory, gpus, gpu_memory, gpu_name");
  }
  void wrong(std::string_view key, std::string cause, std::string hint) {
    if (!failure_)
      failure_ = Error{"machine", file_ + ": " + std::string(key), printable(cause), std::move(hint)};
  }

  const toml::table& table_;
  std::string file_;
  std::optional<Error> failure_;
};

}  // namespace

Result<PlanMachine> parse_machine(std::string_view text, const std::string& name) {
  toml::table table;
  try {
    table = parse_toml(text);
  } catch (const toml::parse_error& error) {
    return Error{"machine", name + ":" + std::to_string(error.source().begin.line),
                 printable(error.description()), ""};
  }
  Reader reader(table, name);
  PlanMachine machine;
  machine.name = reader.text("name");
  machine.host.cpus = reader.count("cpus", 1);
  machine.host.memory = reader.size("memory");
  machine.host.memory_limit = "the machine file";
  if (table.contains("gpus")) machine.gpus = reader.count("gpus", 0);
  if (machine.gpus > 0) {
    machine.gpu_memory = reader.size("gpu_memory");
    machine.gpu_name = reader.text("gpu_name");
  }
  if (reader.failure()) return *reader.failure();
  return machine;
}

Result<PlanMachine> load_machine(const std::filesystem::path& file) {
  const Result<std::string> text = read_toml_file(file);
  if (!text)
    return Error{"machine", file.string(), "cannot be read: " + text.error().cause,
                 "configs/machines holds some"};
  return parse_machine(*text, file.string());
}

}  // namespace sluice
