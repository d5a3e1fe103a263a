#include "trace/analyse/operator_calls.h"

#include <algorithm>
#include <utility>

#include "trace/device_spans.h"

namespace weir {

std::uint32_t operator_of(const Timeline& timeline, std::uint32_t call) noexcept {
  const std::uint32_t operation = call < timeline.calls.size() ? timeline.calls[call].operation : kNoOperation;
  return operation < timeline.operations.size() && timeline.operations[operation].name != kNoName ? operation
                                                                                                  : kNoOperation;
}

std::vector<bool> operator_calls(const Timeline& timeline) {
  std::vector<bool> begins(timeline.calls.size());
  if (std::none_of(timeline.calls.begin(), timeline.calls.end(),
                   [](const HostCall& call) { return call.is_first_of_operation; }))
    return begins;
  std::vector<bool> is_working(timeline.calls.size());
  for (const Span& span : timeline.spans)
    if (is_device_work(span) && span.call < is_working.size()) is_working[span.call] = true;
  // Calls are by process and thread, and those of a thread in order say which call of the operator each belongs to.
  struct Current {
    std::size_t thread = SIZE_MAX;  // the position of its first call
    bool is_counted = false;
  };
  std::vector<Current> current(timeline.operations.size());
  std::size_t thread = 0;
  for (std::uint32_t i = 0; i < timeline.calls.size(); ++i) {
    const HostCall &call = timeline.calls[i], &first = timeline.calls[thread];
    if (call.process != first.process || call.thread != first.thread) thread = i;
    const std::uint32_t operation = operator_of(timeline, i);
    if (operation == kNoOperation || (!call.is_first_of_operation && !is_working[i])) continue;
    // Without a first call the program called it before the part of the trace that is looked at.
    Current& now = current[operation];
    if (call.is_first_of_operation || now.thread != thread) now = {thread, false};
    if (is_working[i]) begins[i] = !std::exchange(now.is_counted, true);
  }
  return begins;
}

}  // namespace weir
