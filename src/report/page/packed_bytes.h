// Bytes as text that a page unpacks: base64, of LEB128 numbers (unsigned) or of 32-bit floats, lowest byte first
// (web/src/timeline/decode.ts, web/src/fleet/model.ts). Knows not what they mean.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace weir::page {

class PackedBytes {
 public:
  void reserve(std::size_t bytes) { text_.reserve(bytes / 3 * 4 + 4); }

  void add_number(std::uint64_t value) {
    while (value >= 0x80) {
      put(static_cast<std::uint8_t>(value | 0x80U));
      value >>= 7;
    }
    put(static_cast<std::uint8_t>(value));
  }

  // What a float cannot hold is NaN, as is no value.
  void add_float(std::optional<double> value) {
    const bool fits = value && std::abs(*value) <= static_cast<double>(std::numeric_limits<float>::max());
    const auto bits =
        std::bit_cast<std::uint32_t>(fits ? static_cast<float>(*value) : std::numeric_limits<float>::quiet_NaN());
    for (int shift = 0; shift < 32; shift += 8) put(static_cast<std::uint8_t>(bits >> shift));
  }

  std::string finish() {
    if (held_ == 1) {
      write(word_ << 16, 2);
      text_ += "==";
    } else if (held_ == 2) {
      write(word_ << 8, 3);
      text_ += '=';
    }
    return std::move(text_);
  }

 private:
  void put(std::uint8_t byte) {
    word_ = word_ << 8 | byte;
    if (++held_ < 3) return;
    write(word_, 4);
    word_ = 0;
    held_ = 0;
  }
  void write(std::uint32_t word, int letters) {
    constexpr const char* kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < letters; ++i) text_ += kLetters[word >> (18 - 6 * i) & 63U];
  }

  std::string text_;
  std::uint32_t word_ = 0;
  int held_ = 0;  // bytes in word_
};

}  // namespace weir::page
