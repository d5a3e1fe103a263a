// Puts into words what keeps a recorded process from going on. Knows the findings of recorded_hang_process.cpp; finds
// nothing by itself.
#include <fmt/format.h>
#include <string.h>

#include <algorithm>

#include "base/plain_text.h"
#include "base/units.h"
#include "run/recorded_hang_process.h"

namespace weir {
namespace {

using record::Kind;
using record::kNone;
using Why = StreamStand::Why;

constexpr std::size_t kSentenceName = 64;  // columns of a kernel's name in a sentence
constexpr std::size_t kMaxCycle = 4;       // streams of a circle that are described

std::string with_article(const std::string& label) { return (label.starts_with("default") ? "the " : "") + label; }

std::string short_word(std::string_view text) { return without_controls(whole_characters(text, 64), '?'); }

std::string thread_label(const record::Thread& thread) {
  const std::string_view name(thread.name, ::strnlen(thread.name, sizeof(thread.name)));
  return name.empty() ? fmt::format("thread {}", thread.id)
                      : fmt::format("thread {} ({})", thread.id, short_word(name));
}

// "is stuck in kernel spin(int*) (command 42), which has run for 61.2 s"
std::string command_words(const RecordedStreams& streams, const StreamStand& end, const std::string& lasted) {
  // Only a recording that contradicts itself has none.
  if (end.candidates.empty()) return fmt::format("is stuck after command {}, {}", end.first - 1, lasted);
  const StreamCandidate& likeliest = end.candidates[0];
  const std::string name = streams.describe(likeliest, kSentenceName);
  if (end.first == end.last && name.empty())
    return fmt::format("is stuck in command {}, whose call is no longer in the recording, {}", end.first, lasted);
  if (end.first == end.last && streams.is_collective(likeliest))
    return fmt::format("is stuck in {} (command {}), a collective, {}", name, end.first, lasted);
  if (end.first == end.last)
    return fmt::format("is stuck in {} (command {}), which has run {}", name, end.first, lasted);
  const std::string which = name.empty() ? ", whose calls are no longer in the recording,"
                                         : fmt::format(", most likely in {} (command {}),", name, likeliest.number);
  return fmt::format("is stuck in one of commands {} to {}{} {}", end.first, end.last, which, lasted);
}

// "for a value at 0x10 that command 2 of stream 14 writes"
std::string awaited_words(const RecordedStreams& streams, const StreamStand& stand) {
  const std::string target = with_article(streams.label(stand.target));
  if (stand.why == Why::value)
    return fmt::format("for a value at 0x{:x} that command {} of {} writes", stand.object, stand.target_number, target);
  return fmt::format("for event 0x{:x} after command {} of {}", stand.object, stand.target_number, target);
}

}  // namespace

std::string ProcessHang::name() const {
  if (process_.name.empty()) return fmt::format("process {}", recording_.header.pid);
  return without_controls(whole_characters(process_.name, 60), '?');
}

std::string ProcessHang::of(const std::string& part, bool is_named) const {
  return is_named ? fmt::format("{} of {}", with_article(part), name()) : "its " + part;
}

std::string ProcessHang::for_long(std::int64_t since_ns) const {
  return "for " + format_duration(elapsed_ns(since_ns, now_ns_));
}

std::string ProcessHang::function_name(std::uint32_t function) const {
  const std::string text = short_word(recording_.function(function));
  return text.empty() ? fmt::format("function {} of the driver", function) : text;
}

std::string ProcessHang::sentence(bool is_named) const {
  switch (cause_) {
    case HangCause::none:
      break;
    case HangCause::command:
    case HangCause::value:
    case HangCause::cycle:
    case HangCause::collective:
      return stream_sentence(is_named);
    case HangCause::host:
      return host_sentence(is_named);
    case HangCause::child:
      return child_sentence(is_named);
    case HangCause::driver:
      return fmt::format("{} has been in {}, and no stream explains it", of(thread_label(*thread_), is_named),
                         call_text(*thread_));
    case HangCause::ended:
      return ended_sentence(is_named);
  }
  if (has_ended_normally()) return (is_named ? name() : "it") + " has ended normally";
  return (is_named ? name() : "it") + " goes on";
}

std::string ProcessHang::stream_sentence(bool is_named) const {
  const StreamStand& end = root_->stands.back();
  const std::string lasted = for_long(since_ns_);
  std::string text;
  if (root_->is_cycle()) {
    const std::size_t count = root_->stands.size() - root_->cycle, listed = std::min(count, kMaxCycle);
    std::string names, waits;
    for (std::size_t i = 0; i < listed; ++i) {
      const StreamStand& stand = root_->stands[root_->cycle + i];
      const std::string label = streams_.label(stand.stream);
      const bool is_last = i + 1 == listed;
      names += (i == 0 ? "" : is_last && listed == count ? " and " : ", ") + with_article(label);
      waits += fmt::format("{}command {} of {} waits {}",
                           i == 0    ? ""
                           : is_last ? ", and "
                                     : ", ",
                           stand.position, with_article(label), awaited_words(streams_, stand));
    }
    if (listed < count) names += fmt::format(" and {} more", count - listed);
    names += is_named ? " of " + name() : " of this process";
    text = fmt::format("{} {}, {}: {}", names, count == 1 ? "waits for itself" : "wait for each other", lasted, waits);
  } else if (end.why == Why::written) {
    text = fmt::format("{} waits at command {} for a value at 0x{:x} that nobody writes, {}: ",
                       of(streams_.label(end.stream), is_named), end.position, end.object, lasted);
    text += end.writes > 0           ? fmt::format("{} to it in the recording {} ended", counted(end.writes, "write"),
                                         end.writes == 1 ? "has" : "have")
            : streams_.is_complete() ? "no stream of this process was ever given a write to it"
                                     : "no write to it is in what the recording keeps";
  } else if (end.why == Why::foreign) {
    text = fmt::format("{} waits before command {} for event 0x{:x}, which this process has never recorded, {}",
                       of(streams_.label(end.stream), is_named), end.first, end.object, lasted);
  } else {
    text = of(streams_.label(end.stream), is_named) + " " + command_words(streams_, end, lasted);
    if (end.lost_event != 0)
      text +=
          fmt::format(", unless it waits for event 0x{:x}, whose record the recording no longer has", end.lost_event);
  }
  if (waiters_ > 0)
    text += fmt::format("; {} other {} for it", waiters_, waiters_ == 1 ? "stream waits" : "streams wait");
  return text;
}

std::string ProcessHang::host_sentence(bool is_named) const {
  const std::string subject = is_named ? name() : "it", lasted = for_long(since_ns_);
  if (process_.state == 'T' || process_.state == 't')
    return fmt::format("{} is stopped, by SIGSTOP, Ctrl-Z or a debugger, and has not run {}", subject, lasted);
  if (is_silent_) {
    std::string text =
        fmt::format("nothing in {} has run {}: it is stopped, or the driver does not answer", subject, lasted);
    if (thread_ != nullptr) text += fmt::format("; its {} was in {}", thread_label(*thread_), call_text(*thread_));
    return text;
  }
  const bool has_called = !recording_.entries.empty() ||
                          std::any_of(recording_.streams.begin(), recording_.streams.end(),
                                      [](const auto& stream) { return stream.is_used != 0 && stream.submitted > 0; });
  std::string text = has_called ? fmt::format("{} has launched nothing {}", subject, lasted)
                                : fmt::format("{} has launched nothing since it began, {}", subject, lasted);
  if (has_called && unfinished_.empty()) text += ", and all that it launched has ended";
  const RecordedStack* const main = main_stack(stacks_, recording_.header.pid);
  const std::string place = main == nullptr ? "" : innermost_own_frame(*main);
  if (!place.empty()) return text + ": its main thread is in " + place;
  for (auto entry = recording_.entries.rbegin(); entry != recording_.entries.rend(); ++entry) {
    if (entry->kind >= static_cast<std::uint8_t>(Kind::mark)) continue;
    text += fmt::format(": its last call was {}", function_name(entry->function));
    if (entry->thread < recording_.threads.size()) text += " by " + thread_label(recording_.threads[entry->thread]);
    break;
  }
  return text;
}

std::string ProcessHang::child_sentence(bool is_named) const {
  const bool is_loader = awaited_ == AwaitedProcess::data_loader;
  std::string text = fmt::format("{} waits for {}, {}: ", is_named ? name() : "it",
                                 is_loader ? "its data loader" : "another process", for_long(since_ns_));
  const char* const word = is_loader ? "worker" : "child";
  const auto& children = process_.children;
  const auto find = [&](std::string_view states) {
    return std::find_if(children.begin(), children.end(),
                        [&](const RecordedChild& child) { return states.find(child.state) != std::string_view::npos; });
  };
  const auto named = [&](const RecordedChild& child, std::string_view what) {
    return fmt::format("its {} {} ({}) {}", word, child.pid, short_word(child.command), what);
  };
  // The frozen ones first: they explain why the others sleep.
  if (const auto child = find("Tt"); child != children.end()) return text + named(*child, "was stopped");
  if (const auto child = find("ZX"); child != children.end()) return text + named(*child, "has died");
  if (children.empty()) return text + fmt::format("it has no {} any more", word);
  if (const auto child = find("D"); child != children.end())
    return text + named(*child, "waits for a disk or a device");
  if (const auto child = find("R"); child != children.end()) return text + named(*child, "is still at work");
  if (children.size() == 1) return text + named(children[0], "sleeps");
  return text + fmt::format("all its {} {} sleep", children.size(), is_loader ? "workers" : "children");
}

std::string ProcessHang::ended_sentence(bool is_named) const {
  std::string text = fmt::format("{} has died", is_named ? name() : "it");
  if (since_ns_ > 0 && elapsed_ns(since_ns_, now_ns_) > 0)
    text += fmt::format(", {} ago", format_duration(elapsed_ns(since_ns_, now_ns_)));
  if (!unfinished_.empty()) {
    const Unfinished& one =
        *std::max_element(unfinished_.begin(), unfinished_.end(),
                          [](const Unfinished& a, const Unfinished& b) { return a.is_certain < b.is_certain; });
    const StreamChain& chain = root_ != nullptr ? *root_ : one.chain;
    const StreamStand& end = chain.stands.back();
    const std::string what =
        end.candidates.empty() ? std::string() : streams_.describe(end.candidates[0], kSentenceName);
    text += fmt::format("; its {} had come to command {}", streams_.label(end.stream), end.first);
    if (!what.empty()) text += fmt::format("{}: {}", end.first == end.last ? "" : " or later", what);
    return text;
  }
  for (auto entry = recording_.entries.rbegin(); entry != recording_.entries.rend(); ++entry)
    if (entry->kind < static_cast<std::uint8_t>(Kind::mark))
      return text + fmt::format("; its last call was {}", function_name(entry->function));
  return text;
}

std::string ProcessHang::call_text(const record::Thread& thread) const {
  std::string text = fmt::format("{} {}", function_name(thread.function), for_long(thread.started_ns));
  const auto kind = static_cast<Kind>(thread.kind);
  if (kind == Kind::event_synchronize) {
    const RecordedStreams::Recorded last = streams_.recorded_last(thread.object);
    text += fmt::format(", for event 0x{:x}", thread.object);
    if (last.stream != kNone)
      text += fmt::format(" after command {} of {}", last.number, with_article(streams_.label(last.stream)));
  } else if (kind == Kind::context_synchronize) {
    text += ", for all streams of its context";
  } else if (thread.stream < streams_.size()) {
    text += fmt::format(", {} {}", kind == Kind::stream_synchronize || kind == Kind::synchronous_copy ? "for" : "on",
                        with_article(streams_.label(thread.stream)));
  }
  return text;
}

std::vector<std::string> ProcessHang::calls() const {
  std::vector<std::string> all;
  for (const record::Thread& thread : recording_.threads)
    if (is_in_call(thread)) all.push_back(fmt::format("{} is in {}", thread_label(thread), call_text(thread)));
  return all;
}

std::vector<std::string> ProcessHang::remarks() const {
  std::vector<std::string> all;
  const record::Header& header = recording_.header;
  if (header.state == static_cast<std::uint32_t>(record::State::refused)) all.emplace_back("Nothing was recorded.");
  if (const std::string message = without_controls(whole_characters(recording_.text(header.message), 400), '?');
      !message.empty())
    all.push_back("The recorder says: " + message);
  if (header.is_off != 0) all.emplace_back("Recording is switched off: what happened since is not known.");
  if (process_.state == 'T' || process_.state == 't')
    all.emplace_back("The process is stopped: what its streams have reached since is not known.");
  else if (is_silent_)
    all.emplace_back("The recorder in the process does not run: what its streams have reached since is not known.");
  if (header.lost != 0) all.push_back(fmt::format("{} of calls were lost.", counted(header.lost, "record")));
  if (std::any_of(unfinished_.begin(), unfinished_.end(), [](const auto& one) { return !one.is_certain; }))
    all.emplace_back(
        "Streams with the word `unknown` may have ended all: it was not asked for after their last commands.");
  // Their mutual order is the driver's, and nothing in the recording says which streams take part.
  const auto is_legacy = [&](const Unfinished& one) { return recording_.streams[one.stream].handle == 1; };
  if (unfinished_.size() > 1 && std::any_of(unfinished_.begin(), unfinished_.end(), is_legacy))
    all.emplace_back("The default stream and blocking streams wait for each other's earlier commands.");
  for (const RecordedChild& child : process_.children)
    if (std::string_view("TtZX").find(child.state) != std::string_view::npos)
      all.push_back(fmt::format("Its child {} ({}) {}.", child.pid, short_word(child.command),
                                child.state == 'T' || child.state == 't' ? "is stopped" : "has died"));
  return all;
}

}  // namespace weir
