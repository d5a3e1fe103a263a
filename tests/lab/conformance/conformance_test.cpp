// The table on every device that can be had without a GPU: one test per device and group.
#include "lab/conformance/conformance.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "device/fake_gpu.h"
#include "device/gpu/gpu.h"
#include "lab/conformance/examined.h"

namespace weir::conformance {
namespace {

// The tests' fake GPU. Its kernels run while the host waits, so nothing that the host sees happens meanwhile.
class FakeGpu final : public ForwardingDevice {
 public:
  explicit FakeGpu(const DeviceOptions& options)
      : ForwardingDevice(open_gpu(fake_gpu::api(), {.compute_units = options.compute_units,  //
                                                    .rest_stream = options.rest_stream})) {}
  DeviceInfo info() const override {
    DeviceInfo info = ForwardingDevice::info();
    info.host_memory = lacking("the fake GPU's kernels run while the host waits for them");
    info.kernel_clock = lacking("no time passes in the fake GPU's kernels");
    return info;
  }
};

std::unique_ptr<Device> open(const std::string& name, const DeviceOptions& options) {
  if (name == "fake") return std::make_unique<FakeGpu>(options);
  return open_device(name, options);
}

class Conformance : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override { fake_gpu::reset({}); }
  void TearDown() override { EXPECT_EQ(fake_gpu::leaks(), ""); }
};

TEST_P(Conformance, passes) {
  const auto& [name, group] = GetParam();
  const bool may_be_absent = name.starts_with("hip") || name.starts_with("opencl");
  std::unique_ptr<Device> device;
  try {
    device = open(name, {});
  } catch (const Error& error) {
    if (!may_be_absent) throw;
    GTEST_SKIP() << error.what();
  }
  expect_conforming(*device, {group + "/*"}, [&](const DeviceOptions& options) { return open(name, options); });
}

INSTANTIATE_TEST_SUITE_P(Devices, Conformance,
                         testing::Combine(testing::Values("cpu", "sim:h200", "null", "fake", "hip:0", "opencl:0"),
                                          testing::ValuesIn(group_names())),
                         [](const auto& parameters) {
                           std::string name = std::get<0>(parameters.param) + "_" + std::get<1>(parameters.param);
                           for (char& c : name)
                             if (c == ':') c = '_';
                           return name;
                         });

// A fake GPU runs streams in another order for every seed: any that events allow.
TEST(ConformanceOfFakeGpu, in_any_order) {
  for (std::uint64_t seed = 2; seed <= 5; ++seed) {
    fake_gpu::reset({.seed = seed});
    FakeGpu device({});
    expect_conforming(device, {"streams/*", "events/*", "graphs/*"});
  }
  fake_gpu::reset({});
}

TEST(ConformanceOfFakeGpu, without_graphs_and_host_functions) {
  fake_gpu::reset({.has_graphs = false, .has_host_functions = false});
  {
    FakeGpu device({});
    const ConformanceResults report = examined(device, {"graphs/*", "host_functions/*", "streams/hazards/inline/*"});
    EXPECT_EQ(report.count(CaseOutcome::Status::failed), 0u);
    for (const auto& [which, outcome, seconds] : report.results) {
      const bool is_rejection = which->name == "not offered, then rejected";
      EXPECT_EQ(outcome.is_passed(), which->group == "streams" || is_rejection)
          << which->full_name() << ": " << outcome.text;
    }
  }
  fake_gpu::reset({});
}

}  // namespace
}  // namespace weir::conformance
