// Bytes of a file, a member of an archive or memory, in one pass; .gz is unpacked on the way. Knows no trace format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Copies the next bytes; 0 at the end. Throws our error where the file cannot be read.
  std::size_t read(char* to, std::size_t capacity);
  // The next bytes without taking them: up to `count`, fewer only at the end. Valid until the next call.
  std::string_view peek(std::size_t count);
  // Taken so far, unpacked.
  std::uint64_t position() const noexcept { return position_; }
  // Why the bytes ended before they should have ("the .gz file ends in the middle"); empty where they did not.
  virtual std::string problem() const { return {}; }

 protected:
  virtual std::size_t fetch(char* to, std::size_t capacity) = 0;

 private:
  std::vector<char> ahead_;
  std::size_t taken_ = 0;  // of ahead_
  std::uint64_t position_ = 0;
};

// A file, unpacked if it begins as gzip does. Rejects what is missing, empty, a folder or not readable.
std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path);

// `text` outlives it. Unpacks gzip too.
std::unique_ptr<ByteSource> bytes_of(std::string_view text);

// What is packed in `packed`, which outlives it; null where that does not begin as gzip does.
std::unique_ptr<ByteSource> unpack(ByteSource& packed);

// A tar archive within a source: members one after another, each read once.
class TarReader {
 public:
  // Whether `start` (at least 512 bytes) begins a tar archive.
  static bool sniff(std::string_view start) noexcept;

  explicit TarReader(ByteSource& archive);
  ~TarReader();
  // Goes to the next regular file, past what was left unread. Null at the end; the member is valid until the next call.
  ByteSource* next(std::string* name);
  std::string problem() const { return problem_; }

 private:
  class Member;
  ByteSource& archive_;
  std::unique_ptr<Member> member_;
  std::vector<char> scratch_;
  std::string problem_;

  bool skip(std::uint64_t count);
  std::optional<std::string> read_small(std::uint64_t size);
};

}  // namespace weir
