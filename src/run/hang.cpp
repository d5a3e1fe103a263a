#include "run/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/units.h"

namespace weir {
namespace {

constexpr std::size_t kHangColumns = 80;
constexpr std::size_t kMaxListed = 4;  // awaited commands per stream in the report

// The position of every command on its stream: a stream's commands end in the order of their ids.
struct Streams {
  Streams(const Step& step, const Placement& placement)
      : commands(static_cast<std::size_t>(placement.stream_count)), position(step.commands().size()) {
    for (CommandId id = 0; id < position.size(); ++id) {
      auto& own = commands[placement.stream_of[id]];
      position[id] = own.size();
      own.push_back(id);
    }
  }
  HangPlace at(std::size_t stream, std::uint64_t count) const {
    const auto& own = commands[stream];
    return {own[count % own.size()], count / own.size(), static_cast<StreamId>(stream)};
  }

  std::vector<std::vector<CommandId>> commands;  // by stream
  std::vector<std::size_t> position;             // by command
};

class Diagnosis {
 public:
  Diagnosis(const Step& step, const Placement& placement, std::span<const StreamProgress> progress,
            const HangFacts& facts)
      : step_(step), placement_(placement), progress_(progress), facts_(facts), streams_(step, placement) {}

  HangReport report() {
    HangReport report;
    std::uint64_t begun = 0;  // iterations of which some stream got commands
    for (std::size_t i = 0; i < progress_.size(); ++i)
      if (const std::size_t count = streams_.commands[i].size(); count > 0)
        begun = std::max(begun, (progress_[i].submitted + count - 1) / count);
    for (std::size_t i = 0; i < progress_.size(); ++i) report.streams.push_back(examine(i, begun));
    report.cycle = cycle_of(report.streams);
    report.text = text_of(report);
    return report;
  }

 private:
  bool has_ended(const HangPlace& place) const {
    const std::uint64_t before = place.iteration * streams_.commands[place.stream].size();
    return before + streams_.position[place.command] < progress_[place.stream].ended;
  }
  bool is_submitted(const HangPlace& place) const {
    const std::uint64_t before = place.iteration * streams_.commands[place.stream].size();
    return before + streams_.position[place.command] < progress_[place.stream].submitted;
  }
  HangPlace place_of(CommandId id, std::uint64_t iteration) const { return {id, iteration, placement_.stream_of[id]}; }

  StreamHang examine(std::size_t index, std::uint64_t begun) const {
    StreamHang stream;
    stream.stream = static_cast<StreamId>(index);
    stream.progress = progress_[index];
    const std::uint64_t ended = stream.progress.ended, count = streams_.commands[index].size();
    if (count == 0) return stream;
    if (ended > 0) stream.last = streams_.at(index, ended - 1);
    if (ended >= begun * count) return stream;
    stream.next = streams_.at(index, ended);
    if (ended >= stream.progress.submitted) {
      stream.state = StreamHang::State::unsubmitted;
      return stream;
    }
    find_obstacles(stream);
    if (!stream.waits_for.empty()) {
      stream.state = StreamHang::State::waits;
    } else {
      examine_running(stream);
    }
    return stream;
  }

  void find_obstacles(StreamHang& stream) const {
    const HangPlace next = *stream.next;
    const auto note = [&](const HangPlace& before) {
      if (!has_ended(before)) stream.waits_for.push_back(before);
    };
    for (const CommandId before : step_.predecessors(next.command)) note(place_of(before, next.iteration));
    if (next.iteration == 0) return;
    for (const CommandId before : step_.carried(next.command)) note(place_of(before, next.iteration - 1));
  }

  // No dependency of the step blocks this command.
  void examine_running(StreamHang& stream) const {
    const HangPlace next = *stream.next;
    const Command& command = step_.commands()[next.command];
    stream.state = StreamHang::State::runs;
    if (command.kind == CommandKind::collective) {
      stream.state = StreamHang::State::collective;
      stream.collective = collectives_before(next) + 1;
      if (next.stream < facts_.collectives.size() && facts_.collectives[next.stream] < stream.collective)
        stream.state = StreamHang::State::absent;
    } else if (command.kind != CommandKind::copy && kernel(command.kernel).lasts == Lasts::until_flag) {
      stream.state = StreamHang::State::held;
      const Access flag = step_.accesses(next.command)[0];
      for (CommandId id = 0; id < step_.commands().size(); ++id) {
        if (id == next.command || has_ended(place_of(id, next.iteration))) continue;
        for (const Access& access : step_.accesses(id)) {
          const bool sets = access.writes && access.buffer == flag.buffer &&
                            access.offset_bytes < flag.offset_bytes + flag.size_bytes &&
                            flag.offset_bytes < access.offset_bytes + access.size_bytes;
          if (sets) stream.waits_for.push_back(place_of(id, next.iteration));
        }
      }
    }
  }

  // Counts those of its stream, whose order all ranks share.
  std::uint64_t collectives_before(const HangPlace& place) const {
    std::uint64_t each = 0, before = 0;
    for (const CommandId id : streams_.commands[place.stream]) {
      if (step_.commands()[id].kind != CommandKind::collective) continue;
      ++each;
      if (id < place.command) ++before;
    }
    return place.iteration * each + before;
  }

  // Streams whose next commands wait for each other. The edges of a step alone cannot form a cycle, because commands
  // wait only for earlier ones. Flags can.
  static std::vector<StreamId> cycle_of(const std::vector<StreamHang>& streams) {
    enum class Mark : std::uint8_t { fresh, open, closed };
    std::vector<Mark> marks(streams.size(), Mark::fresh);
    std::vector<StreamId> path, cycle;
    const auto visit = [&](const auto& self, StreamId at) -> bool {
      marks[at] = Mark::open;
      path.push_back(at);
      for (const HangPlace& before : streams[at].waits_for) {
        if (marks[before.stream] == Mark::open) {
          cycle.assign(std::find(path.begin(), path.end(), before.stream), path.end());
          return true;
        }
        if (marks[before.stream] == Mark::fresh && self(self, before.stream)) return true;
      }
      marks[at] = Mark::closed;
      path.pop_back();
      return false;
    };
    for (std::size_t i = 0; i < streams.size(); ++i)
      if (marks[i] == Mark::fresh && visit(visit, static_cast<StreamId>(i))) break;
    return cycle;
  }

  std::string name_of_command(CommandId id) const {
    const Command& command = step_.commands()[id];
    std::string name;
    switch (command.kind) {
      case CommandKind::kernel:
        name = fmt::format("kernel {}", kernel(command.kernel).name);
        break;
      case CommandKind::host:
        name = fmt::format("host function {}", kernel(command.kernel).name);
        break;
      case CommandKind::copy:
        name = fmt::format("copy, {}", format_bytes(step_.accesses(id)[0].size_bytes));
        break;
      case CommandKind::collective: {
        // The larger side: the gathered output or the scattered input.
        const auto accesses = step_.accesses(id);
        name = fmt::format("{}, {}", name_of(command.collective),
                           format_bytes(std::max(accesses[0].size_bytes, accesses[1].size_bytes)));
        break;
      }
    }
    if (facts_.roles.size() > 1 && command.role < facts_.roles.size())
      name += fmt::format(" ({})", facts_.roles[command.role]);
    return name;
  }

  // "  waits       command 3 of iteration 5: kernel relu (compute)"; a name that does not fit goes on the next line.
  void line(std::string_view verb, const std::string& what, const std::string& name) {
    const std::string head = fmt::format("  {:<11} {}:", verb, what);
    const bool fits = head.size() + 1 + name.size() <= kHangColumns;
    text_ += fmt::format("{}{}{}\n", head, fits ? " " : fmt::format("\n{:16}", ""), name);
  }
  void remark(std::string_view words) { text_ += fmt::format("{:14}{}\n", "", words); }
  static std::string where(const HangPlace& place) {
    return fmt::format("command {} of iteration {}", place.command, place.iteration);
  }

  void describe_obstacles(const StreamHang& stream, std::string_view verb) {
    for (std::size_t i = 0; i < stream.waits_for.size() && i < kMaxListed; ++i) {
      const HangPlace& before = stream.waits_for[i];
      line("", fmt::format("{} {} on stream {}", i == 0 ? verb : "and", where(before), before.stream),
           name_of_command(before.command) + (is_submitted(before) ? "" : ", not submitted"));
    }
    if (stream.waits_for.size() > kMaxListed) remark(fmt::format("and {} more", stream.waits_for.size() - kMaxListed));
  }

  void describe(const StreamHang& stream) {
    using State = StreamHang::State;
    const StreamProgress& progress = stream.progress;
    text_ += fmt::format("stream {}: {}{} of {} submitted commands have ended\n", stream.stream,
                         progress.is_exact ? "" : "at least ", progress.ended, progress.submitted);
    if (stream.last) line("ended last", where(*stream.last), name_of_command(stream.last->command));
    if (!stream.next) return;
    const std::string next = where(*stream.next), name = name_of_command(stream.next->command);
    switch (stream.state) {
      case State::idle:
        break;
      case State::unsubmitted:
        line("lacks", next, name);
        remark("which the host has not submitted");
        break;
      case State::waits:
        line("waits", next, name);
        describe_obstacles(stream, "for");
        break;
      case State::collective:
        line("runs", next, name);
        remark(fmt::format("number {} of this stream's collectives", stream.collective));
        remark("waits for other ranks to join");
        break;
      case State::absent:
        line("stays away", next, name);
        remark(fmt::format("number {} of this stream's collectives", stream.collective));
        remark("this rank has not started it: the others wait for this one");
        break;
      case State::held:
        line("runs", next, name);
        if (stream.waits_for.empty()) remark("until the host sets its flag");
        describe_obstacles(stream, "until its flag is set by");
        break;
      case State::runs:
        line("runs", next, name);
        remark("or waits for room in its hardware queue");
        break;
    }
  }

  std::string text_of(const HangReport& report) {
    const std::string who =
        facts_.ranks.count > 1 ? fmt::format("rank {} of {}: ", facts_.ranks.rank, facts_.ranks.count) : "";
    text_ = fmt::format("{}the run does not go on: nothing has ended for {}\n", who,
                        format_duration(static_cast<double>(facts_.still_ns)));
    if (report.streams.empty()) text_ += "The device does not tell how far its streams are.\n";
    std::vector<std::string> idle;
    for (const StreamHang& stream : report.streams) {
      if (stream.state == StreamHang::State::idle) {
        idle.push_back(std::to_string(stream.stream));
      } else {
        describe(stream);
      }
    }
    if (!idle.empty()) {
      std::string row = idle.size() == 1 ? "stream" : "streams";
      for (std::size_t i = 0; i < idle.size(); ++i) {
        const std::string item = fmt::format(" {}{}", idle[i], i + 1 < idle.size() ? "," : ":");
        if (row.size() + item.size() > kHangColumns) text_ += std::exchange(row, " ") + "\n";
        row += item;
      }
      constexpr std::string_view kIdle = " all that was submitted has ended";
      if (row.size() + kIdle.size() > kHangColumns) text_ += std::exchange(row, " ") + "\n";
      text_ += row + std::string(kIdle) + "\n";
    }
    if (report.cycle.empty()) return text_;
    text_ += fmt::format("cycle: stream {}", report.cycle[0]);
    std::size_t used = text_.size() - text_.rfind('\n') - 1;
    for (std::size_t i = 1; i <= report.cycle.size(); ++i) {
      const std::string item = fmt::format(" waits for stream {}", report.cycle[i % report.cycle.size()]);
      if (used + item.size() > kHangColumns) {
        text_ += "\n ";
        used = 1;
      }
      text_ += item;
      used += item.size();
    }
    text_ += "\n";
    return text_;
  }

  const Step& step_;
  const Placement& placement_;
  std::span<const StreamProgress> progress_;
  const HangFacts& facts_;
  Streams streams_;
  std::string text_;
};

}  // namespace

HangReport diagnose(const Step& step, const Placement& placement, std::span<const StreamProgress> progress,
                    const HangFacts& facts) {
  return Diagnosis(step, placement, progress, facts).report();
}

}  // namespace weir
