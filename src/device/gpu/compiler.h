// Compilers for GPU code that run in this process: NVRTC and hipRTC, opened at run time. Knows no kernel package.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weir {

struct GpuSource {
  std::string name;  // in the compiler's messages
  std::string text;
  // #include finds them by name if there is no such file.
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::string> options;
};

struct GpuCompiler {
  std::string name;     // nvrtc, hiprtc
  std::string version;  // NVRTC 13.0
  // Code for GpuApi::module_load, compiled for GpuFacts::architecture. Rejects a source that does not compile, with the
  // compiler's log.
  std::string (*compile)(const GpuSource& source, const std::string& architecture) = nullptr;
};

// Open the library on the first call; null with a reason if there is none.
const GpuCompiler* open_nvrtc(std::string* reason);
const GpuCompiler* open_hiprtc(std::string* reason);

// "sm_90" if the compiler knows it, else "compute_89": the best one below it, for the driver to translate. Empty if the
// compiler knows only newer ones.
std::string compile_target(const std::string& architecture, const std::vector<int>& known);

}  // namespace weir
