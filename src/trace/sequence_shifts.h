// The shifts of one sequence of collectives against another on another clock, and which of them explain what was
// recorded. Knows nothing of other sequences (trace/clock_pairs.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "measure/timeline.h"
#include "trace/intervals.h"

namespace weir {

// What must be equal on all ranks of a collective.
enum Mark : std::size_t { kSequenceNumber, kSize, kName, kMarks };
inline constexpr double kMayDiffer = 0.1;  // share of the pairs; above it a mark excludes a shift

// 0 where it is not known.
std::uint64_t mark_of(const Timeline& timeline, const CollectiveFacts& facts, std::size_t mark);

// By end.
struct EndSequence {
  EndSequence(const Timeline& timeline, std::vector<CollectiveFacts> all);
  std::size_t size() const noexcept { return ends.size(); }

  std::vector<CollectiveFacts> facts;
  std::vector<std::int64_t> ends;
};

struct SequenceShift {
  std::int64_t by = 0;                                // the other's i-th collective is ours number i + by
  std::size_t first = 0, last = 0;                    // theirs that have a partner
  std::int64_t distance_ns = 0;                       // median of theirs minus ours
  double trend_ns = 0;                                // median change of the distance from one pair to the next
  double step_ns = 0;                                 // typical size of that change beyond the median
  double cost = 0;                                    // mean over the steps
  std::array<std::size_t, kMarks> known{}, differ{};  // by mark: pairs

  bool differs(std::size_t mark) const noexcept;
};

class SequenceShifts {
 public:
  SequenceShifts(const Timeline& timeline, EndSequence ours, EndSequence theirs);

  // The shifts that marks and steadiness leave. Empty where none has enough pairs.
  std::vector<SequenceShift> possible();
  // Leaves those that are about as steady as the best of them. `times` are the odds beyond which one is excluded.
  void exclude_worse(std::vector<SequenceShift>& shifts, double times = 1) const;
  // Of several shifts: the one at which the clocks agree, else the one nearest to sequences that begin together.
  const SequenceShift& most_plausible(const std::vector<SequenceShift>& shifts) const;

  // How far a collective of another sequence may be from where a shift expects it, and how much speaks against the
  // shift if it is `off_ns` away.
  double tolerated_ns() const noexcept;
  double misfit(double off_ns) const noexcept;
  // What noise explains of the misfit of so many.
  static double explained_misfit(std::size_t count) noexcept;

  // Their clock minus ours near a time of theirs, or of ours.
  std::int64_t distance_at(const SequenceShift& shift, std::int64_t ns, bool is_ours) const;
  // The first and the last end of theirs, or of ours, that have a partner.
  TimeInterval range(const SequenceShift& shift, bool is_ours) const;

 private:
  std::int64_t distance(const SequenceShift& shift, std::size_t i) const;
  template <class Visit>
  void sample(std::size_t first, std::size_t last, Visit visit) const;
  std::vector<SequenceShift> candidates();
  double quick_step(const SequenceShift& shift);
  void examine(SequenceShift& shift);
  static void exclude_by(std::size_t mark, std::vector<SequenceShift>& shifts);
  void keep_by(std::size_t mark, std::vector<SequenceShift>& shifts) const;
  std::map<std::int64_t, std::size_t> votes(std::size_t mark) const;
  double step(const SequenceShift& shift, std::size_t i) const;
  double cost(const SequenceShift& shift, std::size_t i) const;
  double outlier_cost(const SequenceShift& shift, std::size_t i) const;
  double mean_cost(const SequenceShift& shift) const;
  bool is_worse(const SequenceShift& shift, const SequenceShift& best, double times) const;
  double resolution() const;
  double usual_distance() const;

  const Timeline& timeline_;
  EndSequence ours_, theirs_;
  double step_ns_ = 1;
  std::vector<double> distances_, steps_;
};

}  // namespace weir
