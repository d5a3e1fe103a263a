// Host functions in the order of OpenCL queues: a marker's callback wakes a Weir thread, which runs the body and
// releases the queue by a user event. Knows kernel bodies and queues; no plan.
#pragma once

#include "device/opencl/memory.h"

#if WEIR_HAVE_OPENCL
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "device/host_threads.h"

namespace weir {

// The driver's threads only pass calls on: a body running on one of them would block other queues.
class OpenclHostCalls {
 public:
  // Whether the host executes a command: a host function, or a copy within host memory that the device cannot reach.
  static bool does(const Step& step, const OpenclBuffers& buffers, CommandId id);

  // `max_in_flight` is how many launches of each call may be unfinished at once.
  OpenclHostCalls(const OpenclContext& context, const Step& step, const OpenclBuffers& buffers,
                  std::size_t max_in_flight);
  // Call when nothing is in flight, or after abandon().
  ~OpenclHostCalls();
  OpenclHostCalls(const OpenclHostCalls&) = delete;
  OpenclHostCalls& operator=(const OpenclHostCalls&) = delete;

  // Submits a host command after `waits`. `begin` and `end` may be null; they get events of their own. An in-order
  // queue continues after it; with any other queue, later commands must wait for `end`.
  int launch(CommandId id, cl_command_queue queue, bool is_in_order, cl_uint wait_count, const cl_event* waits,
             cl_event* begin, cl_event* end) noexcept;
  // Runs it synchronously.
  void run(CommandId id) noexcept { calls_[call_of_[id]].host.run(threads_); }

  // Makes everything that waits for a host function fail: for a device that will never call back.
  void abandon() noexcept;
  std::exception_ptr take_failure() noexcept { return threads_.take_failure(); }

  // Commands keep the times of their last `kept` runs from now on.
  void note_runs(std::size_t kept);
  const HostBody& body(CommandId id) const noexcept { return calls_[call_of_[id]].host; }

 private:
  struct Call;
  struct Slot {
    OpenclHostCalls* owner = nullptr;
    Call* call = nullptr;
    std::atomic<cl_event> gate{nullptr};  // what the queue waits for; null once it was opened
    cl_int status = CL_COMPLETE;          // of the commands before it
  };
  struct Call {
    HostBody host;
    std::vector<Slot> slots;
    std::size_t launched = 0;
  };
  static void CL_CALLBACK on_reached(cl_event event, cl_int status, void* slot);
  void open(Slot& slot, cl_int status) noexcept;
  void work() noexcept;

  const OpenclApi& api_;
  cl_context context_;
  HostThreads threads_;
  std::vector<Call> calls_;
  std::vector<std::uint32_t> call_of_;  // by command
  std::mutex mutex_;                    // protects the four below
  std::condition_variable changed_;
  std::vector<Slot*> reached_;  // a ring with room for all slots
  std::size_t first_ = 0, count_ = 0;
  bool is_stopping_ = false;
  std::jthread thread_;  // last: joined before the members that it uses are destroyed
};

}  // namespace weir
#endif
