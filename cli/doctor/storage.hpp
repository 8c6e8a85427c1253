// Doctor's words on storage: what the read figures of a data set's own files mean for a run.
#pragma once

#include "nodes/source/folder.hpp"
#include "run/data/storage_probe.hpp"
#include "run/launch/checklist.hpp"

namespace sluice {

struct StorageReport {
  ReadFigures one, many;  // one file at a time; as many as the run's readers
};

// Reads some of the training images; takes some seconds at most.
[[nodiscard]] StorageReport measure_storage(const ImageFolder& folder, unsigned read_threads);

void look_at_storage(Checklist& list, const StorageReport& figures);

}  // namespace sluice
