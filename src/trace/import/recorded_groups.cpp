#include "trace/import/recorded_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "trace/capture_format.h"
#include "trace/import/cuda_activity.h"
#include "trace/kinds.h"

namespace weir {
namespace {

using record::Kind;

// Numbers of commands are stored modulo 2^32; a recording keeps far fewer than half of that.
constexpr std::uint64_t kMiddle = std::uint64_t{1} << 40;
constexpr std::uint64_t unfolded(std::uint32_t number, std::uint32_t reference) noexcept {
  return kMiddle + static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(number - reference)});
}

enum class Destroys : std::uint8_t { nothing, stream, context };

std::array<Destroys, record::kFunctions> what_functions_destroy(const Recording& recording) {
  std::array<Destroys, record::kFunctions> what{};
  for (std::uint32_t i = 0; i < what.size(); ++i) {
    const std::string_view name = recording.function(i);
    if (name.starts_with("cuStreamDestroy") || name.starts_with("hipStreamDestroy")) what[i] = Destroys::stream;
    for (const char* start : {"cuCtxDestroy", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset",
                              "cuGreenCtxDestroy", "hipDeviceReset"})
      if (name.starts_with(start)) what[i] = Destroys::context;
  }
  return what;
}

bool is_call(Kind kind) noexcept { return kind != Kind::mark && kind != Kind::device && kind != Kind::range; }

struct RecordedCommand {
  std::uint64_t number = 0;  // unfolded
  std::uint32_t entry = 0;
};
struct RecordedEnd {
  std::uint64_t number = 0;  // the commands up to this one had ended
  std::int64_t time_ns = 0;
};
struct RecordedWait {
  std::int64_t since_ns = 0, until_ns = 0;
};

// Later: when it is first known that what had been submitted by a time had ended.
class RecordedWaits {
 public:
  void add(RecordedWait wait) { waits_.push_back(wait); }
  void sort() {
    std::sort(waits_.begin(), waits_.end(),
              [](const RecordedWait& a, const RecordedWait& b) { return a.since_ns < b.since_ns; });
    for (std::size_t i = waits_.size(); i-- > 1;)
      waits_[i - 1].until_ns = std::min(waits_[i - 1].until_ns, waits_[i].until_ns);
  }
  const RecordedWait* first_after(std::int64_t submitted_ns) const noexcept {
    const auto at = std::lower_bound(waits_.begin(), waits_.end(), submitted_ns,
                                     [](const RecordedWait& wait, std::int64_t time) { return wait.since_ns < time; });
    return at == waits_.end() ? nullptr : &*at;
  }

 private:
  std::vector<RecordedWait> waits_;
};

class Grouping {
 public:
  Grouping(const Recording& recording, const RecordedLives& lives) : recording_(recording), lives_(lives) {
    of_.resize(lives.size());
  }

  RecordedGroups group(const std::vector<RecordedReach>& reached) {
    collect();
    for (auto& [context, waits] : of_context_) waits.sort();
    for (std::uint32_t life = 0; life < lives_.size(); ++life) {
      Of& of = of_[life];
      if (of.commands.empty() && of.marks.empty()) continue;
      of.waits.sort();
      unfold(life);
      find_ends(life);
      divide(life, life < reached.size() ? reached[life] : RecordedReach{});
      of = Of{};
    }
    return std::move(made_);
  }

 private:
  struct Of {
    std::vector<RecordedCommand> commands;  // as recorded at first, then by number
    std::vector<std::uint32_t> marks;       // entries
    std::vector<RecordedEnd> ends;
    RecordedWaits waits;
    std::uint32_t reference = 0;
  };

  const RecordedEntry& entry(std::uint32_t at) const { return recording_.entries[at]; }

  void collect() {
    for (std::uint32_t i = 0; i < recording_.entries.size(); ++i) {
      const RecordedEntry& one = entry(i);
      const auto kind = static_cast<Kind>(one.kind);
      if (kind == Kind::context_synchronize && one.flags == 0)
        of_context_[one.context].add({one.started_ns, one.ended_ns});
      const std::uint32_t life = lives_.of(one);
      if (life == record::kNone) continue;
      if (kind == Kind::mark)
        of_[life].marks.push_back(i);
      else if (kind == Kind::stream_synchronize && one.flags == 0)
        of_[life].waits.add({one.started_ns, one.ended_ns});
      else if (record::is_command(kind) && one.number != 0)
        of_[life].commands.push_back({one.number, i});
    }
  }

  void unfold(std::uint32_t life) {
    Of& of = of_[life];
    const RecordedLives::Life& facts = lives_[life];
    if (!of.commands.empty())
      of.reference = static_cast<std::uint32_t>(of.commands.back().number);
    else if (facts.is_described)
      of.reference = static_cast<std::uint32_t>(recording_.streams[facts.place].submitted);
    for (RecordedCommand& command : of.commands)
      command.number = unfolded(static_cast<std::uint32_t>(command.number), of.reference);
    std::stable_sort(of.commands.begin(), of.commands.end(),
                     [](const RecordedCommand& a, const RecordedCommand& b) { return a.number < b.number; });
  }

  // The last command of the life, kept or not.
  std::uint64_t last_number(std::uint32_t life) const {
    const Of& of = of_[life];
    const RecordedLives::Life& facts = lives_[life];
    std::uint64_t last = of.commands.empty() ? 0 : of.commands.back().number;
    if (facts.is_described)
      last =
          std::max(last, unfolded(static_cast<std::uint32_t>(recording_.streams[facts.place].submitted), of.reference));
    return last;
  }

  // Whether the command with this number was submitted after `time_ns`.
  bool is_later(const Of& of, std::uint64_t number, std::int64_t time_ns) const {
    const auto at =
        std::lower_bound(of.commands.begin(), of.commands.end(), number,
                         [](const RecordedCommand& command, std::uint64_t to) { return command.number < to; });
    return at != of.commands.end() && at->number == number && entry(at->entry).started_ns > time_ns;
  }

  void find_ends(std::uint32_t life) {
    Of& of = of_[life];
    const std::uint64_t last = last_number(life);
    for (const std::uint32_t at : of.marks) {
      const RecordedEntry& mark = entry(at);
      const std::uint64_t number = unfolded(static_cast<std::uint32_t>(mark.object), of.reference);
      // Of a stream that had the place before, for example.
      if (mark.object == 0 || number > last || is_later(of, number, mark.ended_ns)) {
        ++made_.odd_marks;
        continue;
      }
      of.ends.push_back({number, std::min(mark.started_ns, mark.ended_ns)});
      made_.errors_ns.push_back(mark.number);
    }
    // What the host waited for, and what the table of streams says, was known to have ended as well.
    const auto context = of_context_.find(lives_[life].context);
    for (const RecordedCommand& command : of.commands) {
      const RecordedEntry& call = entry(command.entry);
      if (static_cast<Kind>(call.kind) == Kind::synchronous_copy) of.ends.push_back({command.number, call.ended_ns});
      const RecordedWait* const own = of.waits.first_after(call.ended_ns);
      const RecordedWait* const all =
          context == of_context_.end() ? nullptr : context->second.first_after(call.ended_ns);
      if (own != nullptr) add_wait(of, {command.number, own->until_ns});
      if (all != nullptr) add_wait(of, {command.number, all->until_ns});
    }
    if (!lives_[life].is_described) return;
    const record::Stream& stream = recording_.streams[lives_[life].place];
    const std::uint64_t ended = unfolded(static_cast<std::uint32_t>(stream.ended), of.reference);
    if (stream.ended != 0 && stream.ended <= stream.submitted && !is_later(of, ended, stream.ended_ns))
      of.ends.push_back({ended, stream.ended_ns});
  }

  // Of commands that one wait was for, the last is enough.
  static void add_wait(Of& of, RecordedEnd end) {
    for (std::size_t back = 1; back <= std::min<std::size_t>(2, of.ends.size()); ++back)
      if (RecordedEnd& before = of.ends[of.ends.size() - back];
          before.time_ns == end.time_ns && before.number <= end.number)
        return void(before = end);
    of.ends.push_back(end);
  }

  // What is known, one moment per number: the earliest at which it, or a later command, had ended.
  static void tidy(std::vector<RecordedEnd>& ends) {
    std::sort(ends.begin(), ends.end(), [](const RecordedEnd& a, const RecordedEnd& b) {
      return a.number != b.number ? a.number < b.number : a.time_ns < b.time_ns;
    });
    ends.erase(std::unique(ends.begin(), ends.end(),
                           [](const RecordedEnd& a, const RecordedEnd& b) { return a.number == b.number; }),
               ends.end());
    std::vector<RecordedEnd> kept;
    for (std::size_t i = ends.size(); i-- > 0;)
      if (kept.empty() || ends[i].time_ns < kept.back().time_ns) kept.push_back(ends[i]);
    std::reverse(kept.begin(), kept.end());
    ends = std::move(kept);
  }

  void divide(std::uint32_t life, const RecordedReach& reach) {
    Of& of = of_[life];
    tidy(of.ends);
    const auto& commands = of.commands;
    if (commands.empty()) return;
    std::uint64_t before = commands.front().number - 1;
    std::int64_t since_ns = INT64_MIN;
    if (reach.is_known) {
      before = std::max(before, unfolded(reach.number, of.reference));
      since_ns = reach.ended_ns;
    }
    std::size_t at = 0;
    const auto take = [&](std::uint64_t up_to) {
      RecordedGroup group;
      group.life = life;
      group.commands = up_to - before;
      group.started_ns = since_ns;
      for (; at < commands.size() && commands[at].number <= up_to; ++at) {
        if (commands[at].number <= before) continue;
        if (group.first == record::kNone) group.first = commands[at].entry;
        group.last = commands[at].entry;
      }
      if (group.first != record::kNone) group.started_ns = std::max(since_ns, entry(group.first).started_ns);
      before = up_to;
      return group;
    };
    for (const RecordedEnd& end : of.ends) {
      if (end.number > before) {
        RecordedGroup group = take(end.number);
        group.ended_ns = end.time_ns;
        group.started_ns = std::min(group.started_ns, end.time_ns);
        if (group.started_ns != INT64_MIN) made_.groups.push_back(group);
      }
      since_ns = std::max(since_ns, end.time_ns);
    }
    if (commands.back().number <= before) return;
    RecordedGroup rest = take(commands.back().number);
    rest.has_ended = false;
    made_.groups.push_back(rest);
  }

  const Recording& recording_;
  const RecordedLives& lives_;
  std::vector<Of> of_;  // by life
  std::unordered_map<std::uint32_t, RecordedWaits> of_context_;
  RecordedGroups made_;
};

std::string command_name(const Recording& recording, const RecordedEntry& entry) {
  switch (static_cast<Kind>(entry.kind)) {
    case Kind::copy:
    case Kind::synchronous_copy:
      return std::string(recorded_copy_name(recording.function(entry.function)));
    case Kind::memset:
      return "Memset";
    case Kind::graph_launch:
      return "graph";
    case Kind::host_function:
      return "host function";
    case Kind::memory_operation:
      return "operation on memory";
    default:
      return std::string(entry.name == record::kNoText ? "kernel" : recording.text(entry.name));
  }
}

}  // namespace

RecordedLives::RecordedLives(const Recording& recording)
    : cuts_(recording.streams.size()), first_(recording.streams.size(), 0) {
  const auto destroys = what_functions_destroy(recording);
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> places;  // that have a stream of a context
  std::vector<std::uint32_t> context_of(recording.streams.size(), record::kNone);
  for (const RecordedEntry& entry : recording.entries) {
    if (!is_call(static_cast<Kind>(entry.kind))) continue;
    if (entry.stream != record::kNone && entry.context != record::kNone && context_of[entry.stream] != entry.context) {
      context_of[entry.stream] = entry.context;
      places[entry.context].push_back(entry.stream);
    }
    const Destroys what = entry.function < destroys.size() ? destroys[entry.function] : Destroys::nothing;
    if (what == Destroys::stream && entry.stream != record::kNone) cuts_[entry.stream].push_back(entry.started_ns);
    if (what != Destroys::context) continue;
    for (const std::uint32_t place : places[entry.context])
      if (context_of[place] == entry.context) {
        cuts_[place].push_back(entry.started_ns);
        context_of[place] = record::kNone;
      }
    places.erase(entry.context);
  }
  for (std::uint32_t place = 0; place < cuts_.size(); ++place) {
    auto& cuts = cuts_[place];
    std::sort(cuts.begin(), cuts.end());
    const record::Stream& stream = recording.streams[place];
    first_[place] = static_cast<std::uint32_t>(lives_.size());
    const std::size_t described = stream.is_destroyed != 0 && !cuts.empty() ? cuts.size() - 1 : cuts.size();
    for (std::size_t i = 0; i <= cuts.size(); ++i) {
      const bool is_described = stream.is_used != 0 && i == described;
      lives_.push_back({place, is_described ? stream.context : record::kNone, is_described});
    }
  }
  for (const RecordedEntry& entry : recording.entries)
    if (const std::uint32_t life = of(entry); life != record::kNone && lives_[life].context == record::kNone)
      lives_[life].context = entry.context;
}

std::uint32_t RecordedLives::of(const RecordedEntry& entry) const noexcept {
  if (entry.stream == record::kNone) return record::kNone;
  const auto& cuts = cuts_[entry.stream];
  if (cuts.empty()) return first_[entry.stream];
  // A call that destroys a stream is still of that stream.
  const auto before = std::lower_bound(cuts.begin(), cuts.end(), entry.started_ns) - cuts.begin();
  return first_[entry.stream] + static_cast<std::uint32_t>(before);
}

RecordedGroups group_commands(const Recording& recording, const RecordedLives& lives,
                              const std::vector<RecordedReach>& reached) {
  return Grouping(recording, lives).group(reached);
}

std::string_view recorded_copy_name(std::string_view function) noexcept {
  constexpr std::pair<std::string_view, capture::CopyKind> kKinds[] = {
      {"HtoD", capture::CopyKind::host_to_device},   {"DtoH", capture::CopyKind::device_to_host},
      {"DtoD", capture::CopyKind::device_to_device}, {"HtoA", capture::CopyKind::host_to_array},
      {"AtoH", capture::CopyKind::array_to_host},    {"Peer", capture::CopyKind::peer_to_peer}};
  for (const auto& [part, kind] : kKinds)
    if (function.find(part) != std::string_view::npos) return cuda_copy_name(static_cast<std::int64_t>(kind));
  return cuda_copy_name(0);
}

SpanKind group_kind(const Recording& recording, const RecordedGroup& group) {
  if (group.last == record::kNone || group.commands > 1) return SpanKind::kernel;
  switch (static_cast<Kind>(recording.entries[group.last].kind)) {
    case Kind::copy:
    case Kind::synchronous_copy:
      return SpanKind::copy;
    case Kind::memset:
      return SpanKind::memset;
    case Kind::host_function:
      return SpanKind::host;
    default:
      return SpanKind::kernel;
  }
}

std::string group_name(const Recording& recording, const RecordedGroup& group) {
  std::string name = fmt::format("{} commands", group.commands);
  if (group.last != record::kNone) {
    name = command_name(recording, recording.entries[group.last]);
    const bool is_collective = is_collective_name(name);
    if (group.commands > 1) name += fmt::format(" and {} before it", group.commands - 1);
    // In parentheses it counts as a kernel: clocks of ranks are aligned by the ends of collectives, and these are not
    // its own.
    if (is_collective) name = fmt::format("group ({})", name);
  }
  return group.has_ended ? name : name + ", not known to have ended";
}

}  // namespace weir
