#include "model/device/device.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "model/device/upload_ring.hpp"
#include "pch/torch.hpp"

#include "tests/support/two_colours.hpp"

using namespace sluice;

namespace {

const Affine affine = make_affine({0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f});

struct Pixels {
  Pixels(std::size_t count, int size)
      : bytes(count * static_cast<std::size_t>(size * size) * 3 + 16), count(count), size(size) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
  }
  // By the definition: which bytes, in which shares.
  [[nodiscard]] double expected(std::size_t at, const Mix& mix) const {
    const std::size_t c = at % 3, pixel = at / 3, area = static_cast<std::size_t>(size * size);
    const std::size_t image = pixel / area, within = pixel % area;
    const std::size_t partner = (image % 2 == 0 ? image + 1 : image - 1) * area + within;
    double byte = bytes[at];
    if (mix.kind == Mix::Kind::mixup)
      byte = static_cast<double>(mix.own) * byte + static_cast<double>(mix.other) * bytes[3 * partner + c];
    const int x = static_cast<int>(within) % size, y = static_cast<int>(within) / size;
    if (mix.kind == Mix::Kind::cutmix && x >= mix.box.x && x < mix.box.x + mix.box.width && y >= mix.box.y &&
        y < mix.box.y + mix.box.height)
      byte = bytes[3 * partner + c];
    return byte * static_cast<double>(affine.scale[c]) + static_cast<double>(affine.shift[c]);
  }
  std::vector<std::uint8_t> bytes;
  std::size_t count;
  int size;
};

const Mix mixes[] = {{},
                     {Mix::Kind::mixup, 0.25f, 0.75f, {}},
                     {Mix::Kind::cutmix, 0, 0, {1, 2, 3, 2}},
                     {Mix::Kind::cutmix, 0, 0, {0, 0, 5, 5}}};

// Walks the kernel's body as the GPU's threads would, some beyond the end included.
template <class T>
void check_kernel(Output type, double precision) {
  for (const int size : {5, 8})  // with and without pixels left over after the last whole word
    for (const Mix& mix : mixes)
      for (const std::size_t count : {std::size_t{2}, std::size_t{6}}) {
        const Pixels pixels(count, size);
        const std::size_t values = 3 * count * static_cast<std::size_t>(size * size);
        std::vector<T> out(values + 12, T(-77.0f));
        const Conversion job{pixels.bytes.data(), out.data(), type, count, size, affine, mix};
        for (std::size_t thread = 0; thread < 256; ++thread) convert_part(job, out.data(), thread);
        for (std::size_t i = 0; i < values; ++i) {
          const double expected = pixels.expected(i, mix);
          REQUIRE(std::abs(static_cast<double>(static_cast<float>(out[i])) - expected) <=
                  precision * std::max(1.0, std::abs(expected)));
        }
        for (std::size_t i = values; i < out.size(); ++i) REQUIRE(static_cast<float>(out[i]) == -77.0f);
      }
}

}  // namespace

TEST_CASE(
    "device: the kernel's body follows the formula in each precision, mixed or not, to the last pixel") {
  check_kernel<float>(Output::fp32, 1e-6);
  check_kernel<c10::Half>(Output::fp16, 0x1p-11 + 1e-6);
  check_kernel<c10::BFloat16>(Output::bf16, 0x1p-8);
}

TEST_CASE("device: the CPU converts as the kernel does") {
  const auto device = open_device("cpu");
  REQUIRE(device);
  for (const Mix& mix : mixes) {
    const Pixels pixels(6, 9);
    const std::size_t values = 3 * 6 * 81;
    std::vector<float> out(values), kernel(values);
    Conversion job{pixels.bytes.data(), out.data(), Output::fp32, 6, 9, affine, mix};
    REQUIRE((*device)->convert(job));
    for (std::size_t thread = 0; thread < 200; ++thread) convert_part(job, kernel.data(), thread);
    for (std::size_t i = 0; i < values; ++i) REQUIRE(std::abs(out[i] - kernel[i]) < 1e-5f);
    job.type = Output::fp16;
    CHECK_FALSE((*device)->convert(job));
  }
}

TEST_CASE("device: there is one of each, shared by all who ask") {
  const auto device = open_device("cpu");
  REQUIRE(device);
  CHECK(open_device("cpu")->get() == device->get());
  CHECK_FALSE(open_device("tpu"));
}

TEST_CASE("device: on the CPU a batch passes through without a copy, and work is done at once") {
  const auto device = open_device("cpu");
  REQUIRE(device);
  CHECK((*device)->shares_host_memory());
  const Device::Memory memory = (*device)->memory();
  CHECK(memory.total > memory.free);
  CHECK_FALSE((*device)->capture([] { return Status(Done{}); }));
  const auto block = (*device)->allocate(100);
  REQUIRE(block);
  const std::vector<std::uint8_t> bytes(100, 7);
  REQUIRE((*device)->copy(block->get(), bytes.data(), bytes.size()));
  CHECK(static_cast<std::uint8_t*>(block->get())[99] == 7);
  bool called = false;
  REQUIRE((*device)->after_copies([&] { called = true; }));
  CHECK(called);
}

TEST_CASE("device: a step that cannot be recorded is run as usual, after one note") {
  StepOptions options = test::tiny();
  auto plain = Step::create(options);
  std::vector<std::string> notes;
  options.compile = "graph";
  options.note = [&](const std::string& note) { notes.push_back(note); };
  auto wished = Step::create(options);
  REQUIRE(plain);
  REQUIRE(wished);
  for (int i = 0; i < 2; ++i)
    CHECK(test::same_bits(test::train_once(*plain, i), test::train_once(*wished, i)));
  if (*resolve_device("auto") == "cpu") {
    REQUIRE(notes.size() == 1);
    CHECK(notes[0] == "model.compile = \"graph\" has no effect: it needs a GPU");
  }
}
