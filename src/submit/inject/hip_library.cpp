#include "submit/inject/hip_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <exception>
#include <string>

namespace weir::inject {
namespace {

// For a program, or a library that it opened, that loaded HIP without making its names global.
int find_library(dl_phdr_info* info, std::size_t, void* path) {
  const char* const slash = std::strrchr(info->dlpi_name, '/');
  const char* const name = slash == nullptr ? info->dlpi_name : slash + 1;
  if (std::strncmp(name, "libamdhip64", 11) != 0) return 0;
  *static_cast<std::string*>(path) = info->dlpi_name;
  return 1;
}

// Never returns one of this library's functions: that would call itself until the stack overflows.
void* unless_ours(void* found) noexcept {
  Dl_info theirs{}, ours{};
  if (found == nullptr || ::dladdr(found, &theirs) == 0 ||
      ::dladdr(reinterpret_cast<void*>(&unless_ours), &ours) == 0 || theirs.dli_fbase == ours.dli_fbase)
    return nullptr;
  return found;
}

}  // namespace

constinit thread_local int InsideHip::t_depth = 0;

void* find_in_hip(const char* name) noexcept {
  if (void* const next = unless_ours(::dlsym(RTLD_NEXT, name)); next != nullptr) return next;
  try {
    std::string path;
    ::dl_iterate_phdr(find_library, &path);
    void* const library = path.empty() ? nullptr : ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    return library == nullptr ? nullptr : unless_ours(::dlsym(library, name));
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace weir::inject
