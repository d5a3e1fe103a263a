// The device that runs nothing. A step here costs only the submit path itself: the floor of every number.
#include <vector>

#include "base/error.h"
#include "device/list.h"
#include "device/plan.h"

namespace weir::device_list {
namespace {

// Stores what a driver would receive, so that the loop cannot be optimised away.
class NullQueue {
 public:
  void launch(CommandId command, StreamId stream) noexcept { note(command, stream); }
  void record(EventId event, StreamId stream) noexcept { note(event, stream); }
  void wait(EventId event, StreamId stream) noexcept { note(event, stream); }
  void mark_first(StreamId) noexcept {}
  void mark_last(StreamId) noexcept {}

 private:
  void note(std::uint32_t id, StreamId stream) noexcept {
    static_cast<volatile std::uint32_t&>(doorbell_) = id ^ static_cast<std::uint32_t>(stream) << 24;
  }
  std::uint32_t doorbell_ = 0;
};

// Does not count for progress(): nothing submitted here can hang, and counting would raise the floor.
class NullSession final : public Session {
 public:
  NullSession(const Step& step, const Placement& placement, const SessionOptions& options)
      : plan_(make_plan(step, placement, options)), step_(step), mode_(options.mode) {
    reject_delays(options);
  }

  void begin_iteration() noexcept override {}
  void submit(std::span<const CommandId> commands) noexcept override {
    NullQueue queue;  // per call, hence per thread: the floor of `threads` must not include a shared cache line
    if (mode_ == SubmitMode::graph) {
      for (const CommandId first : step_.segments().first(step_.segments().size() - 1)) queue.launch(first, 0);
      return;
    }
    walk(plan_, commands, queue);
  }
  void finish() override {}
  std::optional<std::uint64_t> ended(StreamId) noexcept override { return kAllEnded; }
  std::vector<IterationSpan> take_spans() override { return {}; }
  Timeline timeline() override {
    Timeline timeline;
    timeline.source = "the null device runs nothing";
    return timeline;
  }
  void reset() override {}
  void read(BufferId, std::span<std::byte>) override { fail("the null device computes nothing that could be read"); }
  MemoryUse memory() const override {
    MemoryUse use;
    use.reason = "the null device holds no buffers";
    return use;
  }

 private:
  StepPlan plan_;
  const Step& step_;
  SubmitMode mode_;
};

class NullDevice final : public Device {
 public:
  DeviceInfo info() const override {
    DeviceInfo info;
    info.name = info.backend = "null";
    info.model = "runs nothing: the cost of submitting";
    info.computes = false;
    info.precisions = {Precision::fp32, Precision::tf32,     Precision::fp16,
                       Precision::bf16, Precision::fp8_e4m3, Precision::fp8_e5m2};
    info.hardware_queues.reason = info.multiprocessors.reason = "the null device has none";
    info.copy_engines.reason = info.memory_bytes.reason = "the null device has none";
    return info;
  }
  std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                   const SessionOptions& options) override {
    return std::make_unique<NullSession>(step, placement, options);
  }
};

}  // namespace

DeviceType null() {
  return {"null", "runs nothing: the floor of every measurement", [] { return DeviceType::Found{{"null"}, "", true}; },
          [](const std::string& which, const DeviceOptions&) -> std::unique_ptr<Device> {
            if (device_number("null", which) != 0)
              reject_setting("device", "null:" + which, "there is one null device", "Use --device null.");
            return std::make_unique<NullDevice>();
          }};
}

}  // namespace weir::device_list
