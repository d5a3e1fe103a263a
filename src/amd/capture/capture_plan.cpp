#include "amd/capture/capture_plan.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace weir::amd {
namespace {

using Action = TraceStep::Action;
using Stage = TraceStep::Stage;
using Undo = TraceStep::Undo;

// KFD's functions for queues, from the ioctl to the runlist, and the contents of its arguments. Offsets are those of
// kfd_ioctl_{create,update,destroy}_queue_args, which are part of the kernel's interface.
struct Probe {
  const char* function;
  const char* arguments;   // at entry; omitted if the kernel cannot fetch them
  bool has_status = true;  // false: returns nothing or a pointer, instead of 0, a count or an error
};
constexpr Probe kProbes[] = {
    {"kfd_ioctl_create_queue", "ring_base=+0($arg3):x64 ring_size=+32($arg3):u32 gpu_id=+36($arg3):x32"},
    {"kfd_ioctl_update_queue", "ring_base=+0($arg3):x64 queue_id=+8($arg3):u32"},
    {"kfd_ioctl_destroy_queue", "queue_id=+0($arg3):u32"},
    {"kfd_ioctl_set_debug_trap", ""},
    {"pqm_create_queue", ""},
    {"pqm_destroy_queue", ""},
    {"create_queue_cpsch", ""},
    {"destroy_queue_cpsch", ""},
    {"allocate_doorbell", ""},
    {"allocate_mqd", "", false},
    {"init_mqd", "", false},
    {"init_mqd_v9_4_3", "", false},
    {"execute_queues_cpsch", ""},
    {"unmap_queues_cpsch", ""},
    {"map_queues_cpsch", ""},
    {"pm_send_unmap_queue", ""},
    {"pm_send_query_status", ""},
    {"pm_send_runlist", ""},
    {"amdkfd_fence_wait_timeout", ""},
    {"add_queue_mes", ""},
    {"remove_queue_mes", ""},
    {"suspend_queues", ""},
    {"resume_queues", ""},
    {"evict_process_queues_cpsch", ""},
    {"restore_process_queues_cpsch", ""},
};

class Steps {
 public:
  explicit Steps(TracePlan& plan) : plan_(plan) {}
  // Writes in the instance; `undo` applies only if the instance is not Weir's own.
  TraceStep& write(Stage stage, bool is_required, const std::string& file, std::vector<std::string> values, Undo undo,
                   std::string why) {
    return add({Action::write, stage, plan_.is_instance ? Undo::nothing : undo, is_required, plan_.folder + "/" + file,
                std::move(values), std::move(why)});
  }
  TraceStep& add(TraceStep step) { return plan_.steps.emplace_back(std::move(step)); }

 private:
  TracePlan& plan_;
};

std::vector<std::string> buffer_sizes(int max_mib) {
  std::vector<std::string> sizes;
  for (int mib = max_mib; mib > 0; mib /= 2) sizes.push_back(std::to_string(mib * 1024));
  return sizes;
}

// p:weir_4711/kfd_ioctl_create_queue amdgpu:kfd_ioctl_create_queue ring_base=+0($arg3):x64
// r:weir_4711/kfd_ioctl_create_queue_ret amdgpu:kfd_ioctl_create_queue ret=$retval:s32
void add_probes(const CaptureRequest& request, TracePlan& plan, Steps& steps) {
  const std::string group = fmt::format("weir_{}", request.pid);
  bool is_first = true;
  for (const Probe& probe : kProbes) {
    const std::string entry = fmt::format("p:{0}/{1} amdgpu:{1}", group, probe.function);
    std::vector<std::string> values;
    if (*probe.arguments != '\0') values.push_back(fmt::format("{} {}", entry, probe.arguments));
    values.push_back(entry);
    // Probes are global to the kernel, so they are added and removed one by one: others may have theirs.
    steps.add({Action::append, Stage::probes, Undo::remove_probe, false, plan.root + "/kprobe_events",
               std::move(values), is_first ? "where function tracing is refused: probes at KFD's calls" : ""});
    steps.add({Action::append,
               Stage::probes,
               Undo::remove_probe,
               false,
               plan.root + "/kprobe_events",
               {fmt::format("r:{0}/{1}_ret amdgpu:{1}{2}", group, probe.function,
                            probe.has_status ? " ret=$retval:s32" : "")},
               ""});
    is_first = false;
  }
  steps.write(Stage::probes, true, fmt::format("events/{}/enable", group), {"1"}, Undo::word,
              "probes are the kernel's; this lets them into our buffer");
}

TracePlan plan_trace(const CaptureRequest& request, const CaptureFacts& facts) {
  TracePlan plan;
  plan.root = request.roots.tracefs;
  plan.is_instance = !request.uses_top_instance;
  plan.folder = plan.is_instance ? fmt::format("{}/instances/weir-{}", plan.root, request.pid) : plan.root;
  Steps steps(plan);
  if (plan.is_instance)
    steps.add({Action::make_folder,
               Stage::prepare,
               Undo::nothing,
               true,
               plan.folder,
               {},
               "a buffer of our own: other tracing goes on undisturbed"});
  steps.write(Stage::prepare, true, "tracing_on", {"0"}, Undo::word, "nothing is recorded before all is set");
  steps.write(Stage::prepare, false, "trace_clock", {"mono"}, Undo::choice,
              "the clock of ROCm's log (CLOCK_MONOTONIC); the default is another one for each CPU");
  steps.write(Stage::prepare, false, "buffer_size_kb", buffer_sizes(request.buffer_mib), Undo::word,
              "per CPU; smaller where memory is short");
  steps.write(Stage::prepare, false, "options/overwrite", {request.keeps_first ? "0" : "1"}, Undo::word,
              request.keeps_first ? "a full buffer keeps the beginning, where queues are created"
                                  : "a full buffer keeps the end");
  steps.write(Stage::prepare, false, "options/record-tgid", {"1"}, Undo::word,
              "lines say which process a thread is of");
  // The function tracer alone records names but not processes; kernels record those when an event is enabled.
  steps.write(Stage::prepare, false, "events/sched/sched_process_exec/enable", {"1"}, Undo::word,
              "one event at least, without which record-tgid does nothing");
  if (!plan.is_instance)
    steps.write(Stage::prepare, true, "trace", {""}, Undo::nothing,
                "what is in the buffer now would be taken for ours");
  // Without the module the filter is empty, and an empty filter traces every function of the kernel.
  if (facts.has_driver) {
    steps.write(Stage::tracer, true, "set_ftrace_filter", {":mod:amdgpu"}, Undo::list, "only functions of the driver");
    steps.write(Stage::tracer, true, "current_tracer",
                request.wants_graph ? std::vector<std::string>{"function_graph", "function"}
                                    : std::vector<std::string>{"function"},
                Undo::word, request.wants_graph ? "calls with their durations, or at least calls" : "which call when");
    if (request.wants_graph) {
      steps.write(Stage::tracer, false, "options/funcgraph-abstime", {"1"}, Undo::word, "when, not only how long");
      steps.write(Stage::tracer, false, "options/funcgraph-proc", {"1"}, Undo::word, "which thread");
    }
    if (facts.has_probes) add_probes(request, plan, steps);
  }
  if (facts.has_events)
    steps.write(Stage::events, false, "events/amdkfd/enable", {"1"}, Undo::events,
                "KFD's own events: evict, restore, map");
  steps.write(Stage::start, true, "tracing_on", {"1"}, Undo::nothing, "from here on");
  return plan;
}

std::string sudo_hint(const CaptureFacts& facts) {
  if (!facts.is_root) return "Run it as root: sudo weir amd capture ...";
  return "Root is refused as well: is the kernel locked down (/sys/kernel/security/lockdown), or is this a container "
         "without CAP_SYS_ADMIN? Then run it on the host.";
}

bool is_refusal(int error) { return error == EACCES || error == EPERM; }

}  // namespace

CapturePart missing_part(std::string name, const std::string& path, int error, const CaptureFacts& facts) {
  CapturePart part{std::move(name), {}, fmt::format("{}: {}", path, std::strerror(error)), ""};
  if (is_refusal(error)) {
    part.hint = part.name == "dmesg" && !facts.is_root
                    ? "Run it as root, or allow everyone: sysctl kernel.dmesg_restrict=0"
                    : sudo_hint(facts);
  } else if (!facts.has_driver && part.name != "dmesg") {
    part.hint = "The amdgpu driver is not loaded: is there an AMD GPU (lspci -d 1002:)? Then: modprobe amdgpu";
  } else if (part.name == "ftrace") {
    part.hint = fmt::format("Mount it: mount -t tracefs nodev {}", path.substr(0, path.rfind('/')));
  } else if (part.name == "sysfs") {
    part.hint = "The driver is loaded without KFD: is it built with CONFIG_HSA_AMD?";
  } else if (part.name != "dmesg") {
    part.hint = "Is debugfs mounted (mount -t debugfs nodev /sys/kernel/debug), and KFD built with CONFIG_DEBUG_FS?";
  }
  return part;
}

CapturePlan plan_capture(const CaptureRequest& request, const CaptureFacts& facts) {
  CapturePlan plan;
  // A process that runs already keeps its variables.
  if (!request.target)
    plan.environment = {
        {"AMD_LOG_LEVEL", std::to_string(request.log_level)},
        {"AMD_LOG_MASK", fmt::format("{:#x}", request.log_mask)},
        {"AMD_LOG_LEVEL_FILE", (request.log_folder.empty() ? request.folder : request.log_folder) + "/log"},
        {"AMD_LOG_LEVEL_SIZE", std::to_string(request.log_size_mib)}};
  if (!request.has_trace) {
    plan.missing.push_back({"ftrace", {}, "left out by --no-ftrace", ""});
  } else if (facts.tracefs != 0) {
    plan.missing.push_back(missing_part("ftrace", request.roots.tracefs + "/trace_clock", facts.tracefs, facts));
  } else if (!facts.has_driver && !facts.has_events) {
    plan.missing.push_back({"ftrace",
                            {},
                            fmt::format("{}/module/amdgpu: No such file or directory", request.roots.sysfs),
                            "The amdgpu driver is not loaded: without it there is nothing to trace."});
  } else if (!facts.has_instances && !request.uses_top_instance) {
    plan.missing.push_back({"ftrace",
                            {},
                            fmt::format("{}/instances: this kernel has none", request.roots.tracefs),
                            "--top-instance uses the one buffer that there is, and puts its settings back."});
  } else {
    plan.trace = plan_trace(request, facts);
  }
  const std::pair<const char*, int> files[] = {{"hqds", facts.hqds}, {"mqds", facts.mqds}, {"rls", facts.rls}};
  for (const auto& [name, error] : files) {
    const std::string path = fmt::format("{}/kfd/{}", request.roots.debugfs, name);
    if (error == 0) {
      plan.files.push_back({name, path});
    } else {
      plan.missing.push_back(missing_part(name, path, error, facts));
    }
  }
  plan.has_sysfs = facts.sysfs == 0;
  if (!plan.has_sysfs)
    plan.missing.push_back(missing_part("sysfs", request.roots.sysfs + "/class/kfd/kfd", facts.sysfs, facts));
  plan.has_dmesg = facts.kmsg == 0;
  if (!plan.has_dmesg) plan.missing.push_back(missing_part("dmesg", request.roots.kmsg, facts.kmsg, facts));
  return plan;
}

const std::vector<std::string>& sysfs_patterns() {
  // Caches and links of nodes are skipped: thousands of files on large machines, without any queue.
  static const std::vector<std::string> kPatterns = {
      "class/kfd/kfd/topology/generation_id",
      "class/kfd/kfd/topology/system_properties",
      "class/kfd/kfd/topology/nodes/*/gpu_id",
      "class/kfd/kfd/topology/nodes/*/name",
      "class/kfd/kfd/topology/nodes/*/properties",
      "class/kfd/kfd/proc/*/*",
      "class/kfd/kfd/proc/*/queues/*/*",
      "class/kfd/kfd/proc/*/stats_*/*",
      "module/amdgpu/version",
      "module/amdgpu/srcversion",
      "module/amdgpu/parameters/*",
  };
  return kPatterns;
}

}  // namespace weir::amd
