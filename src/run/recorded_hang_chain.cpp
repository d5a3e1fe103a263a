// Follows what streams of a recorded process wait for to its end, and names streams and commands for people. Knows how
// far streams are from recorded_hang_streams.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "base/plain_text.h"
#include "base/units.h"
#include "run/recorded_hang_streams.h"
#include "trace/kinds.h"

namespace weir {
namespace {

using record::Kind;
using record::kNone;
using Why = StreamStand::Why;

constexpr std::size_t kMaxStands = 512;                        // more only in hostile recordings
constexpr std::uint64_t kLegacyStream = 1, kThreadStream = 2;  // CU_STREAM_LEGACY, CU_STREAM_PER_THREAD

// Which kernels Stream::collectives counts.
bool is_counted(std::string_view name) { return name.starts_with("nccl"); }

// Without what stands in these brackets.
std::string without(std::string_view text, char open, char close) {
  std::string kept;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_arrow = text[i] == '>' && i > 0 && text[i - 1] == '-';
    if (text[i] == open) ++depth;
    if (depth == 0) kept += text[i];
    if (text[i] == close && !is_arrow && depth > 0) --depth;
  }
  return kept;
}

}  // namespace

std::string kernel_name_within(std::string_view name, std::size_t columns) {
  std::string text = without_controls(name.substr(0, 4096), '?');
  if (text.size() <= columns) return text;
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  for (std::size_t at = text.find(kUnnamed); at != std::string::npos; at = text.find(kUnnamed))
    text.erase(at, kUnnamed.size());
  // "void f<int>(int*)": what is returned and taken says less than the function's name.
  if (text.starts_with("void ")) text.erase(0, 5);
  if (text.size() > columns) text = without(text, '(', ')');
  if (text.size() > columns) text = without(text, '<', '>');
  if (text.size() > columns)
    if (const std::size_t colon = text.rfind("::"); colon != std::string::npos) text.erase(0, colon + 2);
  if (text.size() > columns) text = std::string(whole_characters(text, columns < 2 ? 0 : columns - 2)) + "..";
  return text;
}

StreamChain RecordedStreams::chain_of(std::uint32_t place) const {
  StreamChain chain;
  StreamStand stand = stand_of(place, of_[place].submitted, of_[place].operations.size(), false);
  for (;;) {
    chain.stands.push_back(std::move(stand));
    const StreamStand& now = chain.stands.back();
    if ((now.why != Why::event && now.why != Why::value) || chain.stands.size() >= kMaxStands) break;
    for (std::size_t i = 0; i + 1 < chain.stands.size(); ++i)
      if (chain.stands[i].stream == now.stream && chain.stands[i].blocker == now.blocker) {
        chain.stands.pop_back();
        chain.cycle = i;
        return chain;
      }
    stand = stand_of(now.target, now.target_number, now.target_end, now.why == Why::event);
  }
  // A stream that others wait for in turn stands where the last of them says: what lies between was submitted later.
  for (std::size_t i = 0; i < chain.stands.size(); ++i)
    for (std::size_t j = chain.stands.size() - 1; j > i; --j)
      if (chain.stands[j].stream == chain.stands[i].stream) {
        chain.stands.erase(chain.stands.begin() + static_cast<std::ptrdiff_t>(i),
                           chain.stands.begin() + static_cast<std::ptrdiff_t>(j));
        break;
      }
  return chain;
}

std::int64_t RecordedStreams::since_ns(std::uint32_t place) const noexcept {
  const record::Stream& stream = recording_.streams[place];
  const OneStream& one = of_[place];
  for (std::size_t at = one.open; at < one.operations.size(); ++at)
    if (const Operation& operation = one.operations[at];
        operation.kind == Operation::Kind::command && operation.number > one.ended)
      return std::max(stream.ended_ns, recording_.entries[operation.entry].ended_ns);
  return stream.ended_ns != 0 ? stream.ended_ns : stream.submitted_ns;
}

std::string RecordedStreams::label(std::uint32_t place) const {
  if (!is_used(place)) return "a stream that is not in the recording";
  const record::Stream& stream = recording_.streams[place];
  std::string text = stream.handle == kLegacyStream ? "default stream" : fmt::format("stream 0x{:x}", stream.handle);
  if (stream.handle == kThreadStream && stream.thread < recording_.threads.size()) {
    text = fmt::format("default stream of thread {}", recording_.threads[stream.thread].id);
  } else if (stream.handle != kLegacyStream && stream.id != kNone) {
    text = fmt::format("stream {}", stream.id);
  }
  if (has_devices_ && stream.device != kNone) text += fmt::format(" (device {})", stream.device);
  return text;
}

std::string RecordedStreams::describe(const StreamCandidate& command, std::size_t columns) const {
  if (command.entry >= recording_.entries.size()) return "";
  const RecordedEntry& entry = recording_.entries[command.entry];
  switch (static_cast<Kind>(entry.kind)) {
    case Kind::launch:
      return has_name(command)
                 ? "kernel " + kernel_name_within(recording_.text(entry.name), columns < 16 ? 8 : columns - 7)
                 : "a kernel without a name";
    case Kind::copy:
    case Kind::synchronous_copy:
      return entry.object == 0 ? "a copy" : "a copy of " + format_bytes(entry.object);
    case Kind::memset:
      return "a memset";
    case Kind::graph_launch:
      return fmt::format("graph 0x{:x}", entry.object);
    case Kind::host_function:
      return "a function of the host";
    case Kind::memory_operation:
      if (role(entry) == Role::wait_value) return fmt::format("a wait for a value at 0x{:x}", entry.object);
      if (role(entry) == Role::write_value) return fmt::format("a write of a value at 0x{:x}", entry.object);
      return "several operations on memory";
    default:
      return "";
  }
}

bool RecordedStreams::is_collective(const StreamCandidate& command) const {
  if (command.entry >= recording_.entries.size()) return false;
  const RecordedEntry& entry = recording_.entries[command.entry];
  return static_cast<Kind>(entry.kind) == Kind::launch && has_name(command) &&
         is_collective_name(recording_.text(entry.name));
}

std::uint64_t RecordedStreams::collectives_before(std::uint32_t place, std::uint64_t number) const {
  std::uint64_t after = 0;
  for (const Operation& operation : of_[place].operations)
    if (operation.kind == Operation::Kind::command && operation.number >= number &&
        is_counted(recording_.text(recording_.entries[operation.entry].name)))
      ++after;
  const std::uint64_t all = recording_.streams[place].collectives;
  return all > after ? all - after : 0;
}

}  // namespace weir
