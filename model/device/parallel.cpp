#include "model/device/parallel.hpp"

#include <numeric>

#include "model/ranks/impl.hpp"

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

namespace sluice {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
using Kind = ReduceTrace::Event::Kind;

// The average of a bucket over all ranks.
class AverageHook : public c10d::CppCommHookInterface<Group> {
 public:
  AverageHook(const Group& group, std::shared_ptr<ReduceTrace> trace)
      : CppCommHookInterface(group), trace_(std::move(trace)) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    if (trace_) trace_->add(Kind::began, bucket.getIndex());
    std::vector<at::Tensor> values{bucket.getBufferRef().div_(state_->getSize())};
    const auto sum = state_->allreduce(values)->getFuture();
    if (trace_)
      sum->addCallback([trace = trace_, index = bucket.getIndex()](c10::ivalue::Future&) {
        trace->add(Kind::ended, index);
      });
    return sum;
  }

 private:
  std::shared_ptr<ReduceTrace> trace_;
};

// Buckets stay as they are first laid out, so that gradients can be parts of them from the beginning. The
// reducer would else collect the order of gradients for a new layout with every step, and keep it.
class FixedReducer : public c10d::Reducer {
 public:
  FixedReducer(const std::vector<at::Tensor>& parameters, std::vector<std::vector<std::size_t>> buckets,
               const Group& group)
      : Reducer(parameters, std::move(buckets), group, std::vector<bool>(parameters.size(), false),
                c10d::kDefaultBucketBytesCap, /*find_unused_parameters=*/false,
                /*gradient_as_bucket_view=*/true, {}, c10d::kDefaultFirstBucketBytes,
                /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false, {}) {
    has_rebuilt_bucket_ = true;
  }
};

// From the last parameter to the first, about as gradients become ready. The first bucket is small, so that
// the network has work early.
std::vector<std::vector<std::size_t>> lay_out(const std::vector<at::Tensor>& parameters) {
  const std::vector<at::Tensor> reversed(parameters.rbegin(), parameters.rend());
  std::vector<std::int64_t> indices(parameters.size());
  std::iota(indices.rbegin(), indices.rend(), 0);
  return std::get<0>(c10d::compute_bucket_assignment_by_size(
      reversed, {c10d::kDefaultFirstBucketBytes, c10d::kDefaultBucketBytesCap}, {}, indices));
}

void place_gradients(const c10d::Reducer& reducer) {
  for (const c10d::GradBucket& bucket : reducer.get_grad_buckets(/*return_zero_tensors=*/false)) {
    std::int64_t offset = bucket.getBuffer().storage_offset();
    for (at::Tensor parameter : bucket.getParameters()) {
      parameter.mutable_grad() =
          bucket.getBuffer().as_strided(parameter.sizes(), parameter.strides(), offset).zero_();
      offset += parameter.numel();
    }
  }
}

}  // namespace

struct Parallel::Impl {
  std::shared_ptr<Ranks> ranks;
  Group group;
  std::unique_ptr<FixedReducer> reducer;
};

Parallel::Parallel(std::shared_ptr<Ranks> ranks,
                   const std::vector<std::pair<std::string, at::Tensor>>& parameters,
                   std::shared_ptr<ReduceTrace> trace)
    : impl_(std::make_unique<Impl>()) {
  std::vector<at::Tensor> tensors;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : parameters) {
    if (trace)
      tensor.register_hook(
          [trace, index = tensors.size()](const at::Tensor&) { trace->add(Kind::gradient, index); });
    names.push_back(name);
    tensors.push_back(tensor);
  }
  if (trace) trace->name_parameters(std::move(names));
  impl_->group = ranks->impl().group;
  impl_->ranks = std::move(ranks);
  impl_->reducer = std::make_unique<FixedReducer>(tensors, lay_out(tensors), impl_->group);
  impl_->reducer->register_comm_hook(std::make_unique<AverageHook>(impl_->group, std::move(trace)));
  const at::NoGradGuard no_grad;
  place_gradients(*impl_->reducer);
}

Parallel::~Parallel() = default;

void Parallel::expect_gradients() { impl_->reducer->prepare_for_backward({}); }

void Parallel::from_first(const std::vector<at::Tensor>& tensors) const {
  const at::NoGradGuard no_grad;
  c10d::broadcast_coalesced(impl_->group, tensors, c10d::kDefaultBucketBytesCap, 0);
}

void Parallel::sum(at::Tensor& values) const {
  std::vector<at::Tensor> tensors{values};
  impl_->group->allreduce(tensors)->wait();
}

}  // namespace sluice
