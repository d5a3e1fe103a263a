// Opens a vendor's shared library and looks its entry points up, by name and never by version. Knows no vendor.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

namespace weir {

// Our neutral signature against a vendor's: same arity, same size and class of every argument. Pointers and integers
// travel alike.
template <class Ours, class Theirs>
constexpr bool is_same_argument =
    sizeof(Ours) == sizeof(Theirs) && std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs> &&
    std::is_class_v<Ours> == std::is_class_v<Theirs>;
template <class Ours, class Theirs>
struct SameAbi : std::false_type {};
template <class... Ours, class Result, class... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs) && sizeof(Result) == sizeof(int))
struct SameAbi<int (*)(Ours...), Result (*)(Theirs...)> : std::bool_constant<(is_same_argument<Ours, Theirs> && ...)> {
};

// Never closed: vendor libraries keep threads and exit handlers of their own.
class VendorLibrary {
 public:
  // Opens the first of `names` that there is.
  explicit VendorLibrary(const std::vector<std::string>& names);

  bool is_open() const noexcept { return library_ != nullptr; }
  // What the loader said: about a file that is there and cannot be used, else about the first name. Empty if one was
  // opened.
  const std::string& error() const noexcept { return error_; }
  // Whether none of the names is there at all.
  bool is_absent() const noexcept { return !is_open() && error_.find("No such file") != std::string::npos; }
  // The name that was opened.
  const std::string& name() const noexcept { return name_; }
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
  std::string name_;
  std::string error_;
  std::string missing_;
};

}  // namespace weir
