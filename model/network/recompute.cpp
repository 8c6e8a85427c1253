#include "model/network/recompute.hpp"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace sluice {
namespace {

using Part = std::function<at::Tensor(const at::Tensor&)>;
using torch::autograd::variable_list;

thread_local bool second_run = false;

// The casts of weights that autocast keeps are made in this run, and dropped with it.
class SecondRun {
 public:
  SecondRun(at::DeviceType type, bool autocast, at::ScalarType dtype)
      : type_(type), was_on_(at::autocast::is_autocast_enabled(type)) {
    at::autocast::set_autocast_enabled(type_, autocast);
    if (autocast) at::autocast::set_autocast_dtype(type_, dtype);
    second_run = true;
  }
  ~SecondRun() {
    second_run = false;
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(type_, was_on_);
  }
  SecondRun(const SecondRun&) = delete;
  SecondRun& operator=(const SecondRun&) = delete;

 private:
  at::DeviceType type_;
  bool was_on_;
};

struct HeldPart : torch::CustomClassHolder {
  explicit HeldPart(Part p) : part(std::move(p)) {}
  Part part;
};

// Parameters are inputs of their own, so that their gradients go the usual way and whoever listens for them
// (the reducer of many ranks) hears of each at its time.
struct Recompute : torch::autograd::Function<Recompute> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const Part* part,
                            const at::Tensor& input, at::TensorList parameters) {
    const at::DeviceType type = input.device().type();
    context->saved_data["autocast"] = at::autocast::is_autocast_enabled(type);
    context->saved_data["dtype"] = static_cast<std::int64_t>(at::autocast::get_autocast_dtype(type));
    context->saved_data["input"] = input.requires_grad();
    context->saved_data["part"] = at::IValue::make_capsule(c10::make_intrusive<HeldPart>(*part));
    variable_list kept{input};
    kept.insert(kept.end(), parameters.begin(), parameters.end());
    context->save_for_backward(std::move(kept));
    return (*part)(input);
  }

  static variable_list backward(torch::autograd::AutogradContext* context, const variable_list& gradients) {
    variable_list of = context->get_saved_variables();
    const bool through = context->saved_data["input"].toBool();
    of[0] = of[0].detach();
    of[0].requires_grad_(through);
    const auto held = c10::static_intrusive_pointer_cast<HeldPart>(context->saved_data["part"].toCapsule());
    at::Tensor out;
    {
      const SecondRun run(of[0].device().type(), context->saved_data["autocast"].toBool(),
                          static_cast<at::ScalarType>(context->saved_data["dtype"].toInt()));
      const at::AutoGradMode enabled(true);
      out = held->part(of[0]);
    }
    const variable_list by(of.begin() + (through ? 0 : 1), of.end());
    variable_list result = torch::autograd::grad({out}, by, {gradients[0]});
    if (!through) result.insert(result.begin(), at::Tensor());
    result.insert(result.begin(), at::Tensor());  // of `part`
    return result;
  }
};

}  // namespace

at::Tensor recompute(Part part, const at::Tensor& input, const std::vector<at::Tensor>& parameters) {
  if (!at::GradMode::is_enabled()) return part(input);
  return Recompute::apply(&part, input, at::TensorList(parameters));
}

bool recomputing() { return second_run; }

}  // namespace sluice
