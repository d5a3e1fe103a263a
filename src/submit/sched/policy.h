// Who comes first on a device that several clients want. A policy is a pure function from the clients' state to their
// ranks. Knows no device, no process and no clock; one file per policy, listed in list.h.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace weir::scheduler {

inline constexpr int kMaxClients = 64;
inline constexpr int kLowestPriority = -10, kHighestPriority = 10;  // higher is more urgent; 0 is normal
inline constexpr double kMinWeight = 0.01, kMaxWeight = 100;
inline constexpr std::int64_t kLongestDeadlineNs = 3'600'000'000'000;
inline constexpr std::int64_t kShortestP99Ns = 10'000, kLongestP99Ns = 3'600'000'000'000;
inline constexpr std::int64_t kShortestSliceNs = 10'000, kLongestSliceNs = 10'000'000'000;
inline constexpr std::int64_t kLongestAgeingNs = 3'600'000'000'000;
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// The terms that a client asked for. A client is a stream of Weir's, or a process.
struct Terms {
  int priority = 0;
  double weight = 1;             // its share of the device, relative to the others'
  std::int64_t deadline_ns = 0;  // of each of its requests, after arrival; 0: none
  std::int64_t p99_ns = 0;       // 99 of 100 of its requests shall end within this time; 0: no matter
  bool is_isolated = false;      // held by the gate alone, and sharing no process with others
};

// What a policy knows about one client. A request begins when an idle client brings work, and ends when all of that
// work has ended.
struct Client {
  Terms terms;
  bool is_active = false;         // has a request
  std::int64_t arrived_ns = 0;    // of that request
  std::int64_t first_ns = 0;      // start of ageing: when it arrived, or when it had last been first for a slice
  std::int64_t was_first_ns = 0;  // how long it was among the first since then
  double used_ns = 0;             // device time so far; shared time counts in parts
  // Device time in its turns divided by its weight, without slices given for age. A client that comes back starts no
  // lower than the others.
  double virtual_ns = 0;
};

struct Settings {
  std::int64_t slice_ns = 2'000'000;     // length of one turn, for policies with turns
  std::int64_t ageing_ns = 100'000'000;  // a client that has waited this long comes first for one slice; 0: never
};

// Who has the device to itself, and until when. The last holder stays here when its turn is over: the next follows it.
struct Turn {
  int seat = -1;
  std::int64_t until_ns = 0;

  bool is_over(std::int64_t now_ns) const { return seat < 0 || now_ns >= until_ns; }
};

struct Situation {
  std::span<const Client> clients;  // by seat; idle clients and empty seats have ranks too
  std::int64_t now_ns = 0;
  Turn turn;  // as left by the policy
  Settings settings;
};

// An active client waits while another one with a smaller rank is active; equal ranks share the device. A client may
// become active before the next decision, so the ranks of idle clients must be right, or at least harmless.
struct Ranking {
  std::array<std::uint8_t, kMaxClients> ranks{};
  Turn turn;                            // from now on; policies without turns leave it unchanged
  int aged = -1;                        // the seat that comes first because of its age; -1: none
  std::int64_t asks_again_ns = kNever;  // when to ask again if nothing happens before; always in the future
};

struct Policy {
  std::string_view name;
  std::string_view summary;
  // Pure, and allocates nothing: it is called at every event.
  Ranking (*rank)(const Situation&);
  // True: ranks change when a request begins, so the decider must be notified at once.
  bool follows_arrivals = false;
};

std::span<const Policy> policies();
// Rejects unknown names with a suggestion.
const Policy& policy_named(std::string_view name);
// Rejects values out of range.
void check(const Terms& terms);
void check(const Settings& settings);

}  // namespace weir::scheduler
