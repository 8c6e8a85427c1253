#include "model/weights/state_dict.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

using namespace sluice;

namespace {

// Pieces of protocol 2, as Python's pickle writes them.
std::string word(const std::string& text) {
  return std::string("X") + static_cast<char>(text.size()) + std::string(3, '\0') + text;
}
std::string numbers(std::initializer_list<int> values) {
  std::string text = "(";
  for (const int value : values) text += std::string("K") + static_cast<char>(value);
  return text + "t";
}
std::string tensor(const std::string& type, int count, int offset, const std::string& shape,
                   const std::string& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + word("storage") + "ctorch\n" + type + "\n" + word("0") +
         word("cuda:0") + "K" + static_cast<char>(count) + "tQK" + static_cast<char>(offset) + shape +
         strides + "\x89}tR";
}
const std::string six = tensor("FloatStorage", 6, 0, numbers({2, 3}), numbers({3, 1}));

std::string pickled(const std::string& content) { return "\x80\x02" + content + "."; }
std::string dictionary(const std::string& name, const std::string& value) {
  return "}(" + word(name) + value + "u";
}

Result<std::vector<StridedTensor>> found(const std::string& pickle) {
  const auto read = read_pickle(std::as_bytes(std::span(pickle)));
  if (!read) return read.error();
  return find_tensors(*read->root);
}

std::string refusal(const std::string& content) {
  const auto tensors = found(pickled(content));
  return tensors ? "" : tensors.error().text();
}

Result<Snapshot> gathered(const std::string& content, std::size_t limit = 1000) {
  const auto tensors = found(pickled(content));
  if (!tensors) return tensors.error();
  return gather(
      *tensors,
      [](const std::string&, std::size_t bytes) -> Result<std::vector<std::byte>> {
        std::vector<std::byte> storage(bytes);
        for (std::size_t i = 0; i < bytes / 4; ++i) {
          const auto value = static_cast<float>(i);
          std::memcpy(storage.data() + 4 * i, &value, 4);
        }
        return storage;
      },
      limit);
}

std::vector<float> floats(const Snapshot& snapshot, const std::string& name) {
  const auto bytes = snapshot.bytes(*snapshot.find(name));
  std::vector<float> values(bytes.size() / 4);
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Whatever is made of it: the checks are those of the sanitizers, and that it comes back at all.
void change_byte(std::string pickle, std::size_t at, const std::vector<int>& values) {
  for (const int value : values) {
    pickle[at] = static_cast<char>(value);
    if (const auto tensors = found(pickle)) CHECK(tensors->size() <= 4);
  }
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Snapshot sample() {
  Snapshot snapshot;
  snapshot.add("conv.weight", "f32", {4, 3, 2, 2});
  snapshot.add("bn.num_batches_tracked", "i64", {});
  snapshot.add("half", "f16", {3});
  snapshot.add("empty", "f32", {0, 4});
  return snapshot;
}

}  // namespace

TEST_CASE("state_dict: what we pickle is found again") {
  const Snapshot written = sample();
  const auto tensors = found(pickle_state_dict(written));
  REQUIRE(tensors);
  REQUIRE(tensors->size() == written.tensors.size());
  for (std::size_t i = 0; i < tensors->size(); ++i) {
    const StridedTensor& tensor = (*tensors)[i];
    CHECK(tensor.name == written.tensors[i].name);
    CHECK(tensor.dtype == written.tensors[i].dtype);
    CHECK(tensor.shape == written.tensors[i].shape);
    CHECK(tensor.storage == std::to_string(i));
    CHECK(tensor.offset == 0);
  }
  CHECK((*tensors)[0].count == 48);
  CHECK((*tensors)[0].strides == std::vector<std::int64_t>{12, 4, 2, 1});
  CHECK((*tensors)[1].count == 1);
}

TEST_CASE("state_dict: strided views of a storage come out row-major") {
  const auto values = [](int count, int offset, const std::string& shape, const std::string& strides) {
    const auto weights = gathered(dictionary("t", tensor("FloatStorage", count, offset, shape, strides)));
    REQUIRE(weights);
    return floats(*weights, "t");
  };
  CHECK(values(6, 0, numbers({2, 3}), numbers({3, 1})) == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(values(6, 0, numbers({3, 2}), numbers({1, 3})) == std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(values(9, 2, numbers({3}), numbers({3})) == std::vector<float>{2, 5, 8});
  CHECK(values(9, 2, numbers({2, 2}), numbers({1, 1})) == std::vector<float>{2, 3, 3, 4});
  CHECK(values(1, 0, numbers({}), numbers({})) == std::vector<float>{0});
  CHECK(values(0, 0, numbers({0, 4}), numbers({4, 1})).empty());
}

TEST_CASE("state_dict: dictionaries within dictionaries, parameters and attributes are taken") {
  const std::string parameter = "ctorch._utils\n_rebuild_parameter\n(" + six + "\x88}tR";
  const std::string ordered = "ccollections\nOrderedDict\n)R(" + word("w") + parameter + "u}" +
                              word("_metadata") + "}sb";  // attributes, as state_dict() has them
  for (const std::string& content :
       {dictionary("w", six), ordered, dictionary("state_dict", ordered), dictionary("model", ordered),
        dictionary("model", dictionary("state_dict", ordered)),
        "}(" + word("args") + "cargparse\nNamespace\n)\x81}b" + word("model") + ordered + word("epoch") +
            "K\x07u"}) {
    const auto tensors = found(pickled(content));
    if (!tensors) FAIL(tensors.error().text());
    REQUIRE(tensors->size() == 1);
    CHECK((*tensors)[0].name == "w");
    CHECK((*tensors)[0].shape == std::vector<std::int64_t>{2, 3});
  }
}

TEST_CASE("state_dict: anything that is not plain weights is refused, and says why") {
  CHECK(has(refusal("ctorchvision.models.resnet\nResNet\n)\x81}b"),
            "holds a torchvision.models.resnet.ResNet"));
  CHECK(has(refusal("]"), "holds a list"));
  CHECK(has(refusal("}"), "no tensors"));
  CHECK(has(refusal(dictionary("lr", "K\x01")), "its entry lr is a number"));
  CHECK(has(refusal(dictionary("x", "cposix\nsystem\n" + word("true") + "\x85R")), "is a posix.system"));
  CHECK(has(refusal("}(K\x01" + six + "u"), "not all names"));
  CHECK(has(refusal(dictionary("q", tensor("QInt8Storage", 1, 0, numbers({}), numbers({})))), "type"));
  CHECK(has(refusal("]"), "save model.state_dict() alone"));
  // Views that reach out of their storage, or repeat it.
  for (const std::string& content :
       {tensor("FloatStorage", 6, 1, numbers({2, 3}), numbers({3, 1})),
        tensor("FloatStorage", 5, 0, numbers({2, 3}), numbers({3, 1})),
        tensor("FloatStorage", 6, 0, numbers({2, 3}), numbers({100, 1})),
        tensor("FloatStorage", 6, 0, numbers({7}), numbers({0})),
        tensor("FloatStorage", 6, 0, numbers({2, 3}), numbers({1})),
        tensor("FloatStorage", 6, 0, "(J\xff\xff\xff\xfft", numbers({1})),
        tensor("FloatStorage", 6, 0, "(\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7ft",
               "(\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7ft")})
    CHECK(has(refusal(dictionary("t", content)), "its tensor t has an impossible shape"));
}

TEST_CASE("state_dict: many names of one storage do not take memory without bound") {
  std::string content = "}(" + word("a") + six + "q\x01";
  for (int i = 0; i < 100; ++i) content += word("b" + std::to_string(i)) + "h\x01";
  CHECK(gathered(content + "u", 102 * 24));
  const auto refused = gathered(content + "u", 102 * 24 - 1);
  REQUIRE_FALSE(refused);
  CHECK(has(refused.error().text(), "more memory"));
}

TEST_CASE("pickle: values may contain themselves, and a small file cannot ask for much memory") {
  const std::string loop = pickled("}q\x01(" + word("model") + "h\x01u");
  CHECK_FALSE(found(loop));
  std::string bomb = "(";
  for (int i = 0; i < 2000; ++i) bomb += "N";
  bomb +=
      "tq\x01"
      "0ca\nb\nq\x02"
      "0";
  for (int i = 0; i < 1000; ++i) bomb += "h\x02h\x01R";
  CHECK(has(refusal(bomb), "more values"));
}

TEST_CASE("pickle: whatever an instruction leaves behind is counted") {
  const auto many = [](const std::string& start, const std::string& part) {
    std::string text = "\x80\x02" + start;
    text.reserve(text.size() + part.size() * 1'100'000);
    for (int i = 0; i < 1'100'000; ++i) text += part;
    text += '.';
    const auto read = read_pickle(std::as_bytes(std::span(text)));
    return read ? "" : read.error().text();
  };
  CHECK(has(many("N", "2"), "more values"));                 // the same value again
  CHECK(has(many("N", "("), "more values"));                 // marks
  CHECK(has(many("N", "\x94"), "more values"));              // kept under a new number each
  CHECK(has(many("Nq\x01", "h\x01"), "more values"));        // taken back
  CHECK(has(many("}q\x01", "h\x01h\x01s"), "more values"));  // entries
  CHECK(has(many("]q\x01",
                 "h\x01"
                 "a"),
            "more values"));
}

TEST_CASE("state_dict: a tensor has no more than 64 dimensions, whoever shares its shape") {
  const auto ones = [](std::size_t rank) { return "(K\x01" + std::string(rank - 1, '2') + "t"; };
  const auto of_rank = [&](std::size_t rank) { return tensor("FloatStorage", 1, 0, ones(rank), ones(rank)); };
  REQUIRE(gathered(dictionary("t", of_rank(64))));
  CHECK(has(refusal(dictionary("t", of_rank(65))), "its tensor t has an impossible shape"));
  // To copy as many values by strides of such a rank would take minutes.
  const std::string wide = tensor("FloatStorage", 100, 0, "(" + std::string("Kd") + ones(100'000).substr(1),
                                  "(K\x01" + std::string("K\x01") + std::string(99'999, '2') + "t");
  CHECK(has(refusal(dictionary("t", wide)), "impossible shape"));
  // One shape, made by repeating a value, for each of many names.
  std::string shared = "}(" + word("a") + of_rank(100'000) + "q\x01";
  for (int i = 0; i < 300; ++i) shared += word("b" + std::to_string(i)) + "h\x01";
  CHECK(has(refusal(shared + "u"), "impossible shape"));
}

TEST_CASE("state_dict: names are few, short and different") {
  const auto text = [](std::size_t size) {
    const auto length = static_cast<std::uint32_t>(size);
    return "X" + std::string(reinterpret_cast<const char*>(&length), 4) + std::string(size, 'n');
  };
  CHECK(found(pickled("}(" + text(4096) + six + "u")));
  const std::string long_name = refusal("}(" + text(4097) + six + "u");
  CHECK(has(long_name, "a name of 4097 bytes"));
  CHECK(long_name.size() < 1000);
  CHECK(refusal(dictionary("t", "c" + std::string(100'000, 'm') + "\nf\n)R")).size() < 1000);
  std::string key = six;  // the storage's
  key.replace(key.find(word("0")), word("0").size(), text(100'000));
  CHECK(has(refusal(dictionary("t", key)), "its tensor t"));
  CHECK(has(refusal("}(" + word("a") + six + word("b") + six + word("a") + six + "u"), "a more than once"));

  const auto names = [](int count) {
    std::string content = "}(" + word("a") + six + "q\x01";
    for (int i = 1; i < count; ++i) content += word(std::to_string(i)) + "h\x01";
    return content + "u";
  };
  CHECK(found(pickled(names(20'000))));
  CHECK(has(refusal(names(20'001)), "more than 20000 tensors"));
}

TEST_CASE("pickle: no changed byte and no cut brings it down") {
  const std::string sound = pickle_state_dict(sample());
  for (std::size_t at = 0; at < sound.size(); ++at) {
    change_byte(sound, at, {0x00, sound[at] ^ 0x01, sound[at] ^ 0x80, 0xff});
    if (found(sound.substr(0, at))) FAIL("a cut at " << at << " went unseen");
  }
  for (const std::string& text :
       {std::string(), std::string("."), std::string("\x80"), std::string("tR."), std::string("u."),
        std::string("Q."), std::string(1000, '('), std::string("h\x01."), std::string("X\xff\xff\xff\xffx."),
        std::string("cno line")})
    CHECK_FALSE(found(text));
}

TEST_SUITE("long") {
  TEST_CASE("pickle: no byte changed to any other brings it down") {
    const std::string sound = pickle_state_dict(sample());
    std::vector<int> all(256);
    std::iota(all.begin(), all.end(), 0);
    for (std::size_t at = 0; at < sound.size(); ++at) change_byte(sound, at, all);
  }
}
