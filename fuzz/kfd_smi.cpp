// Lines of KFD's events, in pieces that the first byte says: whatever they are, each line is an event, counted as
// another kind, empty, or counted as unread.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "amd/kfd/smi_events.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = std::size_t{data[0]} + 1;
  weir::kfd::SmiEvents reader;
  for (std::size_t at = 0; at < text.size(); at += piece) reader.feed(text.substr(at, piece));
  std::size_t lines = 0, known = reader.take().size();
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string_view::npos; at = end + 1)
    lines += end != at;
  for (const std::size_t count : reader.others()) known += count;
  for (const auto& unread : reader.unread()) known += unread.count;
  if (known != lines) __builtin_trap();
  return 0;
}
