#include "submit/inject/race_log.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "submit/inject/process.h"

namespace weir::inject {
namespace {

constexpr std::size_t kLogBuffer = std::size_t{1} << 20;
constexpr std::uint64_t kMostLogBytes = std::uint64_t{16} << 30;
constexpr std::int64_t kFlushNs = 500'000'000;  // a program that ends without its handlers loses no more
constexpr std::size_t kMostTexts = 1'000'000, kLongestText = 4096;

// A write beyond the limit of sizes would kill the program with SIGXFSZ.
std::uint64_t most_file_bytes() noexcept {
  rlimit files{};
  if (::getrlimit(RLIMIT_FSIZE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return kMostLogBytes;
  return std::min(kMostLogBytes, static_cast<std::uint64_t>(files.rlim_cur));
}

// Returns errno.
int write_whole(int descriptor, const char* bytes, std::size_t size) noexcept {
  while (size > 0) {
    const ssize_t got = ::write(descriptor, bytes, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 ? errno : EIO;
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
  return 0;
}

}  // namespace

std::string RaceLines::open(const std::string& path) {
  if (descriptor_ < 0) descriptor_ = open_own_file(path, O_WRONLY | O_CREAT | O_APPEND);
  return descriptor_ >= 0 ? std::string() : path + ": " + std::strerror(errno);
}

void RaceLines::add(std::string_view text) noexcept {
  if (descriptor_ < 0) return;
  const off_t size = ::lseek(descriptor_, 0, SEEK_END);
  if (size < 0 || static_cast<std::uint64_t>(size) + text.size() > most_file_bytes()) return;
  write_whole(descriptor_, text.data(), text.size());
}

std::string RaceLog::open(const std::string& path, std::int64_t now_ns) {
  descriptor_ = open_own_file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (descriptor_ < 0) return path + ": " + std::strerror(errno);
  limit_ = most_file_bytes();
  buffer_.reserve(kLogBuffer);
  race_format::Header header{};
  std::copy(std::begin(race_format::kMagic), std::end(race_format::kMagic), header.magic);
  header.version = race_format::kVersion;
  header.pid = static_cast<std::uint32_t>(::getpid());
  header.started_ns = now_ns;
  append(&header, sizeof(header));
  flush();
  flushed_ns_ = now_ns;
  return {};
}

void RaceLog::append(const void* bytes, std::size_t size) {
  const auto* const begin = static_cast<const char*>(bytes);
  buffer_.insert(buffer_.end(), begin, begin + size);
}

void RaceLog::add(race_format::Entry entry, std::span<const race_format::Access> accesses) {
  if (descriptor_ < 0) return;
  entry.accesses = static_cast<std::uint32_t>(accesses.size());
  // An entry and what follows it are written together, so that only a kill tears them.
  if (buffer_.size() + sizeof(entry) + accesses.size_bytes() > kLogBuffer) flush();
  append(&entry, sizeof(entry));
  append(accesses.data(), accesses.size_bytes());
  if (entry.time_ns - flushed_ns_ < kFlushNs) return;
  flush();
  flushed_ns_ = entry.time_ns;
}

std::uint32_t RaceLog::text(std::string_view text) {
  if (descriptor_ < 0 || text.empty()) return 0;
  text = text.substr(0, kLongestText);
  if (const auto known = texts_.find(std::string(text)); known != texts_.end()) return known->second;
  if (texts_.size() == kMostTexts) return 0;
  const auto number = static_cast<std::uint32_t>(texts_.size() + 1);
  texts_.emplace(text, number);
  race_format::Entry entry{};
  entry.accesses = static_cast<std::uint32_t>(text.size());
  entry.kind = static_cast<std::uint8_t>(race_format::Kind::text);
  entry.thread = 1;
  entry.stream = race_format::kNone;
  entry.object = number;
  if (buffer_.size() + sizeof(entry) + text.size() > kLogBuffer) flush();
  append(&entry, sizeof(entry));
  append(text.data(), text.size());
  return number;
}

void RaceLog::flush() noexcept {
  if (descriptor_ < 0 || buffer_.empty()) return;
  if (error_ == 0 && written_ + buffer_.size() > limit_) error_ = ENOSPC;
  if (error_ == 0) error_ = write_whole(descriptor_, buffer_.data(), buffer_.size());
  written_ += buffer_.size();
  buffer_.clear();
}

}  // namespace weir::inject
