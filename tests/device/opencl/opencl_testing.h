// What tests on an OpenCL device begin with: the first one there is, or a reason to skip.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "device/device.h"

namespace weir {

class OpenclTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Tests run in the build folder; compiled kernels are kept there from run to run.
    setenv("POCL_CACHE_DIR", (std::filesystem::current_path() / "pocl_cache").c_str(), 0);
    std::filesystem::create_directories(std::getenv("POCL_CACHE_DIR"));
  }
  void SetUp() override {
    for (const DeviceType& type : device_types()) {
      if (type.name != "opencl") continue;
      const DeviceType::Found found = type.find();
      if (found.names.empty()) GTEST_SKIP() << found.reason;
      device_ = open_device(found.names.front(), {});
      return;
    }
    FAIL() << "the list of devices has no opencl";
  }
  Device& device() { return *device_; }
  void close_device() { device_.reset(); }

 private:
  std::unique_ptr<Device> device_;
};

}  // namespace weir
