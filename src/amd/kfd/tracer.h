// What the driver asks of whoever suspends queues: to be the tracer of their owner (ptrace), which keeps running. Knows
// no queue.
#pragma once

namespace weir::kfd {

// Makes the calling thread the tracer of another process: 0, or a negative errno. All calls for it must come from this
// thread.
int trace(int pid) noexcept;
// To be called every few milliseconds while it is traced: a signal stops its main thread until its tracer passes that
// on, and its own parent hears of its end only after the tracer has. False once it has ended.
bool attend_traced(int pid) noexcept;
// The process goes on without a tracer; its end, if that has come, goes to its parent. 0, or a negative errno.
int stop_tracing(int pid) noexcept;

}  // namespace weir::kfd
