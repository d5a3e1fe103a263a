// A GPU that no embedded code is for: NVRTC compiles all kernels (a minute), and the GPU loads them.
#include <chrono>

#include "device/gpu/cuda.h"
#include "device/gpu/gpu.h"
#include "device/gpu_compiler_cases.h"

namespace weir::testing {
namespace {

TEST(DeviceSource, is_compiled_once_and_loaded_where_no_embedded_code_fits) {
  std::string reason;
  const GpuApi* const cuda = cuda_api(&reason);
  if (cuda == nullptr) GTEST_SKIP() << reason;
  if (const auto found = find_gpus(*cuda); found.names.empty()) GTEST_SKIP() << found.reason;
  if (open_nvrtc(&reason) == nullptr) GTEST_SKIP() << reason;
  const PrivateFolder folder;
  ::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  GpuApi api = *cuda;
  api.device_code = [](std::string* why) -> const void* {
    *why = "left out by a test";
    return nullptr;
  };
  for (int round = 0; round < 2; ++round) {
    const auto before = std::chrono::steady_clock::now();
    PrimaryContext context(api, 0);
    context.enter();
    for (const char* name : {"weir_gelu_f32", "weir_softmax_bf16", "weir_attention_f16"})
      EXPECT_NE(context.function(name), nullptr) << name;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - before;
    RecordProperty(round == 0 ? "compiled_s" : "from_the_cache_s", std::to_string(seconds.count()));
    fmt::print("{}: {:.2f} s\n", round == 0 ? "compiled" : "from the cache", seconds.count());
  }
  ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace weir::testing
