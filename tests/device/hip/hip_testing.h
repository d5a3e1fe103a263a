// What tests on the fake HIP runtime begin with: its libraries loaded under the names that ROCm's have, so that whoever
// opens those gets these. Skips with the reason where it was left out.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "support/text.h"

namespace weir::testing {

#ifdef WEIR_FAKE_HIP_DIR
inline constexpr const char* kFakeHip = WEIR_FAKE_HIP_DIR "/rocm6/libamdhip64.so.6";
#else
inline constexpr const char* kFakeHip = "";
#endif

class HipTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (*kFakeHip == '\0') GTEST_SKIP() << "HIP's headers were not found when this was built";
    runtime_ = ::dlopen(kFakeHip, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(runtime_, nullptr) << ::dlerror();
    const std::string folder = std::string(kFakeHip).substr(0, std::string(kFakeHip).rfind('/'));
    for (const char* name : {"/librocblas.so.4", "/librocm_smi64.so.7", "/libhiprtc.so.6"})
      ASSERT_NE(::dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL), nullptr) << ::dlerror();
    configure("");
  }
  void TearDown() override {
    if (runtime_ == nullptr) return;
    EXPECT_STREQ(entry<const char*()>("weir_fake_hip_leaks")(), "");
    configure("");
  }

  template <class Function>
  Function* entry(const char* name) {
    auto* const found = reinterpret_cast<Function*>(::dlsym(runtime_, name));
    EXPECT_NE(found, nullptr) << name;
    return found;
  }
  // Starts over: "lost_after=100,memory=1048576".
  void configure(const char* settings) { entry<void(const char*)>("weir_fake_hip_configure")(settings); }
  // Lines that begin with `first`.
  std::vector<std::string> log(const std::string& first) {
    std::istringstream text(entry<const char*()>("weir_fake_hip_log")());
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);)
      if (line.starts_with(first)) lines.push_back(line);
    return lines;
  }

 private:
  void* runtime_ = nullptr;
};

}  // namespace weir::testing
