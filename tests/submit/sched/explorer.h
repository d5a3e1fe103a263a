// Goes through every order of events that three clients and a clock can bring about, breadth first, and looks at each
// state that a conductor comes to. What it finds first is therefore a shortest way to something wrong. States that
// differ only in how late it is count as one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "submit/sched/conductor.h"

namespace weir::testing {

inline constexpr int kExplored = 3;  // clients

// A conductor, and what its clients and an observer know.
template <class Machine>
struct World {
  Machine machine;
  std::int64_t now_ns = 0;
  std::array<std::int64_t, kExplored> waits_from_ns{};  // active, and not among the first since then

  bool is_seated(int client) const { return (machine.seated() >> client & 1) != 0; }
  bool is_active(int client) const { return (machine.active() >> client & 1) != 0; }
  bool is_first(int client) const { return is_active(client) && (machine.yields_to(client) & machine.active()) == 0; }
};

// What a machine's future depends on beside masks and turns; less is known, fewer states differ.
struct Memory {
  bool arrivals = false;          // in which order requests arrived
  bool deadlines = false;         // how long ago
  bool shares = false;            // virtual times
  bool ages = false;              // what ageing counts
  bool waits = false;             // how long clients have waited: where that is checked
  std::int64_t horizon_ns = 100;  // more than that ago is long ago
};

struct Exploration {
  std::size_t states = 0;
  bool is_complete = false;  // there are no others
  std::string violation;     // empty: none was found
  std::vector<std::string> path;

  std::string text() const {
    std::string message = violation + " after:";
    for (const std::string& event : path) message += "\n  " + event;
    return message;
  }
};

template <class Machine>
class Explorer {
 public:
  using Check = std::function<std::string(const World<Machine>&)>;  // what is wrong; empty: nothing

  Explorer(const Machine& machine, std::array<scheduler::Terms, kExplored> terms, const Memory& memory, Check check)
      : first_{.machine = machine}, terms_(terms), memory_(memory), check_(std::move(check)) {}

  Exploration explore(std::size_t max_states) {
    Exploration found;
    std::vector<Node> level = {{first_, 0}};
    steps_ = {{0, "start"}};
    seen_ = {key_of(first_)};
    while (!level.empty()) {
      std::vector<Node> next;
      for (const Node& node : level) {
        for (int event = 0; event < kEvents; ++event) {
          std::string name;
          std::optional<World<Machine>> world = after(node.world, event, &name);
          if (!world || !seen_.insert(key_of(*world)).second) continue;
          steps_.push_back({node.step, name});
          found.violation = check_(*world);
          if (!found.violation.empty()) {
            found.path = path_to(steps_.size() - 1);
            found.states = seen_.size();
            return found;
          }
          if (seen_.size() >= max_states) {
            found.states = seen_.size();
            return found;
          }
          next.push_back({*std::move(world), steps_.size() - 1});
        }
      }
      level = std::move(next);
    }
    found.states = seen_.size();
    found.is_complete = true;
    return found;
  }

 private:
  struct Node {
    World<Machine> world;
    std::size_t step;
  };
  struct Step {
    std::size_t before;
    std::string event;
  };
  // join or leave, and activate or go idle, per client; and the clock.
  static constexpr int kEvents = 2 * kExplored + 1;

  // An event takes a nanosecond, so that no two happen at once: a clock that has to be looked at by then comes first.
  std::optional<World<Machine>> after(const World<Machine>& before, int event, std::string* name) const {
    World<Machine> world = before;
    Machine& machine = world.machine;
    world.now_ns += 1;
    const int client = event % kExplored;
    if (event == kEvents - 1) {
      const std::int64_t change_ns = machine.next_change_ns();
      if (change_ns == scheduler::kNever && machine.active() == 0) return std::nullopt;
      world.now_ns = change_ns == scheduler::kNever ? before.now_ns + 2 * machine.settings().slice_ns : change_ns;
      machine.advance(world.now_ns);
      *name = "time passes";
    } else if (event < kExplored) {
      *name = world.is_seated(client) ? "leave" : "join";
      if (world.is_seated(client)) {
        machine.leave(client, world.now_ns);
      } else if (machine.join(terms_[static_cast<std::size_t>(client)], world.now_ns) != client) {
        return std::nullopt;  // clients sit where their number says: they differ in their terms alone
      }
    } else {
      if (!world.is_seated(client)) return std::nullopt;
      *name = world.is_active(client) ? "go idle" : "become active";
      machine.set_active(machine.active() ^ std::uint64_t{1} << client, world.now_ns);
    }
    if (event != kEvents - 1) *name = "client " + std::to_string(client) + ": " + *name;
    *name = "at " + std::to_string(world.now_ns) + " " + *name;
    for (int each = 0; each < kExplored; ++each) {
      // Was first up to now, is it from now on, or has nothing to wait for.
      if (before.is_first(each) || world.is_first(each) || !before.is_active(each) || !world.is_active(each)) {
        world.waits_from_ns[static_cast<std::size_t>(each)] = world.now_ns;
      }
    }
    return world;
  }

  // All that what happens from here on depends on, relative to now. Virtual times count from the least.
  std::string key_of(const World<Machine>& world) const {
    const Machine& machine = world.machine;
    std::string key;
    const auto add = [&](std::int64_t value) {
      key.push_back(static_cast<char>(std::clamp<std::int64_t>(value, -1, memory_.horizon_ns)));
    };
    double least = std::numeric_limits<double>::infinity();
    for (int client = 0; client < kExplored; ++client) {
      if (world.is_active(client)) least = std::min(least, machine.client(client).virtual_ns);
    }
    const std::int64_t now_ns = world.now_ns;
    for (int client = 0; client < kExplored; ++client) {
      if (!world.is_seated(client)) {
        key.push_back('-');
        continue;
      }
      const scheduler::Client& state = machine.client(client);
      key.push_back(static_cast<char>(machine.yields_to(client)));
      if (memory_.shares) {
        const double ahead = machine.active() != 0 ? state.virtual_ns - least : 0;
        key.push_back(static_cast<char>(std::clamp(ahead * 4, 0.0, 127.0)));
      }
      key.push_back(state.is_active ? '+' : '.');
      if (!state.is_active) continue;
      if (memory_.waits) add(now_ns - world.waits_from_ns[static_cast<std::size_t>(client)]);
      if (memory_.deadlines) add(now_ns - state.arrived_ns);
      if (memory_.ages) {
        add(now_ns - state.first_ns);
        add(std::min(state.was_first_ns, machine.settings().slice_ns));
      }
      for (int other = 0; memory_.arrivals && other < kExplored; ++other) {
        if (world.is_active(other)) add(state.arrived_ns < machine.client(other).arrived_ns ? 1 : 0);
      }
    }
    add(machine.turn().seat);
    add(std::max<std::int64_t>(machine.turn().until_ns - now_ns, 0));
    add(machine.aged());
    return key;
  }

  std::vector<std::string> path_to(std::size_t step) const {
    std::vector<std::string> path;
    for (; step != 0; step = steps_[step].before) path.push_back(steps_[step].event);
    return {path.rbegin(), path.rend()};
  }

  World<Machine> first_;
  std::array<scheduler::Terms, kExplored> terms_;
  Memory memory_;
  Check check_;
  std::vector<Step> steps_;
  std::unordered_set<std::string> seen_;
};

}  // namespace weir::testing
