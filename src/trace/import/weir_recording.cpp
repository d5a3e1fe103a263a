// Makes a timeline of a flight recorder's file (trace/recording.h): calls, waits and ranges, and commands as the device
// recorded them or, where it was not asked, groups of them (recorded_groups.h). Asks nobody whether the program lives.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <tuple>
#include <unordered_map>

#include "base/file.h"
#include "base/plain_text.h"
#include "base/text_gate.h"
#include "base/units.h"
#include "trace/capture_format.h"
#include "trace/import/cuda_activity.h"
#include "trace/import/list.h"
#include "trace/import/recorded_groups.h"
#include "trace/recording.h"

namespace weir::importer_list {
namespace {

using record::Kind;

constexpr std::string_view kRecordingMagic(record::kMagic, sizeof(record::kMagic));
// Streams that the table does not describe: those that were destroyed, and those of branches of graphs.
constexpr std::uint64_t kUndescribedStreams = std::uint64_t{1} << 32, kBranches = std::uint64_t{2} << 32;
constexpr std::size_t kMaxThreadNotes = 20;

bool is_call_of_driver(Kind kind) noexcept { return kind < Kind::mark; }

std::string shown_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) (line += line.empty() ? "" : " ") += word;
  return for_line(whole_characters(line, 200));
}

Recording load_recording(const TraceFile& file, TimelineBuilder& to) {
  // The file itself may be of a program that runs, and is read as such.
  if (!file.path.empty() && start_of_file(file.path, kRecordingMagic.size()) == kRecordingMagic) {
    std::error_code unknown;
    const std::uint64_t size = std::filesystem::file_size(file.path, unknown);
    to.charge(unknown ? 0 : size + size / 4);
    return read_recording(file.path);
  }
  std::string contents;
  constexpr std::size_t kPiece = std::size_t{64} << 10;
  // What does not begin like a recording is rejected without reading the rest.
  for (bool is_one = file.bytes->peek(kRecordingMagic.size()) == kRecordingMagic; is_one;) {
    const std::size_t before = contents.size();
    contents.resize(before + kPiece);
    const std::size_t got = file.bytes->read(contents.data() + before, kPiece);
    contents.resize(before + got);
    to.charge(got * 2 + got / 4);  // entries are somewhat larger in memory
    if (got == 0) break;
    if (file.progress) file.progress();
  }
  return read_recording(contents, file.name);
}

class RecordingTimeline {
 public:
  RecordingTimeline(const TraceFile& file, TimelineBuilder& to)
      : file_(file), to_(to), activity_(to), recording_(load_recording(file, to)), lives_(charged()) {
    lanes_.resize(lives_.size());
    names_.assign(recording_.texts.size() / 4 + 1, kNoName);
    functions_.fill(kNoName);
    reached_.resize(lives_.size());
  }

  void read() {
    to_.begin_file(file_.name, "entry");
    describe();
    find_facts();
    activity_.knows_waits();
    add_calls();
    add_records();
    add_branches();
    add_groups();
    activity_.resolve("");
    if (recorded_ > 0) return to_.trust_gaps();
    add_dependencies();
  }

 private:
  struct Lane {
    bool is_known = false;
    std::optional<CudaActivity::Lane> lane;
  };
  // A group, and when its first and its last call began.
  struct Added {
    std::optional<std::uint32_t> command;
    std::int64_t first_ns = 0, last_ns = 0;
  };
  struct EventRecorded {
    std::uint64_t event = 0;
    std::int64_t called_ns = 0;
    std::uint32_t life = 0;
  };

  const Recording& charged() {
    to_.charge(recording_.entries.size() * 48 + recording_.streams.size() * 128 + recording_.texts.size());
    return recording_;
  }
  const record::Header& header() const { return recording_.header; }

  void tick(std::size_t i) {
    if (i % 65536 == 65535 && file_.progress) file_.progress();
  }

  void describe() {
    const std::string clock = for_line(whole_characters(recording_.text(header().clock), 80));
    to_.set_source(fmt::format("{}, {}",
                               header().is_exact != 0 ? "the device's records, kept by a flight recorder"
                                                      : "groups of commands between marks of a flight recorder",
                               clock.empty() ? "unknown clock" : clock));
    to_.note(fmt::format("process {}: {}", header().pid, shown_words(recording_.command())));
    switch (static_cast<record::State>(header().state)) {
      case record::State::ended:
        break;
      case record::State::refused:
        to_.note("nothing of this program was recorded");
        break;
      case record::State::starting:
        to_.note("the program had only begun when its recording was read");
        break;
      default:
        to_.note("the program had not ended when its recording was read: it still runs, or it was killed");
    }
    if (header().is_off != 0) to_.note("recording was switched off at the end");
    if (const std::string_view message = recording_.text(header().message); !message.empty())
      to_.note("while recording: " + for_line(whole_characters(message, 400)));
    if (header().lost > 0) to_.drop("lost while recording: there was no place for it", 0, header().lost);
    for (const auto& [reason, count] : recording_.dropped) to_.drop(reason, 0, count);
  }

  // What later steps need to know of all entries.
  void find_facts() {
    for (const record::Stream& stream : recording_.streams)
      if (stream.is_used != 0 && stream.device != record::kNone) devices_.try_emplace(stream.context, stream.device);
    // A quiet thread keeps entries that are older than what others have overwritten: alone they would look like idle
    // time.
    if (header().overwritten_ns > 0)
      std::erase_if(recording_.entries, [&](const RecordedEntry& entry) {
        return entry.ended_ns > 0 && entry.ended_ns <= header().overwritten_ns;
      });
    std::int64_t first_ns = INT64_MAX;
    end_ns_ = INT64_MIN;
    std::uint32_t newest = 0;
    for (const RecordedEntry& entry : recording_.entries) {
      first_ns = std::min(first_ns, entry.started_ns);
      end_ns_ = std::max(end_ns_, entry.ended_ns);
      if (is_call_of_driver(static_cast<Kind>(entry.kind)) && entry.correlation != 0) newest = entry.correlation;
    }
    // Correlations are numbers of 32 bits that grow with each call, and some programs make more calls than that.
    for (const RecordedEntry& entry : recording_.entries)
      if (entry.correlation > newest && static_cast<std::int32_t>(entry.correlation - newest) < 0) is_wrapped_ = true;
    if (recording_.entries.empty()) return;
    // The recorder was alive then, and would have seen that more had ended.
    end_ns_ = std::max(end_ns_, header().beat_ns);
    if (header().claimed > header().chunks && end_ns_ > first_ns)
      to_.note(
          fmt::format("the recording keeps the newest calls only, here of the last {}; older ones were overwritten",
                      format_duration(static_cast<double>(end_ns_) - static_cast<double>(first_ns))));
  }

  // Each call has one, whether or not its recorder numbers them, so that commands find it.
  std::uint64_t correlation_of(const RecordedEntry& entry) const noexcept {
    constexpr std::uint64_t kTurn = std::uint64_t{1} << 32;
    if (entry.correlation != 0) return entry.correlation + (is_wrapped_ && entry.correlation < kTurn / 2 ? kTurn : 0);
    if (!is_call_of_driver(static_cast<Kind>(entry.kind))) return 0;
    return 2 * kTurn + static_cast<std::uint64_t>(&entry - recording_.entries.data());
  }

  std::uint32_t name_of(std::uint32_t text) {
    if (text == record::kNoText || text / 4 >= names_.size()) return kNoName;
    std::uint32_t& name = names_[text / 4];
    if (name == kNoName) name = to_.name(recording_.text(text));
    return name;
  }

  std::uint32_t function_name(std::uint16_t function) {
    if (function >= functions_.size()) return kNoName;
    std::uint32_t& name = functions_[function];
    if (const std::string_view text = recording_.function(function); name == kNoName && !text.empty())
      name = to_.name(without_version(text));
    return name;
  }

  std::uint64_t stream_id(std::uint32_t life) const {
    const RecordedLives::Life& facts = lives_[life];
    const std::uint32_t id = facts.is_described ? recording_.streams[facts.place].id : record::kNone;
    return id != record::kNone ? id : kUndescribedStreams + life;
  }

  std::int64_t device_of(std::uint32_t context) const {
    const auto found = devices_.find(context);
    return found == devices_.end() ? 0 : found->second;
  }

  std::optional<CudaActivity::Lane> lane_of(std::uint32_t life, std::size_t at) {
    Lane& known = lanes_[life];
    if (known.is_known) {
      if (!known.lane) to_.drop("command on one device or stream too many", at);
      return known.lane;
    }
    known.is_known = true;
    const RecordedLives::Life& facts = lives_[life];
    const record::Stream& stream = recording_.streams[facts.place];
    const bool has_device = facts.is_described && stream.device != record::kNone;
    known.lane = activity_.lane(file_.process, has_device ? stream.device : device_of(facts.context), facts.context,
                                stream_id(life), at);
    if (known.lane && !facts.is_described)
      to_.label_stream(known.lane->stream, fmt::format("destroyed stream {} of context {}", life, facts.context));
    else if (known.lane && stream.id == record::kNone)
      to_.label_stream(known.lane->stream, fmt::format("stream {:#x} of context {}", stream.handle, facts.context));
    return known.lane;
  }

  void add_calls() {
    const auto& all = recording_.entries;
    std::size_t ranges = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const RecordedEntry& entry) {
      return static_cast<Kind>(entry.kind) == Kind::range;
    }));
    if (ranges > kMaxRanges) to_.drop("range of the program beyond the newest 10,000", 0, ranges - kMaxRanges);
    for (std::size_t i = 0; i < all.size(); ++i) {
      tick(i);
      const RecordedEntry& entry = all[i];
      if (static_cast<Kind>(entry.kind) == Kind::range && ranges-- <= kMaxRanges)
        to_.add(TraceRange{name_of(entry.name), file_.process, entry.started_ns, entry.ended_ns});
      if (!is_call_of_driver(static_cast<Kind>(entry.kind))) continue;
      const std::uint32_t thread = entry.thread == record::kNone ? 0 : recording_.threads[entry.thread].id;
      to_.add({function_name(entry.function), thread, correlation_of(entry), file_.process, CallKind::other,
               entry.started_ns, entry.ended_ns},
              i);
      if (entry.flags == 0) add_order(entry, i);
    }
    add_open_calls();
  }

  // What a call means for the order of commands.
  void add_order(const RecordedEntry& entry, std::size_t at) {
    const auto kind = static_cast<Kind>(entry.kind);
    if (record::is_command(kind) && entry.stream == record::kNone)
      return to_.drop("command on a stream that the recorder had no place for", at);
    const std::uint32_t life = lives_.of(entry);
    const bool is_wait = kind == Kind::stream_wait_event;
    if (kind == Kind::context_synchronize || (kind == Kind::stream_synchronize && life != record::kNone)) {
      const auto type = kind == Kind::context_synchronize ? capture::SyncType::context_synchronize
                                                          : capture::SyncType::stream_synchronize;
      const bool has_life = life != record::kNone;
      activity_.add(static_cast<std::int64_t>(type),
                    {{file_.process, has_life ? lives_[life].context : entry.context, has_life ? stream_id(life) : 0, 0,
                      0, correlation_of(entry)},
                     at},
                    entry.started_ns, entry.ended_ns);
    }
    if ((kind != Kind::event_record && !is_wait) || life == record::kNone) return;
    if (header().is_exact == 0) {
      to_.charge(sizeof(EventRecorded));
      (is_wait ? event_waits_ : event_records_).push_back({entry.object, entry.started_ns, life});
      return;
    }
    const CudaActivity::Recorded one{file_.process,        lives_[life].context, stream_id(life), entry.object, 0,
                                     correlation_of(entry)};
    if (!is_wait) return activity_.add(one);
    activity_.add(static_cast<std::int64_t>(capture::SyncType::stream_wait_event), {one, at}, kNoTime, kNoTime);
  }

  void add_open_calls() {
    std::size_t shown = 0;
    for (const record::Thread& thread : recording_.threads) {
      const std::string_view function = without_version(recording_.function(thread.function));
      if (thread.id == 0 || thread.has_ended != 0 || thread.started_ns == 0 || function.empty()) continue;
      if (recording_.entries.empty() || thread.started_ns > end_ns_) continue;
      // Begins unlike the function's name, so that nothing is concluded from its end.
      to_.add({to_.name(fmt::format("in {}, not known to have returned", function)), thread.id, 0, file_.process,
               CallKind::other, thread.started_ns, end_ns_});
      if (++shown <= kMaxThreadNotes)
        to_.note(fmt::format("thread {} ({}) was in {} for the last {}", thread.id, for_line(thread.name),
                             for_line(function),
                             format_duration(static_cast<double>(end_ns_) - static_cast<double>(thread.started_ns))));
    }
  }

  // The device's records of commands, each with the call of its correlation.
  void add_records() {
    if (header().is_exact == 0) return;
    const auto& all = recording_.entries;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> calls;  // of commands: correlation, entry
    for (std::uint32_t i = 0; i < all.size(); ++i)
      if (all[i].correlation != 0 && all[i].flags == 0 && record::is_command(static_cast<Kind>(all[i].kind)))
        calls.emplace_back(all[i].correlation, i);
    std::sort(calls.begin(), calls.end());
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      tick(i);
      const RecordedEntry& entry = all[i];
      if (static_cast<Kind>(entry.kind) != Kind::device) continue;
      const auto found = std::lower_bound(calls.begin(), calls.end(), std::pair{entry.correlation, 0U});
      const RecordedEntry* const call =
          found == calls.end() || found->first != entry.correlation ? nullptr : &all[found->second];
      if (call != nullptr) reach(*call, entry.ended_ns);
      const bool is_of_graph = call != nullptr && static_cast<Kind>(call->kind) == Kind::graph_launch;
      std::uint32_t life = lives_.of(entry);
      if (call != nullptr && (entry.stream == call->stream || (life == record::kNone && !is_of_graph)))
        life = lives_.of(*call);
      if (life == record::kNone)
        branches_.push_back({i, call});
      else if (const auto lane = lane_of(life, i))
        add_record(entry, call, *lane, i);
    }
  }

  void reach(const RecordedEntry& call, std::int64_t ended_ns) {
    const std::uint32_t life = lives_.of(call);
    if (life == record::kNone || call.number == 0) return;
    RecordedReach& known = reached_[life];
    if (known.is_known && static_cast<std::int32_t>(call.number - known.number) < 0) return;
    known = {true, call.number,
             known.is_known && known.number == call.number ? std::max(known.ended_ns, ended_ns) : ended_ns};
  }

  void add_record(const RecordedEntry& entry, const RecordedEntry* call, CudaActivity::Lane lane, std::size_t at) {
    if (!activity_.has_times(entry.started_ns, entry.ended_ns, at)) return;
    constexpr auto kCopyEngine = static_cast<std::uint32_t>(capture::ChannelType::async_memcpy);
    TraceCommand command;
    command.process = file_.process;
    command.stream = lane.stream;
    if (entry.number != record::kNone)
      command.queue = to_.queue(lane.device, entry.number, entry.function == kCopyEngine);
    command.correlation = correlation_of(entry);
    command.started_ns = entry.started_ns;
    command.ended_ns = entry.ended_ns;
    command.at = at;
    command.name = name_of(entry.name);
    const Kind kind = call == nullptr ? Kind::other : static_cast<Kind>(call->kind);
    // A kernel's name may have found no room; a copy never has one.
    if (command.name == kNoName && kind != Kind::launch) {
      const bool is_memset = kind == Kind::memset;
      command.kind = is_memset ? SpanKind::memset : SpanKind::copy;
      command.name = to_.name(is_memset ? "Memset"
                              : call == nullptr || kind == Kind::graph_launch
                                  ? "Memcpy or Memset"
                                  : recorded_copy_name(recording_.function(call->function)));
      command.bytes = entry.object;
    }
    if (to_.add(command)) ++recorded_;
  }

  // Commands of graphs on streams that the driver keeps to itself: each goes to the first lane of its context that is
  // free.
  void add_branches() {
    const auto& all = recording_.entries;
    std::sort(branches_.begin(), branches_.end(), [&](const auto& a, const auto& b) {
      return std::tie(all[a.first].started_ns, a.first) < std::tie(all[b.first].started_ns, b.first);
    });
    struct Branch {
      std::int64_t ended_ns = INT64_MIN;
      std::optional<CudaActivity::Lane> lane;
    };
    constexpr std::size_t kMaxBranches = 64;
    std::unordered_map<std::uint32_t, std::vector<Branch>> contexts;
    for (const auto& [place, call] : branches_) {
      const RecordedEntry& entry = all[place];
      auto& lanes = contexts[entry.context];
      auto free = std::find_if(lanes.begin(), lanes.end(),
                               [&](const Branch& branch) { return branch.ended_ns <= entry.started_ns; });
      if (free == lanes.end() && lanes.size() == kMaxBranches) {
        to_.drop("command of a graph with more than 64 branches", place);
        continue;
      }
      if (free == lanes.end()) {
        const auto lane =
            activity_.lane(file_.process, device_of(entry.context), entry.context, kBranches + lanes.size(), place);
        if (lane)
          to_.label_stream(lane->stream,
                           fmt::format("branch {} of graphs, context {}", lanes.size() + 1, entry.context));
        free = lanes.insert(lanes.end(), Branch{INT64_MIN, lane});
      }
      free->ended_ns = std::max(free->ended_ns, entry.ended_ns);
      if (free->lane) add_record(entry, call, *free->lane, place);
    }
  }

  void add_groups() {
    RecordedGroups found = group_commands(recording_, lives_, reached_);
    to_.charge(found.groups.size() * (sizeof(RecordedGroup) + sizeof(Added)));
    if (found.odd_marks > 0) to_.drop("mark that is not of the commands of its stream", 0, found.odd_marks);
    std::uint64_t commands = 0, largest = 0;
    groups_of_.assign(lives_.size() + 1, 0);
    for (const RecordedGroup& group : found.groups) {
      ++groups_of_[group.life + 1];
      commands += group.commands;
      largest = std::max(largest, group.commands);
      Added added = add(group);
      // Without calls it stands where the one before it does.
      if (group.first == record::kNone && groups_of_[group.life + 1] > 1)
        added.first_ns = added.last_ns = added_.back().last_ns;
      added_.push_back(added);
    }
    for (std::size_t life = 0; life < lives_.size(); ++life) groups_of_[life + 1] += groups_of_[life];
    if (found.groups.empty()) return;
    if (header().is_exact != 0)
      return to_.note(
          fmt::format("the last {} commands have no record of the device: they had not been handed over, or there is "
                      "none, as of host "
                      "functions; {} spans stand for groups of them",
                      commands, found.groups.size()));
    std::string error;
    if (auto& errors = found.errors_ns; !errors.empty()) {
      std::sort(errors.begin(), errors.end());
      error = fmt::format(" Nine of ten of their ends are known to {}, all of them to {}.",
                          format_duration(static_cast<double>(errors[(errors.size() - 1) * 9 / 10])),
                          format_duration(static_cast<double>(errors.back())));
    }
    to_.note(fmt::format(
        "spans are not single commands: the recorder saw now and then how far a stream had come, so each of "
        "the {} spans stands for a group of up to {} commands and has the name of its last one.{} How long "
        "a kernel or a collective took is not known, so collectives count as compute: `weir record --exact` records "
        "all of that.",
        found.groups.size(), largest, error));
  }

  Added add(const RecordedGroup& group) {
    const auto& all = recording_.entries;
    Added added;
    const std::size_t at = group.last == record::kNone ? 0 : group.last;
    const auto lane = lane_of(group.life, at);
    if (!lane) return added;
    TraceCommand command;
    command.process = file_.process;
    command.stream = lane->stream;
    command.kind = group_kind(recording_, group);
    command.name = to_.name(group_name(recording_, group));
    command.started_ns = group.started_ns;
    command.ended_ns = group.has_ended ? group.ended_ns : std::max(group.started_ns, end_ns_);
    command.at = at;
    if (group.first != record::kNone) {
      command.submitted_ns = all[group.first].started_ns;
      if (group.commands == 1 && command.kind != SpanKind::kernel && command.kind != SpanKind::host)
        command.bytes = all[group.last].object;
      added.first_ns = all[group.first].started_ns;
      added.last_ns = all[group.last].started_ns;
      // Among exact records a group would seem to be its first command alone.
      if (header().is_exact == 0) command.correlation = correlation_of(all[group.first]);
    }
    added.command = to_.add(command);
    return added;
  }

  // A group waits if all of it came after the wait, for what had completely been submitted before the event's record.
  void add_dependencies() {
    const auto order = [](const EventRecorded& a, const EventRecorded& b) {
      return std::tie(a.event, a.called_ns) < std::tie(b.event, b.called_ns);
    };
    std::sort(event_records_.begin(), event_records_.end(), order);
    const auto groups = [&](std::uint32_t life) {
      return std::pair{added_.begin() + static_cast<std::ptrdiff_t>(groups_of_[life]),
                       added_.begin() + static_cast<std::ptrdiff_t>(groups_of_[life + 1])};
    };
    for (const EventRecorded& wait : event_waits_) {
      const auto next = std::lower_bound(event_records_.begin(), event_records_.end(), wait, order);
      if (next == event_records_.begin() || (next - 1)->event != wait.event) {
        to_.drop("wait for an event that was not recorded within the recording", 0);
        continue;
      }
      const EventRecorded& record = *(next - 1);
      if (record.life == wait.life) continue;
      const auto [first, last] = groups(record.life);
      const auto [begin, end] = groups(wait.life);
      const auto before =
          std::partition_point(first, last, [&](const Added& one) { return one.last_ns < record.called_ns; });
      const auto after =
          std::partition_point(begin, end, [&](const Added& one) { return one.first_ns <= wait.called_ns; });
      if (before == first || after == end || !(before - 1)->command || !after->command) continue;
      to_.add(Dependency{*(before - 1)->command, *after->command});
    }
  }

  const TraceFile& file_;
  TimelineBuilder& to_;
  CudaActivity activity_;
  Recording recording_;
  RecordedLives lives_;
  std::vector<Lane> lanes_;                                               // by life
  std::vector<std::uint32_t> names_;                                      // by text / 4
  std::array<std::uint32_t, record::kFunctions> functions_{};             // names
  std::unordered_map<std::uint32_t, std::uint32_t> devices_;              // by context
  std::vector<RecordedReach> reached_;                                    // by life
  std::vector<std::pair<std::uint32_t, const RecordedEntry*>> branches_;  // entry, call
  std::vector<EventRecorded> event_records_, event_waits_;
  std::vector<Added> added_;            // groups
  std::vector<std::size_t> groups_of_;  // by life: its first group
  std::uint64_t recorded_ = 0;          // commands with the device's own times
  std::int64_t end_ns_ = 0;             // nothing is known after that
  bool is_wrapped_ = false;
};

}  // namespace

Importer weir_recording() {
  return {"weir_recording", "what `weir record` kept of a program",
          [](std::string_view start) { return start.starts_with(kRecordingMagic); },
          [](const TraceFile& file, TimelineBuilder& to) { RecordingTimeline(file, to).read(); }};
}

}  // namespace weir::importer_list
