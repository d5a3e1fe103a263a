// `weir` where NVIDIA's driver cannot be used: libraries in its place that are too old, lack something, or are none.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "cli/program.h"
#include "cli/queues_checks.h"

namespace weir::testing {
namespace {

class CudaCli : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef WEIR_FAKE_CUDA_DIR
    GTEST_SKIP() << "built without CUDA";
#endif
  }
  static Outcome with_library(const std::string& folder, const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {"env", "LD_LIBRARY_PATH=" + folder, WEIR_BINARY};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_program(command, ".");
  }
#ifdef WEIR_FAKE_CUDA_DIR
  const std::string fakes_ = WEIR_FAKE_CUDA_DIR;
#else
  const std::string fakes_;
#endif
};

TEST_F(CudaCli, ADriverTooOldIsNamed) {
  const Outcome info = with_library(fakes_ + "/old", {"info"});
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_TRUE(has(info.out, "not here: driver too old for this program: CUDA error 35")) << info.out;
  const Outcome run = with_library(fakes_ + "/old", {"run", "tiny_kernel_stress", "--device", "cuda"});
  EXPECT_EQ(run.code, 2);
  EXPECT_TRUE(has(run.err, "--device cuda:0: driver too old for this program: CUDA error 35")) << run.err;
  EXPECT_TRUE(has(run.err, "--device cpu")) << run.err;
}

TEST_F(CudaCli, WhatADriverLacksIsNamed) {
  const Outcome info = with_library(fakes_ + "/lacking", {"info"});
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_TRUE(has(info.out, "libcuda.so.1 lacks cuLaunchKernel")) << info.out;
}

TEST_F(CudaCli, AFileThatIsNoLibraryIsNamed) {
  const Folder folder;
  std::ofstream(folder / "libcuda.so.1") << "no library\n";
  const Outcome info = with_library(folder.path().string(), {"info"});
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_TRUE(has(info.out, "libcuda.so.1 cannot be used: ")) << info.out;
}

}  // namespace
}  // namespace weir::testing
