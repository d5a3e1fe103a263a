// A segment of a step recorded as a command buffer (cl_khr_command_buffer): independent commands may run at once, and
// it is launched as a whole.
#pragma once

#include "device/opencl/commands.h"

#if WEIR_HAVE_OPENCL
#include "device/plan.h"

namespace weir {

// Whether the driver has usable command buffers.
Capability opencl_graphs(const OpenclContext& context);
// Properties that a queue for them needs, besides profiling.
cl_command_queue_properties opencl_graph_queue(const OpenclContext& context);

class OpenclGraph {
 public:
  // Records commands [begin, end), to be launched on `queue`. `plan` must be a graph plan.
  OpenclGraph(const OpenclContext& context, const StepPlan& plan, CommandId begin, CommandId end,
              const OpenclCommands& commands, cl_command_queue queue);

  // `event` must not be null.
  int launch(cl_uint wait_count, const cl_event* waits, cl_event* event) noexcept;

 private:
  using Buffer = struct OpenclCommandBuffer*;
  struct Close {
    cl_int (*release)(Buffer) = nullptr;
    void operator()(Buffer buffer) const noexcept { release(buffer); }
  };

  const OpenclApi& api_;
  cl_int (*enqueue_)(cl_uint, cl_command_queue*, Buffer, cl_uint, const cl_event*, cl_event*) = nullptr;
  Handle<Buffer, Close> buffer_;
  bool is_reentrant_ = false;     // may be launched again before it has ended
  OpenclEventOwner last_launch_;  // used if it may not
};

}  // namespace weir
#endif
