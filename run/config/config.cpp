#include "run/config/config.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/printable.hpp"
#include "run/config/rules.hpp"
#include "run/config/suggest.hpp"
#include "run/config/toml_text.hpp"
#include "run/config/value.hpp"

namespace sluice {
namespace {

class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  void file(std::string_view text) {
    try {
      const toml::table root = parse_toml(text);
      for (const auto& [key, node] : root) section(key, node);
    } catch (const toml::parse_error& error) {
      report(origin(error.source()), "not TOML: " + std::string(error.description()), "");
      broken_ = true;
    }
    std::ranges::stable_sort(found_, {}, &Found::position);
    for (Found& found : found_) loaded_.errors.push_back(std::move(found.error));
    found_.clear();
  }

  void set(const std::string& word) {
    const std::string where = "--set " + word;
    const auto equals = word.find('=');
    if (equals == std::string::npos) return fail(where, "there is no \"=\"", "write --set section.key=value");
    const std::string name = trim(word.substr(0, equals)), text = trim(word.substr(equals + 1));
    const Key* const key = find_key(name);
    if (!key)
      return is_section(name) ? fail(where, name + " is a section", "name a key in it: " + keys_in(name))
                              : fail(where, "unknown key " + name, suggest_key(name));
    assign_text(*key, text, where);
  }

  void missing_file(const std::string& cause) {
    fail(name_, cause, "give the path of a TOML file, such as configs/quickstart.toml");
    broken_ = true;
  }

  Loaded finish() && {
    // A file that could not be read says nothing about what is missing from it.
    if (!broken_) {
      for (const Key& key : config_keys()) require(key);
      for (const Rule& rule : config_rules()) check(rule);
    }
    return std::move(loaded_);
  }

 private:
  struct Found {
    std::pair<std::uint32_t, std::uint32_t> position;
    Error error;
  };

  static std::string trim(const std::string& text) {
    const auto first = text.find_first_not_of(" \t");
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
  }

  [[nodiscard]] std::string text(const toml::source_region& where) const {
    return name_ + ":" + std::to_string(where.begin.line) + ":" + std::to_string(where.begin.column);
  }

  struct Origin {
    std::string text;
    std::pair<std::uint32_t, std::uint32_t> position;
  };
  [[nodiscard]] Origin origin(const toml::source_region& where) const {
    return {text(where), {where.begin.line, where.begin.column}};
  }

  void report(const Origin& where, const std::string& cause, const std::string& hint) {
    found_.push_back({where.position, {"config", where.text, printable(cause), printable(hint)}});
  }

  void fail(const std::string& subject, const std::string& cause, const std::string& hint) {
    loaded_.errors.push_back({"config", subject, printable(cause), printable(hint)});
  }

  void section(const toml::key& name, const toml::node& node) {
    const std::string text(name.str());
    const toml::table* const table = node.as_table();
    if (!is_section(text)) {
      if (!table) return report(origin(name.source()), "unknown key " + text, suggest_key(text));
      return report(origin(name.source()), "unknown section [" + text + "]", suggest_section(text));
    }
    if (!table)
      return report(origin(name.source()), text + " must be a section",
                    "write [" + text + "] on a line of its own");
    for (const auto& [key, value] : *table) entry(text + "." + std::string(key.str()), key, value);
  }

  void entry(const std::string& name, const toml::key& written, const toml::node& value) {
    const Key* const key = find_key(name);
    if (!key) return report(origin(written.source()), "unknown key " + name, suggest_key(name));
    origin_[key->name] = text(written.source());
    if (const auto misfit = assign(*key, value, loaded_.config)) {
      report(origin(value.source()), misfit->cause, misfit->hint);
      failed_.insert(key->name);
    }
  }

  // What is not TOML is a string; so is everything for a key that holds one, whatever it looks like.
  void assign_text(const Key& key, const std::string& text, const std::string& where) {
    Config scratch;
    const ValueRef held = key.value(scratch);
    const bool textual = std::holds_alternative<std::string*>(held) ||
                         std::holds_alternative<std::filesystem::path*>(held) ||
                         std::holds_alternative<Size*>(held) || std::holds_alternative<SizeOrAuto*>(held);
    const toml::value<std::string> raw(text);
    toml::table parsed;
    try {
      parsed = parse_toml("value = " + text);
    } catch (const toml::parse_error&) {
    }
    const toml::node* value = parsed.size() == 1 ? parsed.get("value") : nullptr;
    if (!value || (textual && !value->is_string())) value = &raw;
    origin_[key.name] = where;
    if (const auto misfit = assign(key, *value, loaded_.config)) {
      fail(where, misfit->cause, misfit->hint);
      failed_.insert(key.name);
    }
  }

  void require(const Key& key) {
    if (!key.required || failed_.contains(key.name)) return;
    if (!std::get<std::filesystem::path*>(key.value(loaded_.config))->empty()) return;
    const std::string name(key.name), leaf(key.leaf()), section(key.section());
    fail(origin_.contains(key.name) ? origin_[key.name] : name_, name + " is missing",
         "add " + leaf + " = \"path/to/" + leaf + "\" below [" + section + "]");
  }

  void check(const Rule& rule) {
    std::string subject = name_, values;
    for (auto key = rule.keys.rbegin(); key != rule.keys.rend(); ++key) {
      if (failed_.contains(*key)) return;
      if (origin_.contains(*key)) subject = origin_[*key];
      const std::string value = std::string(*key) + " = " + value_text(find_key(*key)->value(loaded_.config));
      values = values.empty() ? value : value + ", " + values;
    }
    if (rule.broken(loaded_.config))
      fail(subject, std::string(rule.cause) + " (" + values + ")", std::string(rule.hint));
  }

  std::string name_;
  Loaded loaded_;
  std::vector<Found> found_;                        // of the file, not yet in order
  std::map<std::string_view, std::string> origin_;  // where a key was last given
  std::set<std::string_view> failed_;
  bool broken_ = false;
};

}  // namespace

Loaded parse_config(std::string_view text, const std::string& name, std::span<const std::string> sets) {
  Reader reader(name);
  reader.file(text);
  for (const std::string& word : sets) reader.set(word);
  return std::move(reader).finish();
}

Loaded load_config(const std::filesystem::path& file, std::span<const std::string> sets) {
  const Result<std::string> text = read_toml_file(file);
  if (!text) {
    Reader reader(file.string());
    reader.missing_file("cannot be read: " + text.error().cause);
    for (const std::string& word : sets) reader.set(word);
    return std::move(reader).finish();
  }
  return parse_config(*text, file.string(), sets);
}

}  // namespace sluice
