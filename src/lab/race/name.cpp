#include "lab/race/name.h"

#include <algorithm>
#include <utility>

#include "lab/race/shrink.h"

namespace weir::race {
namespace {

constexpr std::size_t kMostCandidates = 100, kTriedAlone = 6, kMostWeaker = 16, kAround = 3;
constexpr int kMostAttempts = 4;

// The naming of one race. Each run of it has the delays.
class Naming {
 public:
  Naming(Search& search, std::vector<Delay> delays) : search_(&search), delays_(std::move(delays)) {}

  bool cures(const std::vector<Candidate>& candidates) {
    if (search_->is_over() && ++late_runs_ > kLateRuns) return false;
    for (std::size_t i = 0; i < search_->cure_runs(); ++i) {
      const Search::Tried tried = search_->try_plan(plan_with(candidates), Purpose::cure);
      if (tried.change || tried.run.end.how == ProcessEnd::How::timed_out ||
          (candidates.size() == 1 && was_left_out(tried.run)))
        return false;
    }
    return true;
  }

  bool changes(const std::vector<Delay>& delays) {
    if (search_->is_over() && ++late_runs_ > kLateRuns) return false;
    RunPlan plan;
    plan.delays = delays;
    return search_->try_plan(std::move(plan), Purpose::shrink).change.has_value();
  }

  RunPlan plan_with(const std::vector<Candidate>& candidates) const {
    RunPlan plan;
    plan.delays = delays_;
    for (const Candidate& each : candidates) plan.waits.push_back(wait_for(each, search_->log()));
    return plan;
  }

  // Among suspects: each of the best alone, then all at once and fewer and fewer. The first of the result is the pair;
  // others are there where it is not enough because what it delays races as well.
  std::vector<Candidate> by_suspects() {
    const Log& log = search_->log();
    // An output that changes without delays says nothing about which commands these ones are about.
    const bool takes_all = search_->findings().is_by_itself;
    const std::vector<Candidate> every =
        left(all_candidates(log, search_->calls(), search_->suspects(), kMostCandidates));
    const std::vector<Candidate> all =
        takes_all ? every : left(candidates(log, search_->calls(), delays_, search_->repairs(), kMostCandidates));
    const std::size_t at_first = std::min<std::size_t>(all.size(), 2);
    for (std::size_t i = 0; i < at_first; ++i)
      if (cures({all[i]})) return {latest(all[i], all)};
    const auto needed = [&](std::vector<Candidate> of) {
      return shrunk<Candidate>(std::move(of), [&](const std::vector<Candidate>& part) { return cures(part); });
    };
    if (all.size() > 1 && cures(all)) {
      for (std::size_t i = at_first; i < std::min(all.size(), kTriedAlone); ++i)
        if (cures({all[i]})) return {latest(all[i], all)};
      std::vector<Candidate> few = needed(all);
      if (few.size() == 1) few.front() = latest(few.front(), all);
      return few;
    }
    if (every.size() <= all.size() || !cures(every)) return {};
    std::vector<Candidate> few = needed(every);
    std::stable_partition(few.begin(), few.end(), [&](const Candidate& each) {
      return std::any_of(all.begin(), all.end(), [&](const Candidate& other) {
        return other.first == each.first && other.second == each.second;
      });
    });
    return few;
  }

  // Without suspects: by the places in the streams alone.
  std::vector<Candidate> by_places() {
    if (delays_.size() != 1 || !excluded_.empty()) return {};
    const Log& log = search_->log();
    const Calls& calls = search_->calls();
    const auto delayed = calls.find(delays_.front().before);
    if (!delayed) return {};
    for (std::uint32_t stream = 0; stream < log.streams.size(); ++stream) {
      if (stream == log.calls[*delayed].stream) continue;
      std::vector<std::uint32_t> later;
      for (const std::uint32_t command : calls.commands_of(stream))
        if (command > *delayed && log.calls[command].is_captured == log.calls[*delayed].is_captured)
          later.push_back(command);
      if (later.empty() || !cures({{*delayed, later.front(), std::nullopt}})) continue;
      const std::size_t last =
          last_that_holds(later.size(), [&](std::size_t i) { return cures({{*delayed, later[i], std::nullopt}}); });
      return {{later_first(*delayed, later[last]), later[last], std::nullopt}};
    }
    const Candidate host{*delayed, kHost, std::nullopt};
    if (!log.calls[*delayed].is_captured && cures({host})) return {host};
    return {};
  }

  const std::vector<Delay>& delays() const { return delays_; }
  // It ended the change once, by chance: what follows the first command may race as well, and nearly always wins.
  void exclude(const Candidate& candidate) { excluded_.push_back(wait_for(candidate, search_->log())); }

 private:
  // A wait that the library could not put in has cured nothing.
  static bool was_left_out(const ProgramRun& run) {
    return std::any_of(run.notes.begin(), run.notes.end(), [](const std::string& note) {
      return (note.starts_with("wait ") || note.starts_with("join ")) && note.find(": left out") != std::string::npos;
    });
  }

  static constexpr int kLateRuns = 12;  // after the budget: what was found is worth a name

  // Without those whose waits are there already.
  std::vector<Candidate> left(std::vector<Candidate> of) const {
    const auto has = [&](const std::vector<Wait>& waits, const Candidate& each) {
      return std::find(waits.begin(), waits.end(), wait_for(each, search_->log())) != waits.end();
    };
    std::erase_if(of, [&](const Candidate& each) { return has(search_->repairs(), each) || has(excluded_, each); });
    return of;
  }

  // A wait also orders what follows its second command, so of those that cure the last one says most.
  Candidate latest(const Candidate& found, const std::vector<Candidate>& all) {
    if (found.second == kHost) return found;
    const Log& log = search_->log();
    std::vector<Candidate> chain{found};
    for (const Candidate& each : all)
      if (each.first == found.first && each.second != kHost && each.second > found.second &&
          log.calls[each.second].stream == log.calls[found.second].stream)
        chain.push_back(each);
    std::sort(chain.begin() + 1, chain.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    chain.resize(std::min(chain.size(), kMostWeaker), found);
    return chain[last_that_holds(chain.size(), [&](std::size_t i) { return cures({chain[i]}); })];
  }

  // The last command of the delayed stream whose own delay still changes the output.
  std::uint32_t later_first(std::uint32_t delayed, std::uint32_t second) {
    std::vector<std::uint32_t> places{delayed};
    for (const std::uint32_t command : search_->calls().commands_of(search_->log().calls[delayed].stream))
      if (command > delayed && command < second) places.push_back(command);
    const std::int64_t ns = delays_.front().ns;
    const std::size_t last = last_that_holds(
        places.size(), [&](std::size_t i) { return changes({{search_->log().calls[places[i]].name, ns}}); });
    // Only if a wait for that one is enough as well.
    const std::vector<Delay> before = std::exchange(delays_, {{search_->log().calls[places[last]].name, ns}});
    if (last == 0 || cures({{places[last], second, std::nullopt}})) return places[last];
    delays_ = before;
    return delayed;
  }

  Search* search_;
  std::vector<Delay> delays_;
  std::vector<Wait> excluded_;
  int late_runs_ = 0;
};

bool do_overlap(const Range& a, const Range& b) { return a.begin < b.end && b.begin < a.end; }

// Whether the call writes, or reads, what both touch; nothing: not known.
struct Sides {
  std::optional<bool> writes;
};

Sides sides_of(const Log& log, std::uint32_t call, std::uint32_t other) {
  const Call& of = log.calls[call];
  const auto own = log.ranges_of(of), others = log.ranges_of(log.calls[other]);
  const Hashes* hashes = nullptr;
  for (const Hashes& each : log.hashes)
    if (each.name == of.name && each.before_behind.size() == own.size()) hashes = &each;
  Sides sides;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (std::none_of(others.begin(), others.end(), [&](const Range& range) { return do_overlap(own[i], range); }))
      continue;
    const bool is_known = own[i].reads != own[i].writes;
    const auto hash = hashes == nullptr ? std::pair<std::uint64_t, std::uint64_t>() : hashes->before_behind[i];
    if (!is_known && hash.first == 0 && hash.second == 0) continue;  // there is none
    const bool writes = is_known ? own[i].writes : hash.first != hash.second;
    sides.writes = sides.writes.value_or(false) || writes;
  }
  return sides;
}

std::vector<LaneCommand> lane_around(const Log& log, const Calls& calls, std::uint32_t call) {
  const auto commands = calls.commands_of(log.calls[call].stream);
  const auto at = static_cast<std::size_t>(std::lower_bound(commands.begin(), commands.end(), call) - commands.begin());
  std::vector<LaneCommand> lane;
  for (std::size_t i = at - std::min(at, kAround); i < std::min(commands.size(), at + kAround + 1); ++i)
    lane.push_back({facts_of(log, commands[i]), commands[i]});
  return lane;
}

bool is_reused_between(const Log& log, const Candidate& candidate) {
  if (candidate.second == kHost || !candidate.suspect) return false;
  const Range both{candidate.suspect->begin, std::max(candidate.suspect->end, candidate.suspect->begin + 1)};
  for (std::uint32_t i = candidate.first + 1; i < candidate.second; ++i)
    if (log.calls[i].kind == Kind::release)
      for (const Range& range : log.ranges_of(log.calls[i]))
        if (do_overlap(range, both)) return true;
  return false;
}

void confirm(Search& search, Naming& naming, const std::vector<Candidate>& found, Race& race) {
  race.delayed_runs = race.delayed_changes = race.cured_runs = race.cured_changes = 0;
  // Both kinds in turn, so that whatever changes on the machine meanwhile changes both.
  for (std::size_t i = 0; i < search.options().confirmations; ++i) {
    ++race.delayed_runs;
    race.delayed_changes += search.try_plan(naming.plan_with({}), Purpose::confirm).change.has_value();
    if (found.empty()) continue;
    ++race.cured_runs;
    race.cured_changes += search.try_plan(naming.plan_with(found), Purpose::confirm).change.has_value();
  }
}

void explain(Search& search, const Candidate& found, Race& race) {
  RunPlan plan;
  plan.observes = true;
  plan.hashed = {search.log().calls[found.first].name};
  if (found.second != kHost) plan.hashed.push_back(search.log().calls[found.second].name);
  plan.stacks = plan.hashed;
  const Search::Tried tried = search.try_plan(std::move(plan), Purpose::explain);
  const CommandName first = search.log().calls[found.first].name;
  if (const auto stack = tried.run.stacks.find(first); stack != tried.run.stacks.end())
    race.first_stack = stack->second;
  if (found.second == kHost) {
    race.hazard = hazard_of(search.log(), found.first, kHost);
    return;
  }
  const CommandName second = search.log().calls[found.second].name;
  if (const auto stack = tried.run.stacks.find(second); stack != tried.run.stacks.end())
    race.second_stack = stack->second;
  race.hazard = hazard_of(search.log(), found.first, found.second);
  if (!tried.run.log) return;
  // Addresses differ from run to run, so it is judged in the log of the run with the hashes.
  const Calls calls(*tried.run.log);
  const auto one = calls.find(first), other = calls.find(second);
  if (!one || !other) return;
  if (const Hazard hazard = hazard_of(*tried.run.log, *one, *other); hazard != Hazard::unknown) race.hazard = hazard;
}

}  // namespace

Hazard hazard_of(const Log& log, std::uint32_t first, std::uint32_t second) {
  if (second == kHost) {
    // The suspect range is host memory: what a copy writes there is read too early, what it reads is overwritten.
    for (const Range& range : log.ranges_of(log.calls[first])) {
      const bool is_host = std::any_of(log.calls.begin(), log.calls.end(), [&](const Call& call) {
        return call.kind == Kind::allocate && call.is_host && !log.ranges_of(call).empty() &&
               do_overlap(log.ranges_of(call).front(), range);
      });
      if (is_host && range.reads != range.writes) return range.writes ? Hazard::host_reads : Hazard::host_writes;
    }
    return Hazard::unknown;
  }
  const Sides one = sides_of(log, first, second), other = sides_of(log, second, first);
  if (!one.writes && !other.writes) return Hazard::unknown;
  const bool first_writes = one.writes.value_or(!*other.writes);
  const bool second_writes = other.writes.value_or(!first_writes);
  if (first_writes && second_writes) return Hazard::write_after_write;
  if (first_writes) return Hazard::read_after_write;
  return second_writes ? Hazard::write_after_read : Hazard::unknown;
}

Race name_race(Search& search, std::vector<Delay> delays, const std::string& change) {
  Naming naming(search, std::move(delays));
  Race race;
  std::vector<Candidate> found;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    found = naming.by_suspects();
    if (found.empty()) found = naming.by_places();
    confirm(search, naming, found, race);
    if (found.empty() || race.cured_changes == 0) break;
    naming.exclude(found.front());
    found.clear();
  }
  race.delays = naming.delays();
  race.change = change;
  const Log& log = search.log();
  if (const auto delayed = search.calls().find(race.delays.front().before)) race.delayed = facts_of(log, *delayed);
  if (found.empty()) return race;
  for (const Candidate& each : found) race.waits.push_back(wait_for(each, log));
  const Candidate& pair = found.front();
  race.first = facts_of(log, pair.first);
  if (pair.second != kHost) race.second = facts_of(log, pair.second);
  if (pair.suspect) {
    race.is_suspect = true;
    race.begin = pair.suspect->begin;
    race.end = pair.suspect->end;
    race.is_exact = pair.suspect->is_exact;
    race.repeats = pair.suspect->repeats;
  }
  race.is_reused = is_reused_between(log, pair);
  race.repairs = waits_like(pair, log, search.calls());
  race.first_lane = lane_around(log, search.calls(), pair.first);
  if (pair.second != kHost) race.second_lane = lane_around(log, search.calls(), pair.second);
  explain(search, pair, race);
  return race;
}

}  // namespace weir::race
