// Who comes first on a device that several clients want. A policy is a pure function from what is known about the
// clients to their ranks. Knows no device, no process and no clock; one file per policy, listed in list.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace weir::scheduler {

inline constexpr int kMostClients = 64;
inline constexpr int kLowestPriority = -10, kHighestPriority = 10;  // higher is more urgent; 0 is normal
inline constexpr double kLeastWeight = 0.01, kMostWeight = 100;
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// What a client asked for: a stream of ours, or a process.
struct Terms {
  int priority = 0;
  double weight = 1;             // its share of the device, relative to the others'
  std::int64_t deadline_ns = 0;  // of each of its requests, from arrival; 0: none
};

// What a policy knows about one client. A request begins when a client that was idle brings work, and ends when all of
// that has ended.
struct Client {
  Terms terms;
  bool is_active = false;       // in a request
  std::int64_t arrived_ns = 0;  // of that request
  std::int64_t first_ns = 0;    // when it last was among the first, or arrived: what ageing counts from
  double used_ns = 0;           // of the device, so far; shared time counts in parts
  double virtual_ns = 0;        // used_ns over weight; one that comes back starts no lower than the others are
};

struct Settings {
  std::int64_t slice_ns = 2'000'000;     // how long one turn lasts where turns are taken
  std::int64_t ageing_ns = 100'000'000;  // a client that was kept waiting that long comes first for one slice; 0: never
};

struct Situation {
  std::span<const Client> clients;  // by seat; those that are idle have ranks too
  std::int64_t now_ns = 0;
  int holder = -1;  // the seat whose turn it is, where turns are taken; -1: nobody's
  std::int64_t holder_since_ns = 0;
  Settings settings;
};

// An active client waits while another one with a smaller rank is active; equal ranks share the device.
struct Ranking {
  std::array<std::uint8_t, kMostClients> ranks{};
  int holder = -1;                       // whose turn it is from now on; policies without turns leave it at -1
  std::int64_t holds_until_ns = kNever;  // ask again then, or when something happens
};

struct Policy {
  std::string_view name;
  std::string_view summary;
  Ranking (*rank)(const Situation&);
  // True: ranks change when a request begins, so whoever decides has to hear of it at once.
  bool follows_arrivals = false;
};

std::span<const Policy> policies();
// Rejects an unknown name with a suggestion.
const Policy& policy_named(std::string_view name);
// Rejects what is out of range, naming the flag.
void check(const Terms& terms);

// The policy's ranks; but whoever has waited for longer than settings.ageing_ns comes first, the longest waiting of
// them, for one slice.
Ranking ranks_with_ageing(const Policy& policy, const Situation& situation);

}  // namespace weir::scheduler
