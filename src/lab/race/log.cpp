#include "lab/race/log.h"

#include <charconv>

namespace weir::race {

std::string text(CommandName name) { return std::to_string(name.thread) + "." + std::to_string(name.sequence); }

std::optional<CommandName> read_command_name(std::string_view text) {
  CommandName name;
  const char* const end = text.data() + text.size();
  const auto thread = std::from_chars(text.data(), end, name.thread);
  if (thread.ec != std::errc() || thread.ptr == end || *thread.ptr != '.') return std::nullopt;
  const auto sequence = std::from_chars(thread.ptr + 1, end, name.sequence);
  if (sequence.ec != std::errc() || sequence.ptr != end || name.thread == 0 || name.sequence == 0) return std::nullopt;
  return name;
}

}  // namespace weir::race
