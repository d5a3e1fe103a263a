#include "lab/race/candidates.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lab/race/order.h"
#include "trace/race_format.h"

namespace weir::race {
namespace {

constexpr std::size_t kMostDelaysLookedAt = 16, kMostAmong = 1'000, kMostPassedOn = 64;

std::optional<Candidate> as_commands(const Suspect& suspect, const Log& log, const Calls& calls) {
  if (suspect.first >= log.calls.size()) return std::nullopt;
  if (suspect.second != kHost && suspect.second >= log.calls.size()) return std::nullopt;
  const auto first = calls.command_before(suspect.first);
  if (!first) return std::nullopt;
  if (suspect.second == kHost) return Candidate{*first, kHost, suspect};
  const auto second = calls.command_at(suspect.second);
  if (!second || *second == *first) return std::nullopt;
  return Candidate{*first, *second, suspect};
}

// For each call whether it can begin only after the command, which a delay before the command delays as well.
std::vector<bool> behind(const Log& log, std::uint32_t command) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::uint32_t i = command + 1; i < log.calls.size(); ++i)
    if (log.calls[i].stream != kNoStream) pairs.emplace_back(command, i);
  const std::vector<bool> ordered = are_ordered(log, pairs);
  std::vector<bool> found(log.calls.size(), false);
  found[command] = true;
  for (std::size_t i = 0; i < pairs.size(); ++i) found[pairs[i].second] = ordered[i];
  return found;
}

// What waits for what is delayed is delayed, too.
void pass_on(std::vector<bool>& reached, const Log& log, const Calls& calls, std::span<const Wait> waits) {
  for (bool is_more = true; is_more;) {
    is_more = false;
    for (const Wait& wait : waits) {
      const auto first = calls.find(wait.first), second = wait.second ? calls.find(*wait.second) : std::nullopt;
      if (!first || !second || !reached[*first] || reached[*second]) continue;
      const std::vector<bool> more = behind(log, *second);
      for (std::size_t i = 0; i < more.size(); ++i) reached[i] = reached[i] || more[i];
      is_more = true;
    }
  }
}

}  // namespace

Calls::Calls(const Log& log) : log_(&log), by_stream_(log.streams.size()) {
  for (std::uint32_t i = 0; i < log.calls.size(); ++i) {
    const Call& call = log.calls[i];
    if (!is_command(call.kind) || call.name.sequence == 0) continue;
    by_name_.emplace(call.name, i);
    if (call.stream < by_stream_.size()) by_stream_[call.stream].push_back(i);
  }
}

std::optional<std::uint32_t> Calls::find(CommandName name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

std::span<const std::uint32_t> Calls::commands_of(std::uint32_t stream) const {
  if (stream >= by_stream_.size()) return {};
  return by_stream_[stream];
}

std::optional<std::uint32_t> Calls::command_at(std::uint32_t call) const {
  const auto commands = commands_of(log_->calls[call].stream);
  const auto found = std::lower_bound(commands.begin(), commands.end(), call);
  return found == commands.end() ? std::nullopt : std::optional(*found);
}

std::optional<std::uint32_t> Calls::command_before(std::uint32_t call) const {
  const auto commands = commands_of(log_->calls[call].stream);
  const auto found = std::upper_bound(commands.begin(), commands.end(), call);
  return found == commands.begin() ? std::nullopt : std::optional(*(found - 1));
}

Wait wait_for(const Candidate& candidate, const Log& log) {
  Wait wait{log.calls[candidate.first].name, std::nullopt};
  if (candidate.second != kHost) wait.second = log.calls[candidate.second].name;
  return wait;
}

std::vector<Candidate> candidates(const Log& log, const Calls& calls, std::span<const Delay> delays,
                                  std::span<const Wait> waits, std::size_t limit) {
  // With many delays each is looked at only where it is of a suspect itself.
  std::vector<bool> own(log.calls.size(), false), delayed(log.calls.size(), false);
  std::vector<std::vector<bool>> reached;
  for (const Delay& delay : delays) {
    const auto call = calls.find(delay.before);
    if (!call) continue;
    own[*call] = delayed[*call] = true;
    if (delays.size() > kMostDelaysLookedAt) continue;
    reached.push_back(behind(log, *call));
    pass_on(reached.back(), log, calls, waits.first(std::min(waits.size(), kMostPassedOn)));
    for (std::size_t i = 0; i < delayed.size(); ++i) delayed[i] = delayed[i] || reached.back()[i];
  }
  std::vector<std::pair<int, Candidate>> found;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (const Suspect& suspect : find_suspects_among(log, delayed, kMostAmong).pairs) {
    const auto candidate = as_commands(suspect, log, calls);
    if (!candidate || !seen.emplace(candidate->first, candidate->second).second) continue;
    const bool is_host = candidate->second == kHost;
    const bool is_second_delayed =
        !is_host && std::any_of(reached.begin(), reached.end(),
                                [&](const std::vector<bool>& reach) { return bool{reach[candidate->second]}; });
    // A host that waits is late for everything that follows, so that ends other races as well.
    found.emplace_back((is_host ? 4 : 0) + (is_second_delayed ? 2 : 0) + (own[candidate->first] ? 0 : 1), *candidate);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Candidate> best;
  for (const auto& [tier, candidate] : found)
    if (best.size() < limit) best.push_back(candidate);
  return best;
}

std::vector<Wait> waits_like(const Candidate& candidate, const Log& log, const Calls& calls) {
  std::vector<Wait> waits{wait_for(candidate, log)};
  if (!candidate.suspect) return waits;
  for (const Suspect& other : repeats_of(log, *candidate.suspect, kMostAmong)) {
    const auto commands = as_commands(other, log, calls);
    if (commands && (commands->first != candidate.first || commands->second != candidate.second))
      waits.push_back(wait_for(*commands, log));
  }
  return waits;
}

std::vector<Candidate> all_candidates(const Log& log, const Calls& calls, const Suspects& suspects, std::size_t limit) {
  std::vector<Candidate> all;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (const Suspect& suspect : suspects.pairs) {
    const auto candidate = as_commands(suspect, log, calls);
    if (all.size() < limit && candidate && seen.emplace(candidate->first, candidate->second).second)
      all.push_back(*candidate);
  }
  return all;
}

std::vector<Delay> aimed_delays(const Log& log, const Calls& calls, const Suspects& suspects, std::int64_t ns) {
  std::vector<Delay> delays;
  std::set<CommandName> seen;
  for (const Suspect& suspect : suspects.pairs) {
    const auto candidate = as_commands(suspect, log, calls);
    if (!candidate || !seen.insert(log.calls[candidate->first].name).second) continue;
    const std::int64_t apart = std::clamp<std::int64_t>(suspect.apart_ns, 0, race_format::kLongestDelayNs);
    delays.push_back({log.calls[candidate->first].name, std::min(2 * apart + ns, race_format::kLongestDelayNs)});
  }
  return delays;
}

}  // namespace weir::race
