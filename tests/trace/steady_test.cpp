#include "trace/analyse/steady.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "trace/analyse/slice.h"

namespace weir {
namespace {

constexpr std::int64_t kUs = 1'000, kMs = 1'000'000, kS = 1'000'000'000;

class Program {
 public:
  explicit Program(std::uint32_t seed) : random_(seed) {}

  std::int64_t up_to(std::int64_t most) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most));
  }

  // The device is idle for this long because the host does something else.
  void pause(std::int64_t ns) { now_ += ns; }
  void run(SpanKind kind, std::int64_t ns, std::uint16_t stream = 0) {
    Span span;
    span.kind = kind;
    span.stream = stream;
    span.submitted_ns = now_ - 5 * kUs;
    span.started_ns = now_;
    span.ended_ns = now_ += ns;
    timeline.spans.push_back(span);
  }
  // Steps of kernels with short gaps, and a longer one after each step.
  void steps(int count, std::uint16_t stream = 0) {
    for (int step = 0; step < count; ++step) {
      for (int i = 0; i < 20; ++i) {
        run(SpanKind::kernel, 10 * kUs + up_to(200 * kUs), stream);
        if (up_to(3) == 0) pause(up_to(50 * kUs));
      }
      pause(up_to(3 * kMs));
    }
  }
  // Loading: copies, single kernels and long pauses, the last one at the end.
  void start_up() {
    for (std::int64_t i = 0, count = 1 + up_to(8); i < count; ++i) {
      run(SpanKind::copy, 1 * kMs + up_to(20 * kMs));
      run(SpanKind::collective, 1 + up_to(300 * kMs));
      if (up_to(2) == 0) run(SpanKind::kernel, 1 + up_to(100 * kUs));
      pause(200 * kMs + up_to(2 * kS));
    }
  }
  std::int64_t now() const { return now_; }

  Timeline timeline;

 private:
  std::mt19937_64 random_;
  std::int64_t now_ = 5 * kS;
};

TEST(Steady, BeginsAfterTheStartUp) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Program program(seed);
    program.start_up();
    const std::int64_t begin = program.now();
    program.steps(40 + static_cast<int>(program.up_to(100)));
    if (seed % 2 == 0) {  // and ends with a pause and the last results
      program.pause(program.up_to(5 * kS));
      program.run(SpanKind::copy, 100 * kUs);
    }
    EXPECT_EQ(steady_from(program.timeline), begin) << seed;
    // What is left is steady.
    EXPECT_EQ(steady_from(within(program.timeline, {begin, INT64_MAX})), std::nullopt) << seed;
  }
}

TEST(Steady, LeavesATraceAloneThatIsSteadyFromTheStart) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    Program program(seed);
    switch (seed % 3) {
      case 0:
        program.steps(1 + static_cast<int>(program.up_to(300)));
        break;
      case 1:  // requests with pauses between them
        for (int i = 0; i < 30; ++i) {
          program.steps(1 + static_cast<int>(program.up_to(20)));
          program.pause(program.up_to(2 * kS));
        }
        break;
      default:  // one long pause in the middle of the work
        program.steps(60);
        program.pause(3 * kS);
        program.steps(60 + static_cast<int>(program.up_to(100)));
    }
    EXPECT_EQ(steady_from(program.timeline), std::nullopt) << seed;
  }
  EXPECT_EQ(steady_from({}), std::nullopt);
}

// The host had asked, so the device waited for something else: that is no start-up.
TEST(Steady, DoesNotSkipCommandsThatWereHeldBack) {
  Program program(1);
  program.run(SpanKind::kernel, 10 * kUs);
  const std::int64_t from = program.now();
  program.pause(2 * kS);
  program.steps(50);
  EXPECT_TRUE(steady_from(program.timeline));
  program.timeline.spans[1].submitted_ns = from + 50 * kUs;
  EXPECT_EQ(steady_from(program.timeline), std::nullopt);
}

TEST(Steady, IsCommonToAllDevices) {
  Program program(2);
  program.timeline.processes = {{0, "p"}};
  program.timeline.devices = {{0, 0, "GPU 0"}, {0, 1, "GPU 1"}};
  program.timeline.streams = {{0, 0, "a"}, {1, 0, "b"}};
  program.start_up();
  program.steps(60, 0);
  Timeline both = program.timeline;
  // The second device does the same a little later.
  for (Span span : program.timeline.spans) {
    span.stream = 1;
    for (std::int64_t* at : {&span.submitted_ns, &span.started_ns, &span.ended_ns}) *at += 3 * kMs;
    both.spans.push_back(span);
  }
  const auto alone = steady_from(program.timeline);
  ASSERT_TRUE(alone);
  EXPECT_EQ(steady_from(both), *alone + 3 * kMs);
  // A device that worked all the time has no start-up, so nothing may be left out.
  Program busy(3);
  busy.steps(400);
  for (Span span : busy.timeline.spans) {
    span.stream = 1;
    program.timeline.spans.push_back(span);
  }
  EXPECT_EQ(steady_from(program.timeline), std::nullopt);
}

TEST(Steady, APartHasItsOwnCallsAndDependencies) {
  Program program(4);
  program.steps(2);
  Timeline& whole = program.timeline;
  whole.names = {"a"};
  for (std::uint32_t i = 0; i < whole.spans.size(); ++i) {
    HostCall call;
    call.started_ns = whole.spans[i].submitted_ns;
    call.ended_ns = call.started_ns + 1 * kUs;
    whole.calls.push_back(call);
    whole.spans[i].call = i;
    if (i > 0) whole.dependencies.push_back({i - 1, i});
  }
  const std::int64_t from = whole.spans[10].started_ns, to = whole.spans[15].started_ns;
  const Timeline part = within(whole, {from, to});
  ASSERT_EQ(part.spans.size(), 5u);
  EXPECT_EQ(part.spans[0].started_ns, from);
  EXPECT_EQ(part.dependencies.size(), 4u);
  EXPECT_EQ(part.names, whole.names);
  for (const Span& span : part.spans) EXPECT_EQ(part.calls.at(span.call).started_ns, span.submitted_ns);
}

}  // namespace
}  // namespace weir
