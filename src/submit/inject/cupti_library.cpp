#include "submit/inject/cupti_library.h"

#include <cstdlib>

namespace weir::inject {

void* open_cupti(std::string& reason) {
  if (const char* const path = std::getenv("WEIR_CUPTI_LIBRARY"); path != nullptr && *path != '\0') {
    void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) reason = ::dlerror();
    return library;
  }
  // The copy that the program has loaded (PyTorch brings one) is the one that fits it.
  constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  for (const char* name : kNames)
    if (void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); library != nullptr) return library;
  for (const char* folder : {"", "/usr/local/cuda/extras/CUPTI/lib64/", "/usr/local/cuda/lib64/"})
    for (const char* name : kNames) {
      if (void* const library = ::dlopen((std::string(folder) + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
      const char* const message = ::dlerror();
      if (reason.empty() && message != nullptr) reason = message;
    }
  return nullptr;
}

}  // namespace weir::inject
