#include "run/recorded_hang_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plain_text.h"
#include "base/units.h"

namespace weir {
namespace {

using Why = StreamStand::Why;

constexpr std::size_t kReportWidth = 80, kMaxRows = 32, kMaxCalls = 16, kMaxNamed = 4, kStackLines = 60;

// Words in lines that begin at `indent`, but for the first.
std::string in_lines(std::string_view text, std::size_t first, std::size_t indent) {
  std::string out(first, ' ');
  std::size_t used = first;
  bool is_begin = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!is_begin && used + 1 + word.size() > kReportWidth) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
      is_begin = true;
    }
    if (!is_begin) {
      out += ' ';
      ++used;
    }
    // A name without blanks may be longer than a line.
    while (used + word.size() > kReportWidth) {
      const std::string_view part = whole_characters(word, kReportWidth - used);
      out += std::string(part) + "\n" + std::string(indent, ' ');
      word.remove_prefix(part.size());
      used = indent;
    }
    out += word;
    used += word.size();
    is_begin = false;
  }
  return out + "\n";
}

std::string count_text(std::uint64_t count) {
  return count < 1'000'000'000'000 ? std::to_string(count) : format_quantity(static_cast<double>(count));
}

const char* state_word(const ProcessHang& process, const ProcessHang::Unfinished& one) {
  if (!one.is_certain) return "unknown";
  const StreamStand& stand = one.chain.stands[0];
  if (stand.why != Why::runs) return "waits";
  if (!stand.candidates.empty() && process.streams().is_collective(stand.candidates[0])) return "collective";
  return "runs";
}

std::string number_words(const RecordedStreams& streams, const StreamCandidate& one, std::size_t columns) {
  const std::string number = fmt::format("command {}", one.number);
  const std::string name = streams.describe(one, columns > number.size() + 12 ? columns - number.size() - 2 : 10);
  return name.empty() ? number + ": its call is no longer in the recording" : number + ": " + name;
}

// What the stream stands at, below its row.
void add_stand(std::string& text, const RecordedStreams& streams, const StreamChain& chain) {
  constexpr std::size_t kIndent = 6, kColumns = kReportWidth - kIndent;
  const StreamStand& stand = chain.stands[0];
  const auto line = [&](const std::string& words) { text += in_lines(words, kIndent, kIndent + 2); };
  const std::string command =
      stand.position == UINT64_MAX ? "after its last command" : fmt::format("before command {}", stand.position);
  const std::string target = stand.why == Why::event || stand.why == Why::value ? streams.label(stand.target) : "";
  switch (stand.why) {
    case Why::event:
      line(fmt::format("{}: waits for event 0x{:x}, recorded after command {} of {}", command, stand.object,
                       stand.target_number, target));
      break;
    case Why::value:
      line(fmt::format("command {}: waits for a value at 0x{:x}, which command {} of {} writes", stand.position,
                       stand.object, stand.target_number, target));
      break;
    case Why::foreign:
      line(fmt::format("{}: waits for event 0x{:x}, which was never recorded here", command, stand.object));
      break;
    case Why::runs:
    case Why::written:
      if (stand.first < stand.last)
        line(fmt::format("one of commands {} to {}, likeliest first:", stand.first, stand.last));
      for (std::size_t i = 0; i < stand.candidates.size() && i < kMaxNamed; ++i)
        line(number_words(streams, stand.candidates[i], kColumns));
      if (stand.known > kMaxNamed) line(fmt::format("and {} more", stand.known - kMaxNamed));
      if (stand.lost_event != 0)
        line(fmt::format("or it waits for event 0x{:x}, whose record is no longer kept", stand.lost_event));
      break;
  }
  if (chain.stands.size() < 3 && !chain.is_cycle()) return;
  if (!chain.is_cycle()) return line("in the end for " + streams.label(chain.stands.back().stream));
  std::string path = chain.cycle == 0 ? "circle: " : "in the end for a circle: ";
  for (std::size_t i = chain.cycle; i < chain.stands.size() && i - chain.cycle < 16; ++i)
    path += streams.label(chain.stands[i].stream) + " waits for ";
  path += chain.stands.size() - chain.cycle > 16 ? "and so on" : streams.label(chain.stands[chain.cycle].stream);
  line(path);
}

void add_streams(std::string& text, const ProcessHang& process, std::int64_t now_ns) {
  const RecordedStreams& streams = process.streams();
  const auto& unfinished = process.unfinished();
  std::size_t idle = 0;
  for (std::uint32_t place = 0; place < streams.size(); ++place)
    if (streams.is_used(place) && streams.submitted(place) > 0) ++idle;
  idle -= std::min(idle, unfinished.size());
  if (!unfinished.empty())
    text += fmt::format("  {:<26} {:>12} {:>12}  {:<11}{}\n", "stream", "ended", "submitted", "state", "for");
  for (std::size_t i = 0; i < unfinished.size() && i < kMaxRows; ++i) {
    const auto& one = unfinished[i];
    const std::string label(whole_characters(streams.label(one.stream), 26));
    text += fmt::format("  {:<26} {:>12} {:>12}  {:<11}{}\n", label, count_text(streams.ended(one.stream)),
                        count_text(streams.submitted(one.stream)), state_word(process, one),
                        format_duration(elapsed_ns(streams.since_ns(one.stream), now_ns)));
    add_stand(text, streams, one.chain);
  }
  if (unfinished.size() > kMaxRows) text += fmt::format("  and {} more unfinished\n", unfinished.size() - kMaxRows);
  if (idle > 0)
    text += fmt::format("  {} idle: all that was submitted has ended\n",
                        idle == 1 ? "1 stream is" : fmt::format("{} streams are", idle));
  if (idle == 0 && unfinished.empty()) text += "  nothing was submitted\n";
}

void add_process(std::string& text, const ProcessHang& process, bool is_alone, std::int64_t now_ns) {
  const std::vector<std::string> words = process.process().recording.command();
  std::string program;
  for (const std::string& word : words) program += (program.empty() ? "" : " ") + word;
  program = without_controls(whole_characters(program, 200), '?');
  text += "\n" + in_lines(process.name() + (program.empty() ? "" : ": " + program), 0, 2);
  // Only the culprit's cause is in the first sentence.
  if (!is_alone) text += in_lines(process.sentence(false), 2, 4);
  for (const std::string& remark : process.remarks()) text += in_lines(remark, 2, 4);
  add_streams(text, process, now_ns);
  const std::vector<std::string> calls = process.calls();
  for (std::size_t i = 0; i < calls.size() && i < kMaxCalls; ++i) text += in_lines(calls[i], 2, 4);
  if (calls.size() > kMaxCalls) text += fmt::format("  and {} more threads are in calls\n", calls.size() - kMaxCalls);
  if (process.stacks().empty()) return;
  text += "  stacks, innermost first:\n" +
          stacks_text(process.stacks(), process.process().recording.header.pid, kStackLines);
}

}  // namespace

std::string recorded_hang_text(const std::string& culprit, const std::vector<ProcessHang>& processes,
                               std::int64_t now_ns) {
  std::string text = in_lines(culprit, 0, 0);
  for (const ProcessHang& process : processes) add_process(text, process, processes.size() == 1, now_ns);
  return text;
}

}  // namespace weir
