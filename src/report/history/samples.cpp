#include "report/history/samples.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace weir::history {
namespace {

constexpr char kWhole = 'i';                 // differences from the previous value, zigzag, as LEB128
constexpr char kReal = 'f';                  // IEEE 754 double, low byte first
constexpr double kExact = 9007199254740992;  // 2^53
constexpr std::size_t kReal64 = 8;

bool is_whole(double value) {
  return std::fabs(value) < kExact && value == std::floor(value) && !(value == 0 && std::signbit(value));
}

}  // namespace

std::string pack_samples(std::span<const double> samples) {
  std::string bytes;
  if (std::all_of(samples.begin(), samples.end(), is_whole)) {
    bytes += kWhole;
    std::int64_t before = 0;
    for (const double sample : samples) {
      const auto value = static_cast<std::int64_t>(sample);
      const std::int64_t step = value - before;
      before = value;
      auto left = static_cast<std::uint64_t>(step) << 1U ^ static_cast<std::uint64_t>(step >> 63U);
      for (; left >= 0x80; left >>= 7U) bytes += static_cast<char>((left & 0x7fU) | 0x80U);
      bytes += static_cast<char>(left);
    }
    return bytes;
  }
  bytes += kReal;
  for (const double sample : samples) {
    const auto bits = std::bit_cast<std::uint64_t>(sample);
    for (unsigned i = 0; i < kReal64; ++i) bytes += static_cast<char>(bits >> (8 * i) & 0xffU);
  }
  return bytes;
}

std::optional<std::vector<double>> unpack_samples(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  const char form = bytes[0];
  bytes.remove_prefix(1);
  std::vector<double> samples;
  if (form == kReal) {
    if (bytes.size() % kReal64 != 0) return std::nullopt;
    samples.reserve(bytes.size() / kReal64);
    for (std::size_t at = 0; at < bytes.size(); at += kReal64) {
      std::uint64_t bits = 0;
      for (unsigned i = 0; i < kReal64; ++i)
        bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
      const auto value = std::bit_cast<double>(bits);
      if (!std::isfinite(value)) return std::nullopt;
      samples.push_back(value);
    }
    return samples;
  }
  if (form != kWhole) return std::nullopt;
  std::uint64_t before = 0, value = 0;  // unsigned, so that no input can overflow
  unsigned shift = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (shift > 63) return std::nullopt;
    value |= std::uint64_t{byte & 0x7fU} << shift;
    shift += 7;
    if ((byte & 0x80U) != 0) continue;
    before += value >> 1U ^ (0 - (value & 1U));
    samples.push_back(static_cast<double>(static_cast<std::int64_t>(before)));
    value = 0;
    shift = 0;
  }
  if (shift != 0) return std::nullopt;
  return samples;
}

}  // namespace weir::history
