#include "lab/race/host_meetings.h"

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lab/race/order.h"

namespace weir::race {
namespace {

struct Pending {
  HostMeeting meeting;
  Moment moment;
};

class HostMemory {
 public:
  HostMemory(const Order& order, const std::function<void(const HostMeeting&)>& found,
             const std::function<void(const MeetingPair&)>& found_function)
      : order_(order), found_(found), found_function_(found_function) {}

  // A host function: the copies around it that are nearest.
  void run(std::uint32_t call) {
    std::size_t looked_at = 0;
    for (auto recent = recent_.rbegin(); recent != recent_.rend() && looked_at < static_cast<std::size_t>(kNearCopies);
         ++recent, ++looked_at)
      if (const auto place = pending_.find(*recent); place != pending_.end())
        meet(place->second.meeting.copy, place->second.moment, call, place->second.meeting);
    functions_.emplace_back(call, order_.now());
    if (functions_.size() > kNearFunctions) functions_.erase(functions_.begin());
  }

  void copy(std::uint32_t call, std::uint32_t thread, const Extent& extent, bool writes) {
    auto place = pending_.lower_bound(extent.begin);
    if (place != pending_.begin() && std::prev(place)->second.meeting.end > extent.begin) --place;
    while (place != pending_.end() && place->first < extent.near_end) {
      // Copied away by the device what it copied there: the host need not know.
      const bool is_same_way = place->second.meeting.writes == writes;
      place = settle(place, is_same_way ? HostWait::none : HostWait::later);
    }
    const HostMeeting meeting{call, extent.begin, extent.near_end, writes, HostWait::none};
    for (const auto& [function, moment] : functions_) meet(function, moment, call, meeting);
    pending_[extent.begin] = {meeting, order_.now()};
    recent_.push_back(extent.begin);
    if (recent_.size() > 2 * kNearCopies) recent_.erase(recent_.begin(), recent_.begin() + kNearCopies);
    latest_[thread] = extent.begin;
  }

  // After any call of a thread that copies nothing.
  void go_on(std::uint32_t thread) {
    const auto latest = latest_.find(thread);
    if (latest == latest_.end()) return;
    const auto place = pending_.find(latest->second);
    if (place != pending_.end() && order_.has_waited(thread, place->second.moment)) {
      place->second.meeting.wait = HostWait::at_once;
      found_(place->second.meeting);
      pending_.erase(place);
    }
    latest_.erase(latest);
  }

  // At a checkpoint the program reads results, and at the end everything.
  void settle_all(bool is_end) {
    for (auto place = pending_.begin(); place != pending_.end();) {
      const bool writes = place->second.meeting.writes;
      place = writes || is_end ? settle(place, writes ? HostWait::none : HostWait::later) : std::next(place);
    }
  }

 private:
  static constexpr std::ptrdiff_t kNearCopies = 64;
  static constexpr std::size_t kNearFunctions = 16;

  // `second` is the call that the order has taken last.
  void meet(std::uint32_t first, Moment moment, std::uint32_t second, const HostMeeting& copy) {
    if (moment.lane == order_.now().lane || order_.is_after(moment)) return;
    found_function_({first, second, copy.begin, copy.end, Meeting::host, copy.writes});
  }

  using Place = std::map<std::uint64_t, Pending>::iterator;
  Place settle(Place place, HostWait without) {
    place->second.meeting.wait = order_.any_has_waited(place->second.moment) ? HostWait::later : without;
    found_(place->second.meeting);
    return pending_.erase(place);
  }

  const Order& order_;
  const std::function<void(const HostMeeting&)>& found_;
  const std::function<void(const MeetingPair&)>& found_function_;
  std::map<std::uint64_t, Pending> pending_;                 // by where they begin in host memory
  std::unordered_map<std::uint32_t, std::uint64_t> latest_;  // by thread whose last call was a copy: its place
  std::vector<std::uint64_t> recent_;                        // places of the latest copies
  std::vector<std::pair<std::uint32_t, Moment>> functions_;  // the latest
};

}  // namespace

void find_host_meetings(const Log& log, std::span<const Extent> extents,
                        const std::function<void(const HostMeeting&)>& found,
                        const std::function<void(const MeetingPair&)>& found_function) {
  Order order(log);
  HostMemory memory(order, found, found_function);
  for (std::uint32_t i = 0; i < log.calls.size(); ++i) {
    const Call& call = log.calls[i];
    order.take(i);
    if (call.is_captured) continue;
    memory.go_on(call.name.thread);
    if (call.kind == Kind::checkpoint) memory.settle_all(false);
    if (call.kind == Kind::host_function && call.stream < log.streams.size()) memory.run(i);
    if (call.kind != Kind::copy || call.is_synchronous || call.stream >= log.streams.size()) continue;
    for (std::uint32_t r = call.first_range; r < call.first_range + call.range_count; ++r)
      if (extents[r].is_host && extents[r].begin < extents[r].near_end)
        memory.copy(i, call.name.thread, extents[r], log.ranges[r].writes);
  }
  memory.settle_all(true);
}

}  // namespace weir::race
