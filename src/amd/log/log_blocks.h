// Splits a plain file into blocks of whole lines that several threads can read at once. Knows files and line ends, not
// logs. Reads into buffers instead of mapping the file, because a log may be truncated while it is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "amd/log/log_scan.h"

namespace weir::amd {

// The text of one block, and anything unusual at its end.
struct LogBlock {
  std::vector<char> bytes;
  std::string_view text;       // whole lines
  bool has_cut_line = false;   // the file ends after `text` in the middle of a line
  bool has_long_line = false;  // the line after `text` is too long to read
  std::string_view unread;     // the beginning of that line
  ScannedBlock scanned;
};

class LogFile {
 public:
  static constexpr std::size_t kBlock = 128 << 10;

  // Opens nothing if the file is compressed or not a regular file.
  explicit LogFile(const std::filesystem::path& path);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  bool is_open() const { return file_ >= 0; }
  std::uint64_t size() const { return size_; }
  std::uint64_t blocks() const { return (size_ + kBlock - 1) / kBlock; }
  // Reads the lines that begin in the block; each line of the file belongs to exactly one block. Safe to call from
  // several threads.
  void read(std::uint64_t block, LogBlock& into) const;

 private:
  std::filesystem::path path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
  std::size_t read_at(std::uint64_t offset, char* to, std::size_t size) const;
};

}  // namespace weir::amd
