// Which ranks arrived late at collectives, and what that cost the others. Reads ranks on one clock
// (trace/clock_alignment.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/timeline.h"
#include "trace/clock_alignment.h"
#include "trace/rank_skew.h"

namespace weir {

// One device. It is one rank of collectives, even where a process drives several devices.
struct RankWait {
  std::uint16_t device = 0;
  int rank = 0;
  std::size_t collectives = 0;       // shared with another rank
  double collective_ns = 0;          // sum of their durations
  double waiting_ns = 0;             // part of it: from its own arrival to the last one's (or its own end)
  std::optional<double> wait_share;  // of the rank's span, first start to last end
  std::optional<double> last_share;  // of the instances in which all ranks took part
  std::optional<double> behind_ns;   // median of its arrival minus the median of the others'
};

struct KindSkew {
  CollectiveKind kind = CollectiveKind::unknown;
  std::size_t instances = 0;
  // Last minus first arrival.
  double p50_ns = 0, p95_ns = 0, max_ns = 0;
  double waiting_ns = 0;  // all ranks together
};

// One collective with its ranks' arrivals.
struct SkewedCollective {
  CollectiveKind kind = CollectiveKind::unknown;
  std::uint32_t group = kNoName;
  std::uint64_t bytes = 0;  // 0 where unknown
  std::int64_t first_ns = 0, last_ns = 0;
  int last_rank = 0;
  std::uint16_t last_device = 0;
  std::uint32_t last_span = 0;
};

inline constexpr std::size_t kMaxSkewed = 10;

struct RankCollectives {
  std::size_t matched = 0;      // collectives that two or more ranks share
  std::vector<KindSkew> kinds;  // by waiting time
  std::vector<RankWait> ranks;  // by rank
  // Over the ranks that share the most: the whole group, if there is one. By position in skew_devices.
  std::optional<RankSkew> skew;
  std::vector<std::uint16_t> skew_devices;
  std::vector<Straggler> stragglers;    // `rank` is the process's; the reason names the device if ambiguous
  std::vector<SkewedCollective> worst;  // by skew, at most kMaxSkewed
  std::string reason;                   // why there are no results, or which ranks are left out
};

// When the last rank arrived at a collective, on the timeline's clock.
struct LastArrival {
  std::uint32_t span = 0;
  std::int64_t arrived_ns = 0;
  int rank = 0;  // the rank that arrived last
};

// The position of each span in the slice of its device (trace/analyse/slice.h).
std::vector<std::uint32_t> slice_places(const Timeline& timeline);

// By device; spans are those of its slice: `places` is by span of `aligned`, which may be an outline
// (trace/outline.h). Empty for one rank, and for ranks that could not be aligned.
std::vector<std::vector<LastArrival>> last_arrivals(const Timeline& aligned, std::span<const std::uint32_t> places,
                                                    const std::optional<ClockAlignment>& alignment);

// `aligned` is the timeline after apply_alignment(). Ranks whose clocks could not be aligned are left out.
RankCollectives rank_collectives(const Timeline& aligned, const std::optional<ClockAlignment>& alignment);

}  // namespace weir
