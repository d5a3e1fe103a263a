// Turns results of GPU calls into Errors. Knows no particular vendor.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/handle.h"
#include "device/error_latch.h"
#include "device/gpu/api.h"

namespace weir {

inline std::string lost_hint(const GpuApi& api, int result) {
  if (!api.is_lost(result)) return "";
  return fmt::format("The GPU is lost to this process. Run it again; if it happens again, {}.", api.lost_hint);
}

// Throws unless `result` is success. `action` names the attempt: "creating a stream".
inline void check(const GpuApi& api, int result, std::string_view action,
                  std::source_location where = std::source_location::current()) {
  if (result == 0) return;
  throw Error(Fault::run, fmt::format("{} failed: {}", action, api.describe(result)), lost_hint(api, result), where);
}

// Releases a resource through an entry of the table; the result is ignored, because a failed GPU refuses everything and
// destructors must not throw.
template <class T, int (*GpuApi::*Entry)(T)>
struct GpuClose {
  const GpuApi* api = nullptr;
  void operator()(T value) const noexcept { (api->*Entry)(value); }
};

using GpuStreamOwner = Handle<GpuStream, GpuClose<GpuStream, &GpuApi::stream_destroy>>;
using GpuPartOwner = Handle<GpuPart, GpuClose<GpuPart, &GpuApi::part_destroy>>;
using GpuEventOwner = Handle<GpuEvent, GpuClose<GpuEvent, &GpuApi::event_destroy>>;
using GpuModuleOwner = Handle<GpuModule, GpuClose<GpuModule, &GpuApi::module_unload>>;
using GpuGraphOwner = Handle<GpuGraph, GpuClose<GpuGraph, &GpuApi::graph_destroy>>;
using GpuGraphExecOwner = Handle<GpuGraphExec, GpuClose<GpuGraphExec, &GpuApi::graph_exec_destroy>>;
using GpuMemoryOwner = Handle<GpuPointer, GpuClose<GpuPointer, &GpuApi::memory_free>>;
using GpuHostMemoryOwner = Handle<void*, GpuClose<void*, &GpuApi::host_free>>;

inline GpuEventOwner make_event(const GpuApi& api, unsigned flags) {
  GpuEvent event = nullptr;
  check(api, api.event_create(&event, flags), "creating an event");
  return GpuEventOwner(event, {&api});
}

inline GpuStreamOwner make_stream(const GpuApi& api, int priority) {
  GpuStream stream = nullptr;
  check(api, api.stream_create(&stream, kGpuStreamNonBlocking, priority), "creating a stream");
  return GpuStreamOwner(stream, {&api});
}

}  // namespace weir
