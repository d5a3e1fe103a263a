// Runs launches of somebody else's program in a part of the device. A kernel goes to a stream of a green context,
// between two events that keep its place in the program's own stream, so that nothing else has to know of it. A graph
// is launched as its twin: the same nodes, with the green context as theirs. Needs hooks (cuda_hooks.h).
#pragma once

#include <cstdint>

#include "submit/inject/cupti_functions.h"
#include "submit/inject/launch_gate.h"
#include "submit/sched/board.h"

namespace weir::inject {

// Call first. Whether launches can be sent elsewhere at all; `unknown`: that depends on what the program launches.
scheduler::Confinable bind_cuda_part() noexcept;
// Makes a part of that many percent ready, for commands of this context, and says whether it is.
scheduler::Confinable prepare_part(Context context, std::uint32_t percent) noexcept;

// Whether a launch can run in a part: no cooperative kernel, which may need the whole device; a graph of which every
// kernel can be confined, on a stream where it can become its twin; nothing in contexts that the program made itself.
bool fits_part(const CudaFunction& function, const void* arguments, Stream stream, Context context) noexcept;
// Call at the begin of a call that fits, in its thread and after its gate, and of every launch of a graph, with 0
// percent where it is to have the whole device. False: it goes where the program said.
bool enter_part(const CudaFunction& function, const void* arguments, Stream stream, Context context,
                std::uint32_t percent) noexcept;
// Call at its end, in the same thread.
void leave_part(Stream stream, Context context) noexcept;

// Call at the end of calls about graphs (is_about_graphs()), and at the begin of those that end one.
void follow_graph(const CudaFunction& function, const void* arguments) noexcept;

// Call before the primary context is, or may be, destroyed.
void forget_parts() noexcept;
// In a forked child, and at the program's end: no lock is taken and no driver called any more.
void abandon_parts() noexcept;

}  // namespace weir::inject
