// A whole sample, from begin to finish, through every submitter: nothing may be allocated in it.
#include <gtest/gtest.h>

#include "device/allocation_count.h"
#include "device/device.h"
#include "step/workload/workload.h"
#include "submit/placement.h"
#include "submit/submitter.h"

namespace weir {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int kSamples = 3;  // takes 118 s with 20 on 2 cores, and finds no more races (November 2026)
#else
constexpr int kSamples = 20;
#endif

TEST(Sample, AllocatesNothing) {
  for (const char* name : {"null", "cpu"}) {
    const auto device = open_device(name, {});
    for (const Workload& workload : workloads()) {
      const Step step = workload.build(Params(workload.params, Scale::tiny, {}), workload.streams.recommended);
      for (const char* policy : {"natural", "round_robin"}) {
        const Placement placement = place(step, policy);
        for (const char* way : {"inline", "threads:2", "graph", "channel:mpsc:2", "channel:mpsc:2x2", "channel:lanes:3",
                                "channel:mpmc:2", "channel:spsc"}) {
          const SubmitChoice submit = parse_submit(way, placement.stream_count);
          SessionOptions options;
          options.mode = submit.mode;
          const auto session = device->prepare(step, placement, options);
          const auto submitter = make_submitter(submit, step, placement, *session);
          const auto sample = [&] {
            session->begin_iteration();
            submitter->submit_step();
            session->finish();
          };
          // Twice each worker's scratch: row kernels grow theirs on first use.
          for (int i = 0; i < kSamples; ++i) sample();
          const std::uint64_t before = allocation_count();
          for (int i = 0; i < kSamples; ++i) sample();
          EXPECT_EQ(allocation_count() - before, 0u) << name << " " << workload.name << " " << policy << " " << way;
        }
      }
    }
  }
}

TEST(Sample, TheCountCounts) {
  if (!kCountsAllocations) GTEST_SKIP() << "this sanitizer's operator new cannot be replaced";
  const std::uint64_t before = allocation_count();
  ::operator delete(::operator new(16));  // a call that no compiler may leave out
  EXPECT_GT(allocation_count(), before);
}

}  // namespace
}  // namespace weir
