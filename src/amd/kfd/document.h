// A snapshot as one document (weir.amd_hqd/1): the verdict first, then GPUs, queues, slots and what was not read.
#pragma once

#include "amd/kfd/occupancy.h"
#include "amd/kfd/snapshot.h"
#include "base/json.h"

namespace weir::kfd {

Json hqd_document(const Snapshot& snapshot);

// Sentences that the snapshot supports: queues, oversubscription, preemption, backlog, errors.
std::vector<std::string> verdict_of(const Snapshot& snapshot, const std::vector<Queue>& queues,
                                    const std::vector<GpuOccupancy>& gpus);

}  // namespace weir::kfd
