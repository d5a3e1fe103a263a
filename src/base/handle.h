// Owns one resource of a C interface and releases it once. Knows no particular interface.
#pragma once

#include <utility>

namespace weir {

// Move-only owner of `T`; `Close` is called with it unless it equals the empty value `T{}`.
template <class T, class Close>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T value, Close close = {}) : value_(value), close_(std::move(close)) {}
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, T{})), close_(std::move(other.close_)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      value_ = std::exchange(other.value_, T{});
      close_ = std::move(other.close_);
    }
    return *this;
  }
  ~Handle() { reset(); }

  T get() const noexcept { return value_; }
  explicit operator bool() const noexcept { return value_ != T{}; }
  T release() noexcept { return std::exchange(value_, T{}); }
  void reset() noexcept {
    if (value_ != T{}) close_(std::exchange(value_, T{}));
  }

 private:
  T value_{};
  Close close_{};
};

}  // namespace weir
