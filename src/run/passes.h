// The loops that take samples: a timed pass without tracing, and a traced pass without claims about time.
#pragma once

#include <exception>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "run/hang_watch.h"
#include "run/runner.h"
#include "submit/submitter.h"

namespace weir {

// Times on the host's and the device's clocks, one entry per measured iteration.
struct TimedPass {
  std::vector<double> latency_ns;  // begin until all has ended, on the host's clock; only per_iteration
  // Begin to next begin (per_iteration) or end to next end (pipelined, the first from its start; without a device
  // clock: submit to submit).
  std::vector<double> interval_ns;
  std::vector<double> device_ns;  // first start to last end, on the device's clock; empty without one
  std::vector<double> submit_ns;  // host time in submit
  double total_ns = 0;            // all work, including the drain
  SyncMode sync = SyncMode::per_iteration;
  bool is_interrupted = false;
  std::uint64_t iterations = 0;  // that ran; a soak keeps the samples of only some of them
  std::exception_ptr failure;    // what ended it early; the samples are of iterations that had ended before
  Telemetry before, after;
  MemoryUse memory;
};

// `watch`: this session's, or null. Throws failures before the end of the first iteration; later ones are returned in
// `failure`.
TimedPass run_timed_pass(Device& device, Session& session, Submitter& submitter, const RunRequest& request,
                         const RunControl& control, SessionWatch* watch = nullptr);

// The iterations before measuring; the host waits for them except in mode `none`.
void warm_up(Session& session, Submitter& submitter, const RunRequest& request, const RunControl& control,
             SessionWatch* watch);

struct TracedPass {
  // One iteration as seen by the host, on the timeline's clock.
  struct Round {
    std::uint32_t iteration = 0;  // as in spans
    std::int64_t begun_ns = 0;
    std::int64_t seen_ns = 0;  // finish() returned: the host knew that everything had ended
  };
  Timeline timeline;
  std::vector<double> latency_ns;  // of the traced iterations, to show the cost of tracing
  std::vector<Round> rounds;       // likewise, by traced iteration
};

inline constexpr int kMaxTracedSteps = 10'000;  // that a user may ask for

// Which iterations a trace keeps, as torch.profiler.schedule says it: in each of `repeat` rounds it lets `wait` of them
// go by, then `warmup` that it does not trust yet, and keeps `active`. The tracer runs all the time.
struct TraceSchedule {
  int wait = 0, warmup = 1, active = 1, repeat = 1;
  TraceSchedule() = default;
  explicit TraceSchedule(int active) : active(active) {}  // after one to warm up
  int round() const { return wait + warmup + active; }
  int iterations() const { return round() * repeat; }
  bool keeps(int iteration) const { return iteration % round() >= wait + warmup; }
};

// Runs the traced iterations of a schedule. If stopped, it ends at once, or after the next iteration where none is kept
// yet, which then is. Ranks begin each iteration together. `roles`: names for hang reports. `by_events`:
// SessionOptions::traces_by_events.
TracedPass run_traced_pass(Device& device, const Step& step, const Placement& placement, const SubmitChoice& submit,
                           const TraceSchedule& schedule, const RunControl& control,
                           std::span<const std::string> roles = {}, bool by_events = false);

}  // namespace weir
