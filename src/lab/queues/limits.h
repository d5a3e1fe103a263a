// How much a device takes before something waits (launches behind a held kernel, kernels at the same time), which
// copies hide behind which, and which priorities make a difference. By experiment; asks the device for nothing but to
// run. One document of all of them; prints nothing.
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

// Launches that one stream takes behind a held kernel before submit() makes the host wait.
struct QueueDepth {
  Known<int> launches;
  int tried = 0;
  std::vector<int> found;                 // by repetition
  std::optional<std::int64_t> waited_ns;  // that the first call beyond took, in the first repetition
};
QueueDepth measure_queue_depth(Device& device, int most_launches);

// One call of submit() by the session's clock.
struct SubmitCall {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
};
// True for a call that took most of the time that was left until the held kernel gave up: it waited for that.
bool waited_for_hold(const SubmitCall& call, std::int64_t hold_ends_ns);

// Kernels of one block each, on a stream each, that run at the same time.
struct ResidentLimit {
  struct Point {
    int kernels = 0;
    std::int64_t makespan_ns = 0;  // the shortest of some repetitions
  };
  Known<int> kernels;
  int tried = 0;
  int most_at_once = 0;  // ever seen by their own moments
  std::int64_t duration_ns = 0;
  std::vector<Point> points;  // ascending; the last one within 1.5 durations and the first one beyond are among them
};
ResidentLimit measure_resident_limit(Device& device, int most_streams);

enum class CopyDirection : std::uint8_t { to_device, to_host, on_device };
inline constexpr int kCopyDirections = 3;
std::string_view name_of(CopyDirection direction);

struct CopyOverlap {
  struct Alone {
    CopyDirection direction{};
    std::uint64_t size_bytes = 0;  // of all repetitions that were timed as one
    double time_ns = 0;
  };
  struct Together {
    std::vector<CopyDirection> directions;
    double time_ns = 0;
    double overlap = 0;  // 1: the shorter ones were hidden, 0: one after the other
  };
  std::vector<Alone> alone;        // by direction
  std::vector<Together> together;  // pairs, then all three
  int engines_at_least = 1;
};

// `size_bytes` of one copy; repeated until it takes a millisecond.
CopyOverlap measure_copy_overlap(Device& device, std::uint64_t size_bytes);

// How much of what could be hidden was: (sum - together) / (sum - longest), within 0 and 1.
double overlap_of(std::span<const double> alone_ns, double together_ns);
// The largest set of copies of which more than half was hidden.
int engines_at_least(std::span<const CopyOverlap::Together> together);

struct PriorityLevels {
  struct Pair {
    int lower = 0, higher = 0;
    // Share of the large kernel's blocks that had started before the small one, medians: 1 is after all of them.
    double passed_equal = 0;   // both at `lower`
    double passed_higher = 0;  // the small one at `higher`
    Known<bool> differs;
  };
  int lowest = 0, highest = 0;  // as the device says
  Known<int> levels;            // that really exist
  std::vector<Pair> pairs;      // neighbours, ascending
  int blocks_at_once = 0;       // of the device, by experiment
  int victim_blocks = 0;
};

PriorityLevels measure_priority_levels(Device& device);

// What the two shares of a pair say; nothing where even an equal does not wait.
Known<bool> priorities_differ(double passed_equal, double passed_higher);
// One more than there are differing neighbours; nothing where one of them is not known.
Known<int> count_levels(const std::vector<PriorityLevels::Pair>& pairs);

struct LimitsRequest {
  int streams = 160;                       // most, for kernels at the same time
  int launches = 4096;                     // most, behind a held kernel
  std::uint64_t copy_bytes = 16ull << 20;  // of one copy
  std::function<void(std::string_view phase, int done, int total)> progress;
};

// A weir.queues/1 document with the member "limits".
Json measure_limits(Device& device, const LimitsRequest& request, const RunContext& context);

Json to_json(const QueueDepth& depth);
Json to_json(const ResidentLimit& limit);
Json to_json(const CopyOverlap& overlap);
Json to_json(const PriorityLevels& levels);

}  // namespace weir
