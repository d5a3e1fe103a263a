// KFD's work as spans over kernel functions, and the sink that receives them in one pass. Knows KFD's call chains, but
// no runtime log and no debugfs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::ftrace {

enum class KfdVerb : std::uint8_t {
  ioctl,
  create,
  update,
  destroy,
  map,
  unmap,
  evict,
  restore,
  suspend,
  resume,
  preempt
};
inline constexpr std::size_t kVerbs = 11;
std::string_view name_of(KfdVerb verb);

// How precisely the end of a span is known.
enum class EndKind : std::uint8_t {
  exact,     // a return was traced (function_graph, a return probe, or a pair of events)
  at_least,  // a lower bound, from the last function seen below it
  unknown,   // only the entry was seen
};

inline constexpr std::int64_t kNoTime = INT64_MIN;

struct KfdSpan {
  KfdVerb verb = KfdVerb::ioctl;
  EndKind end = EndKind::unknown;
  int pid = -1;                // the thread that ran it, in the host's namespace; -1: not recorded
  std::optional<int> process;  // its process (TGID, or pid= in the text); for a worker, the process it works for
  int cpu = -1;
  std::int64_t started_ns = INT64_MIN, ended_ns = INT64_MIN;  // on the trace's clock; INT64_MIN: unknown
  // The duration (exact) or its lower bound; -1: unknown. A graph without absolute times has only this. Bounds include
  // the rounding of the stamps so that they hold, and may therefore differ from ended - started.
  std::int64_t duration_ns = -1;
  std::int64_t longest_ns = -1;  // upper bound from the thread's next step, unless exact; -1: unknown
  std::optional<std::uint32_t> queue_id, gpu_id, doorbell;  // doorbell in dwords, as in the HQD
  std::optional<std::uint64_t> ring_base, mqd_base;         // if probes or texts contain them
  std::optional<std::uint64_t> ring_bytes;
  std::optional<int> result;  // return value, if it was traced
  // For a create: calls seen below it. Partitioned chips repeat init_mqd for each XCC.
  std::uint16_t mqd_allocations = 0, mqd_inits = 0, doorbell_allocations = 0;
  std::uint64_t line = 0;
};

// Whether the call is known to have failed. Suspend and resume return a number of queues, other calls return 0.
bool has_failed(const KfdSpan& span);

// A `preempt` span lasts from unmap to fence: how long the hardware took to release its queues.
class KfdSink {
 public:
  virtual ~KfdSink() = default;
  // Called in the order in which spans end, or are found to have ended.
  virtual void on(const KfdSpan&) {}
};

}  // namespace weir::ftrace
