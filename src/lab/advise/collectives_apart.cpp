#include "lab/advise/collectives_apart.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace weir::advise {
namespace {

constexpr std::uint32_t kMostStreams = UINT16_MAX / 2;  // twice as many still have numbers

class Mover {
 public:
  Mover(const ReplayModel& model, const std::vector<bool>& is_collective) : from_(model), made_(model) {
    choose(is_collective);
    if (found_.moved == 0 || from_.streams > kMostStreams) return;
    take_streams();
    take_edges(is_collective);
    take_waits();
    found_.model = std::make_shared<const ReplayModel>(std::move(made_));
  }

  CollectivesApart take() { return std::move(found_); }

 private:
  // One moves if an event says who needs its result, or if only other collectives follow on its stream.
  void choose(const std::vector<bool>& is_collective) {
    std::vector<bool> is_awaited(from_.commands.size(), false), has_kernels_later(from_.streams, false);
    for (const std::uint32_t before : from_.edges) is_awaited[before] = true;
    is_moved_.assign(from_.commands.size(), false);
    for (std::size_t i = from_.commands.size(); i-- > 0;) {
      const ReplayCommand& command = from_.commands[i];
      if (!is_collective[i]) {
        has_kernels_later[command.stream] = true;
        continue;
      }
      is_moved_[i] = !command.is_in_graph && (is_awaited[i] || !has_kernels_later[command.stream]);
      ++(is_moved_[i] ? found_.moved : found_.kept);
    }
  }

  void take_streams() {
    std::vector<std::uint16_t> stream_of(from_.streams, 0);  // 0: it has none yet
    moved_before_.assign(from_.commands.size(), kNone);
    std::vector<std::uint32_t> last(from_.streams, kNone);
    for (std::uint32_t i = 0; i < from_.commands.size(); ++i) {
      const std::uint16_t stream = from_.commands[i].stream;
      moved_before_[i] = last[stream];
      if (!is_moved_[i]) continue;
      last[stream] = i;
      if (stream_of[stream] == 0) {
        stream_of[stream] = static_cast<std::uint16_t>(made_.streams++);
        made_.urgency.push_back(from_.urgency[stream]);
      }
      made_.commands[i].stream = stream_of[stream];
      made_.commands[i].has_own_queue = true;
    }
  }

  // A collective still begins after what was before it on its stream, and an event stands for all that was before it.
  void take_edges(const std::vector<bool>& is_collective) {
    made_.edges.clear();
    std::vector<std::uint32_t> last_kept(from_.streams, kNone);
    for (std::uint32_t i = 0; i < from_.commands.size(); ++i) {
      const ReplayCommand& command = from_.commands[i];
      const auto first = static_cast<std::ptrdiff_t>(made_.edges.size());
      for (std::uint32_t e = 0; e < command.edges; ++e) {
        const std::uint32_t before = from_.edges[command.first_edge + e];
        made_.edges.push_back(before);
        if (!is_moved_[before] && moved_before_[before] != kNone) made_.edges.push_back(moved_before_[before]);
      }
      std::uint32_t& kept = last_kept[command.stream];
      if (is_moved_[i] && kept != kNone) made_.edges.push_back(kept);
      if (!is_moved_[i] && is_collective[i] && moved_before_[i] != kNone) made_.edges.push_back(moved_before_[i]);
      if (!is_moved_[i]) kept = i;
      std::sort(made_.edges.begin() + first, made_.edges.end());
      made_.edges.erase(std::unique(made_.edges.begin() + first, made_.edges.end()), made_.edges.end());
      made_.commands[i].first_edge = static_cast<std::uint32_t>(first);
      made_.commands[i].edges = static_cast<std::uint32_t>(made_.edges.size()) - made_.commands[i].first_edge;
    }
  }

  // A copy that the host waits for is not a wait for its stream.
  void take_waits() {
    made_.awaited.clear();
    for (std::uint32_t index = 0; index < from_.actions.size(); ++index) {
      HostAction& action = made_.actions[index];
      const std::uint32_t first = std::exchange(action.first_wait, static_cast<std::uint32_t>(made_.awaited.size()));
      for (std::uint32_t i = 0; i < from_.actions[index].waits; ++i) {
        const std::uint32_t command = from_.awaited[first + i];
        made_.awaited.push_back(command);
        if (is_moved_[command] || moved_before_[command] == kNone || from_.commands[command].action == index) continue;
        made_.awaited.push_back(moved_before_[command]);
      }
      action.waits = static_cast<std::uint32_t>(made_.awaited.size()) - action.first_wait;
    }
  }

  const ReplayModel& from_;
  ReplayModel made_;
  CollectivesApart found_;
  std::vector<bool> is_moved_;               // by command
  std::vector<std::uint32_t> moved_before_;  // by command: the last that moved from before it on its stream
};

}  // namespace

CollectivesApart collectives_apart(const ReplayModel& model, const std::vector<bool>& is_collective) {
  return Mover(model, is_collective).take();
}

}  // namespace weir::advise
