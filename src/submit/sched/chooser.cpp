#include "submit/sched/chooser.h"

#include <algorithm>
#include <bit>

namespace weir::scheduler {
namespace {

// H200, one MPS server, a served model beside a loop of products (November 2026): of kernels of 1.6 ms the loop keeps
// 88 % when they always run in 85 % of the device; of kernels of 0.18 ms it keeps 77 % then, so they are confined only
// while the model has a request.
constexpr std::uint32_t kPartAlways = 85, kPartBeside = 80;
constexpr std::uint32_t kFewInFlight = 2;  // one runs, and one follows it without a gap
// Without a bound on anybody's requests. What runs beside those who come first keeps nobody waiting, however many are
// launched; what runs in the whole device until somebody comes, for as long as this at most.
constexpr std::uint32_t kManyInFlight = 64;
constexpr std::int64_t kBesideQueueNs = 540'000;
// What is tried, the usual first. In 97 % of an H200 a product of 4096 is as fast as in all of it, in 91 % it is not.
constexpr std::array<PartFit::Candidate, 4> kForLong = {
    {{Confine::always, kPartAlways}, {Confine::always, 97}, {Confine::always, 91}, {Confine::always, 79}}};
constexpr std::array<PartFit::Candidate, 3> kForShort = {
    {{Confine::beside, kPartBeside}, {Confine::always, 97}, {Confine::always, kPartAlways}}};
// Lengths for the gate alone. 2 in flight gave the served model 1.21 times its p99 alone, 1 gave 1.01 times.
constexpr std::int64_t kShortNs = 50'000, kLongNs = 500'000, kQueueNs = 100'000;
constexpr std::uint32_t kMostShort = 64;

constexpr double kClearly = 1.5, kMuch = 3;  // so many times a threshold
constexpr std::int64_t kSettlesNs = 200'000'000;

constexpr std::int64_t kLookNs = 1'000'000'000;
// A p99 is written every quarter of a window.
constexpr std::uint64_t kRequestsPerLook = kRequestWindow + kRequestWindow / 4;
constexpr double kRoom = 0.7;  // of the bound: with less, others get more of the device
// A p99 of so few requests scatters: what is a little over the bound must be so in the mean of some looks.
constexpr double kFar = 1.5;
constexpr int kMeanOf = 6;
constexpr std::int64_t kGoodNs = 10'000'000'000, kRetryNs = 60'000'000'000;
constexpr std::int64_t kProbeNs = 300'000'000'000;  // without room, too, because what was in the way may have gone
constexpr int kMostFailures = 6;

constexpr std::uint64_t bit_of(int seat) { return std::uint64_t{1} << seat; }

template <class Act>
void for_each_bit(std::uint64_t mask, Act act) {
  for (; mask != 0; mask &= mask - 1) act(std::countr_zero(mask));
}

}  // namespace

void Chooser::Side::see(std::int64_t length_ns, std::int64_t of_ns, std::int64_t now_ns) {
  if (length_ns <= 0) return;
  const auto length = static_cast<double>(length_ns), threshold = static_cast<double>(of_ns);
  if (!is_known || of_ns != threshold_ns) {
    is_known = true;
    threshold_ns = of_ns;
    since_ns = kNever;
    is_over = length > threshold;
    return;
  }
  const bool is_other = is_over ? length * kClearly <= threshold : length >= threshold * kClearly;
  if (!is_other) {
    since_ns = kNever;
    return;
  }
  since_ns = std::min(since_ns, now_ns);
  if (now_ns - since_ns < kSettlesNs && (is_over || length < threshold * kMuch)) return;
  is_over = !is_over;
  since_ns = kNever;
}

// Clients that this one may have to make way for.
std::uint64_t Chooser::coming_first(int seat) const {
  return facts_[static_cast<std::size_t>(seat)].may_yield_to & seated_;
}

// What keeps a client from being confined beside these; short_commands: nothing.
Why Chooser::obstacle(int seat, std::uint64_t ahead) const {
  const ClientFacts& facts = facts_[static_cast<std::size_t>(seat)];
  if (!settings_.confines) return Why::no_mechanism;
  if (facts.terms.is_isolated) return Why::isolated;
  if (facts.confinable != Confinable::yes) return Why::not_confinable;
  // Nothing runs beside a process that has the device to itself: it would wait for the driver's slices, instead of for
  // launches that are held.
  bool is_apart = facts.is_apart;
  for_each_bit(ahead, [&](int other) {
    const ClientFacts& theirs = facts_[static_cast<std::size_t>(other)];
    is_apart |= theirs.is_apart || theirs.terms.is_isolated;
  });
  if (is_apart) return Why::apart;
  // Shares and turns come about because clients wait for each other. One that ran on in a part of the device would
  // take what is another one's turn.
  bool takes_turns = false;
  for_each_bit(ahead, [&](int other) {
    takes_turns |= (facts_[static_cast<std::size_t>(other)].may_yield_to & bit_of(seat)) != 0;
  });
  return takes_turns ? Why::turns : Why::short_commands;
}

// Commands up to this length may take the whole device while those who come first are idle. Two of them in flight take
// half of the tightest bound then, and the other half is the client's own.
std::int64_t Chooser::threshold_ns(std::uint64_t ahead) const {
  std::int64_t tightest_ns = 0;
  for_each_bit(ahead, [&](int other) {
    const std::int64_t bound_ns = facts_[static_cast<std::size_t>(other)].terms.p99_ns;
    if (bound_ns > 0 && (tightest_ns == 0 || bound_ns < tightest_ns)) tightest_ns = bound_ns;
  });
  return tightest_ns > 0 ? tightest_ns / (2 * kFewInFlight) : settings_.long_command_ns;
}

bool Chooser::has_bound(std::uint64_t ahead) const {
  bool has = false;
  for_each_bit(ahead, [&](int other) { has |= facts_[static_cast<std::size_t>(other)].terms.p99_ns > 0; });
  return has;
}

// With a bound the ladder says what is right; without one, what costs least is.
void Chooser::try_parts(int seat, std::int64_t now_ns) {
  State& client = clients_[static_cast<std::size_t>(seat)];
  const std::uint64_t about = coming_first(seat) & recent_;
  if (about == 0 || has_bound(about) || !client.is_long.is_known ||
      obstacle(seat, coming_first(seat)) != Why::short_commands)
    return;
  PartFit::Counters counters{.commands = facts_[static_cast<std::size_t>(seat)].commands};
  for_each_bit(coming_first(seat), [&](int other) {
    counters.requests += facts_[static_cast<std::size_t>(other)].requests;
    counters.requests_ns += facts_[static_cast<std::size_t>(other)].requests_ns;
  });
  const bool is_long = client.is_long.is_over;
  client.fit.see(is_long ? std::span<const PartFit::Candidate>(kForLong) : kForShort, client.length_ns, counters,
                 now_ns);
}

void Chooser::measure(int seat, std::int64_t now_ns) {
  State& client = clients_[static_cast<std::size_t>(seat)];
  const std::int64_t length_ns = facts_[static_cast<std::size_t>(seat)].command_ns;
  client.is_short.see(length_ns, kShortNs, now_ns);
  client.fills.see(length_ns, kLongNs, now_ns);
  const auto length = static_cast<double>(length_ns), before = static_cast<double>(client.short_ns);
  if (length > before * kClearly || length * kClearly < before) client.short_ns = length_ns;
  const std::uint64_t about = coming_first(seat) & recent_;
  // In a small part of the device commands take longer than they would otherwise; there both kinds are treated alike.
  const bool is_tightened = client.choice.why == Why::tightened || client.choice.why == Why::held;
  if (about == 0 || (is_tightened && client.is_long.is_known)) return;
  const std::int64_t long_ns = threshold_ns(about);
  client.is_long.see(length_ns, long_ns, now_ns);
  if (client.is_long.is_over == (length_ns > long_ns)) client.length_ns = length_ns;
}

// Where launches are held, short commands starve with one in flight, and a long one keeps whoever comes first waiting.
std::uint32_t Chooser::gate_in_flight(const State& client) const {
  if (!client.is_short.is_known) return kFewInFlight;
  if (client.fills.is_over) return 1;
  if (client.is_short.is_over) return kFewInFlight;
  const std::int64_t length_ns = std::max<std::int64_t>(client.short_ns, 1);
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>((kQueueNs + length_ns - 1) / length_ns, kFewInFlight, kMostShort));
}

// The ladder, each step tighter than the one before, for a client that can be confined, and for one that cannot.
Chooser::Setting Chooser::setting(int seat, int level) const {
  constexpr std::array<Setting, kLevels> kLadder = {{{Confine::beside, kPartBeside, kFewInFlight},
                                                     {Confine::beside, kPartBeside, 1},
                                                     {Confine::always, kPartAlways, 1},
                                                     {Confine::always, 80, 1},
                                                     {Confine::always, 70, 1},
                                                     {Confine::always, 60, 1},
                                                     {Confine::always, 50, 1},
                                                     {Confine::never, 0, 1}}};
  const State& client = clients_[static_cast<std::size_t>(seat)];
  const std::uint64_t first = coming_first(seat);
  Setting found;
  // Holding is no use where one command that has begun takes longer than the bound.
  if (level == kLevels - 1 && client.length_ns > 2 * kFewInFlight * threshold_ns(first)) --level;
  if (obstacle(seat, first) != Why::short_commands) {
    found.in_flight = level == 0 ? gate_in_flight(client) : 1;
  } else {
    found = kLadder[static_cast<std::size_t>(level)];
    if (client.is_long.is_over && level < 2)
      found = {Confine::always, kPartAlways, level == 0 ? kFewInFlight : 1};
    else if (!client.is_long.is_known)
      found.in_flight = 1;
  }
  if (settings_.in_flight != 0) found.in_flight = settings_.in_flight;
  return found;
}

bool Chooser::differ(std::uint64_t company, int level, int other) const {
  for (; company != 0; company &= company - 1) {
    const int seat = std::countr_zero(company);
    if (setting(seat, level) != setting(seat, other)) return true;
  }
  return false;
}

// The next level at which something is different for one of these clients; -1: there is none.
int Chooser::tighter(std::uint64_t company, int level) const {
  for (int next = level + 1; next < kLevels; ++next)
    if (differ(company, level, next)) return next;
  return -1;
}

int Chooser::looser(std::uint64_t company, int level) const {
  for (int next = level - 1; next >= 0; --next) {
    if (!differ(company, level, next)) continue;
    while (next > 0 && !differ(company, next, next - 1)) --next;  // the same setting has one number
    return next;
  }
  return -1;
}

void Chooser::follow_bound(int seat, std::int64_t now_ns) {
  const ClientFacts& facts = facts_[static_cast<std::size_t>(seat)];
  Bound& bound = clients_[static_cast<std::size_t>(seat)].bound;
  if (facts.terms.p99_ns <= 0) return;
  std::uint64_t yielding = 0, long_ones = 0;
  for_each_bit(seated_, [&](int other) {
    if ((coming_first(other) & bit_of(seat)) == 0) return;
    yielding |= bit_of(other);
    if (clients_[static_cast<std::size_t>(other)].is_long.is_over) long_ones |= bit_of(other);
  });
  // What failed with other clients, or with these when their commands were of another length, may do now.
  if (yielding != bound.yielding || long_ones != bound.long_ones) {
    bound.retry_ns = {};
    bound.failures = {};
    bound.ratios = {};
    bound.looks = bound.far = 0;
    bound.stays_until_ns = 0;
    bound.yielding = yielding;
    bound.long_ones = long_ones;
  }
  if (yielding == 0) bound.level = 0;
  if (bound.state == BoundState::none || facts.requests < bound.begun_requests) {
    bound.state = BoundState::unknown;
    bound.begun_ns = now_ns;
    bound.begun_requests = facts.requests;
  }
  if ((recent_ & bit_of(seat)) != 0) bound.company |= yielding & recent_;
  if (now_ns - bound.begun_ns < kLookNs || facts.requests - bound.begun_requests < kRequestsPerLook ||
      facts.request_p99_ns <= 0)
    return;
  look_at(seat, now_ns);
  bound.begun_ns = now_ns;
  bound.begun_requests = facts.requests;
  bound.company = 0;
}

// Enough requests have ended since the last look to say whether what is set now keeps the bound.
void Chooser::look_at(int seat, std::int64_t now_ns) {
  const ClientFacts& facts = facts_[static_cast<std::size_t>(seat)];
  Bound& bound = clients_[static_cast<std::size_t>(seat)].bound;
  bound.p99_ns = facts.request_p99_ns;
  const double ratio = static_cast<double>(facts.request_p99_ns) / static_cast<double>(facts.terms.p99_ns);
  bound.blocker = -1;
  bound.blocker_ns = 0;
  for_each_bit(bound.company, [&](int other) {
    const std::int64_t length_ns = facts_[static_cast<std::size_t>(other)].command_ns;
    if (length_ns <= bound.blocker_ns) return;
    bound.blocker = other;
    bound.blocker_ns = length_ns;
  });
  if (bound.company == 0) {
    bound.alone_p99_ns = bound.p99_ns;
    bound.state = ratio > 1 ? BoundState::cannot_be : BoundState::kept;
    return;
  }
  double& mean = bound.ratios[static_cast<std::size_t>(bound.level)];
  // One that stands out says little about the next.
  mean = bound.looks == 0 ? ratio : mean + (std::min(ratio, 2 * mean) - mean) / std::min(bound.looks + 1, kMeanOf);
  ++bound.looks;
  bound.far = ratio > kFar ? bound.far + 1 : 0;
  if ((bound.looks > 1 && mean > 1) || bound.far > 1 || (bound.far == 1 && bound.looks == 1)) {
    tighten(bound, now_ns);
  } else {
    if (mean <= 1 || bound.state != BoundState::cannot_be)
      bound.state = mean <= 1 ? BoundState::kept : BoundState::exceeded;
    loosen(bound, now_ns);
  }
}

void Chooser::tighten(Bound& bound, std::int64_t now_ns) {
  const auto fail = [&] {
    const auto level = static_cast<std::size_t>(bound.level);
    // What fails again and again is tried ever more rarely.
    bound.failures[level] = static_cast<std::uint8_t>(std::min(bound.failures[level] + 1, kMostFailures));
    return bound.retry_ns[level] = now_ns + kRetryNs * (std::int64_t{1} << (bound.failures[level] - 1));
  };
  bound.good_since_ns = bound.kept_since_ns = kNever;
  bound.state = BoundState::cannot_be;
  if (now_ns < bound.stays_until_ns) return;
  int next = tighter(bound.company, bound.level);
  const std::int64_t retry_ns = fail();
  if (next >= 0) {
    bound.state = BoundState::exceeded;
  } else {
    // To wait for a command that has begun may take longer than to run beside it.
    next = bound.level;
    for (int level = 0; level < kLevels; ++level) {
      const double theirs = bound.ratios[static_cast<std::size_t>(level)];
      if (theirs > 0 && theirs < bound.ratios[static_cast<std::size_t>(next)]) next = level;
    }
    bound.stays_until_ns = retry_ns;
  }
  if (next == bound.level) return;
  bound.level = next;
  bound.looks = bound.far = 0;
}

void Chooser::loosen(Bound& bound, std::int64_t now_ns) {
  const double mean = bound.ratios[static_cast<std::size_t>(bound.level)];
  bound.kept_since_ns = mean <= 1 ? std::min(bound.kept_since_ns, now_ns) : kNever;
  bound.good_since_ns = mean < kRoom ? std::min(bound.good_since_ns, now_ns) : kNever;
  const bool has_room = bound.good_since_ns != kNever && now_ns - bound.good_since_ns >= kGoodNs;
  const bool is_calm = bound.kept_since_ns != kNever && now_ns - bound.kept_since_ns >= kProbeNs;
  const int next = looser(bound.company, bound.level);
  if (next < 0 || (!has_room && !is_calm) || now_ns < bound.retry_ns[static_cast<std::size_t>(next)]) return;
  bound.level = next;
  bound.looks = bound.far = 0;
  bound.good_since_ns = bound.kept_since_ns = kNever;
}

Choice Chooser::chosen(int seat) const {
  const State& client = clients_[static_cast<std::size_t>(seat)];
  Choice choice;
  if (std::popcount(seated_) < 2) return choice;
  const std::uint64_t first = coming_first(seat), about = first & recent_;
  choice.command_ns = client.length_ns;
  if (first == 0) {
    choice.why = Why::first;
    choice.in_flight = kNoBound;
    return choice;
  }
  if (about == 0) {
    choice.why = Why::nobody_about;
    // Nobody waits, so a long command may have its successor queued.
    choice.in_flight = settings_.in_flight != 0 ? settings_.in_flight : std::max(kFewInFlight, gate_in_flight(client));
    return choice;
  }
  int level = 0;
  for_each_bit(about, [&](int other) {
    const ClientFacts& theirs = facts_[static_cast<std::size_t>(other)];
    const Bound& bound = clients_[static_cast<std::size_t>(other)].bound;
    if (choice.beside < 0 || theirs.terms.priority > facts_[static_cast<std::size_t>(choice.beside)].terms.priority)
      choice.beside = other;
    if (theirs.terms.p99_ns > 0 && bound.level > level) {
      level = bound.level;
      choice.bound = other;
    }
  });
  const Setting set = setting(seat, level), unbound = setting(seat, 0);
  if (set == unbound) choice.bound = -1;
  choice.confine = set.confine;
  choice.part_percent = set.part_percent;
  choice.in_flight = set.in_flight;
  choice.longest_ns = threshold_ns(about);
  choice.why = obstacle(seat, first);
  if (choice.why != Why::short_commands) return choice;
  if (set.confine == Confine::never)
    choice.why = Why::held;
  else if (set.confine != unbound.confine || set.part_percent != unbound.part_percent)
    choice.why = Why::tightened;
  else if (!client.is_long.is_known)
    choice.why = Why::unknown_length;
  else if (client.is_long.is_over)
    choice.why = Why::long_commands;
  if (has_bound(about) || choice.why == Why::unknown_length) return choice;
  choice.confine = client.fit.candidate().confine;
  choice.part_percent = client.fit.candidate().percent;
  choice.is_tried = !client.fit.is_settled();
  choice.is_fitted = client.fit.has_found();
  if (settings_.in_flight != 0) return choice;
  choice.in_flight = kManyInFlight;
  if (choice.confine == Confine::beside && client.length_ns > 0)
    choice.in_flight = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(kBesideQueueNs / client.length_ns, kFewInFlight, kManyInFlight));
  return choice;
}

void Chooser::decide(std::uint64_t seated, std::uint64_t recent, std::span<const ClientFacts, kMaxClients> facts,
                     std::int64_t now_ns) {
  for_each_bit(seated_ & ~seated, [&](int seat) { clients_[static_cast<std::size_t>(seat)] = {}; });
  seated_ = seated;
  recent_ = recent & seated;
  for_each_bit(seated,
               [&](int seat) { facts_[static_cast<std::size_t>(seat)] = facts[static_cast<std::size_t>(seat)]; });
  for_each_bit(seated, [&](int seat) { measure(seat, now_ns); });
  for_each_bit(seated, [&](int seat) { try_parts(seat, now_ns); });
  for_each_bit(seated, [&](int seat) { follow_bound(seat, now_ns); });
  for_each_bit(seated, [&](int seat) { clients_[static_cast<std::size_t>(seat)].choice = chosen(seat); });
}

}  // namespace weir::scheduler
