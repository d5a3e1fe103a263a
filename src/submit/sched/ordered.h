// Computes ranks from keys, for policies that sort clients.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>

#include "submit/sched/policy.h"

namespace weir::scheduler {

// Clients with smaller keys have smaller ranks, those with equal keys the same one. `keys` are by seat; allocates
// nothing.
template <class Key>
std::array<std::uint8_t, kMaxClients> ranks_by(std::span<const Key> keys) {
  std::array<std::uint8_t, kMaxClients> seats{}, ranks{};
  const auto end = seats.begin() + static_cast<std::ptrdiff_t>(keys.size());
  std::iota(seats.begin(), end, std::uint8_t{0});
  std::sort(seats.begin(), end, [&](std::uint8_t a, std::uint8_t b) { return keys[a] < keys[b]; });
  std::uint8_t rank = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0 && keys[seats[i - 1]] < keys[seats[i]]) ++rank;
    ranks[seats[i]] = rank;
  }
  return ranks;
}

}  // namespace weir::scheduler
