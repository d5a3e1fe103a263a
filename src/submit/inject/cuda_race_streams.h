// The program's threads and streams as the log of `weir race` numbers them. Submits nothing.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <vector>

#include "submit/inject/cuda_race_accesses.h"
#include "submit/inject/race_run.h"

namespace weir::inject {

struct RaceStream {
  CUstream handle = nullptr;
  CUcontext context = nullptr;  // null: not known
  std::uint32_t number = race_format::kNone;
  std::uint16_t device = 0;
};

enum class RaceCapture : std::uint8_t {
  none,
  captured,
  forbidden,  // the driver does not say: another capture forbids to touch the stream
};

// What a thread remembers, and the call that is under way in it.
struct RaceThread {
  std::uint32_t number = 0;    // 0: it has submitted nothing yet
  std::uint32_t sequence = 0;  // of its last command
  std::uint32_t epoch = 0;
  std::array<RaceStream, 64> streams;
  std::vector<race_format::Entry> kept;  // waits of the host before the thread had a number
  // The present call.
  RaceName name;
  const RaceOrders* orders = nullptr;
  RaceStream stream;
  RaceCapture capture = RaceCapture::none;
  std::int64_t began_ns = 0;
  RaceAccesses accesses;
  std::vector<std::uint64_t> hashes;  // before the command
};

// Null where there is no memory.
RaceThread* race_thread() noexcept;
// With the run's mutex. Gives the thread a number if it has none, and writes what was kept.
std::uint32_t number_race_thread(RaceRun& run, RaceThread& thread);

// Writes the stream into the log when it is first seen. `context`: that of the call. Without the mutex.
RaceStream find_race_stream(RaceThread& thread, CUstream handle, CUcontext context);
// CU_STREAM_NON_BLOCKING or not.
void race_stream_made(CUstream handle, unsigned flags);
void race_stream_ends(CUstream handle);
void forget_race_streams();  // a context ends

// Captures that were begun and have not ended, in any thread.
void race_capture_changes(int by) noexcept;
RaceCapture race_capture_of(CUstream handle, CUcontext context) noexcept;

}  // namespace weir::inject
