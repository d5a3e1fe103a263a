#include "lab/advise/launch_order.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace weir::advise {
namespace {

// A launch with the calls before it that belong to it.
struct Group {
  std::uint32_t first = 0, last = 0;  // actions
  double chain_ns = 0;                // of the longest chain of commands that begins here
  std::uint32_t missing = 0;          // groups of this region that must come before
  std::vector<std::uint32_t> followers;
};

class Orderer {
 public:
  explicit Orderer(const ReplayModel& model) : model_(model) {
    group_of_.assign(model.actions.size(), kNone);
    chain_ns_.assign(model.commands.size(), 0);
    next_.resize(model.actions.size());
    is_awaited_by_thread_.assign(model.actions.size(), false);
    for (const HostAction& action : model.actions)
      if (action.after != kNone) is_awaited_by_thread_[action.after] = true;
  }

  std::vector<std::uint32_t> take() {
    take_chains();
    bool is_other = false;
    for (std::size_t thread = 0; thread + 1 < model_.thread_begin.size(); ++thread) {
      const std::uint32_t begin = model_.thread_begin[thread], end = model_.thread_begin[thread + 1];
      std::vector<std::uint32_t> order;
      for (std::uint32_t at = begin; at < end;) {
        if (!may_move(at)) {
          order.push_back(at++);
          continue;
        }
        std::uint32_t last = at;
        while (last < end && may_move(last)) ++last;
        add_region(at, last, order);
        at = last;
      }
      for (std::size_t i = 0; i < order.size(); ++i) {
        next_[order[i]] = i + 1 < order.size() ? order[i + 1] : kNone;
        is_other |= order[i] != begin + i;
      }
    }
    return is_other ? std::move(next_) : std::vector<std::uint32_t>();
  }

 private:
  // Not what waits, wakes or was woken, nor launches of whole graphs: these hold their place.
  bool may_move(std::uint32_t index) const {
    const HostAction& action = model_.actions[index];
    const bool is_first = index == model_.thread_begin[action.thread];
    return !is_first && action.waits == 0 && action.after == kNone && action.commands <= 1 &&
           !is_awaited_by_thread_[index];
  }

  // From the last command to the first: what each takes, and then the longest of what comes after it.
  void take_chains() {
    std::vector<std::uint32_t> next_on(model_.streams, kNone);
    std::vector<double> after(model_.commands.size(), 0);  // by command: the longest chain after it
    for (std::size_t i = model_.commands.size(); i-- > 0;) {
      const ReplayCommand& command = model_.commands[i];
      const std::uint32_t next = std::exchange(next_on[command.stream], static_cast<std::uint32_t>(i));
      if (next != kNone) after[i] = std::max(after[i], chain_ns_[next]);
      chain_ns_[i] = command.work_ns + after[i];
      for (std::uint32_t e = 0; e < command.edges; ++e) {
        double& before = after[model_.edges[command.first_edge + e]];
        before = std::max(before, chain_ns_[i]);
      }
    }
  }

  void add_region(std::uint32_t begin, std::uint32_t end, std::vector<std::uint32_t>& order) {
    std::vector<Group> groups;
    std::uint32_t first = begin;
    for (std::uint32_t i = begin; i < end; ++i) {
      if (model_.actions[i].commands == 0) continue;
      Group group;
      group.first = first;
      group.last = i;
      group.chain_ns = chain_ns_[command_of(i)];
      group_of_[i] = static_cast<std::uint32_t>(groups.size());
      groups.push_back(std::move(group));
      first = i + 1;
    }
    link(groups, begin, end);
    const auto is_later = [&](std::uint32_t a, std::uint32_t b) {
      return groups[a].chain_ns != groups[b].chain_ns ? groups[a].chain_ns < groups[b].chain_ns : a > b;
    };
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, decltype(is_later)> ready(is_later);
    for (std::uint32_t i = 0; i < groups.size(); ++i)
      if (groups[i].missing == 0) ready.push(i);
    while (!ready.empty()) {
      const Group& group = groups[ready.top()];
      ready.pop();
      for (std::uint32_t i = group.first; i <= group.last; ++i) order.push_back(i);
      for (const std::uint32_t follower : group.followers)
        if (--groups[follower].missing == 0) ready.push(follower);
    }
    for (std::uint32_t i = first; i < end; ++i) order.push_back(i);  // after the last launch
  }

  std::uint32_t command_of(std::uint32_t action) const {
    return model_.submitted[model_.actions[action].first_command];
  }

  // A command stays behind those of its stream and those that it waits for.
  void link(std::vector<Group>& groups, std::uint32_t begin, std::uint32_t end) {
    std::vector<std::uint32_t> last_on(model_.streams, kNone);
    for (Group& group : groups) {
      const auto index = static_cast<std::uint32_t>(&group - groups.data());
      const ReplayCommand& command = model_.commands[command_of(group.last)];
      const auto come_after = [&](std::uint32_t other) {
        if (other == kNone || other == index) return;
        groups[other].followers.push_back(index);
        ++group.missing;
      };
      come_after(std::exchange(last_on[command.stream], index));
      for (std::uint32_t e = 0; e < command.edges; ++e) {
        const std::uint32_t action = model_.commands[model_.edges[command.first_edge + e]].action;
        if (action != kNone && action >= begin && action < end) come_after(group_of_[action]);
      }
    }
  }

  const ReplayModel& model_;
  std::vector<std::uint32_t> group_of_, next_;  // by action
  std::vector<bool> is_awaited_by_thread_;
  std::vector<double> chain_ns_;  // by command
};

}  // namespace

std::vector<std::uint32_t> order_by_longest_chain(const ReplayModel& model) { return Orderer(model).take(); }

}  // namespace weir::advise
