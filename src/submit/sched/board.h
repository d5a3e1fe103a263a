// The shared memory between a scheduler's daemon and its clients. Each word has one writer, but for `active`, of which
// each client changes its own bit, and for what sleepers are woken with: so whoever is killed at any instant leaves
// nothing half done, and there is no lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "submit/sched/policy.h"

namespace weir::scheduler {

inline constexpr std::uint32_t kBoardMagic = 0x57454952;  // "WEIR"
inline constexpr std::uint32_t kBoardVersion = 1;
inline constexpr std::int64_t kBeatNs = 20'000'000;    // the daemon shows that often that it lives
inline constexpr std::int64_t kSilentNs = 80'000'000;  // a daemon that has not for so long is taken for dead

// One client's part. What it writes is for people (status, top) and for accounts; what it reads decides.
struct alignas(128) Seat {
  // Written by the daemon.
  std::atomic<std::uint64_t> yields_to{0};  // waits while one of these is active
  // Commands that it may have on the device; 0: any number, and uncounted, for nobody else is there.
  std::atomic<std::uint32_t> in_flight{0};
  std::atomic<std::uint32_t> is_taken{0};

  // Written by the client.
  alignas(128) std::atomic<std::int64_t> arrived_ns{0};  // when it last became active, on CLOCK_MONOTONIC
  std::atomic<std::int64_t> alive_ns{0};                 // when it last showed itself, kept up while it is active
  std::atomic<std::uint64_t> launches{0};                // that came through its gate, so while the device was shared
  std::atomic<std::uint64_t> held{0};                    // of these: had to wait for others
  std::atomic<std::uint64_t> held_ns{0};                 // for so long, all together
  std::atomic<std::uint64_t> paced_ns{0};                // waited for its own commands: the bound
};

struct Board {
  std::uint32_t magic = kBoardMagic;
  std::uint32_t version = kBoardVersion;
  std::uint32_t bytes = 0;  // of this structure, as the daemon was built

  // A bit per seat; a client sets and clears its own, the daemon those of the dead.
  alignas(128) std::atomic<std::uint64_t> active{0};
  // A futex: counts up when those who sleep should look again. `waiting` is raised by whoever goes to sleep and taken
  // down by whoever wakes them all: a flag and no count, so one who is killed asleep costs a single idle wake-up.
  alignas(128) std::atomic<std::uint32_t> turn{0};
  std::atomic<std::uint32_t> waiting{0};
  // Written by the daemon. On CLOCK_MONOTONIC; kNever where nobody has to beat, as within one process.
  alignas(128) std::atomic<std::int64_t> beat_ns{0};
  std::atomic<std::uint32_t> follows_arrivals{0};  // clients ring the daemon when they become active
  std::atomic<std::uint32_t> is_closed{0};         // the daemon ends: everybody runs on unscheduled

  Seat seats[kMostClients];
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

// Behind a change of `active` or of a mask: wakes those who sleep on the board. One load where nobody does.
void wake_waiting(Board& board) noexcept;
// Wakes them even where nobody seems to sleep: somebody may have died between taking the flag down and the wake-up.
void wake_everybody(Board& board) noexcept;

// A futex between processes: sleeps while the word has that value, for so long at most; may return for no reason.
void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t most_ns) noexcept;
void wake_all(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace weir::scheduler
