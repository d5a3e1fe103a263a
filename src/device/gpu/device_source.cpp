#include "device/gpu/device_source.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "base/cache_folder.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

// Empty where there is none.
std::string kept_code(const fs::path& file) {
  try {
    return fs::is_regular_file(file) ? read_file(file) : "";
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

std::string compile_device_code(const GpuCompiler& compiler, const std::string& architecture,
                                const std::string& model) {
  GpuSource source;
  ContentHash hash;
  hash.add(compiler.version).add(architecture).add(model);
  for (const DeviceFile& file : device_files()) {
    hash.add(file.name).add(file.text);
    if (source.text.empty()) {
      source.name = file.name;
      source.text = file.text;
    } else {
      source.headers.emplace_back(file.name, file.text);
    }
  }

  if (compiler.name == "nvrtc")
    source.options = {"--device-as-default-execution-space"};  // nvcc takes lambdas as they are

  std::optional<fs::path> kept = cache_folder("device_code");
  try {
    if (kept) {
      make_private(*kept, true);
      *kept /= fmt::format("{}_{}", compiler.name, hash.text());
      if (std::string code = kept_code(*kept); !code.empty()) return code;
    }
  } catch (const Error&) {
    kept.reset();
  }
  print_err("Compiling Weir's kernels for {} with {}: about a minute, once.\n", model, compiler.version);
  std::string code = compiler.compile(source, architecture);
  try {
    if (kept) write_file(*kept, code, true);
  } catch (const Error&) {
  }
  return code;
}

}  // namespace weir
