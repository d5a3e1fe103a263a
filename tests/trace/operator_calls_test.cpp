// How often operators were called: several calls of the driver are one, and some give the device no work.
#include "trace/analyse/operator_calls.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

struct Called {
  std::uint32_t operation = 0;
  bool is_first = false;
  bool has_work = true;
  std::uint32_t thread = 1;
};

std::vector<bool> counted(const std::vector<Called>& calls) {
  Timeline timeline;
  timeline.names = {"aten::mm", "aten::add"};
  timeline.operations = {{.name = 0}, {.name = 1}, {.name = kNoName}};
  for (const Called& called : calls) {
    HostCall call;
    call.thread = called.thread;
    call.operation = called.operation;
    call.is_first_of_operation = called.is_first;
    timeline.calls.push_back(call);
    if (!called.has_work) continue;
    Span span;
    span.call = static_cast<std::uint32_t>(timeline.calls.size() - 1);
    span.started_ns = 0;
    span.ended_ns = 1;
    timeline.spans.push_back(span);
  }
  return operator_calls(timeline);
}

TEST(OperatorCalls, begin_where_the_device_gets_work) {
  // An operator may record an event first, as collectives do, and launch several kernels.
  EXPECT_EQ(counted({{0, true, false}, {0, false}, {0, false}, {0, true, false}, {0, false}}),
            (std::vector{false, true, false, false, true}));
  EXPECT_EQ(counted({{0, true, false}, {1, true}, {0, false}}), (std::vector{false, true, true}))
      << "an operator within an operator";
  EXPECT_EQ(counted({{0, true}, {0, false, true, 2}, {2, true}}), (std::vector{true, true, false}))
      << "cut off at its beginning, on another thread; not an operator";
  EXPECT_EQ(counted({{0, false}, {0, false}}), (std::vector{false, false})) << "nothing says where calls begin";
}

}  // namespace
}  // namespace weir
