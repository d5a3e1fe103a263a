// Opens a vendor's shared library and looks up its entry points by name, never by version. Knows no vendor.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace weir {

// Compares a neutral signature with a vendor's: same arity, same size and class of every argument. Pointers and
// integers are passed alike.
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

// Never closed: vendor libraries keep threads and exit handlers of their own. A struct of entry points derives from it
// and declares each one's type, name, and whether it is required: `int (*init)() = need("nvmlInit_v2");`
class VendorLibrary {
 public:
  // Opens the first of `names` that can be opened.
  explicit VendorLibrary(const std::vector<std::string>& names);

  bool is_open() const noexcept { return library_ != nullptr; }
  // The loader's message: about a file that exists but cannot be used, else about the first name. Empty if one was
  // opened.
  const std::string& error() const noexcept { return error_; }
  // True if none of the names exists.
  bool is_absent() const noexcept { return !is_open() && error_.find("No such file") != std::string::npos; }
  // The name that was opened.
  const std::string& name() const noexcept { return name_; }
  // The first entry point that need() did not find; empty if there was none.
  const std::string& missing() const noexcept { return missing_; }
  // Why the library cannot be used: "NVML was not found: ..." or "NVML lacks nvmlInit_v2"; empty if it can.
  std::string shortfall(std::string_view title) const { return shortfall(title, title); }
  std::string shortfall(std::string_view title, std::string_view lacking) const;

  // An entry point; converts to any function pointer that it is assigned to.
  struct Symbol {
    void* address;
    template <class Function>
      requires std::is_function_v<Function>
    operator Function*() const noexcept {
      return reinterpret_cast<Function*>(address);
    }
  };
  // Null if it is missing; missing() then names it.
  Symbol need(const char* symbol);
  // Null if it is missing; `older` is its name in earlier versions.
  Symbol want(const char* symbol, const char* older = nullptr) const noexcept;

 private:
  void* library_ = nullptr;
  std::string name_;
  std::string error_;
  std::string missing_;
};

// Every name in every folder, folder by folder; the folder "" means the loader's own search.
std::vector<std::string> library_places(std::initializer_list<const char*> folders,
                                        std::initializer_list<const char*> names);

// A table that is filled once, or the reason why it is not available.
template <class Table>
class Opened {
 public:
  // `fill` returns why the table cannot be used, or an empty string if it can.
  explicit Opened(std::string (*fill)(Table& table)) : reason_(fill(table_)) {}

  const Table* get(std::string* reason) const {
    if (reason_.empty()) return &table_;
    if (reason != nullptr) *reason = reason_;
    return nullptr;
  }

 private:
  Table table_{};
  std::string reason_;
};

}  // namespace weir
