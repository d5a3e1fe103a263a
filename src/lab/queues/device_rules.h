// Finds out by experiment what a device's queues do besides being shared: how many launches they take, how many kernels
// run at once, whether a queue waits for the end of each command, how long it takes for a launch, and where copies and
// host functions wait. For calibration; makes no document.
#pragma once

#include <array>

#include "lab/queues/limits.h"
#include "lab/queues/probe.h"

namespace weir {

struct DeviceRules {
  Known<int> queue_depth;       // launches behind a held kernel before the host has to wait
  Known<int> resident_kernels;  // at a time
  Known<int> slots;             // blocks of one warp that a multiprocessor runs at a time
  Known<bool> barrier;          // a queue's head waits for the end of the command before it, whoever's that is
  Known<double> packet_ns;      // a queue's time for one launch that has nothing to wait for
  Known<double> event_gap_ns;   // from one stream to another of the same queue, more than within a stream
  Known<int> copy_queues;       // queues in which copies of one direction wait; 0: in their stream's
  std::array<Known<int>, kCopyDirections> copies;  // that run at a time
  Known<bool> host_in_queue;                       // host functions wait in their stream's queue
  Known<int> host_functions;                       // that run at a time
};

struct RulesRequest {
  bool has_copies = true;  // false: leave out what concerns copies
  bool has_host_functions = true;
};

// `probe` is of the same device; its count must be known.
DeviceRules measure_rules(Device& device, const QueueProbe& probe, const RulesRequest& request);

}  // namespace weir
