// The shared memory between a scheduler's daemon and its clients. Each word has one writer, but for `active`, of which
// each client changes its own bit: so whoever is killed at any instant leaves nothing half done, and there is no lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "scheduler/policy.h"

namespace weir::scheduler {

inline constexpr std::uint32_t kBoardMagic = 0x57454952;  // "WEIR"
inline constexpr std::uint32_t kBoardVersion = 1;
inline constexpr std::int64_t kBeatNs = 20'000'000;    // the daemon shows that often that it lives
inline constexpr std::int64_t kSilentNs = 80'000'000;  // a daemon that has not for so long is taken for dead

// One client's part. What it writes is for people (status, top) and for accounts; what it reads decides.
struct alignas(128) Seat {
  // Written by the daemon.
  std::atomic<std::uint64_t> yields_to{0};  // waits while one of these is active
  std::atomic<std::uint32_t> in_flight{
      0};  // commands that it may have on the device; 0: any number, nobody else is there
  std::atomic<std::uint32_t> is_taken{0};

  // Written by the client.
  alignas(128) std::atomic<std::int64_t> arrived_ns{0};  // when it last became active, on CLOCK_MONOTONIC
  std::atomic<std::uint64_t> launches{0};                // that came through its gate
  std::atomic<std::uint64_t> held{0};                    // of these: had to wait
  std::atomic<std::uint64_t> held_ns{0};                 // for so long, all together
};

struct Board {
  std::uint32_t magic = kBoardMagic;
  std::uint32_t version = kBoardVersion;
  std::uint32_t bytes = 0;  // of this structure, as the daemon was built

  alignas(128) std::atomic<std::uint64_t> active{
      0};  // a bit per seat; a client sets and clears its own, the daemon those of the dead
  // Counts up whenever somebody who waits should look again; a futex. `waiting` says whether anybody sleeps on it.
  alignas(128) std::atomic<std::uint32_t> turn{0};
  std::atomic<std::uint32_t> waiting{0};
  // Written by the daemon.
  alignas(128) std::atomic<std::int64_t> beat_ns{0};  // CLOCK_MONOTONIC
  std::atomic<std::uint32_t> follows_arrivals{0};     // clients ring the daemon when they become active
  std::atomic<std::uint32_t> is_closed{0};            // the daemon ends: everybody runs on unscheduled

  Seat seats[kMostClients];
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace weir::scheduler
