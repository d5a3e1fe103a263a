// The processes of `weir channel`: each runs all benchmarks in its own order and reports results as they arrive. One
// that hangs or crashes costs one benchmark, not the run. Knows no statistics.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lab/channels/channel_document.h"
#include "lab/channels/loops/benchmark.h"

namespace weir {

struct ChannelPlan {
  std::vector<std::string> command;  // a program and its arguments; the request file is appended
  std::vector<std::string> ids;      // of the benchmarks
  channel_bench::Conditions conditions;
  int processes = 1;
  std::int64_t limit_ns = 0;  // for one benchmark
};

struct ChannelEvents {
  std::function<void(int process, const std::string& id, channel_bench::Measurement found)> measured;
  std::function<void(const ChannelProcess& process)> ended;
  // The benchmark that begins now, and how many of all measurements of the run are done.
  std::function<void(int process, const std::string& id, std::size_t done, std::size_t total)> began;
};

// Runs processes one after another. A benchmark that hangs or crashes is reported as a measurement with a failure, the
// rest of its process continues in a new one, and it is not tried again. Returns false where `stop` was set; results
// until then have been reported. Call from a thread that outlives the children: they die with it.
bool run_processes(const ChannelPlan& plan, const ChannelEvents& events, const std::atomic<bool>& stop);

// The child's side: runs the benchmarks that a file names, in its order, and reports each result as a line of JSON:
// {"begins": ID} before each benchmark, {"ends": ID, "measurement": {...}} after it. Rejects a file that is not a
// request.
void run_channel_child(const std::string& file);

// Every process has its own seed, which follows from the seed of the run.
std::uint64_t seed_of_process(std::uint64_t seed, int process);

}  // namespace weir
