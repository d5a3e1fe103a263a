// A snapshot as one document (weir.amd_hqd/2): the verdict first, then GPUs, queues, slots and unread lines. Each
// verdict comes with its basis, and is missing if the files do not support one.
#pragma once

#include "amd/kfd/snapshot.h"
#include "base/json.h"

namespace weir::kfd {

// How full a GPU is: occupied, stale and free slots, and whether there is more work than fits at once.
struct GpuOccupancy {
  int node = -1;
  std::uint32_t gpu_id = 0;
  Generation generation = Generation::unknown;
  std::string generation_from;
  bool is_stopped = false;
  std::optional<int> xccs;
  std::optional<int> slots_per_xcc;
  std::string slots_from;
  // From hqds; nothing if it was not read.
  std::optional<int> active_slots, stale_slots, unused_slots, most_active_of_xcc;
  std::optional<int> sdma_slots, sdma_active, sdma_stale;
  // Compute queues, and processes with queues of any kind, on this GPU.
  std::optional<int> queues, processes;
  std::string queues_from;
  std::optional<bool> is_runlist_chained;  // KFD's own verdict, as written for the firmware
  bool is_runlist_broken = false;          // a run list exists, but was not fully understood
  std::optional<bool> is_oversubscribed;
  std::string why;
};

std::vector<GpuOccupancy> occupancy_of(const Snapshot& snapshot, const std::vector<Queue>& queues);

Json hqd_document(const Snapshot& snapshot);

// Sentences that the snapshot supports: queues, oversubscription, preemption, backlog, errors.
std::vector<std::string> verdict_of(const Snapshot& snapshot, const std::vector<Queue>& queues,
                                    const std::vector<GpuOccupancy>& gpus);

}  // namespace weir::kfd
