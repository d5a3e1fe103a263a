#include "device/opencl/graph.h"

#if WEIR_HAVE_OPENCL
#include <fmt/format.h>

#include "base/error.h"
#include "device/graph_edges.h"

namespace weir {
namespace {

// Declared by hand, because the extension is provisional: its headers and arguments differ between versions.
using SyncPoint = cl_uint;
using CommandBuffer = struct OpenclCommandBuffer*;
using Properties = cl_ulong;
constexpr Properties kFlags = 0x1293, kSimultaneousUse = 1;
constexpr cl_bitfield kCanSimultaneousUse = 1 << 2, kCanOutOfOrder = 1 << 3;
constexpr cl_uint kPropertiesEverywhere = 9 << 12 | 5;  // 0.9.5: every command takes properties

struct Recording {
  CommandBuffer (*create)(cl_uint, const cl_command_queue*, const Properties*, cl_int*) = nullptr;
  cl_int (*finalize)(CommandBuffer) = nullptr;
  cl_int (*release)(CommandBuffer) = nullptr;
  cl_int (*enqueue)(cl_uint, cl_command_queue*, CommandBuffer, cl_uint, const cl_event*, cl_event*) = nullptr;
  cl_int (*kernel)(CommandBuffer, cl_command_queue, const void*, cl_kernel, cl_uint, const std::size_t*,
                   const std::size_t*, const std::size_t*, cl_uint, const SyncPoint*, SyncPoint*, void**) = nullptr;
  // The copy's function before and since 0.9.5: one of the two is set.
  cl_int (*copy)(CommandBuffer, cl_command_queue, cl_mem, cl_mem, std::size_t, std::size_t, std::size_t, cl_uint,
                 const SyncPoint*, SyncPoint*, void**) = nullptr;
  cl_int (*copy_with_properties)(CommandBuffer, cl_command_queue, const void*, cl_mem, cl_mem, std::size_t, std::size_t,
                                 std::size_t, cl_uint, const SyncPoint*, SyncPoint*, void**) = nullptr;

  bool is_complete() const {
    return create != nullptr && finalize != nullptr && release != nullptr && enqueue != nullptr && kernel != nullptr &&
           (copy != nullptr || copy_with_properties != nullptr);
  }
};

Recording recording_of(const OpenclContext& context) {
  Recording r;
  const auto find = [&](auto& entry, const char* name) {
    entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(
        context.api().extension_function(context.platform(), name));
  };
  find(r.create, "clCreateCommandBufferKHR");
  find(r.finalize, "clFinalizeCommandBufferKHR");
  find(r.release, "clReleaseCommandBufferKHR");
  find(r.enqueue, "clEnqueueCommandBufferKHR");
  find(r.kernel, "clCommandNDRangeKernelKHR");
  if (context.facts().command_buffer_version >= kPropertiesEverywhere) {
    find(r.copy_with_properties, "clCommandCopyBufferKHR");
  } else {
    find(r.copy, "clCommandCopyBufferKHR");
  }
  return r;
}

}  // namespace

Capability opencl_graphs(const OpenclContext& context) {
  if (context.facts().command_buffer_version == 0)
    return lacking("the driver does not offer command buffers (cl_khr_command_buffer)");
  if (!recording_of(context).is_complete())
    return lacking("the driver names cl_khr_command_buffer but lacks one of its functions");
  return {};
}

cl_command_queue_properties opencl_graph_queue(const OpenclContext& context) {
  const OpenclFacts& facts = context.facts();
  cl_command_queue_properties properties = facts.command_buffer_queue_properties;
  // On an in-order queue a command buffer would run its commands one after the other (PoCL 3.1).
  if ((facts.command_buffer_capabilities & kCanOutOfOrder) != 0) properties |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  return properties;
}

OpenclGraph::OpenclGraph(const OpenclContext& context, const StepPlan& plan, CommandId begin, CommandId end,
                         const OpenclCommands& commands, cl_command_queue queue)
    : api_(context.api()) {
  const Recording recording = recording_of(context);
  enqueue_ = recording.enqueue;
  is_reentrant_ = (context.facts().command_buffer_capabilities & kCanSimultaneousUse) != 0;
  const Properties properties[] = {kFlags, kSimultaneousUse, 0};
  cl_int result = CL_SUCCESS;
  buffer_ = Handle<Buffer, Close>(recording.create(1, &queue, is_reentrant_ ? properties : nullptr, &result),
                                  {recording.release});
  check_opencl(result, context.name() + ": creating a command buffer");

  // Edges are stored as successors, but recording needs predecessors.
  const GraphEdges edges = record_graph(plan, begin, end);
  std::vector<std::vector<SyncPoint>> before(edges.count);
  for (CommandId id = begin; id < end; ++id) {
    const OpenclRecord& r = commands.record(id);
    auto& waits = before[id - begin];
    const auto count = static_cast<cl_uint>(waits.size());
    const SyncPoint* const list = waits.empty() ? nullptr : waits.data();
    SyncPoint point = 0;
    switch (r.kind) {
      case OpenclRecord::Kind::kernel:
        result = recording.kernel(buffer_.get(), nullptr, nullptr, r.kernel, 1, nullptr, &r.global, &r.local, count,
                                  list, &point, nullptr);
        break;
      case OpenclRecord::Kind::to_device:
      case OpenclRecord::Kind::to_host:
      case OpenclRecord::Kind::on_device:
        if (r.from == nullptr || r.to == nullptr)
          reject_setting("submit", "graph",
                         fmt::format("{} cannot copy from or to host memory inside a command buffer", context.name()),
                         "Use --submit inline or threads.");
        result = recording.copy != nullptr
                     ? recording.copy(buffer_.get(), nullptr, r.from, r.to, r.from_offset, r.to_offset, r.bytes, count,
                                      list, &point, nullptr)
                     : recording.copy_with_properties(buffer_.get(), nullptr, nullptr, r.from, r.to, r.from_offset,
                                                      r.to_offset, r.bytes, count, list, &point, nullptr);
        break;
      case OpenclRecord::Kind::host:
      case OpenclRecord::Kind::gemm:
        fail("a command buffer cannot hold what the host or a library does");
    }
    check_opencl(result, fmt::format("{}: recording command {} in a command buffer", context.name(), id));
    const std::uint32_t index = id - begin;
    for (std::uint32_t s = edges.successor_begin[index]; s < edges.successor_begin[index + 1]; ++s)
      before[edges.successors[s] - begin].push_back(point);
  }
  check_opencl(recording.finalize(buffer_.get()), context.name() + ": closing a command buffer");
}

int OpenclGraph::launch(cl_uint wait_count, const cl_event* waits, cl_event* event) noexcept {
  if (const cl_event last = last_launch_.get(); last != nullptr) {
    if (const cl_int result = api_.wait_for_events(1, &last); result != CL_SUCCESS) return result;
    last_launch_.reset();
  }
  const cl_int result = enqueue_(0, nullptr, buffer_.get(), wait_count, wait_count == 0 ? nullptr : waits, event);
  if (result == CL_SUCCESS && !is_reentrant_ && api_.retain_event(*event) == CL_SUCCESS)
    last_launch_ = OpenclEventOwner(*event, {&api_});
  return result;
}

}  // namespace weir
#endif
