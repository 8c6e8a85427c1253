#include "model/weights/pickle.hpp"

#include <cstring>
#include <unordered_map>

namespace sluice {
namespace {

using Kind = PickleValue::Kind;

// Bounds the memory that a small file can ask for. A network with its optimiser has some thousands of values.
// Whatever an instruction leaves behind counts, since some make a pointer or a mark of a single byte.
constexpr std::size_t most_values = 1'000'000;

// The stack machine that a pickle is written for. After a failure it goes on with empty values until the
// next step, and says what the first failure was.
class Machine {
 public:
  explicit Machine(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<Pickle> run() {
    while (cause_.empty()) {
      const auto code = number<std::uint8_t>();
      if (cause_.empty() && code == '.') break;
      if (!literal(code) && !container(code) && !object(code) && !stack(code))
        fail("has an instruction that weights do not need (" + std::to_string(code) + ")");
      if (spent_ > most_values) fail("has more values than weights need");
    }
    made_.root = pop();
    made_.size = at_;
    if (!cause_.empty()) return Error{"weights", "", "its pickle " + cause_, ""};
    return std::move(made_);
  }

 private:
  void fail(const std::string& cause) {
    if (cause_.empty()) cause_ = cause;
  }

  std::span<const std::byte> take(std::uint64_t size) {
    if (size > bytes_.size() - at_) {
      fail("is cut off");
      return {};
    }
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }
  template <class T>
  T number() {
    T value{};
    if (const auto from = take(sizeof value); !from.empty()) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  std::string text(std::uint64_t size) {
    const auto from = take(size);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  std::string line() {
    const auto rest = bytes_.subspan(at_);
    std::size_t size = 0;
    while (size < rest.size() && rest[size] != std::byte{'\n'}) ++size;
    std::string found = text(size);
    take(1);
    return found;
  }

  PickleValue* make(Kind kind, std::int64_t number = 0, std::string text = {}) {
    spent_ += text.size() / 64;
    made_.values.push_back({kind, number, std::move(text), {}, {}});
    push(&made_.values.back());
    return stack_.back();
  }
  void push(PickleValue* value) {
    ++spent_;
    stack_.push_back(value);
  }
  void mark() {
    ++spent_;
    marks_.push_back(stack_.size());
  }
  void keep(std::uint32_t index) {
    ++spent_;
    memo_[index] = top();
  }
  PickleValue* pop() {
    if (stack_.size() > (marks_.empty() ? 0 : marks_.back())) {
      PickleValue* top = stack_.back();
      stack_.pop_back();
      return top;
    }
    fail("takes more than it has put");
    made_.values.emplace_back();
    return &made_.values.back();
  }
  std::vector<const PickleValue*> pop_marked() {
    if (marks_.empty()) {
      fail("takes more than it has put");
      return {};
    }
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<const PickleValue*> items(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return items;
  }
  std::vector<const PickleValue*> pop_last(int count) {
    std::vector<const PickleValue*> items(static_cast<std::size_t>(count));
    while (count > 0) items[static_cast<std::size_t>(--count)] = pop();
    return items;
  }
  PickleValue* top() {
    PickleValue* value = pop();
    stack_.push_back(value);
    return value;
  }

  void long_integer(std::size_t size) {
    const std::string raw = text(size);
    if (raw.size() > sizeof(std::int64_t)) {
      make(Kind::integer, 0, raw);
      return;
    }
    std::int64_t value = !raw.empty() && (raw.back() & 0x80) != 0 ? -1 : 0;
    std::memcpy(&value, raw.data(), raw.size());
    make(Kind::integer, value);
  }

  bool literal(std::uint8_t code) {
    switch (code) {
      case 'N':
        return make(Kind::none);
      case 0x88:
        return make(Kind::boolean, 1);
      case 0x89:
        return make(Kind::boolean, 0);
      case 'J':
        return make(Kind::integer, number<std::int32_t>());
      case 'K':
        return make(Kind::integer, number<std::uint8_t>());
      case 'M':
        return make(Kind::integer, number<std::uint16_t>());
      case 0x8a:
        return long_integer(number<std::uint8_t>()), true;
      case 'G':
        return take(8), make(Kind::real);
      case 'X':
      case 'T':
      case 'B':
        return make(Kind::text, 0, text(number<std::uint32_t>()));
      case 'U':
      case 'C':
      case 0x8c:
        return make(Kind::text, 0, text(number<std::uint8_t>()));
      case 0x8d:
        return make(Kind::text, 0, text(number<std::uint64_t>()));
      default:
        return false;
    }
  }

  void append(std::vector<const PickleValue*> items) {
    PickleValue* list = top();
    if (list->kind != Kind::sequence && list->kind != Kind::call) return fail("appends to what is no list");
    spent_ += items.size();
    if (list->kind == Kind::sequence) list->items.insert(list->items.end(), items.begin(), items.end());
  }
  void set(const std::vector<const PickleValue*>& items) {
    PickleValue* into = top();
    if ((into->kind != Kind::dictionary && into->kind != Kind::call) || items.size() % 2 != 0)
      return fail("sets an entry of what is no dictionary");
    spent_ += items.size();
    for (std::size_t i = 0; i < items.size(); i += 2) into->entries.emplace_back(items[i], items[i + 1]);
  }
  void sequence(std::vector<const PickleValue*> items) { make(Kind::sequence)->items = std::move(items); }

  bool container(std::uint8_t code) {
    switch (code) {
      case '(':
        return mark(), true;
      case ')':
      case ']':
      case 0x8f:
        return make(Kind::sequence);
      case 't':
        return sequence(pop_marked()), true;
      case 0x85:
      case 0x86:
      case 0x87:
        return sequence(pop_last(code - 0x84)), true;
      case 'a':
        return append(pop_last(1)), true;
      case 'e':
      case 0x90:
        return append(pop_marked()), true;
      case '}':
        return make(Kind::dictionary);
      case 's':
        return set(pop_last(2)), true;
      case 'u':
        return set(pop_marked()), true;
      default:
        return false;
    }
  }

  void call(const PickleValue* function, const PickleValue* arguments) {
    spent_ += arguments->items.size();
    make(Kind::call, 0, function->text)->items = arguments->items;
  }
  void global(const std::string& module, const std::string& name) {
    make(Kind::global, 0, module + "." + name);
  }

  bool object(std::uint8_t code) {
    switch (code) {
      case 'c': {
        const std::string module = line();
        return global(module, line()), true;
      }
      case 0x93: {
        const auto names = pop_last(2);
        return global(names[0]->text, names[1]->text), true;
      }
      case 'R':
      case 0x81: {
        const auto both = pop_last(2);
        return call(both[0], both[1]), true;
      }
      case 0x92: {
        const auto all = pop_last(3);
        return call(all[0], all[1]), true;
      }
      case 'b':
        return pop(), top();  // attributes, of which weights have none that matter
      case 'Q': {
        const PickleValue* id = pop();
        spent_ += id->items.size();
        return make(Kind::persistent)->items = id->items, true;
      }
      default:
        return false;
    }
  }

  void get(std::uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) return fail("refers to a value that it has not kept");
    push(found->second);
  }

  bool stack(std::uint8_t code) {
    switch (code) {
      case 0x80:
        return take(1), true;  // protocol
      case 0x95:
        return take(8), true;  // frame
      case 'q':
        return keep(number<std::uint8_t>()), true;
      case 'r':
        return keep(number<std::uint32_t>()), true;
      case 0x94:
        return keep(static_cast<std::uint32_t>(memo_.size())), true;
      case 'h':
        return get(number<std::uint8_t>()), true;
      case 'j':
        return get(number<std::uint32_t>()), true;
      case '0':
        return pop(), true;
      case '1':
        return pop_marked(), true;
      case '2':
        return push(top()), true;
      default:
        return false;
    }
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  Pickle made_;
  std::size_t spent_ = 0;  // values, text, and all that refers to them
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, PickleValue*> memo_;
  std::string cause_;
};

}  // namespace

Result<Pickle> read_pickle(std::span<const std::byte> bytes) { return Machine(bytes).run(); }

}  // namespace sluice
