// What the queue probe rests on: how late a mark is with nothing held, and what stops a stream when others are held:
// the queues, or the device's room for kernels, which look alike. Draws these conclusions only; counts no queues.
#pragma once

#include <cstdint>
#include <functional>
#include <random>

#include "lab/queues/lab.h"
#include "lab/queues/probe.h"

namespace weir {

enum class StoppedBy : std::uint8_t {
  unclear,
  queues,   // held kernels stop others only while something waits behind them
  barrier,  // a queue goes on only when its command has ended, so a held kernel alone stops its queue
  room,     // the device runs no more kernels at once, whatever queue they come from
};

struct ProbeControl {
  StoppedBy stopped_by = StoppedBy::unclear;
  double error_probability = 1;  // that another answer is true
  int trials = 0, spoilt = 0;
};

inline constexpr int kProbeGrace = 2;     // additional windows for streams that are late but not stuck
inline constexpr int kProbeAttempts = 5;  // at a trial in which a hold ended too early

// Measures marks while nothing is held.
ProbeBaseline measure_baseline(Lab& lab, double confidence, const std::function<void(int done, int total)>& progress);

// For a device on which `held` held streams stop all others, wherever streams take free queues.
ProbeControl find_what_stops(Lab& lab, int held, const ProbeBaseline& baseline, double confidence,
                             std::mt19937_64& random);

// For a device on which one held kernel stops all streams: whether they still pass beside a copy with a kernel behind
// it, which keeps a queue but no room for kernels. `barrier` stands for one queue, whatever makes it wait.
ProbeControl find_what_stops_all(Device& device, int streams, const ProbeBaseline& baseline);

}  // namespace weir
