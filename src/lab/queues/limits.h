// Measures how much a device accepts before something waits (launches behind a held kernel, concurrent kernels), which
// copies overlap, and which priorities make a difference. Works by experiment only and makes one document; prints
// nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "lab/queues/queues_document.h"

namespace weir {

// The number of launches that one stream accepts behind a held kernel before submit() makes the host wait.
struct QueueDepth {
  Known<int> launches;
  int tried = 0;
  std::vector<int> found;                 // by repetition
  std::optional<std::int64_t> waited_ns;  // how long the first call beyond the limit took, in the first repetition
};
QueueDepth measure_queue_depth(Device& device, int max_launches);

// One call of submit(), on the session's clock.
struct SubmitCall {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
};
// True if the call took most of the remaining time until the held kernel timed out: it waited for that kernel.
bool waited_for_hold(const SubmitCall& call, std::int64_t hold_ends_ns);

// The number of kernels, of one block and on one stream each, that run at the same time.
struct ResidentLimit {
  struct Point {
    int kernels = 0;
    std::int64_t makespan_ns = 0;  // the shortest of some repetitions
  };
  Known<int> kernels;
  int tried = 0;
  int most_at_once = 0;      // the most seen at once, by the kernels' own moments
  bool is_in_graph = false;  // seen in a graph, because the queues of streams let through too few
  std::int64_t duration_ns = 0;
  std::vector<Point> points;  // ascending; include as many as fit and one more
};
// `barrier_queues`: the number of queues, where each runs one kernel at a time.
ResidentLimit measure_resident_limit(Device& device, int max_streams, std::optional<int> barrier_queues = std::nullopt);

enum class CopyDirection : std::uint8_t { to_device, to_host, on_device };
inline constexpr int kCopyDirections = 3;
std::string_view name_of(CopyDirection direction);

struct CopyOverlap {
  struct Alone {
    CopyDirection direction{};
    std::uint64_t size_bytes = 0;  // of all repetitions timed together
    double time_ns = 0;
    // From the difference to copies of half the size, so that latency and gaps do not count; nothing: it did not show.
    std::optional<double> bytes_per_s;
    // The time that the bytes alone take.
    double transfer_ns() const { return bytes_per_s ? static_cast<double>(size_bytes) / *bytes_per_s * 1e9 : time_ns; }
  };
  struct Together {
    std::vector<CopyDirection> directions;
    double time_ns = 0;
    std::optional<double> overlap;  // 1: the shorter ones were hidden; 0: one after the other; nothing: unknown
  };
  std::vector<Alone> alone;        // by direction
  std::vector<Together> together;  // pairs, then all three
  int engines_at_least = 1;
  std::string reason;  // why there is nothing
};

// `size_bytes` is the size of one copy, which is repeated until it takes a millisecond, and enlarged where latency and
// gaps take much of that.
CopyOverlap measure_copy_overlap(Device& device, std::uint64_t size_bytes);

// One kind of copy on its own: all of its time, and the part that its bytes take.
struct CopyTime {
  double time_ns = 0, transfer_ns = 0;
};
// The share of the time that could be hidden and was, between 0 and 1. One engine needs at least the time of all bytes,
// even if one copy's gaps are another's time to run; nothing where gaps take so much that this shows nothing.
std::optional<double> overlap_of(std::span<const CopyTime> alone, double together_ns);
// The size of the largest set of copies of which more than half was hidden.
int engines_at_least(std::span<const CopyOverlap::Together> together);

struct PriorityLevels {
  struct Pair {
    int lower = 0, higher = 0;
    // The median share of the large kernel's blocks that had started before the small kernel; 1 means all of them.
    double passed_equal = 0;   // both at `lower`
    double passed_higher = 0;  // the small one at `higher`
    Known<bool> differs;
  };
  int lowest = 0, highest = 0;  // as reported by the device
  Known<int> levels;            // levels that really differ
  std::vector<Pair> pairs;      // neighbouring priorities, ascending
  int blocks_at_once = 0;       // capacity of the device, by experiment
  int victim_blocks = 0;
};

PriorityLevels measure_priority_levels(Device& device);

// The verdict on a pair's two shares; nothing if not even an equal priority waits.
Known<bool> priorities_differ(double passed_equal, double passed_higher);
// One more than the number of differing neighbours; nothing if one pair is unknown.
Known<int> count_levels(const std::vector<PriorityLevels::Pair>& pairs);

struct LimitsRequest {
  int streams = 160;                       // the most, for concurrent kernels
  int launches = 4096;                     // the most, behind a held kernel
  std::uint64_t copy_bytes = 16ull << 20;  // of one copy
  std::function<void(std::string_view phase, int done, int total)> progress;
};

// A weir.queues/2 document with the member "limits".
Json measure_limits(Device& device, const LimitsRequest& request, const RunContext& context);

Json to_json(const QueueDepth& depth);
Json to_json(const ResidentLimit& limit);
Json to_json(const CopyOverlap& overlap);
Json to_json(const PriorityLevels& levels);

}  // namespace weir
