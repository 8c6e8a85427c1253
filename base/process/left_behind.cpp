#include "base/process/left_behind.hpp"

#include <atomic>

namespace sluice {
namespace {

std::atomic<bool> left{false};

}  // namespace

void note_thread_left_behind() { left = true; }
bool thread_left_behind() { return left; }

}  // namespace sluice
