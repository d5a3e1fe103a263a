#include "device/rank/mpi.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>

#include "weir_build.h"

namespace weir {
namespace {

constexpr const char* kFile = "libweir_mpi.so";

MpiFound load(const std::filesystem::path& path) {
  // Global: Open MPI's own plugins expect its symbols there.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return {nullptr, fmt::format("the MPI module cannot be loaded: {}", ::dlerror())};
  void* const symbol = ::dlsym(library, kMpiModuleSymbol);
  if (symbol == nullptr) return {nullptr, fmt::format("{} is no module of weir's", path.string())};
  const auto entry = reinterpret_cast<const MpiModule* (*)()>(symbol);
  const MpiModule* const module = entry();
  if (module->interface != kMpiModuleInterface || std::strcmp(module->weir_version, WEIR_VERSION) != 0)
    return {nullptr,
            fmt::format("{} belongs to weir {}, this is {}", path.string(), module->weir_version, WEIR_VERSION)};
  return {module, {}};
}

}  // namespace

MpiFound find_mpi_module(const std::filesystem::path& binary) {
  const std::filesystem::path folder = binary.parent_path();
  std::error_code ignored;
  for (const auto& candidate : {folder / kFile, folder.parent_path() / "lib" / "weir" / kFile})
    if (std::filesystem::exists(candidate, ignored)) return load(candidate);
  return {nullptr, WEIR_HAVE_MPI ? fmt::format("{} is not beside the program, nor in ../lib/weir", kFile)
                                 : "MPI was not found when this was built"};
}

}  // namespace weir
