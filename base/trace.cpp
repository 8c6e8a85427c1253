#include "base/trace.hpp"

#ifdef SLUICE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace sluice {

#ifdef SLUICE_NVTX
Trace::Trace(const std::string& name) { nvtxRangePushA(name.c_str()); }
Trace::~Trace() { nvtxRangePop(); }
#else
Trace::Trace(const std::string&) {}
Trace::~Trace() = default;
#endif

}  // namespace sluice
