// Owners of one resource of a C interface, or one open file, which give it back once.
#pragma once

#include <unistd.h>

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

// An open file, closed with the object. Not a Handle: 0 is a descriptor, so none is -1.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int file) noexcept : file_(file) {}
  Descriptor(Descriptor&& other) noexcept : file_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const noexcept { return file_; }
  explicit operator bool() const noexcept { return file_ >= 0; }
  int release() noexcept { return std::exchange(file_, -1); }
  void reset(int file = -1) noexcept {
    if (file_ >= 0) ::close(file_);
    file_ = file;
  }

 private:
  int file_ = -1;
};

}  // namespace weir
