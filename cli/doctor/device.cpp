#include "cli/doctor/device.hpp"

#include "base/text.hpp"
#include "model/device/device.hpp"
#include "model/device/nvml.hpp"
#include "model/train/train_step.hpp"

namespace sluice {

std::string look_at_device(Checklist& list, const std::string& asked) {
  const Result<std::string> device = resolve_device(asked);
  if (!device) return list.fail("device", device.error()), "";
  if (const std::string note = device_note(asked, *device); !note.empty())
    return list.warn("device", note, "check the driver with nvidia-smi"), *device;
  if (*device == "cpu") return list.ok("device", "cpu"), *device;
  for (int i = 0;; ++i) {
    const Result<std::shared_ptr<Device>> opened = open_device(*device, i);
    if (!opened && i > 0) return *device;  // one past the last
    if (!opened) return list.fail("device", opened.error()), "";
    const Device::Memory memory = (*opened)->memory();
    const std::unique_ptr<Nvml> driver = Nvml::open((*opened)->bus_id());
    const std::string version = driver ? driver->driver_version() : "";
    const std::string found = "GPU " + (*opened)->bus_id() + ", " + readable_bytes(memory.free) + " of " +
                              readable_bytes(memory.total) + " free" +
                              (version.empty() ? "" : ", driver " + version);
    const std::string name = i == 0 ? "device" : "device " + std::to_string(i);
    memory.free >= memory.total / 2
        ? list.ok(name, found)
        : list.warn(name, found, "another program holds much of its memory: nvidia-smi tells which");
  }
}

}  // namespace sluice
