// Compilers for GPU code that run in this process: NVRTC and hipRTC, opened at run time. Knows no kernel package.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

struct GpuSource {
  std::string name;  // in messages of the compiler
  std::string text;
  // Found by #include under their names, wherever no file is.
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::string> options;
};

struct GpuCompiler {
  std::string name;     // nvrtc, hiprtc
  std::string version;  // NVRTC 13.0
  // Code as GpuApi::module_load takes it, for `architecture` as of GpuFacts. Rejects a source that does not compile,
  // with what the compiler says.
  std::string (*compile)(const GpuSource& source, const std::string& architecture) = nullptr;
};

// Open the library on the first call; null with a reason where there is none.
const GpuCompiler* open_nvrtc(std::string* reason);
const GpuCompiler* open_hiprtc(std::string* reason);

// "sm_90" where a compiler knows it, else "compute_89": the best below it, for the driver to translate. Empty where
// all that it knows is above.
std::string compile_target(const std::string& architecture, const std::vector<int>& known);

}  // namespace weir
