// One open file descriptor, closed with its owner. Not base/handle.h: 0 is a descriptor, so "none" has to be -1.
#pragma once

#include <unistd.h>

#include <utility>

namespace weir {

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
