// Writes what the library inside a program has to say to `weir race` (trace/race_format.h): the log, which is written
// when a buffer is full or half a second old, and files of lines. Knows no vendor. Locks nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/race_format.h"

namespace weir::inject {

// A file that grows by whole lines; -1 stays -1, and what is written then is lost.
class RaceLines {
 public:
  // Returns the reason where the file cannot be created, else nothing.
  std::string open(const std::string& path);
  void add(std::string_view text) noexcept;  // as it is

 private:
  int descriptor_ = -1;
};

class RaceLog {
 public:
  // Returns why the log cannot be written, or empty.
  std::string open(const std::string& path, std::int64_t now_ns);
  bool is_open() const noexcept { return descriptor_ >= 0; }
  void add(race_format::Entry entry, std::span<const race_format::Access> accesses);
  // The number of a text, which is written when it is new; 0: of none, or of too many.
  std::uint32_t text(std::string_view text);
  void flush() noexcept;
  // errno of the first failure; 0: everything was written. ENOSPC also stands for a limit of sizes.
  int error() const noexcept { return error_; }

 private:
  void append(const void* bytes, std::size_t size);

  int descriptor_ = -1, error_ = 0;
  std::uint64_t written_ = 0, limit_ = 0;
  std::int64_t flushed_ns_ = 0;
  std::vector<char> buffer_;
  std::unordered_map<std::string, std::uint32_t> texts_;
};

}  // namespace weir::inject
