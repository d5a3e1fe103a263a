// One open file descriptor, closed with its owner. Not base/handle.h: 0 is a descriptor, so "none" has to be -1.
#pragma once

#include <unistd.h>

namespace weir::cli {

class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  void take(int value) {
    close();
    value_ = value;
  }
  void close() {
    if (value_ >= 0) ::close(value_);
    value_ = -1;
  }

 private:
  int value_;
};

}  // namespace weir::cli
