// The fake HIP runtime itself: what tests on it rely on, and cannot see through the table.
#include <gtest/gtest.h>

#include <atomic>

#include "device/hip/hip_testing.h"

namespace weir {
namespace {

using Handle = void*;
constexpr int kInvalidImage = 200, kNotReady = 600, kUnsupported = 900, kInvalidated = 901, kUnjoined = 904,
              kIsolation = 905, kCapturedEvent = 907;

class FakeHip : public testing::HipTest {
 protected:
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) {
    return entry<int(Arguments...)>(name)(arguments...);
  }
  Handle make_stream() {
    Handle stream = nullptr;
    EXPECT_EQ(call("hipStreamCreateWithPriority", &stream, 1u, 0), 0);
    return stream;
  }
  Handle make_event() {
    Handle event = nullptr;
    EXPECT_EQ(call("hipEventCreateWithFlags", &event, 0u), 0);
    return event;
  }
  void SetUp() override {
    HipTest::SetUp();
    if (IsSkipped()) return;
    for (Handle& stream : streams_) stream = make_stream();
    for (Handle& event : events_) event = make_event();
  }
  void TearDown() override {
    if (IsSkipped()) return;
    for (const Handle stream : streams_) call("hipStreamDestroy", stream);
    for (const Handle event : events_) call("hipEventDestroy", event);
    HipTest::TearDown();
  }
  int wait(Handle stream, Handle event) { return call("hipStreamWaitEvent", stream, event, 0u); }
  int record(Handle event, Handle stream) { return call("hipEventRecord", event, stream); }
  int run_on_host(Handle stream, void (*body)(void*), void* data) {
    return call("hipLaunchHostFunc", stream, body, data);
  }

  Handle streams_[8] = {};
  Handle events_[2] = {};
};

TEST_F(FakeHip, takes_code_and_nothing_else) {
  Handle module = nullptr;
  EXPECT_EQ(call("hipModuleLoadData", &module, static_cast<const void*>("\037\213 still packed, or anything else")),
            kInvalidImage);
  EXPECT_EQ(call("hipModuleLoadData", &module, static_cast<const void*>("__CLANG_OFFLOAD_BUNDLE__ and so on")), 0);
  EXPECT_EQ(call("hipModuleUnload", module), 0);
}

// Holds a queue until the test lets it go.
struct Gate {
  std::atomic<bool> is_open{false};
  static void pass(void* gate) {
    // pairs with the release in open()
    while (!static_cast<Gate*>(gate)->is_open.load(std::memory_order_acquire)) sched_yield();
  }
  void open() { is_open.store(true, std::memory_order_release); }
};

TEST_F(FakeHip, a_wait_blocks_the_whole_queue) {
  // Four queues: streams 0 and 4 share one, 1 has another.
  Gate gate;
  EXPECT_EQ(run_on_host(streams_[1], Gate::pass, &gate), 0);
  EXPECT_EQ(record(events_[0], streams_[1]), 0);
  EXPECT_EQ(wait(streams_[0], events_[0]), 0);
  EXPECT_EQ(record(events_[1], streams_[4]), 0);
  EXPECT_EQ(record(events_[1], streams_[2]), 0) << "a queue of its own";
  EXPECT_EQ(call("hipEventSynchronize", events_[1]), 0);
  EXPECT_EQ(call("hipStreamQuery", streams_[4]), kNotReady) << "behind the wait of stream 0";
  gate.open();
  EXPECT_EQ(call("hipDeviceSynchronize"), 0);
  EXPECT_EQ(call("hipStreamQuery", streams_[4]), 0);
}

TEST_F(FakeHip, what_was_forked_must_be_joined) {
  Handle graph = nullptr;
  EXPECT_EQ(call("hipStreamBeginCapture", streams_[0], 2), 0);
  EXPECT_EQ(record(events_[0], streams_[0]), 0);
  EXPECT_EQ(wait(streams_[1], events_[0]), 0);
  EXPECT_EQ(call("hipStreamEndCapture", streams_[0], &graph), kUnjoined);
  EXPECT_EQ(graph, nullptr);

  EXPECT_EQ(call("hipStreamBeginCapture", streams_[0], 2), 0);
  EXPECT_EQ(record(events_[0], streams_[0]), 0);
  EXPECT_EQ(wait(streams_[1], events_[0]), 0);
  std::atomic<int> runs{0};
  const auto count = [](void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); };
  EXPECT_EQ(run_on_host(streams_[1], count, &runs), 0);
  EXPECT_EQ(record(events_[1], streams_[1]), 0);
  EXPECT_EQ(wait(streams_[0], events_[1]), 0);
  EXPECT_EQ(call("hipEventSynchronize", events_[1]), kCapturedEvent);
  EXPECT_EQ(call("hipStreamEndCapture", streams_[0], &graph), 0);
  EXPECT_EQ(runs, 0) << "captured, not run";
  Handle exec = nullptr;
  EXPECT_EQ(call("hipGraphInstantiateWithFlags", &exec, graph, 0ull), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call("hipGraphLaunch", exec, streams_[2]), 0);
  EXPECT_EQ(call("hipStreamSynchronize", streams_[2]), 0);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(call("hipGraphExecDestroy", exec), 0);
  EXPECT_EQ(call("hipGraphDestroy", graph), 0);
}

TEST_F(FakeHip, a_capture_knows_nothing_from_outside) {
  Handle graph = nullptr;
  EXPECT_EQ(record(events_[0], streams_[1]), 0);
  EXPECT_EQ(call("hipStreamBeginCapture", streams_[0], 2), 0);
  EXPECT_EQ(wait(streams_[0], events_[0]), kIsolation);
  EXPECT_EQ(call("hipStreamEndCapture", streams_[0], &graph), kInvalidated);
  EXPECT_EQ(call("hipStreamBeginCapture", streams_[0], 2), 0);
  EXPECT_EQ(call("hipStreamSynchronize", streams_[0]), kUnsupported);
  EXPECT_EQ(call("hipStreamEndCapture", streams_[0], &graph), kInvalidated);
  EXPECT_EQ(graph, nullptr);
}

}  // namespace
}  // namespace weir
