#include "base/vendor_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

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

VendorLibrary::Symbol VendorLibrary::want(const char* symbol, const char* older) const noexcept {
  if (library_ == nullptr) return {nullptr};
  void* const found = dlsym(library_, symbol);
  return {found == nullptr && older != nullptr ? dlsym(library_, older) : found};
}

VendorLibrary::Symbol VendorLibrary::need(const char* symbol) {
  const Symbol found = want(symbol);
  if (found.address == nullptr && missing_.empty()) missing_ = symbol;
  return found;
}

std::string VendorLibrary::shortfall(std::string_view title, std::string_view lacking) const {
  if (!is_open()) return fmt::format("{} was not found: {}", title, error_);
  return missing_.empty() ? "" : fmt::format("{} lacks {}", lacking, missing_);
}

std::vector<std::string> library_places(std::initializer_list<const char*> folders,
                                        std::initializer_list<const char*> names) {
  std::vector<std::string> places;
  for (const char* folder : folders)
    for (const char* name : names) places.push_back(std::string(folder) + name);
  return places;
}

}  // namespace weir
