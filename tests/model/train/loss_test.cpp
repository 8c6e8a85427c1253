#include "model/train/loss.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace sluice;

namespace {

// sum over images of -(1 - s) log p[label] - s/k * sum log p
double plain_loss(const at::Tensor& logits, const at::Tensor& labels, double smoothing) {
  double sum = 0;
  for (std::int64_t n = 0; n < logits.size(0); ++n) {
    const std::int64_t label = labels[n].item<std::int64_t>(), classes = logits.size(1);
    if (label < 0) continue;
    double total = 0, all = 0;
    for (std::int64_t k = 0; k < classes; ++k) total += std::exp(logits[n][k].item<double>());
    for (std::int64_t k = 0; k < classes; ++k) all += logits[n][k].item<double>() - std::log(total);
    sum -= (1 - smoothing) * (logits[n][label].item<double>() - std::log(total)) + smoothing / classes * all;
  }
  return sum;
}

}  // namespace

TEST_CASE("loss: follows the plain formula and leaves masked images out") {
  torch::manual_seed(5);
  const at::Tensor logits = 3 * at::randn({6, 7});
  const at::Tensor labels = at::tensor({3, -1, 0, 6, -1, 2}, at::kLong);
  for (double smoothing : {0.0, 0.1, 0.5}) {
    const BatchSums sums = cross_entropy(logits, labels, smoothing);
    CHECK(sums.loss.item<double>() == doctest::Approx(plain_loss(logits, labels, smoothing)).epsilon(1e-5));
    CHECK(sums.mean().item<double>() ==
          doctest::Approx(plain_loss(logits, labels, smoothing) / 4).epsilon(1e-5));
    CHECK(sums.count.item<int>() == 4);
  }
}

TEST_CASE("loss: its gradient is that of torch's mean, and masked images get none") {
  torch::manual_seed(6);
  const at::Tensor a = at::randn({5, 4}).requires_grad_(), b = a.detach().clone().requires_grad_();
  const at::Tensor labels = at::tensor({1, -1, 0, 3, 2}, at::kLong);
  cross_entropy(a, labels, 0.1).mean().backward();
  at::cross_entropy_loss(b, labels, {}, at::Reduction::Mean, -1, 0.1).backward();
  CHECK(at::allclose(a.grad(), b.grad(), 1e-6, 1e-8));
  CHECK(a.grad()[1].abs().max().item<double>() == 0.0);
}

TEST_CASE("loss: a batch of masked images alone counts nothing and stays finite") {
  const at::Tensor logits = at::randn({3, 4}).requires_grad_();
  const BatchSums sums = cross_entropy(logits, at::full({3}, -1, at::kLong), 0.1);
  sums.mean().backward();
  CHECK(sums.mean().item<double>() == 0.0);
  CHECK(sums.count.item<int>() == 0);
  CHECK(sums.correct5.item<int>() == 0);
  CHECK(logits.grad().abs().max().item<double>() == 0.0);
}

TEST_CASE("loss: counts top-1 and top-5, and all classes where there are fewer than five") {
  const at::Tensor row = at::arange(8, at::kFloat).unsqueeze(0);  // class 7 scores highest, then 6, 5, ...
  const at::Tensor logits = row.expand({8, 8}).contiguous();
  const BatchSums each = cross_entropy(logits, at::arange(8, at::kLong), 0);
  CHECK(each.correct1.item<int>() == 1);
  CHECK(each.correct5.item<int>() == 5);
  const BatchSums masked = cross_entropy(logits, at::tensor({7, 7, -1, 6, 3, 2, -1, 0}, at::kLong), 0);
  CHECK(masked.correct1.item<int>() == 2);
  CHECK(masked.correct5.item<int>() == 4);
  const BatchSums few = cross_entropy(at::randn({4, 3}), at::tensor({0, 1, 2, -1}, at::kLong), 0);
  CHECK(few.correct5.item<int>() == 3);
}

TEST_CASE("loss: running sums add up and set batches aside that are not finite") {
  Running running(at::kCPU);
  const at::Tensor labels = at::tensor({0, 1}, at::kLong);
  const BatchSums good = cross_entropy(at::tensor({5.0f, 1.0f, 2.0f, 0.0f}).view({2, 2}), labels, 0);
  const BatchSums bad = cross_entropy(at::full({2, 2}, std::numeric_limits<float>::quiet_NaN()), labels, 0);
  running.add(good);
  running.add(bad);
  running.add(good);
  const double* values = running.values().const_data_ptr<double>();
  CHECK(values[0] == doctest::Approx(2 * good.loss.item<double>()));
  CHECK(values[1] == 4);
  CHECK(values[2] == 4);
  CHECK(values[3] == 2);
  CHECK(values[4] == 4);
  CHECK(values[5] == 3);
  CHECK(values[6] == 1);
  running.reset();
  CHECK(running.values().abs().sum().item<double>() == 0);
}

TEST_CASE("loss: a mixed batch answers for both labels by their weights, and is not judged") {
  torch::manual_seed(8);
  const at::Tensor logits = 2 * at::randn({4, 5});
  const at::Tensor labels = at::tensor({3, 1, 0, 4}, at::kLong),
                   partners = at::tensor({1, 3, 4, 0}, at::kLong);
  const Mix mix{Mix::Kind::cutmix, 0.7f, 0.3f, {}};
  const BatchSums sums = cross_entropy(logits, labels, 0.1, mix);
  // The same as torch's loss on the mixed one-hot targets.
  const at::Tensor target = 0.7 * at::one_hot(labels, 5) + 0.3 * at::one_hot(partners, 5);
  const double expected =
      at::cross_entropy_loss(logits, target.to(at::kFloat), {}, at::Reduction::Sum, -100, 0.1).item<double>();
  CHECK(sums.loss.item<double>() == doctest::Approx(expected).epsilon(1e-6));
  CHECK(sums.count.item<int>() == 4);
  CHECK(sums.judged.item<int>() == 0);
  Running running(at::kCPU);
  running.add(sums);
  running.add(cross_entropy(logits, labels, 0.1));
  CHECK(running.values()[1].item<int>() == 8);
  CHECK(running.values()[2].item<int>() == 4);
  CHECK(running.values()[5].item<int>() == 2);
}

TEST_CASE("loss: a mix that the device holds gives what the host's gives, and no mix gives the plain loss") {
  const at::Tensor logits = at::randn({6, 7}), labels = at::tensor({0, 3, -1, 6, 2, 2}, at::kLong);
  MixOnDevice on_device(at::kCPU);
  for (const Mix& mix : {Mix{}, Mix{Mix::Kind::mixup, 0.3f, 0.7f, {}}, Mix{}}) {
    on_device.set(mix);
    const BatchSums host = cross_entropy(logits, labels, 0.1, mix);
    const BatchSums device = cross_entropy(logits, labels, 0.1, on_device);
    CHECK(device.loss.item<double>() == doctest::Approx(host.loss.item<double>()).epsilon(1e-6));
    CHECK(device.count.item<int>() == host.count.item<int>());
    CHECK(device.judged.item<int>() == host.judged.item<int>());
    CHECK(device.correct1.item<int>() == host.correct1.item<int>());
    CHECK(device.correct5.item<int>() == host.correct5.item<int>());
  }
  const at::Tensor odd = labels.narrow(0, 0, 5);
  CHECK(cross_entropy(logits.narrow(0, 0, 5), odd, 0.0, on_device).loss.item<double>() ==
        doctest::Approx(cross_entropy(logits.narrow(0, 0, 5), odd, 0.0).loss.item<double>()));
}
