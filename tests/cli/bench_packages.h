// Kernel packages for tests of `weir bench`: small folders with a kernel.cpp each, good ones and all kinds of bad ones.
#pragma once

#include <filesystem>
#include <string>

namespace weir::testing {

// What a kernel of y = 2 x does besides; C++ text, put into the functions of that name.
struct KernelSource {
  std::string run = "";  // in front of the loop
  std::string setup = "";
  std::string globals = "";
  std::string reference = "reference";  // or nullptr
  std::string abi = "WEIR_KERNEL_ABI";
  std::string symbol = "weir_kernel";
  std::string precisions = "WEIR_FP64 | WEIR_FP32 | WEIR_FP16 | WEIR_BF16";
  std::string result = "2 * x";    // of one element x
  std::string expected = "2 * x";  // the same in the reference
};

// Makes folder/kernels/NAME with kernel.cpp and, where it is not empty, bench.yaml.
void make_package(const std::filesystem::path& folder, const std::string& name, const std::string& config = "",
                  const KernelSource& source = {});

}  // namespace weir::testing
