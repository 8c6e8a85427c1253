#include "cli/doctor/build.hpp"

#include "nodes/jpeg/library.hpp"

namespace sluice {

void look_at_driver(Checklist& list, const std::optional<GpuDriver>& driver, const Versions& build) {
  const bool cuda = !build.cuda.empty();
  if (!driver) {
    if (cuda)
      list.warn("GPU driver", "none is loaded, and this is a CUDA build",
                "install NVIDIA's driver, or use the CPU build");
    else
      list.ok("GPU driver", "none is loaded; this CPU build needs none");
    return;
  }
  const std::string found = "NVIDIA " + (driver->version.empty() ? "of unknown version" : driver->version) +
                            ", " + std::to_string(driver->gpus) + (driver->gpus == 1 ? " GPU" : " GPUs");
  if (!cuda && driver->gpus > 0)
    list.warn("GPU driver", found + ", which this CPU build cannot use",
              "./sluice build --cuda, then use build-cuda/sluice");
  else if (cuda && too_old(driver->version, build.cuda))
    list.fail(
        "GPU driver", found + "; built for CUDA " + build.cuda,
        "CUDA " + build.cuda + " needs driver " + std::to_string(oldest_driver(build.cuda)) + " or newer");
  else
    list.ok("GPU driver", found + (cuda ? "; built for CUDA " + build.cuda : ""));
}

void look_at_jpeg(Checklist& list, const std::string& version) {
  const std::string found =
      version.empty() ? "a libjpeg that does not tell its version" : "libjpeg-turbo " + version;
  if (is_checked_libjpeg(version))
    list.ok("JPEG", found);
  else
    list.warn(
        "JPEG",
        found + ", not checked with sluice's own entropy decoder: libjpeg's own is used, which is slower",
        "load libjpeg-turbo 2.1, which this was built with");
}

void look_at_exchange(Checklist& list, const std::string& device, const Versions& build) {
  if (device == "cuda" && build.nccl.empty())
    list.warn("exchange", "NCCL does not tell its version", "several GPUs will not train together");
  else if (device == "cuda")
    list.ok("exchange", "NCCL " + build.nccl + " between ranks");
  else if (build.nccl.empty())
    list.ok("exchange", "Gloo between ranks: this is a CPU build, without NCCL");
  else
    list.ok("exchange", "Gloo between ranks on the CPU (NCCL " + build.nccl + " is for GPUs)");
}

}  // namespace sluice
