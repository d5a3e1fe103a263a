#include "report/page/lane_encoding.h"

#include <algorithm>
#include <tuple>

namespace weir::page {
namespace {

class Packer {
 public:
  void reserve(std::size_t spans) { text_.reserve(spans * 8); }

  void add(std::uint64_t value) {
    while (value >= 0x80) {
      put(static_cast<std::uint8_t>(value | 0x80U));
      value >>= 7;
    }
    put(static_cast<std::uint8_t>(value));
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

}  // namespace

EncodedLane encode_lane(std::vector<LaneSpan>& spans) {
  const auto is_before = [](const LaneSpan& a, const LaneSpan& b) {
    return std::tie(a.start_ns, a.end_ns, a.name) < std::tie(b.start_ns, b.end_ns, b.name);
  };
  if (!std::is_sorted(spans.begin(), spans.end(), is_before)) std::sort(spans.begin(), spans.end(), is_before);
  EncodedLane lane;
  lane.count = spans.size();
  Packer packer;
  packer.reserve(spans.size());
  std::uint64_t before = 0;
  for (const LaneSpan& span : spans) {
    packer.add(span.start_ns - before);
    packer.add(span.end_ns - span.start_ns);
    packer.add(span.name);
    before = span.start_ns;
    const std::uint64_t from = std::max(span.start_ns, lane.end_ns);
    if (span.end_ns > from) lane.busy_ns += span.end_ns - from;
    lane.end_ns = std::max(lane.end_ns, span.end_ns);
  }
  lane.spans = packer.finish();
  return lane;
}

}  // namespace weir::page
