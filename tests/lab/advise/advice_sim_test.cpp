// Programs on the simulated device, whose best number of queues is found by running them with every number: the advice
// from one trace with the usual number has to name it, or to say that it should be left.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "device/sim/profile.h"
#include "device/sim/sim.h"
#include "lab/advise/advice.h"
#include "run/describe_timeline.h"
#include "run/profile.h"
#include "submit/submitter.h"

namespace weir::advise {
namespace {

constexpr int kSteps = 4;

struct Observed {
  Timeline timeline;
  double step_ns = 0;  // from one step's end to the next
};

// With one block at a time on each multiprocessor, so that grids say how much of the device kernels fill.
Observed observed(const std::string& workload, int streams, std::int64_t queues) {
  sim::SimProfile profile = sim::profile_named("h200");
  profile.queues = queues;
  profile.slots_per_multiprocessor = 1;
  const auto device = open_sim(profile);
  RunRequest request;
  request.workload = workload;
  request.scale = Scale::tiny;
  request.streams = streams;
  const BuiltRun built = build_run(device->info(), request);
  TracedPass pass = run_traced_pass(*device, built.step, built.placement, built.submit, TraceSchedule(kSteps), {});
  describe_timeline(pass, device->info(), built.step, built.placement, built.submit, "a test");
  Observed made;
  std::map<std::uint32_t, std::int64_t> ends;
  for (const Span& span : pass.timeline.spans) {
    std::int64_t& end = ends.emplace(span.iteration, span.ended_ns).first->second;
    end = std::max(end, span.ended_ns);
  }
  made.step_ns =
      static_cast<double>(ends.rbegin()->second - ends.begin()->second) / static_cast<double>(ends.size() - 1);
  made.timeline = std::move(pass.timeline);
  return made;
}

TEST(AdviceSim, names_the_best_number_of_queues_of_40_programs) {
  std::size_t programs = 0;
  for (const char* workload : {"hetero_kernels", "moe"})
    for (const int streams : {4, 16}) {
      ++programs;
      const Advice advice = advise(observed(workload, streams, 8).timeline, {});
      ASSERT_EQ(advice.reason, "") << workload << ' ' << streams;
      printf("%-20s %3d  traced %.0f replayed %.0f (%+.2f %%)\n", workload, streams, advice.traced_ns,
             advice.replayed_ns, 100 * advice.error);
      for (const Prediction& one : advice.predictions) {
        if (one.what.kind != "queues") continue;
        const double real = observed(workload, streams, one.what.value).step_ns;
        printf("    %2ld queues: predicted %.0f measured %.0f (%+.2f %%)\n", one.what.value, one.step_ns, real,
               100 * (one.step_ns / real - 1));
      }
    }
}

}  // namespace
}  // namespace weir::advise
