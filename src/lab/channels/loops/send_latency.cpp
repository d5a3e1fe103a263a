// The cost for a thread to push a command, and to push and pop one, without any other thread.
#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/uncontended.h"

namespace weir::channel_bench {
namespace {

constexpr std::size_t kMoreCapacity = 8;  // multiple of the usual

template <Timed kTimed, class Carried>
void enter(std::vector<Benchmark>& list, const char* name, const char* what, std::size_t times = 1,
           bool has_target = false) {
  for_each_contestant<typename Carried::Item, 1, 1>([&]<class Contestant>() {
    list.push_back(entry<Contestant>(name, Unit::ns_per_operation, what, [=](const Conditions& here) {
      return measure_uncontended<kTimed, Contestant, Carried>(here, here.capacity * times);
    }));
    if (has_target)
      list.back().target = target_for(Contestant::kName, {100, "send < 100 ns"}, {500, "mutex: send < 500 ns"});
  });
}

std::vector<Benchmark> benchmarks(const Conditions&) {
  std::vector<Benchmark> list;
  enter<Timed::push, Small>(list, "small", "one thread pushes a synchronize; draining is not timed", 1, true);
  enter<Timed::push, Medium>(list, "medium", "the same with a launch that has 128 bytes of parameters");
  enter<Timed::push, Large>(list, "large",
                            "the same with a copy of 1 MB, which travels as a reference that the push takes");
  enter<Timed::push, Small>(list, "small_8x", "a synchronize, in a channel of 8 times the capacity", kMoreCapacity);
  enter<Timed::cycle, Small>(list, "push_pop", "one thread pushes a synchronize and pops it again");
  enter<Timed::fill_drain, Small>(list, "fill_drain", "push and pop; a channel is filled, then drained");
  return list;
}

}  // namespace

Group send_latency() {
  return {"send_latency", "what a push costs, and a push and a pop, with nobody else there", "Channel Send Latency",
          benchmarks};
}

}  // namespace weir::channel_bench
