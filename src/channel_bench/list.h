// Every group of benchmarks, in the order in which `weir channel` shows them.
#pragma once

#include "channel_bench/benchmark.h"

namespace weir::channel_bench {

Group ping_pong();
Group backpressure();
Group request();
Group priority();
Group error_path();
Group metrics();

}  // namespace weir::channel_bench
