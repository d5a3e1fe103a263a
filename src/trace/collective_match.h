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

// Sizes of the parts of an uneven exchange differ from rank to rank.
bool sizes_agree(const CollectiveFacts& a, const CollectiveFacts& b) noexcept;

// The shift at which ends are nearest to `expected_ns` apart (other minus reference): the other's i-th collective is
// the reference's (i + shift)-th. Empty where no shift near it has pairs whose sizes agree.
std::optional<std::int64_t> shift_near(const Timeline& timeline, const std::vector<CollectiveFacts>& reference,
                                       const std::vector<CollectiveFacts>& other, std::int64_t expected_ns);

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
