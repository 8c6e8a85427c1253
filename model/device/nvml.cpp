#include "model/device/nvml.hpp"

#include <dlfcn.h>

#include <array>

namespace sluice {
namespace {

// The part of nvml.h that is used here; its layout has been fixed since the first version.
struct Utilisation {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
using Handle = void*;

}  // namespace

struct Nvml::Calls {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*find)(const char*, Handle*) = nullptr;
  int (*utilisation)(Handle, Utilisation*) = nullptr;
  int (*memory)(Handle, Memory*) = nullptr;
  int (*version)(char*, unsigned) = nullptr;
  Handle gpu = nullptr;
  bool begun = false;

  template <class Function>
  bool load(Function& into, const char* name) {
    into = reinterpret_cast<Function>(dlsym(library, name));
    return into != nullptr;
  }
  bool load_all(const char* name) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    return library && load(init, "nvmlInit_v2") && load(shutdown, "nvmlShutdown") &&
           load(find, "nvmlDeviceGetHandleByPciBusId_v2") &&
           load(utilisation, "nvmlDeviceGetUtilizationRates") && load(memory, "nvmlDeviceGetMemoryInfo") &&
           load(version, "nvmlSystemGetDriverVersion");
  }
  bool begin(const std::string& bus_id) {
    begun = init() == 0;
    return begun && find(bus_id.c_str(), &gpu) == 0;
  }
  ~Calls() {
    if (begun) shutdown();
    if (library) dlclose(library);
  }
};

std::unique_ptr<Nvml> Nvml::open(const std::string& bus_id, const char* library) {
  auto calls = std::make_unique<Calls>();
  if (!calls->load_all(library) || !calls->begin(bus_id)) return nullptr;
  return std::unique_ptr<Nvml>(new Nvml(std::move(calls)));
}

std::optional<GpuFigures> Nvml::read() const {
  Utilisation utilisation{};
  Memory memory{};
  if (calls_->utilisation(calls_->gpu, &utilisation) != 0 || calls_->memory(calls_->gpu, &memory) != 0)
    return std::nullopt;
  return GpuFigures{static_cast<double>(utilisation.gpu), memory.used};
}

std::string Nvml::driver_version() const {
  std::array<char, 80> text{};
  return calls_->version(text.data(), static_cast<unsigned>(text.size())) == 0 ? text.data() : "";
}

Values gpu_values(const Nvml* nvml) {
  const std::optional<GpuFigures> figures = nvml ? nvml->read() : std::nullopt;
  if (!figures) return {};
  return {{"gpu_util", figures->utilisation}, {"gpu_memory_bytes", static_cast<double>(figures->memory)}};
}

Nvml::Nvml(std::unique_ptr<Calls> calls) : calls_(std::move(calls)) {}
Nvml::~Nvml() = default;

}  // namespace sluice
