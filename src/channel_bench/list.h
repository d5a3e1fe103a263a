// Every group of benchmarks, in the order in which `weir channel` shows them.
#pragma once

#include "channel_bench/benchmark.h"

namespace weir::channel_bench {

Group ping_pong();
Group payload_clone();
Group memory_pool();
Group memory_pressure();

}  // namespace weir::channel_bench
