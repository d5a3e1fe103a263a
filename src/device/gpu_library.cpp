#include "device/gpu_library.h"

#include <dlfcn.h>

namespace weir {

VendorLibrary::VendorLibrary(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) {
      error_.clear();
      return;
    }
    // libcuda.so.1: cannot open shared object file: No such file or directory
    const char* const message = dlerror();
    if (error_.empty() && message != nullptr) error_ = message;
  }
}

void* VendorLibrary::find(const char* symbol) const noexcept {
  return library_ == nullptr ? nullptr : dlsym(library_, symbol);
}

}  // namespace weir
