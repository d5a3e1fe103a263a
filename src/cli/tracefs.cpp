#include "cli/tracefs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "cli/descriptor.h"

namespace weir::cli {
namespace {

constexpr std::size_t kMostBytes = 8U << 20;  // of a setting: a filter may name every function of the kernel
constexpr int kTries = 100;                   // of 10 ms each, for an instance whose files somebody else has open

}  // namespace

int Tracefs::write(const std::string& path, std::string_view text, bool is_appended) {
  // Never creates: a file that is not there is a kernel that cannot do it. Truncation clears filters and buffers.
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | (is_appended ? O_APPEND : O_TRUNC)));
  if (file.get() < 0) return errno;
  if (text.empty()) return 0;
  std::string line(text);
  if (line.back() != '\n') line += '\n';
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t count = ::write(file.get(), line.data() + done, line.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return EIO;
    done += static_cast<std::size_t>(count);
  }
  return 0;
}

int Tracefs::read(const std::string& path, std::string& text) {
  text.clear();
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return errno;
  char part[16384];
  for (;;) {
    const ssize_t count = ::read(file.get(), part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return 0;
    text.append(part, static_cast<std::size_t>(count));
    if (text.size() > kMostBytes) return EFBIG;
  }
}

int Tracefs::make_folder(const std::string& path) { return ::mkdir(path.c_str(), 0700) == 0 ? 0 : errno; }

int Tracefs::remove_folder(const std::string& path) {
  for (int i = 0; i < kTries; ++i) {
    if (::rmdir(path.c_str()) == 0) return 0;
    if (errno != EBUSY) return errno;
    ::usleep(10'000);
  }
  return EBUSY;
}

}  // namespace weir::cli
