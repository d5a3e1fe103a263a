// What KFD did, as spans over kernel functions, and the sink that takes them in one pass. Knows KFD's call chains; no
// runtime log and no debugfs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::ftrace {

enum class KfdVerb : std::uint8_t { ioctl, create, update, destroy, map, unmap, evict, restore, suspend, resume, preempt };

// How well a span's end is known.
enum class EndKind : std::uint8_t {
  exact,     // a return was traced: function_graph, a return probe, a pair of events
  at_least,  // the last function below it that was seen: it took at least that long
  unknown,   // only the entry was seen
};

struct KfdSpan {
  KfdVerb verb = KfdVerb::ioctl;
  EndKind end = EndKind::unknown;
  int pid = 0;                       // the thread that ran it, of the host's namespace
  std::optional<int> process;        // its process (TGID, or pid= of the text); of a worker: on whose behalf
  int cpu = -1;
  std::int64_t started_ns = INT64_MIN, ended_ns = INT64_MIN;  // of the trace's clock; INT64_MIN: not known
  std::optional<std::uint32_t> queue_id, gpu_id, doorbell;
  std::optional<std::uint64_t> ring_base, mqd_base;  // where probes or texts tell
  std::optional<int> result;                         // of the call, where a return value was traced
  std::uint64_t line = 0;
};

// A `preempt` span is unmap -> fence: how long the hardware took to let go of its queues.
class KfdSink {
 public:
  virtual ~KfdSink() = default;
  virtual void on(const KfdSpan&) {}
};

}  // namespace weir::ftrace
