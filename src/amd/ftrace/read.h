// Reads the text of the kernel's tracer (trace files of tracefs, or `trace-cmd report`) in one pass and reports KFD's
// work to a sink. Memory does not grow with the file. Knows no runtime log.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "amd/ftrace/kfd_span.h"
#include "trace/import/byte_source.h"

namespace weir::ftrace {

struct UnreadLines {
  std::string reason;
  std::uint64_t count = 0, first_line = 0;
};

struct NameCount {
  std::string name;
  std::uint64_t count = 0;
};

// Counts of the calls that the answers rest on. A return without its entry does not count as a call.
struct KfdCalls {
  std::uint64_t kfd_ioctl = 0;                         // kfd_ioctl, or ioctl system calls with KFD's numbers
  std::uint64_t create_handler = 0;                    // kfd_ioctl_create_queue
  std::uint64_t pqm_create = 0, create_scheduler = 0;  // pqm_create_queue; create_queue_cpsch or _nocpsch
  std::uint64_t mqd_allocate = 0, mqd_init = 0, mqd_init_all_xccs = 0, mqd_load = 0, mqd_update = 0, mqd_destroy = 0,
                mqd_free = 0;
  std::uint64_t runlist_sent = 0, runlist_map = 0;  // pm_send_runlist; map_queues_cpsch
  std::uint64_t fence_wait = 0, unmap_sent = 0;
  std::uint64_t kcq = 0, compute_ring_jobs = 0;  // functions of kernel queues; jobs run on comp_* rings
  std::uint64_t cs_ioctl = 0;                    // amdgpu_cs_ioctl: work submitted through the graphics driver
  std::uint64_t doorbell_allocate = 0, doorbell_mmap = 0, kernel_doorbell_write = 0;
  std::uint64_t memory_map = 0, evict_scheduled = 0;  // trace events of amdkfd
  std::uint64_t mes_add = 0, mes_remove = 0;
  std::uint64_t map_texts = 0, mqd_texts = 0;     // KFD_MAP_QUEUES_CPSCH (one per queue), KFD_MQD_CREATE
  std::uint64_t process_end = 0;                  // process_termination_*: queues destroyed with their process
  std::vector<NameCount> ioctls;                  // by name, most frequent first
  std::vector<NameCount> kcq_names, unknown_kfd;  // a few, most frequent first; unknown_kfd: without a role here
  std::uint64_t unknown_kfd_calls = 0;
  std::uint64_t known_verbs = 0;        // calls of functions that begin spans or are part of them
  std::uint64_t amdgpu_beyond_kfd = 0;  // functions of amdgpu outside KFD, which show that the filter was wide
};

struct FtraceCounters {
  std::string tracer;  // from the header: "function", "function_graph", "nop"; may be empty
  std::uint64_t lines = 0;
  std::uint64_t functions = 0, graph_calls = 0, probes = 0, events = 0, texts = 0;  // lines of each form
  std::optional<std::uint64_t> buffer_entries, written_entries;  // from the header; the difference was overwritten
  std::uint64_t lost_events = 0, lost_gaps = 0;  // from LOST lines: the events they name, and the number of such lines
  std::uint64_t lost_uncounted = 0;              // LOST lines without a number
  std::uint64_t buffers_started = 0;  // "##### CPU 2 buffer started ####": that CPU's earlier events are lost
  std::int64_t first_ns = kNoTime, last_ns = kNoTime;
  std::int64_t resolution_ns = 1000;  // of the stamps
  std::uint64_t without_time = 0;     // calls without a stamp (function_graph without funcgraph-abstime)
  std::uint64_t without_pid = 0;
  bool has_tgid = false;
  bool has_returns = false;                           // any return was traced
  std::uint64_t unmatched_returns = 0, given_up = 0;  // returns without entry; spans cut short by lost events
  std::vector<UnreadLines> unread;
  KfdCalls calls;
  std::string problem;  // why reading ended early; empty if it did not

  // Whether events are known to be missing.
  bool has_losses() const {
    return lost_gaps > 0 || buffers_started > 0 || written_entries > buffer_entries || !problem.empty();
  }
  std::uint64_t entries() const { return functions + graph_calls + probes + events + texts; }
};

struct FtraceOptions {
  std::string name = "trace";      // of the file, for messages
  std::function<void()> progress;  // called now and then; may be empty, may throw to stop
};

// Rejects a file that is empty, binary or not a trace. Accepts a trace without any KFD call: see require_kfd().
FtraceCounters read_ftrace(ByteSource& source, KfdSink& sink, const FtraceOptions& options = {});

// Rejects a trace without any KFD call, and explains what to trace.
void require_kfd(const FtraceCounters& counters, const std::string& name);

}  // namespace weir::ftrace
