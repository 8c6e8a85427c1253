#include "model/network/sync_norm.hpp"

#include <doctest/doctest.h>

#include <barrier>
#include <thread>

#include "model/network/batch_norm.hpp"

using namespace sluice;

namespace {

// As many threads as ranks; the sum comes once all have brought their part.
class Meeting {
 public:
  explicit Meeting(int ranks) : parts_(static_cast<std::size_t>(ranks)), all_(ranks) {}
  SumOverRanks of(std::size_t rank) {
    return [this, rank](at::Tensor& values) {
      ++calls[rank];
      parts_[rank] = values.clone();
      all_.arrive_and_wait();
      values.zero_();
      for (const at::Tensor& part : parts_) values += part;
      all_.arrive_and_wait();
    };
  }
  std::array<int, 4> calls{};

 private:
  std::vector<at::Tensor> parts_;
  std::barrier<> all_;
};

struct Passed {
  at::Tensor out, images, weight, bias, mean, var;
};

Norm make_norm(std::int64_t channels, at::ScalarType type) {
  Norm norm(channels);
  const at::NoGradGuard no_grad;
  norm->weight.copy_(at::linspace(0.5, 2, channels));
  norm->bias.copy_(at::linspace(-1, 1, channels));
  for (at::Tensor* t : {&norm->weight, &norm->bias, &norm->running_mean, &norm->running_var})
    t->set_data(t->to(type));
  return norm;
}

Passed pass(Norm& norm, const at::Tensor& images, const at::Tensor& slope) {
  at::Tensor x = images.detach().clone().requires_grad_();
  const at::Tensor out = normalise_relu(norm, x);
  out.backward(slope);
  return {out.detach(),      x.grad(),           norm->weight.grad(),
          norm->bias.grad(), norm->running_mean, norm->running_var};
}

double error(const at::Tensor& ours, const at::Tensor& theirs) {
  return ((ours - theirs).norm() / theirs.norm()).item<double>();
}

// The whole batch on one rank against its parts on several.
void compare(at::ScalarType type, at::MemoryFormat memory, int ranks, double tolerance) {
  torch::manual_seed(3);
  const at::Tensor images = (3 * at::randn({8, 6, 5, 7}, type) + 5).contiguous(memory);
  const at::Tensor slope = at::randn(images.sizes(), type).contiguous(memory);
  Norm whole = make_norm(6, type);
  const Passed expected = pass(whole, images, slope);

  Meeting meeting(ranks);
  std::vector<Passed> parts(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < parts.size(); ++rank)
    threads.emplace_back([&, rank] {
      Norm norm = make_norm(6, type);
      torch::nn::Sequential network(norm);
      synchronise_norms(*network, meeting.of(rank));
      const auto part = [&](const at::Tensor& t) { return t.chunk(ranks)[rank].contiguous(memory); };
      parts[rank] = pass(norm, part(images), part(slope));
      CHECK(norm->num_batches_tracked.item<int>() == 1);
    });
  for (std::thread& thread : threads) thread.join();

  const auto all = [&](at::Tensor Passed::*member) {
    std::vector<at::Tensor> tensors;
    for (const Passed& part : parts) tensors.push_back(part.*member);
    return tensors;
  };
  CHECK(error(at::cat(all(&Passed::out)), expected.out) < tolerance);
  CHECK(error(at::cat(all(&Passed::images)), expected.images) < tolerance);
  CHECK(error(at::stack(all(&Passed::weight)).sum(0), expected.weight) < tolerance);
  CHECK(error(at::stack(all(&Passed::bias)).sum(0), expected.bias) < tolerance);
  for (const Passed& part : parts) {
    CHECK(error(part.mean, expected.mean) < tolerance);
    CHECK(error(part.var, expected.var) < tolerance);
    CHECK(part.var.equal(parts[0].var));
    CHECK(part.out.suggest_memory_format() == memory);
    CHECK(part.images.suggest_memory_format() == memory);
  }
  for (int rank = 0; rank < ranks; ++rank) CHECK(meeting.calls[static_cast<std::size_t>(rank)] == 2);
}

}  // namespace

TEST_CASE("sync norm: parts of a batch on several ranks give what the whole gives on one") {
  compare(at::kDouble, at::MemoryFormat::ChannelsLast, 2, 1e-13);
  compare(at::kDouble, at::MemoryFormat::Contiguous, 4, 1e-13);
  compare(at::kFloat, at::MemoryFormat::ChannelsLast, 4, 2e-6);
}

TEST_CASE("sync norm: evaluation asks nobody, and without a sum it is the plain norm") {
  Norm norm = make_norm(4, at::kFloat);
  const at::Tensor images = at::randn({2, 4, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  torch::nn::BatchNorm2d plain(4);
  {
    const at::NoGradGuard no_grad;
    plain->weight.copy_(norm->weight);
    plain->bias.copy_(norm->bias);
  }
  CHECK(normalise(norm, images).equal(normalise(plain, images)));
  torch::nn::Sequential network(norm);
  synchronise_norms(*network, [](at::Tensor&) { FAIL("asked"); });
  network->eval();
  plain->eval();
  CHECK(normalise(norm, images).equal(normalise(plain, images)));
  CHECK(normalise_add_relu(norm, images, images).equal(normalise_add_relu(plain, images, images)));
}
