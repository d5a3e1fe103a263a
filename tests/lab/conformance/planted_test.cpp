// Devices that are wrong on purpose: each must be caught, by the cases that are about it.
#include <gtest/gtest.h>

#include "base/error.h"
#include "device/fake_gpu.h"
#include "device/gpu/gpu.h"
#include "lab/conformance/conformance.h"
#include "lab/conformance/examined.h"

namespace weir::conformance {
namespace {

using Status = CaseOutcome::Status;

// A device whose sessions `Spoilt` makes.
template <class Spoilt>
class SpoiltDevice final : public ForwardingDevice {
 public:
  explicit SpoiltDevice(const std::string& name) : ForwardingDevice(open_device(name, {})) {}
  std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                   const SessionOptions& options) override {
    return std::make_unique<Spoilt>(ForwardingDevice::prepare(step, placement, options), step);
  }
};

class SpoiltSession : public ForwardingSession {
 public:
  SpoiltSession(std::unique_ptr<Session> session, const Step& step)
      : ForwardingSession(std::move(session)), step_(step) {}

 protected:
  // The first access that writes to the buffer, by a command of that kernel.
  const Access* written_by(std::string_view name, BufferId buffer) const {
    for (CommandId id = 0; id < step_.commands().size(); ++id) {
      if (step_.commands()[id].kind == CommandKind::copy || kernel(step_.commands()[id].kernel).name != name) continue;
      for (const Access& access : step_.accesses(id))
        if (access.writes && access.buffer == buffer) return &access;
    }
    return nullptr;
  }
  const Step& step_;
};

// One element of what gelu writes is a little off.
class WrongGelu final : public SpoiltSession {
 public:
  using SpoiltSession::SpoiltSession;
  void read(BufferId buffer, std::span<std::byte> bytes) override {
    ForwardingSession::read(buffer, bytes);
    const Access* const access = written_by("gelu", buffer);
    if (access == nullptr) return;
    // The last byte of the first element: a bit of the exponent, in any type.
    bytes[access->offset_bytes + size_of(step_.buffers()[buffer].type) - 1] ^= std::byte{1};
  }
};

TEST(ConformancePlanted, a_wrong_kernel) {
  SpoiltDevice<WrongGelu> device("cpu");
  const ConformanceResults report = examined(device, {"kernels/gelu*", "kernels/add/*"});
  for (const auto& [which, outcome, seconds] : report.results) {
    EXPECT_EQ(outcome.status, which->kernel == "gelu" ? Status::failed : Status::passed)
        << which->full_name() << ": " << outcome.text;
    if (which->kernel == "gelu") {
      EXPECT_NE(outcome.text.find("gelu, operand 1, element 0: "), std::string::npos) << outcome.text;
    }
  }
  EXPECT_EQ(report.lost, "");
}

// Writes an element behind what a kernel should.
class WritesOutside final : public SpoiltSession {
 public:
  using SpoiltSession::SpoiltSession;
  void read(BufferId buffer, std::span<std::byte> bytes) override {
    ForwardingSession::read(buffer, bytes);
    const Access* const access = written_by("add", buffer);
    if (access != nullptr && access->offset_bytes + access->size_bytes < bytes.size())
      bytes[access->offset_bytes + access->size_bytes] ^= std::byte{1};
  }
};

TEST(ConformancePlanted, a_kernel_that_writes_outside) {
  SpoiltDevice<WritesOutside> device("cpu");
  const ConformanceResults report = examined(device, {"kernels/add/*+1"});
  EXPECT_GT(report.results.size(), 3u);
  for (const auto& [which, outcome, seconds] : report.results) {
    EXPECT_EQ(outcome.status, Status::failed) << which->full_name();
    EXPECT_NE(outcome.text.find("what no command writes has changed"), std::string::npos) << outcome.text;
  }
}

// Takes commands and runs none of them.
class Idle final : public SpoiltSession {
 public:
  using SpoiltSession::SpoiltSession;
  void submit(std::span<const CommandId>) noexcept override {}
};

TEST(ConformancePlanted, no_case_about_results_passes_where_nothing_is_done) {
  SpoiltDevice<Idle> device("cpu");
  std::vector<std::string> passing;
  for (const auto& [which, outcome, seconds] :
       examined(device, {"kernels/*", "gemm/*", "copies/*", "streams/*", "events/*", "graphs/*", "host_functions/*",
                         "priorities/*", "timelines/*", "probes/spin*", "probes/stamp*", "probes/units*"})
           .results)
    if (outcome.is_passed() && which->name.find("nowhere") == std::string::npos) passing.push_back(which->full_name());
  // A declaration alone.
  const std::vector<std::string> expected = {"priorities/more than one level"};
  EXPECT_EQ(passing, expected);
}

// Every copy loses its last byte.
TEST(ConformancePlanted, a_wrong_copy) {
  fake_gpu::reset({});
  {
    static GpuApi spoilt;
    static GpuApi right;
    spoilt = right = fake_gpu::api();
    const auto device = open_gpu(spoilt, {});
    spoilt.copy_on_device = [](GpuPointer to, GpuPointer from, std::size_t bytes, GpuStream stream) {
      return bytes == 1 ? 0 : right.copy_on_device(to, from, bytes - 1, stream);
    };
    const ConformanceResults report = examined(*device, {"copies/device to device/*", "copies/host to device/*"});
    for (const auto& [which, outcome, seconds] : report.results)
      EXPECT_EQ(outcome.status, which->name.starts_with("device to device") ? Status::failed : Status::passed)
          << which->full_name() << ": " << outcome.text;
  }
  fake_gpu::reset({});
}

TEST(ConformancePlanted, waits_that_do_not_wait) {
  fake_gpu::reset({});
  {
    GpuApi spoilt = fake_gpu::api();
    spoilt.stream_wait = [](GpuStream, GpuEvent, unsigned) { return 0; };
    const auto device = open_gpu(spoilt, {});
    for (const std::string group : {"streams/hazards/inline", "events/relay"})
      EXPECT_GT(examined(*device, {group}).count(Status::failed), 2u) << group;
  }
  fake_gpu::reset({});
}

// Iterations that overlap although the data forbid it.
class NeverPipelined final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                   const SessionOptions& options) override {
    SessionOptions changed = options;
    changed.is_pipelined = false;
    return ForwardingDevice::prepare(step, placement, changed);
  }
};

TEST(ConformancePlanted, iterations_that_overtake_each_other) {
  fake_gpu::reset({});
  {
    NeverPipelined device(open_gpu(fake_gpu::api(), {}));
    for (const std::string pattern : {"streams/hazards/* pipelined", "events/*, pipelined"}) {
      const ConformanceResults report = examined(device, {pattern});
      EXPECT_EQ(report.lost, "");
      EXPECT_GT(report.count(Status::failed), 0u) << pattern;  // how many is a matter of luck
    }
  }
  fake_gpu::reset({});
}

// Times that were taken down wrongly: everything starts a second early.
class EarlyTimes final : public SpoiltSession {
 public:
  using SpoiltSession::SpoiltSession;
  Timeline timeline() override {
    Timeline timeline = ForwardingSession::timeline();
    for (Span& span : timeline.spans)
      if (span.command == step_.commands().size() / 2) span.started_ns -= 1'000'000'000;
    return timeline;
  }
};

TEST(ConformancePlanted, a_timeline_against_the_edges) {
  for (const char* name : {"cpu", "sim:h200"}) {
    SpoiltDevice<EarlyTimes> device(name);
    const ConformanceResults report = examined(device, {"timelines/edges/*"});
    EXPECT_EQ(report.count(Status::failed), report.results.size()) << name;
  }
}

class MissingSpans final : public SpoiltSession {
 public:
  using SpoiltSession::SpoiltSession;
  Timeline timeline() override {
    Timeline timeline = ForwardingSession::timeline();
    if (!timeline.spans.empty()) timeline.spans.pop_back();
    return timeline;
  }
  std::vector<IterationSpan> take_spans() override {
    std::vector<IterationSpan> spans = ForwardingSession::take_spans();
    if (!spans.empty()) spans.pop_back();
    return spans;
  }
};

TEST(ConformancePlanted, times_that_are_missing) {
  SpoiltDevice<MissingSpans> device("cpu");
  const ConformanceResults report =
      examined(device, {"timelines/edges/*", "events/700*", "timelines/iterations without commands"});
  EXPECT_EQ(report.count(Status::failed), report.results.size());
}

// Forgets what reset() is for.
class NeverReset final : public SpoiltSession {
 public:
  using SpoiltSession::SpoiltSession;
  void reset() override {}
};

TEST(ConformancePlanted, a_reset_that_does_nothing) {
  SpoiltDevice<NeverReset> device("cpu");
  const ConformanceResults report = examined(device, {"buffers/initial*", "sessions/reset*"});
  EXPECT_EQ(report.results.size(), 2u);
  EXPECT_EQ(report.count(Status::failed), 2u);
}

// Works for a while, then no call comes back without an error.
class Vanishing final : public ForwardingDevice {
 public:
  Vanishing() : ForwardingDevice(open_device("cpu", {})) {}
  std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                   const SessionOptions& options) override {
    if (++prepared_ > 5) fail("the device has gone", "Restart the machine.");
    return ForwardingDevice::prepare(step, placement, options);
  }

 private:
  int prepared_ = 0;
};

TEST(ConformancePlanted, a_lost_device_ends_the_run) {
  Vanishing device;
  const ConformanceResults report = examined(device, {"copies/*"});
  ASSERT_GT(report.results.size(), 10u);
  EXPECT_EQ(report.count(Status::passed), 5u);
  EXPECT_EQ(report.count(Status::failed), 1u);
  EXPECT_EQ(report.count(Status::not_run), report.results.size() - 6);
  EXPECT_EQ(report.lost, "the device has gone (Restart the machine.)");
  EXPECT_EQ(report.results.back().outcome.text, "the device was lost in " + report.results[5].which->full_name());
}

// Declares less than it does, and gives no reason for something else.
class Modest final : public ForwardingDevice {
 public:
  Modest() : ForwardingDevice(open_device("cpu", {})) {}
  DeviceInfo info() const override {
    DeviceInfo info = ForwardingDevice::info();
    info.graphs = lacking("it says so");
    info.kernel_clock = lacking("");
    return info;
  }
};

TEST(ConformancePlanted, declarations_that_are_not_true) {
  Modest device;
  const ConformanceResults report =
      examined(device, {"*not offered, then rejected", "errors/what is lacking*", "graphs/whole/*"});
  for (const auto& [which, outcome, seconds] : report.results) {
    const bool is_graph_of_it = which->group == "graphs" && which->name == "not offered, then rejected";
    const bool is_wrong = is_graph_of_it || which->group == "errors";
    EXPECT_EQ(outcome.status, is_wrong ? Status::failed : Status::skipped)
        << which->full_name() << ": " << outcome.text;
    if (is_graph_of_it) {
      EXPECT_EQ(outcome.text, "it is accepted");
    }
  }
}

// Takes any step, however large.
class Boundless final : public ForwardingDevice {
 public:
  Boundless() : ForwardingDevice(open_device("null", {})) {}
  DeviceInfo info() const override {
    DeviceInfo info = ForwardingDevice::info();
    info.memory_bytes = {1 << 20, ""};
    return info;
  }
};

TEST(ConformancePlanted, a_step_too_large_that_is_accepted) {
  Boundless device;
  const ConformanceResults report = examined(device, {"errors/a step too large"});
  ASSERT_EQ(report.count(Status::failed), 1u);
  EXPECT_EQ(report.results[0].outcome.text, "it is accepted");
}

}  // namespace
}  // namespace weir::conformance
