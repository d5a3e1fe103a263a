#include "submit/sched/part_fit.h"

#include <algorithm>

namespace weir::scheduler {
namespace {

constexpr std::int64_t kPauseNs = 20'000'000;  // after a change: what was launched before it ends
constexpr std::int64_t kWindowNs = 150'000'000, kLongestWindowNs = 1'000'000'000;
constexpr std::int64_t kAgainNs = 600'000'000'000;  // what fitted is tried again
constexpr std::int64_t kGapNs = 500'000'000;        // nobody was about meanwhile
constexpr std::uint64_t kEnough = 60, kTooFew = 5;  // requests in a window
constexpr double kSlower = 1.25;                    // than with the best candidate, for requests on average, at most
constexpr double kEqual = 1.01;                     // costs that differ by less are equal
constexpr double kChanged = 1.5;

double median(std::array<double, PartFit::kRounds> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

void PartFit::begin(std::span<const Candidate> candidates, std::int64_t command_ns, std::int64_t now_ns) {
  count_ = std::min(candidates.size(), kMost);
  std::copy_n(candidates.begin(), count_, candidates_.begin());
  at_ = round_ = 0;
  windows_ = {};
  is_settled_ = count_ < 2;
  has_found_ = false;
  tried_count_ = 0;
  is_open_ = false;
  changed_ns_ = now_ns;
  command_ns_ = command_ns;
}

void PartFit::see(std::span<const Candidate> candidates, std::int64_t command_ns, const Counters& now,
                  std::int64_t now_ns) {
  const auto length = static_cast<double>(command_ns), before = static_cast<double>(command_ns_);
  const bool is_other = is_settled_ && (length > before * kChanged || length * kChanged < before);
  const bool is_old = is_settled_ && now_ns - changed_ns_ > kAgainNs;
  if (is_other || is_old ||
      !std::equal(candidates.begin(), candidates.end(), candidates_.begin(),
                  candidates_.begin() + static_cast<std::ptrdiff_t>(count_)))
    begin(candidates, command_ns, now_ns);
  const bool was_away =
      now_ns - seen_ns_ > kGapNs || now.commands < opened_.commands || now.requests < opened_.requests;
  seen_ns_ = now_ns;
  if (is_settled_) return;
  if (was_away && is_open_) is_open_ = false, changed_ns_ = now_ns;
  if (!is_open_) {
    if (now_ns - changed_ns_ < kPauseNs) return;
    is_open_ = true;
    opened_ = now;
    opened_ns_ = now_ns;
    return;
  }
  const std::int64_t passed_ns = now_ns - opened_ns_;
  if (passed_ns < kWindowNs || (now.requests - opened_.requests < kEnough && passed_ns < kLongestWindowNs)) return;
  windows_[at_][round_] = {static_cast<double>(now.commands - opened_.commands) * 1e9 / static_cast<double>(passed_ns),
                           now.requests - opened_.requests, now.requests_ns - opened_.requests_ns};
  is_open_ = false;
  changed_ns_ = now_ns;
  if (windows_[at_][round_].requests < kTooFew) {
    at_ = 0;
    is_settled_ = true;
    return;
  }
  if (++at_ < count_) return;
  at_ = 0;
  if (++round_ == kRounds) settle(now_ns);
}

void PartFit::settle(std::int64_t now_ns) {
  is_settled_ = has_found_ = true;
  changed_ns_ = now_ns;
  double shortest = 0, best = 0, least = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    std::array<double, kRounds> rates{};
    Window all;
    for (std::size_t round = 0; round < kRounds; ++round) {
      rates[round] = windows_[i][round].commands_per_s;
      all.requests += windows_[i][round].requests;
      all.requests_ns += windows_[i][round].requests_ns;
    }
    tried_[i] = {candidates_[i], std::max(median(rates), 1e-9),
                 static_cast<double>(all.requests_ns) / static_cast<double>(all.requests)};
    if (shortest == 0 || tried_[i].request_ns < shortest) shortest = tried_[i].request_ns;
  }
  tried_count_ = count_;
  const auto cost = [&](const Tried& one) { return one.request_ns / one.commands_per_s; };
  const auto may_be = [&](const Tried& one) { return one.request_ns <= kSlower * shortest; };
  for (const Tried& one : tried())
    if (may_be(one) && (best == 0 || cost(one) < best)) best = cost(one);
  for (std::size_t i = 0; i < count_; ++i) {
    if (!may_be(tried_[i]) || cost(tried_[i]) > kEqual * best) continue;
    if (least != 0 && tried_[i].request_ns >= least) continue;
    least = tried_[i].request_ns;
    at_ = i;
  }
}

}  // namespace weir::scheduler
