// A HIP runtime without a GPU: what its parts share. Streams are served by hardware queues as ROCm has them, and each
// queue is a thread that does one thing after the other. Knows HIP's rules and our kernels' bodies on the host; no
// table of ours.
#pragma once

#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#include <hip/hip_ext.h>
#include <hip/hip_runtime_api.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fake_hip.h"
#include "support/device_function.h"

namespace weir::fake_hip {

struct Capture;

// Shared with what still waits for it when the program has destroyed its handle.
struct EventState {
  bool has_timing = true;
  std::uint64_t recorded = 0;        // version of the last record call
  std::uint64_t done = 0;            // version that has been reached
  std::int64_t time_ns = 0;          // when
  std::shared_ptr<Capture> capture;  // that it was last recorded in; null outside of one
};

// One thing in a stream: work, or a record (event with version), or a wait for one.
struct Operation {
  enum class Kind { work, record, wait } kind = Kind::work;
  std::function<void(int compute_units)> work;  // runs without the lock
  std::shared_ptr<EventState> event;
  std::uint64_t version = 0;
  FakeHipWork what = {FakeHipWork::other, "", 0};  // of work
  std::uint64_t observed = 0;                      // the profiler's number for it; 0: it was not told
};

struct Queued {
  std::shared_ptr<ihipStream_t> stream;
  Operation operation;
};

// A hardware queue: an in-order thread. Streams that share it wait for each other.
struct Queue {
  std::string name;  // "normal:2", "mask:0"
  int number = 0;    // as queues were made, from 1
  int streams = 0;
  int compute_units = 0;
  bool is_closed = false;  // its thread ends when it is empty
  std::uint64_t submitted = 0, ended = 0;
  std::deque<Queued> pending;
  std::condition_variable arrived;
};

// What was captured, in the order of the calls; every node comes after those that it depends on.
struct Capture {
  struct Node {
    ihipStream_t* stream = nullptr;  // only a name: it may be gone
    Operation operation;
    std::vector<std::size_t> after;
  };
  ihipStream_t* origin = nullptr;
  bool is_open = true, is_invalid = false;
  std::vector<Node> nodes;
  std::map<ihipStream_t*, std::size_t> last;        // node of each stream
  std::map<const EventState*, std::size_t> record;  // node of each event's last record
};

struct Device {
  std::array<std::vector<std::shared_ptr<Queue>>, 3> pools;  // low, normal, high
  std::array<std::size_t, 3> turns{};                        // by pool
  std::uint64_t used_bytes = 0;
  int masked_queues = 0;
  std::shared_ptr<ihipStream_t> default_stream;
};

struct Settings {
  int devices = 1;
  int init_error = 0;
  std::int64_t lost_after = -1;  // kernels
  std::uint64_t memory = std::uint64_t{1} << 30;
  int compute_units = 104;
  bool takes_turns = false;  // streams get queues in turn, not where fewest are: no ROCm, but a control for probes
};

struct Allocation {
  std::size_t bytes = 0;
  int device = 0;
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;  // something has ended
  Settings settings;
  bool is_started = false;
  int queues_per_pool = 4;
  bool ignores_priority = false;
  int lost = 0;  // the error that sticks
  std::int64_t kernels = 0;
  int streams_made = 0;
  int queues_made = 0;
  const FakeHipObserver* observer = nullptr;  // set once, before anything runs
  std::map<int, Device> devices;
  std::set<std::shared_ptr<Queue>> queues;  // all that have a thread
  std::map<void*, Allocation> memory, host_memory;
  std::map<ihipStream_t*, std::shared_ptr<ihipStream_t>> streams;
  std::set<ihipEvent_t*> events;
  std::map<std::string, std::unique_ptr<ihipModuleSymbol_t>> functions;
  std::string log;
};

State& state();
using Lock = std::unique_lock<std::mutex>;
void note(const std::string& line);  // into the log; the lock is held
int current_device();

// Makes a stream with a queue: of its own where it has a mask. The lock is held.
hipStream_t make_stream(int device, int priority, const std::vector<std::uint32_t>& mask);
void drop_stream(ihipStream_t& stream);
// The stream that a handle means; null for one that there is not. The lock is held.
std::shared_ptr<ihipStream_t> find_stream(hipStream_t handle);
// Puts an operation into a stream's queue, past any capture. The lock is held.
void push(const std::shared_ptr<ihipStream_t>& stream, Operation operation);
// Puts work into a stream, or into the capture that it takes part in.
hipError_t submit(hipStream_t stream, const char* call, const FakeHipWork& what,
                  std::function<void(int compute_units)> work);
// A call of the program, as a profiler sees it.
class ObservedCall {
 public:
  explicit ObservedCall(const char* name);
  ~ObservedCall();
  ObservedCall(const ObservedCall&) = delete;
  ObservedCall& operator=(const ObservedCall&) = delete;

 private:
  const FakeHipObserver* observer_;
};
// Adds an operation to the capture of a stream. The lock is held.
void append(ihipStream_t& stream, Operation operation, const EventState* waits_for);
// Waits until everything that was submitted so far has ended, wherever.
void await_all(Lock& lock);
// Waits until everything that was submitted to the stream has ended; once the GPU is lost, everything: waits hold
// nothing back then, so a graph's own streams may be behind the one that it was launched in.
void await_ended(Lock& lock, ihipStream_t& stream);
// Runs a body on the thread that calls the host, as ROCm does, and returns when it has ended.
void run_on_host_thread(std::function<void()> body);
// Counts a kernel; false where the GPU is lost, perhaps by this one.
bool may_run_kernel();

}  // namespace weir::fake_hip

// The opaque handles of HIP are these.
struct ihipStream_t {
  int number = 0;
  int device = 0;
  std::shared_ptr<weir::fake_hip::Queue> queue;
  bool is_masked = false;
  std::uint64_t submitted = 0, ended = 0;
  std::shared_ptr<weir::fake_hip::Capture> capture;
};
struct ihipEvent_t {
  std::shared_ptr<weir::fake_hip::EventState> state;
};
struct ihipModuleSymbol_t {
  weir::testing::DeviceFunction function{};
  std::string name{};
  // Of a library instead: copies parameters, runs all threads, forgets the copy.
  void* (*pack)(void** parameters) = nullptr;
  void (*run)(void* packed, const unsigned* grid, const unsigned* block) = nullptr;
  void (*drop)(void* packed) = nullptr;
};
struct ihipGraph {
  std::shared_ptr<weir::fake_hip::Capture> capture;
};
struct hipGraphExec {
  std::shared_ptr<weir::fake_hip::Capture> capture;
  std::map<ihipStream_t*, hipStream_t> streams;  // own ones, for all but the origin
};

#define WEIR_FAKE_EXPORT extern "C" __attribute__((visibility("default")))
