// A text file that is written piece by piece and appears under its name only when complete; compressed where the name
// ends in .gz. Knows no trace format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"

namespace weir {

class TextFile {
 public:
  // Rejects an existing file unless `overwrite`, and .gz where zlib was left out of the build.
  // `progress`: called for every megabyte; may be empty, may throw to stop.
  TextFile(const std::filesystem::path& path, bool overwrite, std::function<void()> progress = {});
  // Without commit() no file remains.
  ~TextFile();
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  TextFile& operator<<(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= kFull) drain();
    return *this;
  }
  TextFile& operator<<(char letter) { return *this << std::string_view(&letter, 1); }
  void number(std::int64_t value);
  void number(std::uint64_t value);

  // Gives the file its name. Throws on errors such as a full disk.
  void commit();

 private:
  class Sink;
  static constexpr std::size_t kFull = std::size_t{1} << 20;
  void drain();

  NewFile file_;
  std::function<void()> progress_;
  std::string buffer_;
  std::unique_ptr<Sink> sink_;
};

}  // namespace weir
