// The legacy pattern alone: the cost of a push and a pop of a deque protected by a mutex, in the loops of send_latency.
#include "lab/channels/loops/carried.h"
#include "lab/channels/loops/contestants.h"
#include "lab/channels/loops/list.h"
#include "lab/channels/loops/uncontended.h"

namespace weir::channel_bench {
namespace {

template <Timed kTimed, class Carried>
Benchmark make(const char* name, const char* what) {
  using Contestant = MutexDequeContestant<typename Carried::Item>;
  return entry<Contestant>(name, Unit::ns_per_operation, what, [](const Conditions& here) {
    return measure_uncontended<kTimed, Contestant, Carried>(here, here.capacity);
  });
}

std::vector<Benchmark> benchmarks(const Conditions&) {
  std::vector<Benchmark> list = {
      make<Timed::push, Small>("push_small", "one thread pushes a synchronize; draining is not timed"),
      make<Timed::push, Medium>("push_medium", "the same with a launch that has 128 bytes of parameters"),
      make<Timed::push, Large>("push_large",
                               "the same with a copy of 1 MB, which travels as a reference that the push takes"),
      make<Timed::pop, Small>("pop", "one thread pops a synchronize; filling is not timed"),
      make<Timed::cycle, Small>("push_pop", "one thread pushes a synchronize and pops it again"),
  };
  list.front().target = Target{500, "mutex: send < 500 ns"};
  return list;
}

}  // namespace

Group mutex_latency() {
  return {"mutex_latency", "the legacy pattern: a deque behind a mutex, with nobody else there",
          "Mutex+VecDeque Latency", benchmarks};
}

}  // namespace weir::channel_bench
