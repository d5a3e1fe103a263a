// A command to another core and its answer back, through two channels; every trip is timed, both threads poll.
#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/trips.h"

namespace weir::channel_bench {
namespace {

template <class Carried>
void enter(std::vector<Benchmark>& list, const Conditions& conditions, const char* name, const char* what) {
  for_each_contestant<typename Carried::Item, 1, 1>([&]<class Contestant>() {
    list.push_back(entry<Contestant>(name, Unit::ns_per_operation, what, measure_trips<Contestant, Carried, true>));
    list.back().target =
        target_for(Contestant::kName, {5000, "round trip < 5 us"}, {25'000, "mutex: round trip < 25 us"});
    if (core_count(conditions) < 2) list.back().unavailable = kNeedsTwoCores;
  });
}

std::vector<Benchmark> benchmarks(const Conditions& conditions) {
  std::vector<Benchmark> list;
  enter<Small>(list, conditions, "one_line",
               "a command of 56 bytes, which shares a line with our stamp, there and back");
  enter<TwoLines>(list, conditions, "two_lines", "64 bytes, which with a stamp take two lines, there and back");
  return list;
}

}  // namespace

Group round_trip() {
  return {"round_trip", "a command to another core and its answer back, polling", "Round-Trip Latency", benchmarks};
}

}  // namespace weir::channel_bench
