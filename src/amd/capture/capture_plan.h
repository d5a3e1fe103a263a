// Plans a capture of AMD's queues on this machine before anything is touched: the program's environment, which files of
// tracefs are written in which order, and what is copied when. Knows paths and words; opens nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "amd/capture/manifest.h"
#include "amd/log/log_settings.h"

namespace weir::amd {

// Roots of the kernel's file systems; tests use folders of their own.
struct CaptureRoots {
  std::string tracefs = "/sys/kernel/tracing";
  std::string debugfs = "/sys/kernel/debug";
  std::string sysfs = "/sys";
  std::string kmsg = "/dev/kmsg";
  std::string smi;   // a file of events for each GPU, in place of the driver's; empty: the driver's
  std::string root;  // goes before /proc, /etc, /var and /home
  std::string proc() const { return root + "/proc"; }
};

struct CaptureRequest {
  std::vector<std::string> command;     // with a target: what it runs
  std::optional<CaptureTarget> target;  // runs already; nothing: the command is started
  std::string cgroup;                   // of the target, below /sys/fs/cgroup; empty: not known
  int first_pid = 0;                    // of the target; a container's first process
  std::int64_t duration_ns = 0;         // of a capture of a target; 0: until it ends
  std::string folder;                   // absolute, because the program may change its own
  std::string log_folder;               // the same folder as passed to the program; empty: `folder`
  int log_level = kQueueLogLevel;
  std::uint32_t log_mask = kQueueLogMask;
  int log_size_mib = 8192;  // beyond it ROCm empties the file, and the creation of queues is lost
  bool has_trace = true;
  bool wants_graph = false;
  bool uses_top_instance = false;
  bool keeps_first = true;  // keep the first events of a full buffer; false: the last
  int buffer_mib = 16;      // per CPU
  std::int64_t interval_ns = 1'000'000'000;
  int max_snapshots = 20;  // during the run
  int pid = 0;             // Weir's own; part of the names that it creates
  CaptureRoots roots;
};

// The state of this machine. Errors are errno values, 0 if the file can be used.
struct CaptureFacts {
  bool is_root = false;
  bool has_driver = false;  // module/amdgpu in sysfs
  bool is_nested = false;   // in a PID namespace of its own, so pids in the kernel's trace differ
  int tracefs = 0;          // for writing trace_clock
  bool has_instances = false, has_probes = false, has_events = false;
  int hqds = 0, mqds = 0, rls = 0, sysfs = 0, kmsg = 0;
};

// One change to tracefs. Values are tried in order until one is accepted.
struct TraceStep {
  enum class Action : std::uint8_t { make_folder, write, append };
  enum class Stage : std::uint8_t {
    prepare,  // if a required step is refused, nothing is traced
    tracer,   // if a required step is refused, probes are used instead of the function tracer
    probes,
    events,
    start
  };
  // How the previous value is restored; an instance of Weir's own is removed instead.
  enum class Undo : std::uint8_t { nothing, word, choice, list, events, remove_probe };

  Action action = Action::write;
  Stage stage = Stage::prepare;
  Undo undo = Undo::nothing;
  bool is_required = false;
  std::string path;
  std::vector<std::string> values;
  std::string why;
};

struct TracePlan {
  std::string root, folder;  // tracefs; Weir's instance, or tracefs itself
  bool is_instance = true;
  std::vector<TraceStep> steps;
};

struct SnapshotFile {
  std::string part, path;  // "hqds", "/sys/kernel/debug/kfd/hqds"
};

struct CapturePlan {
  std::vector<std::pair<std::string, std::string>> environment;  // of the program
  std::optional<TracePlan> trace;
  std::vector<SnapshotFile> files;  // of each snapshot
  bool has_sysfs = false, has_dmesg = false;
  std::vector<CapturePart> missing;  // with reason and hint
};

CapturePlan plan_capture(const CaptureRequest& request, const CaptureFacts& facts);

// Files of sysfs in a snapshot, as patterns below its root: "class/kfd/kfd/topology/nodes/*/gpu_id".
const std::vector<std::string>& sysfs_patterns();

// The same plan as a shell script, with a comment for each command. Runs unchanged.
std::string capture_script(const CaptureRequest& request, const CapturePlan& plan);

// Explains an errno at a file of KFD, tracefs or the kernel's log, with advice.
CapturePart missing_part(std::string name, const std::string& path, int error, const CaptureFacts& facts);

}  // namespace weir::amd
