#include "model/weights/state_dict.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "base/printable.hpp"
#include "model/weights/limits.hpp"

namespace sluice {
namespace {

using Kind = PickleValue::Kind;

struct Type {
  std::string_view ours, theirs;
};
constexpr Type types[] = {{"f32", "FloatStorage"},  {"f16", "HalfStorage"}, {"bf16", "BFloat16Storage"},
                          {"f64", "DoubleStorage"}, {"i32", "IntStorage"},  {"i64", "LongStorage"}};

Error refusal(const std::string& cause, std::string hint = "save model.state_dict() alone") {
  return Error{"weights", "", printable(cause), std::move(hint)};
}

// Writing.

void put_raw(std::string& to, char code, auto value) {
  to += code;
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& to, std::string_view text) {
  put_raw(to, 'X', static_cast<std::uint32_t>(text.size()));
  to += text;
}
void put_number(std::string& to, std::int64_t value) {
  if (value >= INT32_MIN && value <= INT32_MAX) return put_raw(to, 'J', static_cast<std::int32_t>(value));
  to += '\x8a';
  put_raw(to, 8, value);
}
void put_numbers(std::string& to, const std::vector<std::int64_t>& values) {
  to += '(';
  for (const std::int64_t value : values) put_number(to, value);
  to += 't';
}

std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<std::int64_t>(shape[i], 1);
  return strides;
}

void put_tensor(std::string& to, const StoredTensor& tensor, std::size_t storage) {
  constexpr std::string_view empty_dictionary = "ccollections\nOrderedDict\n)R";
  to += "ctorch._utils\n_rebuild_tensor_v2\n((";
  put_text(to, "storage");
  to.append("ctorch\n").append(std::ranges::find(types, tensor.dtype, &Type::ours)->theirs).append("\n");
  put_text(to, std::to_string(storage));
  put_text(to, "cpu");
  put_number(to, static_cast<std::int64_t>(tensor.bytes / dtype_size(tensor.dtype)));
  to += "tQ";
  put_number(to, 0);
  put_numbers(to, tensor.shape);
  put_numbers(to, row_major(tensor.shape));
  to.append("\x89").append(empty_dictionary).append("tR");  // no gradient, no hooks
}

// Reading.

// Of a text of any length, what a message has room for.
std::string shortened(const std::string& text) {
  constexpr std::size_t most = 200;
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

std::string describe(const PickleValue& value) {
  switch (value.kind) {
    case Kind::none:
      return "None";
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
      return "a number";
    case Kind::text:
      return "a text";
    case Kind::sequence:
      return "a list";
    case Kind::dictionary:
      return "a dictionary";
    case Kind::global:
      return "the name " + shortened(value.text);
    case Kind::call:
      return "a " + shortened(value.text);
    case Kind::persistent:
      return "a storage";
  }
  return "";
}

bool is_dictionary(const PickleValue& value) {
  return value.kind == Kind::dictionary ||
         (value.kind == Kind::call && value.text == "collections.OrderedDict");
}

const PickleValue* entry(const PickleValue& dictionary, std::string_view name) {
  for (const auto& [key, value] : dictionary.entries)
    if (key->kind == Kind::text && key->text == name) return value;
  return nullptr;
}

const PickleValue& inner_dictionary(const PickleValue& root) {
  const PickleValue* found = &root;
  for (int depth = 0; depth < 2; ++depth)
    for (const char* name : {"state_dict", "model"})
      if (const PickleValue* inner = entry(*found, name); inner != nullptr && is_dictionary(*inner)) {
        found = inner;
        break;
      }
  return *found;
}

bool is_call(const PickleValue& value, std::string_view function, std::size_t arguments) {
  return value.kind == Kind::call && value.text == function && value.items.size() >= arguments;
}

bool take_numbers(const PickleValue& from, std::vector<std::int64_t>& into) {
  if (from.items.size() > most_dimensions) return false;  // before they are copied
  for (const PickleValue* item : from.items) {
    if (item->kind != Kind::integer || !item->text.empty() || item->number < 0) return false;
    into.push_back(item->number);
  }
  return from.kind == Kind::sequence;
}

// ('storage', torch.FloatStorage, key, location, count)
bool take_storage(const PickleValue& from, StridedTensor& into) {
  if (from.kind != Kind::persistent || from.items.size() < 5) return false;
  const auto& id = from.items;
  constexpr std::string_view module = "torch.";
  const auto type = std::ranges::find_if(types, [&](const Type& known) {
    return id[1]->text.starts_with(module) && id[1]->text.substr(module.size()) == known.theirs;
  });
  // Files from before the zip format may name a part of a storage here, which nothing writes any more.
  const bool whole = id.size() < 6 || id[5]->kind == Kind::none;
  if (id[0]->text != "storage" || type == std::end(types) || id[2]->kind != Kind::text ||
      id[2]->text.size() > longest_name || id[4]->kind != Kind::integer || !whole)
    return false;
  into.dtype = type->ours;
  into.storage = id[2]->text;
  into.count = id[4]->number;
  return true;
}

// Whether the view lies within its storage; it may not repeat values, so that it is no larger either.
bool fits(const StridedTensor& t) {
  std::int64_t last = t.offset, values = 1, step = 0;
  for (std::size_t i = 0; i < t.shape.size(); ++i) {
    if (__builtin_mul_overflow(values, t.shape[i], &values)) return false;
    if (t.shape[i] > 0 && (__builtin_mul_overflow(t.shape[i] - 1, t.strides[i], &step) ||
                           __builtin_add_overflow(last, step, &last)))
      return false;
  }
  std::int64_t bytes = 0;
  return !__builtin_mul_overflow(t.count, static_cast<std::int64_t>(dtype_size(t.dtype)), &bytes) &&
         (values == 0 || (last < t.count && values <= t.count));
}

Result<StridedTensor> take_tensor(const std::string& name, const PickleValue& from) {
  if (name.size() > longest_name)
    return refusal("holds a name of " + std::to_string(name.size()) + " bytes: " + shortened(name));
  const PickleValue* value = &from;
  for (const char* wrapper :
       {"torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state"})
    if (is_call(*value, wrapper, 1)) value = value->items[0];
  if (!is_call(*value, "torch._utils._rebuild_tensor_v2", 4) &&
      !is_call(*value, "torch._utils._rebuild_tensor", 4))
    return refusal("its entry " + name + " is " + describe(*value) + ", not a plain tensor");
  StridedTensor tensor;
  tensor.name = name;
  const auto& parts = value->items;
  if (!take_storage(*parts[0], tensor))
    return refusal("its tensor " + name + " is of a type that is not known here",
                   "save it as float32, float16 or bfloat16");
  tensor.offset = parts[1]->number;
  if (parts[1]->kind != Kind::integer || tensor.offset < 0 || tensor.count < 0 ||
      !take_numbers(*parts[2], tensor.shape) || !take_numbers(*parts[3], tensor.strides) ||
      tensor.shape.size() != tensor.strides.size() || !fits(tensor))
    return refusal("its tensor " + name + " has an impossible shape or place", "save it again");
  return tensor;
}

void copy_strided(const StridedTensor& t, std::span<const std::byte> storage, std::span<std::byte> to) {
  if (to.empty()) return;
  const std::size_t size = dtype_size(t.dtype);
  const std::byte* from = storage.data() + static_cast<std::size_t>(t.offset) * size;
  if (t.strides == row_major(t.shape)) {
    std::memcpy(to.data(), from, to.size());
    return;
  }
  std::vector<std::int64_t> index(t.shape.size(), 0);
  for (std::size_t done = 0; done < to.size(); done += size) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * t.strides[i];
    std::memcpy(to.data() + done, from + static_cast<std::size_t>(offset) * size, size);
    for (std::size_t i = index.size(); i-- > 0;) {
      if (++index[i] < t.shape[i]) break;
      index[i] = 0;
    }
  }
}

}  // namespace

std::string pickle_state_dict(const Snapshot& weights) {
  std::string text =
      "\x80\x02"
      "ccollections\nOrderedDict\n)R(";
  for (std::size_t i = 0; i < weights.tensors.size(); ++i) {
    put_text(text, weights.tensors[i].name);
    put_tensor(text, weights.tensors[i], i);
  }
  return text + "u.";
}

Result<std::vector<StridedTensor>> find_tensors(const PickleValue& root) {
  if (!is_dictionary(root)) return refusal("holds " + describe(root) + ", not a dictionary of tensors");
  const auto& entries = inner_dictionary(root).entries;
  if (entries.size() > most_tensors)
    return refusal("holds more than " + std::to_string(most_tensors) + " tensors");
  std::vector<StridedTensor> tensors;
  std::unordered_set<std::string_view> names;
  for (const auto& [key, value] : entries) {
    if (key->kind != Kind::text) return refusal("holds a dictionary whose keys are not all names");
    Result<StridedTensor> tensor = take_tensor(key->text, *value);
    if (!tensor) return tensor.error();
    if (!names.insert(key->text).second) return refusal("holds " + key->text + " more than once");
    tensors.push_back(std::move(*tensor));
  }
  if (tensors.empty()) return refusal("holds no tensors");
  return tensors;
}

Result<Snapshot> gather(const std::vector<StridedTensor>& tensors, const StorageReader& read,
                        std::size_t limit) {
  std::unordered_map<std::string, int> users;
  std::size_t total = 0, copied = 0;
  const auto add = [&](std::size_t& to, const std::optional<std::size_t>& bytes) {
    return bytes && !__builtin_add_overflow(to, *bytes, &to) && to <= limit;
  };
  for (const StridedTensor& tensor : tensors) {
    // A storage counts as well as its tensors: many may be open at once.
    const bool first = ++users[tensor.storage] == 1;
    const auto bytes = tensor_size(tensor.dtype, tensor.shape);
    if ((first && !add(total, tensor_size(tensor.dtype, {tensor.count}))) || !add(total, bytes))
      return refusal("its tensors would take far more memory than the file has bytes");
    copied += Snapshot::room_for(*bytes);
  }
  std::unordered_map<std::string, std::vector<std::byte>> open;  // until their last user is done
  Snapshot weights;
  weights.data.reserve(copied);
  for (const StridedTensor& tensor : tensors) {
    const std::size_t bytes = static_cast<std::size_t>(tensor.count) * dtype_size(tensor.dtype);
    auto storage = open.find(tensor.storage);
    if (storage == open.end()) {
      Result<std::vector<std::byte>> content = read(tensor.storage, bytes);
      if (!content) return content.error();
      storage = open.emplace(tensor.storage, std::move(*content)).first;
    }
    if (storage->second.size() != bytes)
      return refusal("the storage of its tensor " + tensor.name + " has " +
                         std::to_string(storage->second.size()) + " bytes, not " + std::to_string(bytes),
                     "save it again");
    copy_strided(tensor, storage->second, weights.add(tensor.name, tensor.dtype, tensor.shape));
    if (--users[tensor.storage] == 0) open.erase(storage);
  }
  return weights;
}

}  // namespace sluice
