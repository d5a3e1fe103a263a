// All groups of benchmarks, in the order in which `weir channel` shows them.
#pragma once

#include "lab/channels/loops/benchmark.h"

namespace weir::channel_bench {

Group ping_pong();
Group send_latency();
Group mutex_latency();
Group round_trip();
Group throughput();
Group backpressure();
Group payload_clone();
Group memory_pool();
Group sequential();
Group contention();
Group producers();
Group consumers();
Group placement();
Group wait_strategies();
Group read_in_place();
Group request();
Group priority();
Group kernel_latency();
Group devices();
Group memory_pressure();
Group error_path();
Group metrics();

}  // namespace weir::channel_bench
