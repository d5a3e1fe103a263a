// The wire format of protocol buffers: fields of a message in memory, and of the outermost message of a file, one after
// another. Knows no schema. Never reads past what it was given, whatever lengths the input claims.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "trace/import/byte_source.h"

namespace weir {

enum class ProtobufType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct ProtobufField {
  std::uint32_t number = 0;
  ProtobufType type = ProtobufType::varint;
  std::uint64_t value = 0;  // of varint, fixed64 and fixed32; the length of bytes
  std::string_view bytes;   // part of the message; empty in ProtobufFile

  bool is(std::uint32_t wanted, ProtobufType as) const noexcept { return number == wanted && type == as; }
  std::int64_t signed_value() const noexcept { return static_cast<std::int64_t>(value); }
};

// A message in memory, which must outlive it:
//   for (ProtobufMessage message(bytes); message.next();) use(message.field());
class ProtobufMessage {
 public:
  explicit ProtobufMessage(std::string_view bytes) noexcept : left_(bytes) {}
  // False at the end, and where the rest cannot be a message.
  bool next() noexcept;
  const ProtobufField& field() const noexcept { return field_; }
  bool is_damaged() const noexcept { return is_damaged_; }

 private:
  bool fail() noexcept {
    is_damaged_ = true;
    return false;
  }
  std::string_view left_;
  ProtobufField field_;
  bool is_damaged_ = false;
};

// The outermost message of a file, in one pass.
class ProtobufFile {
 public:
  // `charge` is called before memory is taken; it throws where there is too little.
  ProtobufFile(ByteSource& bytes, std::function<void(std::size_t)> charge)
      : bytes_(bytes), charge_(std::move(charge)) {}
  // Skips what is left of the last field. False at the end of the file, and after damage.
  bool next();
  const ProtobufField& field() const noexcept { return field_; }
  // Where the field began.
  std::uint64_t at() const noexcept { return at_; }
  // The contents of a field of type bytes, valid until the next call; less than its length where the file ends before.
  // Memory grows with what is there, not with the length that the file claims.
  std::string_view read();
  // Why next() returned false before the end; empty at the end.
  const std::string& problem() const noexcept { return problem_; }

 private:
  // Makes up to `count` bytes available; false where the file has fewer left.
  bool have(std::size_t count);
  std::string_view ahead() const noexcept { return std::string_view(buffer_).substr(begin_, end_ - begin_); }
  bool varint(std::uint64_t* value);
  bool fail(const char* problem);

  ByteSource& bytes_;
  std::function<void(std::size_t)> charge_;
  ProtobufField field_;
  std::uint64_t at_ = 0;
  std::uint64_t left_ = 0;           // of the field
  std::string buffer_;               // a window of the file
  std::size_t begin_ = 0, end_ = 0;  // what of it was not consumed yet
  std::uint64_t buffer_at_ = 0;      // its place in the file
  std::string problem_;
};

}  // namespace weir
