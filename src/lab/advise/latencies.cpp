#include "lab/advise/latencies.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lab/advise/observed_queues.h"
#include "lab/advise/observed_times.h"

namespace weir::advise {
namespace {

class Latencies : ObservedTimes {
 public:
  Latencies(const Timeline& timeline, ReplayModel& model) : ObservedTimes(timeline, model), made_(model) {}

  struct Causes {
    std::int64_t launch = kNever, stream = kNever, edge = kNever, queue = kNever, engine = kNever;
  };

  // By command: whether other kernels filled its device right before it started.
  std::vector<bool> full_before() const {
    constexpr std::int64_t kRight = 2'000;
    std::vector<bool> is_full(made_.commands.size(), false);
    std::vector<std::vector<std::uint32_t>> running(made_.devices);
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      const ReplayCommand& command = made_.commands[i];
      if (command.engine != Engine::kernels) continue;
      std::vector<std::uint32_t>& others = running[command.device];
      std::erase_if(others, [&](std::uint32_t one) { return end_of(one) < start_of(i) - kRight; });
      double filled = 0;
      for (const std::uint32_t one : others)
        if (made_.commands[one].stream != command.stream) filled += made_.commands[one].fill;
      is_full[i] = filled > 0.95;
      others.push_back(i);
    }
    return is_full;
  }

  // What every start is made of: the cause that came last and a latency. A latency far beyond the usual one is not
  // kept: the start is late for a reason that the trace does not show, and the replay will be early there.
  void take_latencies() {
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      ReplayCommand& command = made_.commands[i];
      if (command.action == kNone) continue;
      // Most launches return before the command starts; the beginning of a graph's may come long before.
      const HostAction& action = made_.actions[command.action];
      command.is_after_call = action.waits == 0 && returned(action) <= start_of(i);
    }
    const std::vector<std::uint32_t> ahead = ahead_in_queue(timeline_, made_);
    std::vector<Causes> causes(made_.commands.size());
    std::vector<std::uint32_t> last_on(made_.streams, kNone);
    std::map<std::pair<std::uint16_t, Engine>, std::uint32_t> last_by;
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      ReplayCommand& command = made_.commands[i];
      Causes& cause = causes[i];
      if (command.action != kNone) {
        const HostAction& action = made_.actions[command.action];
        cause.launch = command.is_after_call ? returned(action) : began(action);
      }
      if (const std::uint32_t own = std::exchange(last_on[command.stream], i); own != kNone) cause.stream = end_of(own);
      for (std::uint32_t e = 0; e < command.edges; ++e)
        cause.edge = std::max(cause.edge, end_of(made_.edges[command.first_edge + e]));
      if (ahead[i] != kNone) cause.queue = made_.queues.barrier == 1 ? end_of(ahead[i]) : start_of(ahead[i]);
      if (command.engine != Engine::kernels && command.engine != Engine::host) {
        const auto [at, is_new] = last_by.try_emplace({command.device, command.engine}, i);
        if (!is_new) cause.engine = end_of(std::exchange(at->second, i));
      }
    }
    const std::vector<bool> is_full = full_before();
    // The usual latencies: of commands for which the other causes were long past.
    std::vector<std::int64_t> launches[2], streams, edges;
    constexpr std::int64_t kPast = 20'000;
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      const Causes& cause = causes[i];
      const std::int64_t start = start_of(i);
      const std::int64_t others = std::max({cause.queue, cause.engine});
      if (others > start - kPast || is_full[i]) continue;
      if (cause.launch != kNever && cause.stream <= cause.launch && cause.edge <= cause.launch)
        launches[made_.commands[i].is_after_call ? 1 : 0].push_back(start - cause.launch);
      else if (cause.stream != kNever && cause.stream >= cause.edge && cause.launch <= cause.stream - kPast)
        streams.push_back(start - cause.stream);
      else if (cause.edge != kNever && cause.edge > cause.stream && cause.launch <= cause.edge - kPast)
        edges.push_back(start - cause.edge);
    }
    const std::int64_t launch_by[2] = {std::max<std::int64_t>(0, median_of(launches[0], 6'000)),
                                       std::max<std::int64_t>(0, median_of(launches[1], 3'000))};
    const std::int64_t stream = std::max<std::int64_t>(0, median_of(streams, 1'000));
    const std::int64_t edge = std::max<std::int64_t>(0, median_of(edges, 2'000));
    for (std::uint32_t i = 0; i < made_.commands.size(); ++i) {
      const Causes& cause = causes[i];
      const std::int64_t start = start_of(i);
      ReplayCommand& command = made_.commands[i];
      const std::int64_t launch = launch_by[command.is_after_call ? 1 : 0];
      const auto ready = [](std::int64_t at, std::int64_t usual) { return at == kNever ? kNever : at + usual; };
      const std::int64_t by_launch = ready(cause.launch, launch), by_stream = ready(cause.stream, stream),
                         by_edge = ready(cause.edge, edge);
      const std::int64_t last = std::max({by_launch, by_stream, by_edge, cause.queue, cause.engine});
      // No cause may delay it beyond its start; those that were not the last keep their usual latency otherwise.
      const auto within = [&](std::int64_t at, std::int64_t usual) {
        return at == kNever ? usual : std::min(usual, start - at);
      };
      command.launch_ns = within(cause.launch, launch);
      command.stream_ns = within(cause.stream, stream);
      command.edge_ns = within(cause.edge, edge);
      if (last == kNever) {
        command.arrival_ns = start - made_.origin_ns;
        continue;
      }
      if (command.action == kNone) {
        // Nobody says when it was submitted: as late as it was possible, if it came after its causes.
        command.arrival_ns = start > last + stream ? start - made_.origin_ns : 0;
        continue;
      }
      const std::int64_t late = start - last;
      const std::int64_t usual = last == by_launch ? launch : last == by_stream ? stream : edge;
      if (late <= 0 || is_full[i]) continue;
      if (late > 3 * usual + 10'000) {
        ++made_.late_commands;
        made_.late_ns += static_cast<double>(late);
        continue;
      }
      if (last == by_launch)
        command.launch_ns += late;
      else if (last == by_stream)
        command.stream_ns += late;
      else if (last == by_edge)
        command.edge_ns += late;
    }
  }

 private:
  ReplayModel& made_;
};

}  // namespace

void take_latencies(const Timeline& timeline, ReplayModel& model) { Latencies(timeline, model).take_latencies(); }

}  // namespace weir::advise
