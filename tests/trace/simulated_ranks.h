// Ranks that step together, each recorded on a clock of its own: arrivals at collectives are drawn, all ranks leave
// when the last one has come, and each rank's clock shows that with its offset, its drift and a little noise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "measure/bootstrap.h"
#include "trace/ranks_timeline.h"

namespace weir {

enum class MarkedBy { nothing, sizes, one_size, name, sequence, group, uneven_sizes };

struct SimulatedRanks {
  int ranks = 2;
  int collectives = 60;
  std::int64_t period_ns = 5'000'000;
  std::uint32_t arrival_jitter_ns = 20'000;
  std::uint32_t noise_ns = 3'000;  // of leaving, on each rank
  std::int64_t resolution_ns = 1;  // of the times that are written
  std::int64_t start_ns = 1'000'000'000;
  MarkedBy mark = MarkedBy::nothing;
  int late_rank = -1;
  std::int64_t late_ns = 200'000;
  std::uint32_t late_percent = 80;
  // By rank; empty: 0.
  std::vector<std::int64_t> offsets;
  std::vector<int> lacks_first, lacks_last;
  // Parts per million in the first and in the second half, times the rank's number.
  double early_ppm = 0, late_ppm = 0;

  // What the rank's clock shows at a moment of the reference's.
  std::int64_t shown(int rank, std::int64_t ns) const {
    const auto since = static_cast<double>(ns - start_ns), half = static_cast<double>(period_ns * collectives) / 2;
    const double drift = early_ppm * std::min(since, half) + late_ppm * std::max(0.0, since - half);
    const std::int64_t exact = ns + of(offsets, rank) + static_cast<std::int64_t>(drift * 1e-6 * rank);
    return exact - exact % resolution_ns;
  }

  Timeline timeline(SplitMix& random) const {
    RanksTimeline made(ranks);
    // In the part that all ranks have.
    const int marked = 6 + static_cast<int>(random.below(static_cast<std::uint32_t>(collectives) - 12));
    for (int i = 0; i < collectives; ++i) {
      const std::int64_t planned = start_ns + period_ns * i;
      std::vector<std::int64_t> arrivals;
      std::int64_t last = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        std::int64_t at = planned + (arrival_jitter_ns > 0 ? random.below(arrival_jitter_ns) : 0);
        if (rank == late_rank && random.below(100) < late_percent) at += late_ns;
        arrivals.push_back(at);
        last = std::max(last, at);
      }
      std::uint64_t bytes = 4'000'000;
      if (mark == MarkedBy::sizes) bytes = 1'000'000ull << random.below(8);
      if (mark == MarkedBy::one_size && i == marked) bytes = 64;
      for (int rank = 0; rank < ranks; ++rank) {
        const std::int64_t end = last + 100'000 + random.below(noise_ns);
        if (i < of(lacks_first, rank) || i >= collectives - of(lacks_last, rank)) continue;
        const bool is_uneven = mark == MarkedBy::uneven_sizes;
        if (is_uneven) bytes = 1'000'000 + 4'096 * random.below(200);  // few enough to be equal by chance
        made.add(rank, shown(rank, arrivals[static_cast<std::size_t>(rank)]), shown(rank, end),
                 is_uneven ? CollectiveKind::all_to_all : CollectiveKind::all_reduce, bytes);
        Timeline& part = made.part(rank);
        if (mark == MarkedBy::name) part.spans.back().name = i == marked ? 1 : 2;
        if (mark == MarkedBy::sequence) part.collectives.back().sequence = static_cast<std::uint64_t>(i) + 1;
        if (mark == MarkedBy::group && i == marked)
          made.add(rank, shown(rank, end + 10'000), shown(rank, end + 50'000), CollectiveKind::all_gather, 0, 1);
      }
    }
    return made.merged();
  }

 private:
  template <class Value>
  static Value of(const std::vector<Value>& values, int rank) {
    return values.empty() ? Value{} : values[static_cast<std::size_t>(rank)];
  }
};

}  // namespace weir
