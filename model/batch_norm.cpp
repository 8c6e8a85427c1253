#include "model/batch_norm.hpp"

#include <torch/csrc/autograd/custom_function.h>

namespace sluice {
namespace {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SLUICE_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SLUICE_WIDE
#endif

constexpr std::int64_t parts =
    64;  // of the rows, whatever the number of threads: the sums do not depend on it
constexpr std::int64_t block = 32;  // rows whose sums are kept in single precision

struct Rows {
  const float* images;
  const float* gradient;
  std::int64_t channels;
};

// Sums of the gradient, and of the gradient times the distance from the mean, over rows [begin, end).
SLUICE_WIDE void add_up(const Rows& rows, const float* mean, std::int64_t begin, std::int64_t end,
                        double* sums, float* partial) {
  const std::int64_t c = rows.channels;
  float* const plain = partial;
  float* const weighted = partial + c;
  for (std::int64_t first = begin; first < end; first += block) {
    std::fill(partial, partial + 2 * c, 0.0f);
    const std::int64_t last = std::min(first + block, end);
    for (std::int64_t row = first; row < last; ++row) {
      const float* x = rows.images + row * c;
      const float* g = rows.gradient + row * c;
      for (std::int64_t i = 0; i < c; ++i) {
        plain[i] += g[i];
        weighted[i] += g[i] * (x[i] - mean[i]);
      }
    }
    for (std::int64_t i = 0; i < 2 * c; ++i) sums[i] += static_cast<double>(partial[i]);
  }
}

struct Slopes {
  const float* scale;      // weight / deviation
  const float* average;    // of the gradient
  const float* mean;       // of the images
  const float* covariant;  // average of gradient x distance, over the variance
};

SLUICE_WIDE void differentiate(const Rows& rows, const Slopes& s, std::int64_t begin, std::int64_t end,
                               float* out) {
  const std::int64_t c = rows.channels;
  for (std::int64_t row = begin; row < end; ++row) {
    const float* x = rows.images + row * c;
    const float* g = rows.gradient + row * c;
    float* to = out + row * c;
    for (std::int64_t i = 0; i < c; ++i)
      to[i] = s.scale[i] * (g[i] - s.average[i] - (x[i] - s.mean[i]) * s.covariant[i]);
  }
}

// [2, channels], double.
at::Tensor gradient_sums(const Rows& rows, std::int64_t count, const at::Tensor& mean) {
  const std::int64_t c = rows.channels, each = (count + parts - 1) / parts;
  const at::Tensor all = at::zeros({parts, 2, c}, at::kDouble);
  double* const sums = all.data_ptr<double>();
  const float* const means = mean.const_data_ptr<float>();
  at::parallel_for(0, parts, 1, [&](std::int64_t from, std::int64_t to) {
    std::vector<float> partial(static_cast<std::size_t>(2 * c));
    for (std::int64_t part = from; part < to; ++part)
      add_up(rows, means, part * each, std::min((part + 1) * each, count), sums + part * 2 * c,
             partial.data());
  });
  return all.sum(0);
}

struct Norm : torch::autograd::Function<Norm> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& images,
                            const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& running_mean,
                            const at::Tensor& running_var, double momentum, double eps) {
    auto [out, mean, inverse] =
        at::native_batch_norm(images, weight, bias, running_mean, running_var, true, momentum, eps);
    context->save_for_backward({images, weight, mean, inverse});
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &images = saved[0], &weight = saved[1], &mean = saved[2], &inverse = saved[3];
    const at::Tensor gradient = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    const std::int64_t count = images.numel() / images.size(1);
    const Rows rows{images.const_data_ptr<float>(), gradient.const_data_ptr<float>(), images.size(1)};
    const at::Tensor sums = gradient_sums(rows, count, mean);
    const at::Tensor plain = sums[0], weighted = sums[1];

    const at::Tensor scale = weight * inverse;
    const at::Tensor average = (plain / count).to(at::kFloat);
    const at::Tensor covariant = (weighted / count * inverse * inverse).to(at::kFloat);
    at::Tensor out = at::empty_like(images);
    const Slopes slopes{scale.const_data_ptr<float>(), average.const_data_ptr<float>(),
                        mean.const_data_ptr<float>(), covariant.const_data_ptr<float>()};
    float* const to = out.data_ptr<float>();
    at::parallel_for(0, count, 256, [&](std::int64_t begin, std::int64_t end) {
      differentiate(rows, slopes, begin, end, to);
    });
    return {out, (weighted * inverse).to(at::kFloat), plain.to(at::kFloat), {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor normalise(torch::nn::BatchNorm2d& norm, const at::Tensor& images) {
  const bool ours = norm->is_training() && at::GradMode::is_enabled() && images.is_cpu() &&
                    images.scalar_type() == at::kFloat &&
                    images.is_contiguous(at::MemoryFormat::ChannelsLast);
  if (!ours) return norm->forward(images);
  norm->num_batches_tracked.add_(1);
  return Norm::apply(images, norm->weight, norm->bias, norm->running_mean, norm->running_var,
                     norm->options.momentum().value(), norm->options.eps());
}

}  // namespace sluice
