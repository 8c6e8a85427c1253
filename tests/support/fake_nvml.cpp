// Stands in for the driver's library: made-up figures that change with each call, and a count of what is
// open.
#include <cstdio>
#include <cstring>

namespace {
int opened = 0, looks = 0;
bool broken = false;
}  // namespace

extern "C" {

int nvmlInit_v2() {
  ++opened;
  return 0;
}
int nvmlShutdown() {
  --opened;
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** gpu) {
  if (std::strcmp(bus, "0000:65:00.0") != 0) return 6;  // NVML_ERROR_NOT_FOUND
  *gpu = &looks;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* gpu, unsigned* rates) {
  if (gpu != &looks || opened != 1 || broken) return 1;
  rates[0] = static_cast<unsigned>(90 + ++looks);
  rates[1] = 7;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* gpu, unsigned long long* memory) {
  if (gpu != &looks || opened != 1) return 1;
  memory[0] = 24ull << 30;
  memory[1] = 4ull << 30;
  memory[2] = 20ull << 30;
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "580.65.06");
  return 0;
}

int fake_opened() { return opened; }
int fake_looks() { return looks; }
void fake_break(bool now) { broken = now; }
}
