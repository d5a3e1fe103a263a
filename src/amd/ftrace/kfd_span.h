// What KFD did, as spans over kernel functions, and the sink that takes them in one pass. Knows KFD's call chains; no
// runtime log and no debugfs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

// How well a span's end is known.
enum class EndKind : std::uint8_t {
  exact,     // a return was traced: function_graph, a return probe, a pair of events
  at_least,  // the last function below it that was seen: it took at least that long
  unknown,   // only the entry was seen
};

inline constexpr std::int64_t kNoTime = INT64_MIN;

struct KfdSpan {
  KfdVerb verb = KfdVerb::ioctl;
  EndKind end = EndKind::unknown;
  int pid = -1;                // the thread that ran it, of the host's namespace; -1: the trace does not say
  std::optional<int> process;  // its process (TGID, or pid= of the text); of a worker: on whose behalf
  int cpu = -1;
  std::int64_t started_ns = INT64_MIN, ended_ns = INT64_MIN;  // of the trace's clock; INT64_MIN: not known
  // How long it took (exact) or how long at least; -1: not known. A graph without absolute times has this alone.
  // Bounds allow for the rounding of the stamps, so that they hold: they may differ from ended - started by that.
  std::int64_t duration_ns = -1;
  std::int64_t longest_ns = -1;  // not exact: it took no longer than this, by the thread's next step; -1: not known
  std::optional<std::uint32_t> queue_id, gpu_id, doorbell;  // doorbell in dwords, as in the HQD
  std::optional<std::uint64_t> ring_base, mqd_base;         // where probes or texts tell
  std::optional<std::uint64_t> ring_bytes;
  std::optional<int> result;  // of the call, where a return value was traced
  // Of a create: calls seen below it. Partitioned chips repeat init_mqd for each XCC.
  std::uint16_t mqd_allocations = 0, mqd_inits = 0, doorbell_allocations = 0;
  std::uint64_t line = 0;
};

// Whether the call is known to have failed. Suspend and resume return how many queues they met, others 0.
bool has_failed(const KfdSpan& span);

// A `preempt` span is unmap -> fence: how long the hardware took to let go of its queues.
class KfdSink {
 public:
  virtual ~KfdSink() = default;
  // In the order in which spans end, or are known to have ended.
  virtual void on(const KfdSpan&) {}
};

}  // namespace weir::ftrace
