// Trains one weight through the loss scaler and prints what becomes of it: a gradient of each step comes from
// stdin ("1", "inf", "nan", ...), and a line "scale good weight" goes to stdout.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>

#include "model/train/scaler.hpp"
#include "model/train/sgd.hpp"

int main() {
  using namespace sluice;
  at::set_num_threads(1);
  Scaler scaler(at::kCPU);
  at::Tensor weight = at::ones({1}).requires_grad_(true);
  Sgd sgd({weight}, {.momentum = 0.5, .weight_decay = 0});
  for (std::string word; std::cin >> word;) {
    // The network's gradient, as backward would leave it: by the scaled loss.
    sgd.zero_gradients();
    const at::Tensor slope = at::full({1}, std::stof(word));
    scaler.scale((weight * slope).sum()).backward();
    const at::Tensor& found = scaler.unscale(sgd.gradients());
    sgd.step(0.25, found);
    scaler.update();
    std::printf("%.17g %d %.17g\n", scaler.scale().item<double>(), scaler.good().item<int>(),
                weight.item<double>());
  }
}
