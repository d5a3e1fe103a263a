#include "lab/advise/observed_queues.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "device/sim/mapping.h"

namespace weir::advise {

std::vector<std::uint32_t> ahead_in_queue(const Timeline& timeline, const ReplayModel& model) {
  std::vector<std::uint32_t> ahead(model.commands.size(), kNone);
  struct Moment {
    std::int64_t ns;
    bool is_end;
    std::uint32_t order;  // of submission
    std::uint32_t command;
    auto operator<=>(const Moment&) const = default;
  };
  std::vector<Moment> moments;
  bool are_known = true;
  for (std::uint32_t i = 0; i < model.submitted.size(); ++i) {
    const std::uint32_t command = model.submitted[i];
    const ReplayCommand& one = model.commands[command];
    if (one.is_in_graph || one.engine == Engine::host) continue;
    const Span& span = timeline.spans[one.span];
    are_known = are_known && span.queue != kNoQueue && span.queue < kCopyQueues;
    const HostCall& call = timeline.calls[model.actions[one.action].call];
    moments.push_back({gets_queue_late(one) ? call.ended_ns : call.started_ns, false, i, command});
    moments.push_back({std::max(span.ended_ns, moments.back().ns), true, i, command});
  }
  std::sort(moments.begin(), moments.end());
  std::vector<sim::StreamMap> maps(model.devices, sim::StreamMap(model.queues));
  std::vector<std::int32_t> home(model.streams, kNoQueue), queue_of(model.streams, kNoQueue);
  std::vector<std::uint32_t> outstanding(model.streams, 0);
  std::map<std::tuple<std::uint16_t, Engine, std::int32_t>, std::uint32_t> last;
  std::vector<std::int32_t> queue(model.commands.size(), kNoQueue);
  for (const Moment& moment : moments) {
    const ReplayCommand& one = model.commands[moment.command];
    sim::StreamMap& map = maps[one.device];
    const std::uint16_t stream = one.stream;
    if (moment.is_end) {
      --outstanding[stream];
      map.end_command(queue[moment.command]);
      continue;
    }
    if (home[stream] == kNoQueue) queue_of[stream] = home[stream] = map.create();
    if (map.is_dynamic() && outstanding[stream] == 0) queue_of[stream] = map.assign(home[stream]);
    ++outstanding[stream];
    queue[moment.command] = queue_of[stream];
    map.add_command(queue_of[stream]);
    const std::int32_t of = are_known ? timeline.spans[one.span].queue : queue_of[stream];
    const auto [at, is_new] = last.try_emplace({one.device, one.engine, of}, moment.command);
    if (!is_new) {
      if (model.commands[at->second].stream != stream) ahead[moment.command] = at->second;
      at->second = moment.command;
    }
  }
  return ahead;
}

}  // namespace weir::advise
