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
inline constexpr std::int64_t kLongestDeadlineNs = 3'600'000'000'000;
inline constexpr std::int64_t kShortestSliceNs = 10'000, kLongestSliceNs = 10'000'000'000;
inline constexpr std::int64_t kLongestAgeingNs = 3'600'000'000'000;
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
  bool is_active = false;         // in a request
  std::int64_t arrived_ns = 0;    // of that request
  std::int64_t first_ns = 0;      // ageing counts from here: when it arrived, or last had been first for a slice
  std::int64_t was_first_ns = 0;  // for how long it was among the first since then
  double used_ns = 0;             // of the device, so far; shared time counts in parts
  // What it used in its turns, over its weight; slices given for age are not in it. One that comes back starts no lower
  // than the others are.
  double virtual_ns = 0;
};

struct Settings {
  std::int64_t slice_ns = 2'000'000;     // how long one turn lasts where turns are taken
  std::int64_t ageing_ns = 100'000'000;  // a client that was kept waiting that long comes first for one slice; 0: never
};

// Who has the device to itself, and until when. The last one stays here when its turn is over: the next follows it.
struct Turn {
  int seat = -1;
  std::int64_t until_ns = 0;

  bool is_over(std::int64_t now_ns) const { return seat < 0 || now_ns >= until_ns; }
};

struct Situation {
  std::span<const Client> clients;  // by seat; those that are idle have ranks too, and so have empty seats
  std::int64_t now_ns = 0;
  Turn turn;  // as the policy left it
  Settings settings;
};

// An active client waits while another one with a smaller rank is active; equal ranks share the device. A client may
// become active before anybody decides anew, so ranks have to be right, or at least harmless, for those that are idle.
struct Ranking {
  std::array<std::uint8_t, kMostClients> ranks{};
  Turn turn;                            // from now on; policies without turns leave it alone
  int aged = -1;                        // the seat that comes first because of its age; -1: none
  std::int64_t asks_again_ns = kNever;  // then, or when something happens; always in the future
};

struct Policy {
  std::string_view name;
  std::string_view summary;
  // Pure, and allocates nothing: it is called at every event.
  Ranking (*rank)(const Situation&);
  // True: ranks change when a request begins, so whoever decides has to hear of it at once.
  bool follows_arrivals = false;
};

std::span<const Policy> policies();
// Rejects an unknown name with a suggestion.
const Policy& policy_named(std::string_view name);
// Rejects what is out of range, naming the flag.
void check(const Terms& terms);
void check(const Settings& settings);

}  // namespace weir::scheduler
