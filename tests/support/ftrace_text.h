// What the kernel's tracer would print of a scene, in each of its forms. Knows formats and KFD's call chains; no
// decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "support/amd_scene.h"

namespace weir::testing {

enum class TraceForm { function, function_graph, events, kprobes, trace_printk };

struct TraceStyle {
  bool has_header = true;
  bool has_tgid = false;
  bool has_new_flags = true;  // five columns since 5.17, four before
  bool has_noise = true;      // functions of others, and of interrupts, in between
  bool has_abstime = true;    // function_graph
  bool has_proc = true;       // function_graph; else task switches tell who runs
  bool has_tail = false;      // function_graph: } /* name */
  bool has_retval = false;    // function_graph: } /* name = 0 */
  bool has_offsets = false;   // function: kfd_ioctl+0x0/0x480 [amdgpu]
  int cpus = 8;
  int lost_every = 0;           // lines between two LOST lines; 0: none
  std::uint64_t lost_each = 7;  // events of each; 0: printed without a number
  std::uint64_t overwritten = 0;
  int failed_creates = 0;  // with -ENOMEM, of the first process, before its first queue
};

std::string ftrace_text(const Scene& scene, TraceForm form, const TraceStyle& style = {});

// Queues are asked for by the process' main thread, or by another where it has an odd index.
int asking_thread(const Scene& scene, std::size_t queue);
// The handler kfd_ioctl_create_queue runs this much less than the ioctl, at each end.
inline constexpr std::int64_t kHandlerInset_ns = 1000;
inline constexpr std::int64_t kDestroy_ns = 30'000;  // of the handler of a destroy, from deleted_ns

}  // namespace weir::testing
