// Kineto's JSON of any origin: whatever the text, it either gives a timeline whose parts fit together or throws our own
// error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "trace/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const weir::Timeline timeline = weir::import_memory(text, "fuzz", {.format = "kineto"}).timeline;
    for (const weir::Span& span : timeline.spans)
      if (span.ended_ns < span.started_ns || span.stream >= timeline.streams.size() ||
          (span.name != weir::kNoName && span.name >= timeline.names.size()) ||
          (span.call != weir::kNoCall && span.call >= timeline.calls.size()))
        __builtin_trap();
    for (const weir::Dependency& edge : timeline.dependencies)
      if (edge.before >= timeline.spans.size() || edge.after >= timeline.spans.size()) __builtin_trap();
  } catch (const weir::Error& error) {
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
