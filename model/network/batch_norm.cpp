#include "model/network/batch_norm.hpp"

#include <torch/csrc/autograd/custom_function.h>

#include "model/network/norm_kernels.hpp"
#include "model/network/recompute.hpp"

namespace sluice {
namespace {

constexpr std::int64_t parts =
    64;  // of the rows, whatever the number of threads: the sums do not depend on it

// Adds up over all rows, in parts: [2, channels], double.
template <class AddUp>
at::Tensor sums_of(Rows rows, std::int64_t count, const AddUp& add_up) {
  const std::int64_t c = rows.channels, each = (count + parts - 1) / parts;
  const at::Tensor all = at::zeros({parts, 2, c}, at::kDouble);
  double* const sums = all.data_ptr<double>();
  at::parallel_for(0, parts, 1, [&](std::int64_t from, std::int64_t to) {
    std::vector<float> partial(static_cast<std::size_t>(2 * c));
    for (std::int64_t part = from; part < to; ++part) {
      Rows mine = rows;
      mine.begin = std::min(part * each, count);
      mine.end = std::min(mine.begin + each, count);
      add_up(mine, sums + part * 2 * c, partial.data());
    }
  });
  return all.sum(0);
}

template <class Body>
void over_rows(Rows rows, std::int64_t count, const Body& body) {
  at::parallel_for(0, count, 256, [&](std::int64_t begin, std::int64_t end) {
    Rows mine = rows;
    mine.begin = begin, mine.end = end;
    body(mine);
  });
}

struct Statistics {
  at::Tensor mean, inverse;
};

// Of one pass over the images, around their first row. Updates the running ones, if they are given.
Statistics measure(const Rows& rows, std::int64_t count, const std::optional<at::Tensor>& running_mean,
                   const std::optional<at::Tensor>& running_var, double momentum, double eps) {
  const at::Tensor sums = sums_of(rows, count, [&](const Rows& mine, double* to, float* partial) {
    add_moments(mine, rows.images, to, partial);
  });
  const at::Tensor pivot =
      at::from_blob(const_cast<float*>(rows.images), {rows.channels}, at::kFloat).to(at::kDouble);
  const auto n = static_cast<double>(count);
  const at::Tensor off = sums[0] / n, mean = pivot + off;
  const at::Tensor squares = (sums[1] - sums[0] * off).clamp_min(0);
  if (running_mean) {
    running_mean->mul_(1 - momentum).add_(mean, momentum);
    running_var->mul_(1 - momentum).add_(squares / (n - 1), momentum);
  }
  return {mean.to(at::kFloat), (squares / n + eps).rsqrt().to(at::kFloat)};
}

enum class After { nothing, relu, sum_and_relu };

struct NormFunction : torch::autograd::Function<NormFunction> {
  // `other` is added before the relu, where there is one.
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& images,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const std::optional<at::Tensor>& other,
                            const std::optional<at::Tensor>& running_mean,
                            const std::optional<at::Tensor>& running_var, double momentum, double eps,
                            bool relu) {
    const After after = other ? After::sum_and_relu : relu ? After::relu : After::nothing;
    context->saved_data["after"] = static_cast<std::int64_t>(after);
    if (after == After::nothing) {
      auto [out, mean, inverse] =
          at::native_batch_norm(images, weight, bias, running_mean, running_var, true, momentum, eps);
      context->save_for_backward({images, weight, mean, inverse});
      return out;
    }
    const std::int64_t count = images.numel() / images.size(1);
    const Rows rows{images.const_data_ptr<float>(), nullptr, images.size(1)};
    const Statistics s = measure(rows, count, running_mean, running_var, momentum, eps);
    const at::Tensor scale = weight * s.inverse, shift = bias - s.mean * scale;
    const Line line{scale.const_data_ptr<float>(), shift.const_data_ptr<float>()};
    at::Tensor out = at::empty_like(images);
    float* const to = out.data_ptr<float>();
    const float* const added = after == After::sum_and_relu ? other->const_data_ptr<float>() : nullptr;
    over_rows(rows, count, [&](const Rows& mine) {
      added ? normalise_rows(mine, line, added, to) : normalise_rows(mine, line, to);
    });
    context->save_for_backward({images, weight, s.mean, s.inverse, after == After::relu ? shift : out});
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto after = static_cast<After>(context->saved_data["after"].toInt());
    const at::Tensor &images = saved[0], &weight = saved[1], &mean = saved[2], &inverse = saved[3];
    at::Tensor gradient = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor scale = weight * inverse;
    const std::int64_t count = images.numel() / images.size(1);
    Rows rows{images.const_data_ptr<float>(), gradient.const_data_ptr<float>(), images.size(1)};

    Relu relu;
    std::optional<Line> line;
    at::Tensor passed;
    if (after == After::relu) {
      line = Line{scale.const_data_ptr<float>(), saved[4].const_data_ptr<float>()};
      relu.line = &*line;
    }
    if (after == After::sum_and_relu) {
      passed = at::empty_like(images);
      relu.output = saved[4].const_data_ptr<float>();
      relu.passed = passed.data_ptr<float>();
    }
    const at::Tensor sums = sums_of(rows, count, [&](const Rows& mine, double* to, float* partial) {
      add_gradients(mine, mean.const_data_ptr<float>(), relu, to, partial);
    });
    if (passed.defined()) rows.gradient = passed.const_data_ptr<float>();

    const at::Tensor plain = sums[0], weighted = sums[1];
    const at::Tensor average = (plain / count).to(at::kFloat);
    const at::Tensor covariant = (weighted / count * inverse * inverse).to(at::kFloat);
    const Slopes slopes{scale.const_data_ptr<float>(), average.const_data_ptr<float>(),
                        mean.const_data_ptr<float>(), covariant.const_data_ptr<float>()};
    at::Tensor out = at::empty_like(images);
    float* const to = out.data_ptr<float>();
    over_rows(rows, count, [&](const Rows& mine) { differentiate_rows(mine, slopes, relu.line, to); });
    return {out, (weighted * inverse).to(at::kFloat), plain.to(at::kFloat), passed, {}, {}, {}, {}, {}};
  }
};

bool is_ours(const torch::nn::BatchNorm2d& norm, const at::Tensor& images) {
  return norm->is_training() && images.is_cpu() && images.scalar_type() == at::kFloat &&
         images.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         images.numel() > images.size(1);  // of one value there is no variance: torch says so
}

// What is not there must be no tensor at all: autograd refuses undefined ones.
at::Tensor apply(torch::nn::BatchNorm2d& norm, const at::Tensor& images,
                 const std::optional<at::Tensor>& other, bool relu) {
  std::optional<at::Tensor> mean, var;
  if (!recomputing()) {
    norm->num_batches_tracked.add_(1);
    mean = norm->running_mean, var = norm->running_var;
  }
  return NormFunction::apply(images, norm->weight, norm->bias, other, mean, var,
                             norm->options.momentum().value(), norm->options.eps(), relu);
}

// Batches are counted in their first run only.
at::Tensor torchs(torch::nn::BatchNorm2d& norm, const at::Tensor& images) {
  if (!norm->is_training() || !recomputing()) return norm->forward(images);
  return at::batch_norm(images, norm->weight, norm->bias, {}, {}, /*training=*/true,
                        norm->options.momentum().value(), norm->options.eps(),
                        at::globalContext().userEnabledCuDNN());
}

}  // namespace

at::Tensor normalise(torch::nn::BatchNorm2d& norm, const at::Tensor& images) {
  return is_ours(norm, images) ? apply(norm, images, {}, false) : torchs(norm, images);
}

at::Tensor normalise_relu(torch::nn::BatchNorm2d& norm, const at::Tensor& images) {
  return is_ours(norm, images) ? apply(norm, images, {}, true) : normalise(norm, images).relu_();
}

at::Tensor normalise_add_relu(torch::nn::BatchNorm2d& norm, const at::Tensor& images,
                              const at::Tensor& other) {
  const bool alike = other.scalar_type() == images.scalar_type() && other.sizes() == images.sizes() &&
                     other.is_contiguous(at::MemoryFormat::ChannelsLast);
  if (is_ours(norm, images) && alike) return apply(norm, images, other, true);
  return (normalise(norm, images) += other).relu_();
}

}  // namespace sluice
