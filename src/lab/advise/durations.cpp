#include "lab/advise/durations.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "lab/advise/observed_times.h"
#include "lab/advise/slowdown.h"
#include "trace/collective_match.h"

namespace weir::advise {
namespace {

constexpr double kLeavesRoom = 0.5;  // kernels that fill no more of the device

class Durations : ObservedTimes {
 public:
  Durations(const Timeline& timeline, ReplayModel& model) : ObservedTimes(timeline, model), made_(model) {}

  void take() {
    take_slowdowns();
    take_work();
    take_meetings();
  }

 private:
  std::uint32_t shapes_of(std::uint32_t command) const {
    const std::uint32_t call = span_of(command).call;
    const std::uint32_t operation = call < timeline_.calls.size() ? timeline_.calls[call].operation : kNoOperation;
    return operation < timeline_.operations.size() ? timeline_.operations[operation].shapes : kNoName;
  }

  struct Moment {
    std::int64_t ns;
    std::uint32_t command;
    bool is_end;
  };
  // Calls visit(running, from, to) for each stretch of a device in which the same kernels run, first come first.
  template <class Visit>
  void visit_stretches(Visit visit) const {
    std::vector<std::vector<Moment>> by_device(made_.devices);
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      const ReplayCommand& command = made_.commands[i];
      if (command.engine != Engine::kernels || end_of(i) == start_of(i)) continue;
      by_device[command.device].push_back({start_of(i), i, false});
      by_device[command.device].push_back({end_of(i), i, true});
    }
    std::vector<std::uint32_t> running;
    for (std::vector<Moment>& moments : by_device) {
      std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
        return std::tuple(a.ns, !a.is_end, a.command) < std::tuple(b.ns, !b.is_end, b.command);
      });
      std::int64_t before = 0;
      running.clear();
      for (const Moment& moment : moments) {
        if (!running.empty() && moment.ns > before) visit(running, before, moment.ns);
        before = moment.ns;
        if (moment.is_end)
          running.erase(std::find(running.begin(), running.end(), moment.command));
        else
          join_running(made_, made_.urgency, running, moment.command);
      }
    }
  }

  // Kernels that leave room for others may slow them down all the same, through memory. How much shows in a kernel that
  // runs many times, beside few and beside many.
  void take_slowdowns() {
    std::vector<double> others_ns(made_.commands.size(), 0);
    visit_stretches([&](const std::vector<std::uint32_t>& running, std::int64_t from, std::int64_t to) {
      const double weight = static_cast<double>(to - from) * static_cast<double>(running.size() - 1);
      for (const std::uint32_t one : running) others_ns[one] += weight;
    });
    struct Kind {
      std::vector<BesideOthers> launches;
      std::uint32_t slowdown = kNone;
    };
    const auto key_of = [&](std::uint32_t i) { return std::tuple(span_of(i).name, span_of(i).blocks, shapes_of(i)); };
    const auto leaves_room = [&](std::uint32_t i) {
      const ReplayCommand& command = made_.commands[i];
      return command.engine == Engine::kernels && command.fill <= kLeavesRoom && end_of(i) > start_of(i);
    };
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Kind> kinds;
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      if (!leaves_room(i)) continue;
      const std::int64_t took = end_of(i) - start_of(i);
      kinds[key_of(i)].launches.push_back({others_ns[i] / static_cast<double>(took), took});
    }
    for (auto& [key, kind] : kinds) {
      std::vector<double> factors = slowdown_of(std::move(kind.launches));
      if (factors.empty()) continue;
      kind.slowdown = static_cast<std::uint32_t>(made_.slowdowns.size());
      made_.slowdowns.push_back(std::move(factors));
    }
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i)
      if (leaves_room(i)) made_.commands[i].slowdown = kinds[key_of(i)].slowdown;
  }

  // How long each would have taken by itself, by the rule by which the replay lets them share the device.
  void take_work() {
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i)
      made_.commands[i].work_ns =
          made_.commands[i].engine == Engine::kernels ? 0 : static_cast<double>(end_of(i) - start_of(i));
    std::vector<double> rates;
    visit_stretches([&](const std::vector<std::uint32_t>& running, std::int64_t from, std::int64_t to) {
      share_device(made_, running, 0, rates);
      for (std::size_t k = 0; k < running.size(); ++k)
        made_.commands[running[k]].work_ns += rates[k] * static_cast<double>(to - from);
    });
  }

  // The same collective on several ranks: what it took from the moment when the last one had started it.
  void take_meetings() {
    if (timeline_.collectives.empty() || timeline_.processes.size() < 2) return;
    std::vector<std::uint32_t> command_of(timeline_.spans.size(), kNone);
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) command_of[made_.commands[i].span] = i;
    for (const MatchedCollective& match :
         match_collectives(timeline_, std::vector<bool>(timeline_.processes.size(), true))) {
      if (match.kind == CollectiveKind::send_receive || match.kind == CollectiveKind::broadcast ||
          match.kind == CollectiveKind::reduce)
        continue;  // not everybody waits for everybody
      Meeting meeting;
      std::int64_t begun = kNever, ended = std::numeric_limits<std::int64_t>::max();
      for (const Participant& participant : match.participants) {
        const std::uint32_t command = command_of[participant.span];
        if (command == kNone || made_.commands[command].engine != Engine::kernels) continue;
        meeting.commands.push_back(command);
        begun = std::max(begun, start_of(command));
        ended = std::min(ended, end_of(command));
      }
      if (meeting.commands.size() < 2 || ended <= begun) continue;
      for (const std::uint32_t command : meeting.commands) {
        made_.commands[command].meeting = static_cast<std::uint32_t>(made_.meetings.size());
        made_.commands[command].work_ns = static_cast<double>(end_of(command) - begun);
      }
      made_.meetings.push_back(std::move(meeting));
    }
  }

  ReplayModel& made_;
};

}  // namespace

void take_durations(const Timeline& timeline, ReplayModel& model) { Durations(timeline, model).take(); }

}  // namespace weir::advise
