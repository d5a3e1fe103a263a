// Opens a vendor's shared library and looks its entry points up, by name and never by version. Knows no vendor.
#pragma once

#include <string>
#include <vector>

namespace weir {

// Never closed: vendor libraries keep threads and exit handlers of their own.
class VendorLibrary {
 public:
  // Opens the first of `names` that there is.
  explicit VendorLibrary(const std::vector<std::string>& names);

  bool is_open() const noexcept { return library_ != nullptr; }
  // What the loader said about the first name; empty if one was opened.
  const std::string& error() const noexcept { return error_; }
  // The first entry point that need() did not find; empty if there was none.
  const std::string& missing() const noexcept { return missing_; }

  // Fills `entry`, or remembers that its symbol is missing.
  template <class Function>
  void need(Function*& entry, const char* symbol) {
    entry = reinterpret_cast<Function*>(find(symbol));
    if (entry == nullptr && missing_.empty()) missing_ = symbol;
  }
  // Fills `entry`, or leaves it null.
  template <class Function>
  void want(Function*& entry, const char* symbol) {
    entry = reinterpret_cast<Function*>(find(symbol));
  }

 private:
  void* find(const char* symbol) const noexcept;

  void* library_ = nullptr;
  std::string error_;
  std::string missing_;
};

}  // namespace weir
