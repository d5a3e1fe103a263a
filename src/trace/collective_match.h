// Which collectives of several devices are the same one: by group, kind, size and order. Reads a timeline of several
// ranks, each with its own clock; moves no times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// Collectives of one kind and group, as each device saw them.
struct CollectiveSequence {
  CollectiveKind kind = CollectiveKind::unknown;
  std::uint32_t group = kNoName;
  std::vector<std::uint16_t> devices;                     // those that took part, by rank
  std::vector<std::vector<CollectiveFacts>> collectives;  // by position in `devices`, in order of start
};

// Sequences that two or more devices share, the longest first. Excludes unknown kinds, sends and receives among more
// than two devices, and group names used by more devices than the group has ranks: those are several groups.
std::vector<CollectiveSequence> collective_sequences(const Timeline& timeline);

// The other's i-th collective is the reference's (i + shift)-th.
struct SequenceFit {
  std::int64_t shift = 0;
  std::size_t pairs = 0;
  double distance_ns = 0;          // median of the other's end minus the reference's
  double spread_ns = 0;            // median deviation from it
  std::optional<double> rival_ns;  // distance at another shift that fits as steadily, where nothing favours this one
};

// Aligns one sequence with another: finds the shift at which sizes agree and ends keep the steadiest distance, because
// a trace that began later lacks the first ones. `expected_ns` is the distance where it is already known. Empty where
// no shift fits: fewer than three pairs or half of the shorter sequence, or sizes that differ.
std::optional<SequenceFit> fit_sequences(const Timeline& timeline, const std::vector<CollectiveFacts>& reference,
                                         const std::vector<CollectiveFacts>& other,
                                         std::optional<double> expected_ns = std::nullopt);

struct Participant {
  std::uint16_t device = 0;
  std::uint32_t span = 0;
};

// One collective and the devices that took part in it, two or more.
struct MatchedCollective {
  CollectiveKind kind = CollectiveKind::unknown;
  std::uint32_t group = kNoName;
  std::uint64_t bytes = 0;                // 0 where unknown
  std::vector<Participant> participants;  // by rank
};

// Collectives of a timeline whose clocks have been aligned, by first start. `is_aligned` is by process; the others are
// left out.
std::vector<MatchedCollective> match_collectives(const Timeline& aligned, const std::vector<bool>& is_aligned);

}  // namespace weir
