// One importer fed with any bytes: either a timeline comes out whose indices all hold, or our own error of bad input.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "trace/import/import.h"

namespace weir {

inline void check_timeline(const Timeline& timeline) {
  const auto expect = [](bool holds) {
    if (!holds) __builtin_trap();
  };
  std::int64_t before = INT64_MIN;
  for (const Span& span : timeline.spans) {
    expect(span.started_ns >= before && span.ended_ns >= span.started_ns);
    before = span.started_ns;
    expect(span.name == kNoName || span.name < timeline.names.size());
    expect(span.call == kNoCall || span.call < timeline.calls.size());
    expect(span.stream < timeline.streams.size());
  }
  for (const TraceStream& stream : timeline.streams) expect(stream.device < timeline.devices.size());
  for (const TraceDevice& device : timeline.devices) expect(device.process < timeline.processes.size());
  for (const HostCall& call : timeline.calls) {
    expect(call.name == kNoName || call.name < timeline.names.size());
    expect(call.process < timeline.processes.size());
    expect(call.operation == kNoOperation || call.operation < timeline.operations.size());
    expect(call.line == kNoName || call.line < timeline.names.size());
  }
  for (const Operation& operation : timeline.operations)
    for (const std::uint32_t name : {operation.name, operation.shapes})
      expect(name == kNoName || name < timeline.names.size());
  for (const Operation& operation : timeline.operations)
    expect(operation.module == kNoModule || operation.module < timeline.modules.size());
  for (std::size_t i = 0; i < timeline.modules.size(); ++i)
    expect(timeline.modules[i].parent == kNoModule || timeline.modules[i].parent < i);
  for (const Dependency& edge : timeline.dependencies)
    expect(edge.before < timeline.spans.size() && edge.after < timeline.spans.size());
}

inline int fuzz_importer(const char* format, const std::uint8_t* data, std::size_t size) {
  ImportOptions options;
  options.format = format;
  options.limits.memory_bytes = 64 << 20;
  options.has_operations = size % 4 != 0;
  try {
    check_timeline(import_memory({reinterpret_cast<const char*>(data), size}, "fuzz", options).timeline);
  } catch (const Error& error) {
    if (error.fault != Fault::input) __builtin_trap();
  }
  return 0;
}

}  // namespace weir
