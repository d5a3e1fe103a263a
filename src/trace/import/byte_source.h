// Bytes of a file, of an archive member or of memory, in one pass; packed ones are decompressed on the fly (.gz here,
// others by archive.h). Knows no trace format.
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

  // Copies the next bytes; returns 0 at the end. Throws Error where the file cannot be read.
  std::size_t read(char* to, std::size_t capacity);
  // The next bytes without consuming them: up to `count`, fewer only at the end. Valid until the next call.
  std::string_view peek(std::size_t count);
  // Bytes consumed so far, after decompression.
  std::uint64_t position() const noexcept { return position_; }
  // Why the bytes ended early ("the .gz file ends in the middle"); empty where they did not.
  virtual std::string problem() const { return {}; }
  // Whether they come from a packed file or an archive, so that nobody may read the file instead.
  virtual bool is_unpacked() const noexcept { return false; }

 protected:
  virtual std::size_t fetch(char* to, std::size_t capacity) = 0;

 private:
  std::vector<char> ahead_;
  std::size_t taken_ = 0;  // consumed part of ahead_
  std::uint64_t position_ = 0;
};

// Opens a file, decompressing it if it begins like a packed one. Rejects files that are missing, empty or unreadable,
// and folders.
std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path);

// `text` must outlive it. Decompresses too.
std::unique_ptr<ByteSource> bytes_of(std::string_view text);

// Decompresses up to `most` bytes of memory that zlib packed (with its own header or gzip's), or as files are; empty
// where they are damaged, cut off or more. Rejects them where this build lacks the library.
std::optional<std::string> unpacked_bytes(std::string_view packed, std::size_t most);

// Decompresses `packed`, which must outlive it; null where `packed` does not begin like a packed file.
std::unique_ptr<ByteSource> unpack(ByteSource& packed);

// An archive within a source: members one after another, each read once.
class ArchiveMembers {
 public:
  virtual ~ArchiveMembers() = default;
  // Advances to the next regular file, skipping any unread rest. Null at the end; the member is valid until the next
  // call.
  virtual ByteSource* next(std::string* name) = 0;
  // Why there are no more; empty at the end.
  virtual std::string problem() const = 0;
};

class TarReader : public ArchiveMembers {
 public:
  // Whether `start` (at least 512 bytes) begins a tar archive.
  static bool sniff(std::string_view start) noexcept;

  explicit TarReader(ByteSource& archive);
  ~TarReader() override;
  ByteSource* next(std::string* name) override;
  std::string problem() const override { return problem_; }

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
