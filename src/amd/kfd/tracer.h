// What the driver asks of whoever suspends queues: to be the tracer of their owner (ptrace), which keeps running. Knows
// no queue.
#pragma once

namespace weir::kfd {

// Makes the calling thread the tracer of another process: 0, or a negative errno. All calls for it must come from this
// thread.
int trace(int pid) noexcept;
// To be called every few milliseconds while it is traced: a signal stops its main thread until its tracer passes that
// on, and its own parent is notified of its end only after the tracer. False once it has ended.
bool attend_traced(int pid) noexcept;
// The process goes on without a tracer; its end, if that has come, goes to its parent. 0, or a negative errno: -EAGAIN
// if it has not stopped within some 10 ms. It is then still traced: attend to it, and call this again.
int stop_tracing(int pid) noexcept;

}  // namespace weir::kfd
