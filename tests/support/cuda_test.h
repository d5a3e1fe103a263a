// What tests on a real GPU begin with: the first one, or a reason to skip.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "device/gpu/cuda.h"
#include "device/gpu/gpu.h"

namespace weir {

class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    const GpuApi* const api = cuda_api(&reason);
    if (api == nullptr) GTEST_SKIP() << reason;
    if (const auto found = find_gpus(*api); found.names.empty()) GTEST_SKIP() << found.reason;
    device_ = open_gpu(*api, {});
  }
  Device& device() { return *device_; }
  void close_device() { device_.reset(); }

 private:
  std::unique_ptr<Device> device_;
};

}  // namespace weir
