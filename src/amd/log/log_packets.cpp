// Parses packet lines of the log, the most frequent work of the digest.
#include <algorithm>

#include "amd/log/log_digest.h"

namespace weir::amd {

// SWq=0x7f8edc1a8000, HWq=0x7f8acd200000, id=1, Dispatch Header = 0xb02 (type=2, barrier=1, acquire=1, release=1),
//   setup=3, grid=[1024, 1, 1], workgroup=[32, 1, 1], ..., completion_signal=0x0, correlation_id=0, rptr=0, wptr=0
// SWq=.., HWq=.., id=1, BarrierAND Header = 0x1503 (type=3, ...), dep_signal=[0x0, ..], completion_signal=0x7f..,
//   rptr=0, wptr=1
// SWq=.., HWq=.., id=1, BarrierValue Header = 0x.. AmdFormat = 0x.. (type=..), signal=.., value = 0x..
// ... HWq=0x7f0835fa2000, Dispatch Header = 0x1502 (...), ..., completion_signal=0x0       ROCm 5: HWq is the object
void LogDigest::take_packet(const Line& line) {
  std::string_view text = line.message;
  const Packet* const start = packet_start(text);
  if (start == nullptr) return not_understood(line, "packets");
  Packet packet = *start;
  packet.at = line.at;
  Thread& thread = *line.thread;
  if (packet.kind == Packet::Kind::dispatch) {
    if (wants_details_ && seek_word(text, "grid=")) {
      packet.grid = take_triple(text).value_or(packet.grid);
      if (take_word(text, ", workgroup=")) packet.workgroup = take_triple(text).value_or(packet.workgroup);
    }
    if (thread.has_kernel) packet.kernel = thread.kernel;
  }
  // ", rptr=0, wptr=1" ends the line in versions that print it.
  std::string_view before = text;
  if (const auto write_index = take_last_decimal(before); write_index && before.ends_with(", wptr=")) {
    before.remove_suffix(7);
    if (const auto read_index = take_last_decimal(before); read_index && before.ends_with(", rptr=")) {
      packet.write_index = write_index;
      packet.read_index = read_index;
    }
  }
  if (wants_details_) packet.completion_signal = hex_after(text, "completion_signal=").value_or(0);
  packet.stream = thread.stream();
  sink_.on(packet);
  if (packet.kind == Packet::Kind::dispatch) thread.has_kernel = false;
}

// Parses the line up to its first parenthesis and advances `text` past it; null if this is not a packet.
const Packet* LogDigest::packet_start(std::string_view& text) {
  constexpr std::size_t kMaxStarts = 64, kLongestStart = 256;
  const auto fits = [&](const PacketStart& known) { return text.starts_with(known.text); };
  if (last_start_ >= packet_starts_.size() || !fits(packet_starts_[last_start_])) {
    const auto found = std::find_if(packet_starts_.begin(), packet_starts_.end(), fits);
    last_start_ = static_cast<std::size_t>(found - packet_starts_.begin());
  }
  if (last_start_ < packet_starts_.size()) {
    text.remove_prefix(packet_starts_[last_start_].text.size());
    return &packet_starts_[last_start_].packet;
  }
  const std::string_view whole = text;
  Packet packet;
  if (take_word(text, "SWq=")) {
    const auto swq = take_hex(text);
    if (!swq || !take_word(text, ", ")) return nullptr;
    packet.swq = *swq;
  }
  if (!take_word(text, "HWq=")) return nullptr;
  const auto hwq = take_hex(text);
  if (!hwq || !take_word(text, ", ")) return nullptr;
  packet.hwq = *hwq;
  if (take_word(text, "id=")) {
    const auto id = take_decimal(text);
    if (!id || *id > UINT32_MAX || !take_word(text, ", ")) return nullptr;
    packet.id = static_cast<std::uint32_t>(*id);
  }
  const std::size_t name_end = text.substr(0, 128).find(" Header = ");
  if (name_end == std::string_view::npos) return nullptr;
  // "priority=1, Dispatch Header": the last word counts.
  std::string_view name = text.substr(0, name_end);
  if (const std::size_t blank = name.rfind(' '); blank != std::string_view::npos) name.remove_prefix(blank + 1);
  text.remove_prefix(name_end + 10);
  const auto header = take_hex(text);
  if (!header || *header > 0xffff) return nullptr;
  packet.header = static_cast<std::uint16_t>(*header);
  packet.kind = name == "Dispatch"       ? Packet::Kind::dispatch
                : name == "BarrierAND"   ? Packet::Kind::barrier_and
                : name == "BarrierOR"    ? Packet::Kind::barrier_or
                : name == "BarrierValue" ? Packet::Kind::barrier_value
                                         : Packet::Kind::other;
  // A number could continue after the parsed part, so the stored text extends to the parenthesis.
  const std::size_t end = whole.find('(');
  if (end == std::string_view::npos || whole.size() - text.size() > end) return nullptr;
  text = whole.substr(end + 1);
  if (packet_starts_.size() == kMaxStarts || end > kLongestStart) packet_starts_.clear();
  packet_starts_.push_back({std::string(whole.substr(0, end + 1)), packet});
  last_start_ = packet_starts_.size() - 1;
  return &packet_starts_.back().packet;
}

}  // namespace weir::amd
