// The table on real GPUs: the first one through CUDA, and the first one through OpenCL. Skipped where there is none.
#include <gtest/gtest.h>

#include "base/error.h"
#include "kernel/attention.h"
#include "kernel/chain.h"
#include "kernel/gemm.h"
#include "lab/conformance/checks.h"
#include "lab/conformance/examined.h"
#include "lab/conformance/kernel_case.h"

namespace weir::conformance {
namespace {

// The first GPU of that kind; empty, with a reason, where there is none.
std::string first_gpu(const std::string& kind, std::string& reason) {
  for (const DeviceType& type : device_types()) {
    if (type.name != kind) continue;
    const DeviceType::Found found = type.find();
    if (found.gpus > 0) return found.names.front();
    reason = found.reason.empty() ? kind + " finds no GPU" : found.reason;
    return {};
  }
  reason = "this build has no " + kind;
  return {};
}

class ConformanceOnGpu : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(ConformanceOnGpu, passes) {
  const auto& [kind, group] = GetParam();
  std::string reason;
  const std::string name = first_gpu(kind, reason);
  if (name.empty()) GTEST_SKIP() << reason;
  const auto device = open_device(name, {});
  expect_conforming(*device, {group + "/*"}, [&](const DeviceOptions& options) { return open_device(name, options); });
}

INSTANTIATE_TEST_SUITE_P(Gpus, ConformanceOnGpu,
                         ::testing::Combine(::testing::Values("cuda", "opencl"), ::testing::ValuesIn(group_names())),
                         [](const auto& parameters) {
                           return std::get<0>(parameters.param) + "_" + std::get<1>(parameters.param);
                         });

// Sizes that a host takes too long for to have them in the table.
TEST(ConformanceOnGpuOfLargeShapes, passes) {
  std::string reason;
  const std::string name = first_gpu("cuda", reason);
  if (name.empty()) GTEST_SKIP() << reason;
  const auto device = open_device(name, {}), cpu = open_device("cpu", {});
  Subject subject{*device, device->info(), cpu.get(), {}};
  using enum OperandContents::Kind;
  for (const ElementType type : kFloats) {
    const auto shape = [&](std::array<std::int64_t, kMaxDims> dims, std::array<float, kMaxScalars> scalars = {}) {
      return KernelShape{type, precision_of(type), dims, scalars};
    };
    for (const KernelCase& each :
         {KernelCase{"gemm", shape({512, 512, 64, gemm_flags(false, true, 32)}, {0.125f, 0})},
          KernelCase{"chain", shape({1'000'003, chain_ops({ChainOp::mul})}, {1.5f})},
          KernelCase{"gelu", shape({1'000'003})},
          KernelCase{"softmax", shape({1024, 512, 1})},
          KernelCase{"softmax_backward", shape({1024, 512})},
          KernelCase{"layer_norm", shape({4096, 33}, {1e-5f})},
          KernelCase{"layer_norm_backward", shape({512, 2048}, {1e-5f})},
          KernelCase{"layer_norm_grad", shape({2048, 2048})},
          KernelCase{"add", shape({1024, 2048, 1}, {1, 1})},
          KernelCase{"sum_rows", shape({2, 4, 1'000'000, 1'000'000}, {0.25f})},
          KernelCase{"copy", shape({3'000'000})},
          KernelCase{"fill", shape({3'000'000, 1, 99}, {1000, 0.1f})},
          KernelCase{"transpose", shape({1, 2048, 1024, 1})},
          KernelCase{"square_sum", shape({3'000'003, 512})},
          KernelCase{"adamw",
                     shape({1'000'003}, {0.9f, 0.999f, 1e-8f, 0.01f}),
                     "",
                     {{}, {}, {}, {uniform, 2, 2.25f}, {uniform, 1, 2}}},
          KernelCase{"weighted_bce",
                     shape({1'000'003}, {0.125f}),
                     "",
                     {{uniform, 8, 0}, {uniform, 0.5f, 0.5f}, {uniform, 1, 1}}},
          KernelCase{"embedding_grad", shape({16'128, 256, 20'000}), "", {{integers, 20'000}}},
          KernelCase{"augment", shape({4, 224, 224, 3}, {0.45f, 4.4f}), "", {{}, {integers, 4}}},
          KernelCase{"attention", shape({16, 1, 2048, heads_of(16, 64)}), "", {{}, {}, {}, {integers, 2050}}},
          KernelCase{"attention", shape({1, 512, 512, heads_of(2, 64)}), "", {{}, {}, {}, {constant, 512}}}}) {
      const CaseOutcome outcome = same_as_reference(subject, step_of(each));
      EXPECT_TRUE(outcome.is_passed()) << name_of(each) << ": " << outcome.text;
    }
  }
}

}  // namespace
}  // namespace weir::conformance
