// KFD's queues at one moment: debugfs (hqds, mqds, rls) and sysfs, decoded and merged into one record per queue. Knows
// files and registers, but no runtime log and no trace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "amd/kfd/debugfs.h"

namespace weir::kfd {

// sysfs class/kfd/kfd and module/amdgpu/parameters: GPUs, processes and their queues as KFD counts them.

struct SysfsNode {
  int node = 0;
  std::uint32_t gpu_id = 0;  // 0: the host
  std::string name;
  std::optional<std::uint32_t> gfx_target_version;
  std::optional<int> xccs, cp_queues, sdma_engines, sdma_xgmi_engines, sdma_queues_per_engine, simds,
      max_waves_per_simd;
  std::optional<int> render_minor;         // of /dev/dri/renderD128
  std::optional<std::uint32_t> pci_place;  // bus, device and function: 0x0500 is 05:00.0
  std::optional<std::uint32_t> pci_domain;
};

enum class SysfsQueueType : std::uint8_t {
  compute = 0,
  sdma = 1,
  hiq = 2,
  diq = 3,
  sdma_xgmi = 4,
  sdma_by_engine = 5,
  unknown
};

struct SysfsQueue {
  std::uint32_t id = 0;
  std::uint32_t gpu_id = 0;
  std::uint64_t ring_bytes = 0;
  SysfsQueueType type = SysfsQueueType::unknown;
};

struct SysfsProcess {
  int pid = 0;
  std::vector<SysfsQueue> queues;  // by id
  // By GPU.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> vram_bytes, evicted_ms, cu_occupancy;
};

struct SysfsState {
  std::vector<SysfsNode> nodes;                                 // by number
  std::vector<SysfsProcess> processes;                          // by pid
  std::vector<std::pair<std::string, std::string>> parameters;  // of the module amdgpu
  std::vector<std::string> problems;                            // files that exist but have unexpected contents

  std::optional<std::string> parameter(std::string_view name) const;
};

// Parses the files of one node: gpu_id "63420", name, properties "num_xcc 4" and the like. Nothing if gpu_id is not a
// number.
std::optional<SysfsNode> parse_node(int node, std::string_view gpu_id, std::string_view name,
                                    std::string_view properties);
// Parses the files of one queue, each of which holds a number. Nothing if one does not.
std::optional<SysfsQueue> parse_queue(std::uint32_t id, std::string_view gpu_id, std::string_view size,
                                      std::string_view type);

// `root` contains class/kfd/kfd and module/amdgpu. Nothing if there is no KFD below it.
std::optional<SysfsState> read_sysfs(const std::filesystem::path& root);

// Roots of the kernel's file systems; tests and captures use folders of their own.
struct Roots {
  std::filesystem::path debugfs = "/sys/kernel/debug";  // .../kfd/hqds
  std::filesystem::path sysfs = "/sys";  // .../class/kfd/kfd, .../class/drm, .../module/amdgpu/parameters
  std::filesystem::path proc = "/proc";  // .../PID/fdinfo
  std::string smi;                       // see SmiListener
};

// The reason of a part that is absent; other reasons are for parts that exist but cannot be used.
inline constexpr const char* kNotInFolder = "not in the folder";

// A part that could not be read: its path, the reason, and advice.
struct MissingPart {
  std::string part;  // "hqds", "mqds", "rls", "sysfs"
  std::string path, reason, hint;
};

struct Snapshot {
  std::int64_t taken_ns = INT64_MIN;  // CLOCK_MONOTONIC; INT64_MIN if unknown
  std::optional<HqdFile> hqds;
  std::optional<MqdFile> mqds;
  std::optional<RunlistFile> runlists;
  std::optional<SysfsState> sysfs;
  std::vector<MissingPart> missing;
};

// Reads the state of the running kernel. Never throws for a missing part; `missing` lists it.
Snapshot read_snapshot(const Roots& roots);
// Loads saved files: hqds, mqds, rls (with or without .txt) and sysfs/ below `folder`.
Snapshot load_snapshot(const std::filesystem::path& folder);
// Adds the text of one file, whose type is detected. Rejects text of no known type, or a second file of one type.
void add_file(Snapshot& snapshot, std::string_view text, const std::string& name);

struct Slot {
  int xcc = 0, pipe = 0, queue = 0;
  int vmid = 0;
  std::uint64_t read = 0, write = 0;  // register values: dwords, for SDMA bytes
};

enum class QueueKind : std::uint8_t { compute, sdma, hiq, diq, unknown };
std::string_view name_of(QueueKind kind);

// One queue, merged from its images on all XCCs.
struct Queue {
  QueueKind kind = QueueKind::compute;
  int node = -1;                          // from the topology; -1 if unknown
  std::uint32_t gpu_id = 0;               // KFD's name for it
  std::optional<int> pid;                 // in the host's namespace
  std::optional<std::uint32_t> queue_id;  // KFD's, unique within its process
  std::uint64_t ring_base = 0, ring_bytes = 0;
  std::vector<std::uint64_t> mqd_bases;                               // one per XCC, if known
  std::vector<std::pair<std::uint64_t, std::uint64_t>> mqd_pointers;  // read and write, from mqds, per XCC, in dwords
  std::optional<std::uint32_t> doorbell;                              // index in dwords
  std::vector<Slot> slots;        // where it is mapped now; empty: not mapped, or hqds is missing
  bool is_active = false;         // some slot runs it now
  bool is_mapping_known = false;  // false: not in any slot that was read, and not all slots of the GPU were read
  bool is_aql = false;
  std::optional<int> pipe_priority;              // 0 low, 1 medium, 2 high
  std::optional<int> queue_priority;             // 0..15
  std::optional<int> vmid;                       // nothing if its XCCs differ; each slot has its own
  std::optional<std::uint64_t> backlog_packets;  // of 64 bytes, written but not yet read; the most of its XCCs
  std::optional<bool> was_preempted;  // in mid-kernel, with saved waves; nothing if CWSR's state is not shown
  std::optional<std::uint64_t> save_ticks, restore_ticks;  // of the last CWSR save and restore; the most of its XCCs

  bool is_in_hqds = false, is_in_mqds = false;     // where it appeared
  std::string backlog_reason;                      // why there is no backlog
  bool is_backlog_least = false;                   // not mapped: a lower bound from its last unmapping
  std::optional<std::uint64_t> backlog_bytes;      // SDMA and PM4, whose commands have no fixed size
  std::vector<std::uint32_t> queue_id_candidates;  // KFD's ids with this size and process, if several fit
  std::string queue_id_reason;                     // why there is no queue_id
  std::optional<Quantum> quantum;
  std::optional<bool> has_cwsr;
  std::uint64_t save_base = 0, save_bytes = 0;  // save area for waves, of one XCC
  std::optional<bool> is_doorbell_enabled, is_doorbell_hit;
  int dequeue_request = 0;   // some XCC was asked to release it: 1 drain, 2 reset, 3 save
  std::uint32_t errors = 0;  // CP_HQD_ERROR, combined over all XCCs
};

// Stale slots (values of queues that are gone) do not count as queues. Ordered by GPU, process, ring.
std::vector<Queue> queues_of(const Snapshot& snapshot);

}  // namespace weir::kfd
