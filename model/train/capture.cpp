#include "model/train/capture.hpp"

#include <utility>

namespace sluice {

std::string why_no_capture(const std::string& device, bool alone, int accumulate, bool channels_last) {
  if (device != "cuda") return "it needs a GPU";
  if (!alone) return "it works with one rank only";
  if (accumulate > 1) return "train.accumulate is larger than 1";
  if (!channels_last) return "model.channels_last is false";
  return "";
}

Capture::Capture(std::shared_ptr<Device> device, int images, int size, Note note)
    : device_(std::move(device)), images_(images), size_(size), note_(std::move(note)) {}

Status Capture::run(int images, int size, const std::function<Status()>& work) {
  if (given_up_ || images != images_ || size != size_) return work();
  if (captured_) return captured_->replay();
  if (warm_ < warm_up) {
    ++warm_;
    return work();
  }
  Result<std::unique_ptr<Device::Captured>> captured = device_->capture(work);
  if (!captured) {
    given_up_ = true;
    note_("model.compile = \"graph\" is of no use here, going on without: " + captured.error().text());
    return work();
  }
  captured_ = std::move(*captured);
  return captured_->replay();
}

}  // namespace sluice
