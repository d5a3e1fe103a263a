// Which collectives of several ranks are one and the same: by group, kind, size and order. Reads a timeline with a
// process per rank; moves no times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// One rank's part of a sequence, paired with the reference's.
struct SequencePair {
  std::vector<std::uint32_t> reference, other;  // spans, in order; equal lengths
  std::int64_t shift = 0;                       // the other's i-th is the reference's (i + shift)-th
  std::size_t sizes_differ = 0;                 // pairs left out because their sizes are known and differ
};

// Collectives of one kind and group, as each rank saw them.
struct CollectiveSequence {
  CollectiveKind kind = CollectiveKind::unknown;
  std::uint32_t group = kNoName;
  std::vector<std::uint16_t> processes;           // that took part, by rank
  std::vector<std::vector<std::uint32_t>> spans;  // by place in `processes`, in order of start
};

// Sequences that two or more processes share. Sends and receives tie two ranks only and are left out, as are kinds that
// are unknown, and group names that more processes use than the group has ranks: those are several groups.
std::vector<CollectiveSequence> collective_sequences(const Timeline& timeline);

// Lays one rank's sequence over another's: the shift at which sizes agree and the ends keep the steadiest distance.
// A trace that began later lacks the first ones. `expected_ns` is the distance where it is known already. Nothing where
// no shift makes at least three pairs, or half of the shorter one.
std::optional<SequencePair> pair_sequences(const Timeline& timeline, const std::vector<std::uint32_t>& reference,
                                           const std::vector<std::uint32_t>& other,
                                           std::optional<double> expected_ns = std::nullopt);

// A collective that two or more ranks took part in: spans by process of the timeline, UINT32_MAX where it has none.
struct MatchedCollective {
  CollectiveKind kind = CollectiveKind::unknown;
  std::uint32_t group = kNoName;
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> spans;
};

// By process, how many of a process are in no match. `offset_ns` by process: its clock minus the reference's where that
// is known.
struct CollectiveMatches {
  std::vector<MatchedCollective> matches;  // by first start
  std::vector<std::size_t> unmatched;      // by process
};
CollectiveMatches match_collectives(const Timeline& timeline, const std::vector<std::optional<double>>& offset_ns);

}  // namespace weir
