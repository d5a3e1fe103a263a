// Lanes of a drawn timeline, unpacked as the page does it (web/src/document.ts), by code of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace weir::testing {

struct DecodedSpan {
  std::uint64_t start = 0, duration = 0, name = 0;
};

inline std::vector<std::uint8_t> from_base64(const std::string& text) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  EXPECT_EQ(text.size() % 4, 0U);
  std::uint32_t bits = 0;
  int held = 0;
  for (const char letter : text) {
    if (letter == '=') break;
    const std::size_t value = letters.find(letter);
    if (value == std::string::npos) {
      ADD_FAILURE() << "no letter of base64: " << letter;
      break;
    }
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<std::uint8_t>(bits >> held));
    bits &= (1U << held) - 1;
  }
  EXPECT_EQ(bits, 0U) << "bits are left over";
  return bytes;
}

inline std::vector<DecodedSpan> decode_lane(const std::string& text) {
  const std::vector<std::uint8_t> bytes = from_base64(text);
  std::size_t at = 0;
  const auto next = [&] {
    std::uint64_t value = 0;
    for (int shift = 0; at < bytes.size(); shift += 7) {
      const std::uint8_t byte = bytes[at++];
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    ADD_FAILURE() << "a number has no end";
    return value;
  };
  std::vector<DecodedSpan> spans;
  std::uint64_t start = 0;
  while (at < bytes.size()) {
    start += next();
    const std::uint64_t duration = next();
    spans.push_back({start, duration, next()});
  }
  return spans;
}

// The length of the union, by looking at every end in turn.
inline std::uint64_t busy_of(std::vector<DecodedSpan> spans) {
  std::uint64_t busy = 0;
  for (std::size_t i = 0; i < spans.size();) {
    const std::uint64_t from = spans[i].start;
    std::uint64_t to = from + spans[i].duration;
    for (++i; i < spans.size() && spans[i].start <= to; ++i) to = std::max(to, spans[i].start + spans[i].duration);
    busy += to - from;
  }
  return busy;
}

inline const Json* group_of(const Json& timeline, const std::string& label) {
  for (const Json& group : timeline["groups"])
    if (group["label"] == label) return &group;
  return nullptr;
}

}  // namespace weir::testing
