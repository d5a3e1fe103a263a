#include "device/vendor_library.h"

#include <dlfcn.h>

#include <string_view>

namespace weir {

VendorLibrary::VendorLibrary(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) {
      name_ = name;
      error_.clear();
      return;
    }
    // libcuda.so.1: cannot open shared object file: No such file or directory
    const char* const message = dlerror();
    if (message == nullptr) continue;
    const bool is_there = std::string_view(message).find("No such file") == std::string_view::npos;
    if (error_.empty() || (is_there && is_absent())) error_ = message;
  }
}

void* VendorLibrary::find(const char* symbol) const noexcept {
  return library_ == nullptr ? nullptr : dlsym(library_, symbol);
}

}  // namespace weir
