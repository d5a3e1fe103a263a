// One open file descriptor, closed with its owner. Not base/handle.h: 0 is a valid descriptor, so "none" must be -1.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
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

// Writes all of it; on failure false, with errno.
inline bool write_all(int file, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = EIO;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Appends available input until `text` has more than `most` bytes; on failure false, with errno.
inline bool read_all(int file, std::string& text, std::size_t most = SIZE_MAX) {
  char part[16384];
  while (text.size() <= most) {
    const ssize_t count = ::read(file, part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0;
    text.append(part, static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace weir
