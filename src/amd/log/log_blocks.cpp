#include "amd/log/log_blocks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace weir::amd {

LogFile::LogFile(const std::filesystem::path& path) : path_(path) {
  Descriptor file = open_regular(path);
  if (!file) return;
  struct stat status{};
  unsigned char magic[2] = {};
  const bool is_plain = ::fstat(file.get(), &status) == 0 && status.st_size > 0 &&
                        ::pread(file.get(), magic, 2, 0) >= 1 && !(magic[0] == 0x1f && magic[1] == 0x8b);
  if (!is_plain) return;
  file_ = file.release();
  size_ = static_cast<std::uint64_t>(status.st_size);
  ::posix_fadvise(file_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

LogFile::~LogFile() {
  if (file_ >= 0) ::close(file_);
}

std::size_t LogFile::read_at(std::uint64_t offset, char* to, std::size_t size) const {
  std::size_t got = 0;
  while (got < size && offset + got < size_) {
    const std::size_t most = static_cast<std::size_t>(std::min<std::uint64_t>(size - got, size_ - offset - got));
    const ssize_t count = ::pread(file_, to + got, most, static_cast<off_t>(offset + got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(fmt::format("{}: cannot be read: {}", path_.string(), std::strerror(errno)));
    if (count == 0) break;  // the file became shorter while it was read
    got += static_cast<std::size_t>(count);
  }
  return got;
}

void LogFile::read(std::uint64_t block, LogBlock& into) const {
  constexpr std::size_t kFirstTail = 4096;
  into.text = into.unread = {};
  into.has_cut_line = into.has_long_line = false;
  into.bytes.resize(kMargin + 1 + kBlock + kLongestLine + kMargin);
  // The byte before the block shows whether the block begins with a new line.
  const std::uint64_t begin = block * kBlock;
  const std::size_t before = block == 0 ? 0 : 1;
  char* const data = into.bytes.data() + kMargin;
  std::size_t size = read_at(begin - before, data, before + kBlock + kFirstTail);

  const std::size_t limit = std::min(size, before + kBlock);  // lines that begin here or later belong to the next block
  std::size_t first = 0;
  if (before == 1) {
    const void* const found = size < 1 ? nullptr : std::memchr(data, '\n', limit - (limit == before + kBlock ? 1 : 0));
    if (found == nullptr) return;
    first = static_cast<std::size_t>(static_cast<const char*>(found) - data) + 1;
  }
  if (first >= limit) return;
  const auto newline_from = [&](std::size_t from) -> std::size_t {
    const void* const found = from >= size ? nullptr : std::memchr(data + from, '\n', size - from);
    return found == nullptr ? std::string_view::npos : static_cast<std::size_t>(static_cast<const char*>(found) - data);
  };
  std::size_t end = newline_from(limit - 1);
  if (end == std::string_view::npos && size == before + kBlock + kFirstTail) {
    size += read_at(begin - before + size, data + size, kLongestLine - kFirstTail);
    end = newline_from(limit - 1);
  }
  if (end == std::string_view::npos) {
    // The last line that begins here does not end within the buffer.
    const bool is_whole = begin - before + size >= size_ || size < before + kBlock + kLongestLine;
    std::size_t start = limit;
    while (start > first && data[start - 1] != '\n') --start;
    (is_whole && size - start <= kLongestLine ? into.has_cut_line : into.has_long_line) = start < size;
    into.unread = {data + start, size - start};
    into.text = {data + first, start - first};
    return;
  }
  into.text = {data + first, end + 1 - first};
}

}  // namespace weir::amd
