// The loops that take samples: a timed pass without any tracing, a traced pass without any timing claim.
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

// What the host's and the device's clocks said, one entry per measured iteration.
struct TimedPass {
  std::vector<double> latency_ns;  // begin to all ended, by the host; only per_iteration
  std::vector<double>
      interval_ns;  // begin to next begin (per_iteration), end to next end (pipelined, the first from its start)
  std::vector<double> device_ns;  // first start to last end, by the device; empty where it has no clock
  std::vector<double> submit_ns;  // host time in submit
  double total_ns = 0;            // all work, drain included
  SyncMode sync = SyncMode::per_iteration;
  bool is_interrupted = false;
  std::exception_ptr failure;  // what ended it early: the samples are those of the iterations that had ended before
  Telemetry before, after;
  MemoryUse memory;
};

// `watch`: of this session, where somebody watches. Throws what goes wrong before the first iteration has ended; later
// it comes back as `failure`.
TimedPass run_timed_pass(Device& device, Session& session, Submitter& submitter, const RunRequest& request,
                         const RunControl& control, SessionWatch* watch = nullptr);

struct TracedPass {
  // One iteration as the host saw it, on the timeline's clock.
  struct Round {
    std::uint32_t iteration = 0;  // as spans name it
    std::int64_t begun_ns = 0;
    std::int64_t seen_ns = 0;  // finish() returned: the host knew that all of it had ended
  };
  Timeline timeline;
  std::vector<double> latency_ns;  // of the traced iterations: what tracing costs
  std::vector<Round> rounds;       // the same
};

// Runs `iterations` traced iterations (and one to warm up, which is not kept), fewer but one where it is stopped. Ranks
// begin each of them together. `roles`: names for reports of hangs. `by_events`: SessionOptions::traces_by_events.
TracedPass run_traced_pass(Device& device, const Step& step, const Placement& placement, const SubmitChoice& submit,
                           int iterations, const RunControl& control, std::span<const std::string> roles = {},
                           bool by_events = false);

}  // namespace weir
