// The groups of benchmarks, in the order in which `weir channel` shows them: a file each beside this one, and its name
// here.
#pragma once

#include "lab/channels/loops/benchmark.h"

#define WEIR_CHANNEL_GROUPS                                                                                  \
  ping_pong(), send_latency(), mutex_latency(), round_trip(), throughput(), backpressure(), payload_clone(), \
      memory_pool(), sequential(), contention(), producers(), consumers(), placement(), wait_strategies(),   \
      read_in_place(), request(), priority(), kernel_latency(), devices(), memory_pressure(), error_path(), metrics()

namespace weir::channel_bench {
Group WEIR_CHANNEL_GROUPS;
}  // namespace weir::channel_bench
