// Protocol buffers written field by field, with nothing of the reader's.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace weir {

class Proto {
 public:
  Proto& number(unsigned field, std::uint64_t value) {
    varint(std::uint64_t{field} * 8);
    varint(value);
    return *this;
  }
  Proto& signed_number(unsigned field, long long value) { return number(field, static_cast<std::uint64_t>(value)); }
  Proto& fixed64(unsigned field, std::uint64_t value) {
    varint(std::uint64_t{field} * 8 + 1);
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
    return *this;
  }
  Proto& fixed32(unsigned field, std::uint32_t value) {
    varint(std::uint64_t{field} * 8 + 5);
    for (int i = 0; i < 4; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
    return *this;
  }
  Proto& real(unsigned field, double value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return fixed64(field, bits);
  }
  Proto& text(unsigned field, std::string_view value) {
    varint(std::uint64_t{field} * 8 + 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Proto& message(unsigned field, const Proto& value) { return text(field, value.bytes_); }
  Proto& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    while (value >= 128) {
      bytes_ += static_cast<char>(value % 128 + 128);
      value /= 128;
    }
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace weir
