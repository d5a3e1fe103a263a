// A cpu device whose kernels call what a test hands in: gates and logs instead of arithmetic, so that order is decided
// by the test and not by time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "device/cpu/test_parts.h"
#include "lab/conformance/steps.h"

namespace weir {

// Opened once; a body that waits for it burns no more than a yield at a time.
class Gate {
 public:
  void open() { is_open_.store(true, std::memory_order_release); }  // pairs with wait()
  bool is_open() const { return is_open_.load(std::memory_order_acquire); }
  void wait() const {
    while (!is_open()) std::this_thread::yield();
  }

 private:
  std::atomic<bool> is_open_{false};
};

using Action = std::function<void(std::uint32_t block)>;

// Builds a step of actions. Commands are independent unless they name the same `data`.
class ActionStep {
 public:
  explicit ActionStep(Ranks ranks = {}) : builder_(1, ranks) {}

  struct Where {
    StreamId stream = 0;
    std::int8_t priority = 0;
    std::uint8_t role = 0;
  };
  CommandId add(Where where, Action action, std::uint32_t blocks = 1) {
    return add_on(where, builder_.output(ElementType::f32, 1), std::move(action), blocks);
  }
  // Commands on the same buffer follow each other, whatever their streams.
  CommandId add_on(Where where, BufferId data, Action action, std::uint32_t blocks = 1) {
    KernelShape shape;
    shape.dims = {1, 0, static_cast<std::int64_t>(actions().size()), static_cast<std::int64_t>(blocks)};
    actions().push_back(std::move(action));
    last_stream_ = std::max(last_stream_, static_cast<int>(where.stream));
    return builder_.launch("fill", {.stream = where.stream, .role = where.role, .priority = where.priority}, shape,
                           {{.buffer = data}});
  }
  // A host function; `data` must be in host memory, as of host_data().
  CommandId add_on_host(Where where, BufferId data, Action action, std::uint32_t blocks = 1) {
    KernelShape shape;
    shape.dims = {1, 0, static_cast<std::int64_t>(actions().size()), static_cast<std::int64_t>(blocks)};
    actions().push_back(std::move(action));
    last_stream_ = std::max(last_stream_, static_cast<int>(where.stream));
    return builder_.launch_on_host("fill", {.stream = where.stream, .role = where.role, .priority = where.priority},
                                   shape, {{.buffer = data}});
  }
  BufferId host_data() { return builder_.host(ElementType::f32, 1, Init::constant); }
  BufferId data() { return builder_.output(ElementType::f32, 1); }
  StepBuilder& builder() { return builder_; }
  Step seal() { return std::move(builder_).seal(last_stream_ + 1); }

  // Bodies by number. Grows while nothing runs; tests are one after another.
  static std::vector<Action>& actions() {
    static std::vector<Action> all;
    return all;
  }
  static const Kernel& kernel_of(KernelId) {
    static const Kernel body = [] {
      Kernel kernel{};
      kernel.name = "action";
      kernel.blocks = [](const KernelShape& shape) { return static_cast<std::uint32_t>(shape.dims[3]); };
      kernel.run_block = [](const KernelCall& call, std::uint32_t block) {
        actions()[static_cast<std::size_t>(call.shape.dims[2])](block);
      };
      return kernel;
    }();
    return body;
  }

 private:
  StepBuilder builder_;
  int last_stream_ = 0;
};

using conformance::natural;

inline std::vector<CommandId> all_commands(const Step& step) {
  std::vector<CommandId> ids(step.commands().size());
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

inline std::unique_ptr<Device> action_device(int queues, int workers) {
  return cpu::open_cpu({.hardware_queues = queues, .workers = workers}, {.kernel_of = &ActionStep::kernel_of});
}

// A step, where it goes, and a session on it.
struct Prepared {
  Prepared(Device& device, Step sealed, const SessionOptions& options = {})
      : step(std::move(sealed)),
        placement(natural(step)),
        ids(all_commands(step)),
        session(device.prepare(step, placement, options)) {}

  void iterate() {
    session->begin_iteration();
    session->submit(ids);
  }
  Span span(CommandId command, std::uint32_t iteration = 0) const {
    for (const Span& found : session->timeline().spans)
      if (found.command == command && found.iteration == iteration) return found;
    return {};
  }

  Step step;
  Placement placement;
  std::vector<CommandId> ids;
  std::unique_ptr<Session> session;
};

// What ran, in order.
class Log {
 public:
  void add(int entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(entry);
  }
  std::vector<int> entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<int> entries_;
};

}  // namespace weir
