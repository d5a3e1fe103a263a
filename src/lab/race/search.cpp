#include "lab/race/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "lab/race/name.h"
#include "lab/race/shrink.h"
#include "trace/race_format.h"

namespace weir::race {
namespace {

constexpr std::int64_t kShortestRunNs = 500'000'000;  // delays in a shorter run may take longer than it
constexpr std::size_t kMostSuspects = 1'000, kShownSuspects = 50, kMostGroups = 12, kMostTogether = 32;

std::optional<std::int64_t> median_of(const std::vector<RunRecord>& runs, std::initializer_list<Purpose> purposes) {
  std::vector<std::int64_t> times;
  for (const RunRecord& run : runs)
    if (std::find(purposes.begin(), purposes.end(), run.purpose) != purposes.end() && !run.is_timed_out)
      times.push_back(run.duration_ns);
  if (times.empty()) return std::nullopt;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kernel:
      return "kernel";
    case Kind::copy:
      return "copy";
    case Kind::set:
      return "set";
    case Kind::host_function:
      return "host function";
    case Kind::graph_launch:
      return "graph launch";
    case Kind::memory_operation:
      return "memory operation";
    case Kind::allocate:
      return "allocation";
    case Kind::release:
      return "release";
    default:
      return "call";
  }
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of("\n ");
  if (end == std::string::npos) return {};
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin));
}

}  // namespace

const char* name_of(Purpose purpose) {
  constexpr const char* kNames[] = {"plain",  "observe", "stabilise", "blind",   "aimed",
                                    "shrink", "cure",    "confirm",   "explain", "verify"};
  return kNames[static_cast<std::size_t>(purpose)];
}

const char* name_of(Hazard hazard) {
  constexpr const char* kNames[] = {"unknown",           "read_after_write", "write_after_read",
                                    "write_after_write", "host_reads",       "host_writes"};
  return kNames[static_cast<std::size_t>(hazard)];
}

const char* name_of(Answer answer) {
  constexpr const char* kNames[] = {"clean", "found", "unclear", "varying"};
  return kNames[static_cast<std::size_t>(answer)];
}

CommandFacts facts_of(const Log& log, std::uint32_t call) {
  const Call& of = log.calls[call];
  const std::string& label = log.label_of(of);
  return {of.name.sequence == 0 ? "" : text(of.name), label.empty() ? kind_name(of.kind) : label,
          of.stream < log.streams.size() ? log.streams[of.stream].name : "", kind_name(of.kind)};
}

Search::Search(SearchOptions options, RunProgram run, OnRun on_run)
    : options_(std::move(options)), run_(std::move(run)), on_run_(std::move(on_run)) {}

bool Search::is_over() const { return now_ns() - begun_ns_ > options_.budget_ns; }

Search::Tried Search::try_plan(RunPlan plan, Purpose purpose) {
  plan.waits.insert(plan.waits.end(), repairs_.begin(), repairs_.end());
  RunRecord record{.purpose = purpose};
  if (plan.blind) record.seed = plan.blind->seed;
  record.delays = plan.blind && calls_ ? delays_of(*plan.blind, log_).size() : plan.delays.size();
  record.waits = plan.waits.size();
  Tried tried{run_(plan, limit_s_), std::nullopt};
  record.duration_ns = tried.run.duration_ns;
  record.is_timed_out = tried.run.end.how == ProcessEnd::How::timed_out;
  record.ended = words_for(tried.run.end);
  if (reference_ && !record.is_timed_out) tried.change = reference_->change(tried.run.outputs);
  record.change = tried.change;
  for (const std::string& note : tried.run.notes)
    if (findings_.notes.size() < 100 &&
        std::find(findings_.notes.begin(), findings_.notes.end(), note) == findings_.notes.end())
      findings_.notes.push_back(note);
  findings_.runs.push_back(std::move(record));
  if (on_run_) on_run_(findings_.runs.back(), findings_.runs.size());
  return tried;
}

std::vector<Outputs> Search::run_plainly() {
  std::vector<Outputs> plain;
  std::int64_t longest_ns = 0;
  limit_s_ = std::max(30.0, static_cast<double>(options_.budget_ns) / 1e9);
  for (std::size_t i = 0; i < options_.plain_runs; ++i) {
    Tried tried = try_plan({}, Purpose::plain);
    if (tried.run.end.how == ProcessEnd::How::timed_out)
      fail(fmt::format("the program did not end by itself within {:.0f} s", limit_s_),
           "Give it less to do, or raise --budget.");
    if (!tried.run.has_commands)
      fail(fmt::format("no process of the program submitted a GPU command that could be seen: no CUDA driver loaded "
                       "libweir_cupti.so ({})",
                       "it " + tried.run.end.words()),
           "The program must use CUDA; `weir info` says whether the library was built.");
    longest_ns = std::max(longest_ns, tried.run.duration_ns);
    if (i == 0 && !tried.run.end.is_success()) {
      const std::string line = last_line(tried.run.errors);
      findings_.warnings.push_back(
          fmt::format("The program {} by itself{}", tried.run.end.words(), line.empty() ? "." : ": " + line));
    }
    plain.push_back(std::move(tried.run.outputs));
  }
  limit_s_ = 10 * static_cast<double>(longest_ns) / 1e9 + options_.shortest_limit_s;
  return plain;
}

void Search::observe() {
  RunPlan plan;
  plan.observes = true;
  Tried tried = try_plan(std::move(plan), Purpose::observe);
  if (!tried.run.log) {
    findings_.warnings.emplace_back(
        "The library in the program wrote no log, so only blind delays can be tried and no pair be named.");
  } else {
    findings_.has_log = true;
    log_ = std::move(*tried.run.log);
    suspects_ = find_suspects(log_, kMostSuspects);
  }
  calls_.emplace(log_);
  if (tried.change)
    findings_.warnings.push_back(
        fmt::format("The output changed in the observed run, without any delay: {}.", *tried.change));
  findings_.calls = log_.calls.size();
  findings_.commands = calls_->command_count();
  findings_.streams = log_.streams.size();
  findings_.unread = log_.unread;
  findings_.suspect_count = suspects_.found;
  for (const Suspect& suspect : suspects_.pairs) {
    if (findings_.suspects.size() == kShownSuspects) break;
    if (suspect.first >= log_.calls.size()) continue;
    SuspectFacts facts{facts_of(log_, suspect.first), std::nullopt, suspect};
    if (suspect.second != kHost) facts.second = facts_of(log_, suspect.second);
    findings_.suspects.push_back(std::move(facts));
  }
}

RunPlan Search::all_waits() const {
  RunPlan plan;
  for (const Candidate& candidate : all_candidates(log_, *calls_, suspects_, kMostSuspects))
    plan.waits.push_back(wait_for(candidate, log_));
  return plan;
}

// A program may lose a race in each run, whatever is delayed: then its output is another one with waits.
bool Search::is_always_wrong() {
  if (has_tried_waits_ || !findings_.races.empty() || is_over()) return false;
  RunPlan plan = all_waits();
  return !plan.waits.empty() && try_plan(std::move(plan), Purpose::stabilise).change && stabilise();
}

// Outputs that vary by themselves may do so because of a race: then waits between all suspects end it.
bool Search::stabilise() {
  if (std::exchange(has_tried_waits_, true)) return false;
  const RunPlan plan = all_waits();
  if (plan.waits.empty()) return false;
  std::vector<Outputs> stable;
  for (std::size_t i = 0; i < std::max<std::size_t>(options_.plain_runs, 3) + 1; ++i)
    stable.push_back(try_plan(plan, Purpose::stabilise).run.outputs);
  Reference reference(options_.rules, std::move(stable));
  if (!reference.varying().empty()) return false;
  reference_.emplace(std::move(reference));
  findings_.is_by_itself = true;
  findings_.warnings.push_back(
      fmt::format("The output is judged by runs with {} put in between all suspects, where it is always the same: that "
                  "of the program itself varies, or is another.",
                  counted(plan.waits.size(), "wait")));
  return true;
}

void Search::judge_varying() {
  if (stabilise()) return;
  findings_.varying = reference_->varying();
  bool is_more_than_status = false;
  for (const std::string& judged : reference_->judged()) is_more_than_status |= judged != "exit status";
  if (is_more_than_status) {
    for (const std::string& varying : findings_.varying)
      findings_.warnings.push_back(
          fmt::format("Not judged, because it differs from one plain run to the next: {}.", varying));
  } else {
    findings_.answer = Answer::varying;
  }
}

std::vector<RunPlan> Search::disturbances() const {
  std::vector<RunPlan> blind, aimed;
  const std::int64_t plain_ns = std::max(median_of(findings_.runs, {Purpose::plain}).value_or(0), kShortestRunNs);
  // Delays together take about as long as the program, so that a run is not much longer than twice a plain one.
  const auto most_of = [&](std::int64_t ns) {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(plain_ns / ns, 4, race_format::kMostDelays));
  };
  for (std::uint64_t seed = 1; seed <= options_.seeds; ++seed) {
    const std::int64_t ns =
        seed % 2 == 1 ? options_.delay_ns : std::min(10 * options_.delay_ns, race_format::kLongestDelayNs);
    const std::uint32_t most = most_of(ns);
    const auto needed = static_cast<std::uint32_t>(calls_->command_count() / most + 1);
    RunPlan plan;
    plan.blind = {seed, std::max(options_.one_in, needed), ns, most};
    blind.push_back(std::move(plan));
  }
  // One group for each stream of the first commands: a stream that is held back is overtaken by all others.
  std::vector<std::pair<std::uint32_t, RunPlan>> groups;
  for (const Delay& delay : aimed_delays(log_, *calls_, suspects_, options_.delay_ns)) {
    const std::uint32_t stream = log_.calls[*calls_->find(delay.before)].stream;
    const auto fits = [&](const auto& group) {
      std::int64_t sum = delay.ns;
      for (const Delay& each : group.second.delays) sum += each.ns;
      return group.first == stream &&
             (group.second.delays.size() < 4 || (group.second.delays.size() < 256 && sum <= plain_ns));
    };
    auto group = std::find_if(groups.begin(), groups.end(), fits);
    if (group == groups.end()) {
      if (groups.size() == kMostGroups) continue;
      group = groups.insert(groups.end(), {stream, {}});
    }
    group->second.delays.push_back(delay);
  }
  for (auto& [stream, plan] : groups) aimed.push_back(std::move(plan));
  std::vector<RunPlan> all;
  for (std::size_t i = 0; i < std::max(blind.size(), aimed.size()); ++i) {
    if (i < blind.size()) all.push_back(std::move(blind[i]));
    if (i < aimed.size()) all.push_back(std::move(aimed[i]));
  }
  return all;
}

std::vector<Delay> Search::shrink(const Hit& hit) {
  if (hit.delays.size() <= 1) return hit.delays;
  const auto changes = [&](const std::vector<Delay>& delays) {
    if (is_over()) return false;
    RunPlan plan;
    plan.delays = delays;
    return try_plan(std::move(plan), Purpose::shrink).change.has_value();
  };
  // The best suspects that these delays are about, each alone and then together: usually one of them is it.
  Suspects about;
  for (const Candidate& candidate : candidates(log_, *calls_, hit.delays, repairs_, kMostTogether))
    about.pairs.push_back(*candidate.suspect);
  if (about.pairs.empty()) about = suspects_;
  std::vector<Delay> aimed = aimed_delays(log_, *calls_, about, options_.delay_ns);
  for (Delay& delay : aimed) delay.ns = std::max(delay.ns, hit.delays.front().ns);
  for (std::size_t i = 0; i < std::min<std::size_t>(aimed.size(), 2); ++i)
    if (changes({aimed[i]})) return {aimed[i]};
  aimed.resize(std::min(aimed.size(), kMostTogether));
  if (aimed.size() > 2 && aimed.size() < hit.delays.size() && changes(aimed)) return shrunk<Delay>(aimed, changes);
  return shrunk<Delay>(hit.delays, changes);
}

// Whether the output changes again with the delays, and is right again without them.
bool Search::is_due_to_delays(const Race& race) {
  if (race.delayed_changes == 0) return false;
  for (std::uint32_t i = 0; i < race.delayed_runs; ++i)
    if (try_plan({}, Purpose::confirm).change) return false;
  return true;
}

void Search::summarise() {
  findings_.plain_ns = median_of(findings_.runs, {Purpose::plain});
  findings_.observed_ns = median_of(findings_.runs, {Purpose::observe});
  findings_.delayed_ns = median_of(findings_.runs, {Purpose::blind, Purpose::aimed});
  const auto late = std::count_if(findings_.runs.begin(), findings_.runs.end(),
                                  [](const RunRecord& run) { return run.is_timed_out; });
  if (late > 0)
    findings_.warnings.push_back(fmt::format(
        "{} did not end within {:.0f} s and {} ended: delays of a few milliseconds must not do that to a program.",
        counted(late, "run"), limit_s_, late == 1 ? "was" : "were"));
  if (findings_.answer == Answer::varying) return;
  const bool is_named =
      std::any_of(findings_.races.begin(), findings_.races.end(), [](const Race& race) { return !race.waits.empty(); });
  const bool has_changed = std::any_of(findings_.runs.begin(), findings_.runs.end(),
                                       [](const RunRecord& run) { return run.change.has_value(); });
  if (is_named)
    findings_.answer = Answer::found;
  else if (late > 0 || has_changed)
    findings_.answer = Answer::unclear;
}

void Search::hunt() {
  begun_ns_ = now_ns();
  reference_.reset();
  std::vector<Outputs> plain = run_plainly();
  reference_.emplace(options_.rules, std::move(plain));
  observe();
  if (!reference_->varying().empty()) judge_varying();
  if (findings_.answer != Answer::varying && findings_.runs.back().change) stabilise();
  findings_.judged = reference_->judged();
  if (findings_.answer == Answer::varying) {
    findings_.ended_by = "no output is the same in all plain runs";
    summarise();
    return;
  }
  if (findings_.judged.empty())
    reject("there is no output to judge", "Add --output stdout, --output status or a path.");
  const std::vector<RunPlan> plans = disturbances();
  findings_.ended_by = "all delays were tried";
  for (std::size_t next = 0;;) {
    if (next == plans.size()) {
      if (!is_always_wrong()) break;
      next = 0;
    }
    if (is_over()) {
      findings_.ended_by =
          fmt::format("the budget of {:.0f} s is used up", static_cast<double>(options_.budget_ns) / 1e9);
      break;
    }
    const RunPlan& plan = plans[next];
    const Tried tried = try_plan(plan, plan.blind ? Purpose::blind : Purpose::aimed);
    if (!tried.change) {
      ++next;
      continue;
    }
    Hit hit{plan.blind ? delays_of(*plan.blind, log_) : plan.delays, *tried.change};
    std::vector<Delay> delays = shrink(hit);
    if (delays.empty()) {  // the seed chose none
      next = stabilise() ? 0 : next + 1;
      continue;
    }
    Race found = name_race(*this, std::move(delays), hit.change);
    // What the plain runs put out may be what is wrong: then waits make another output of it, always the same.
    if (found.waits.empty() && stabilise()) {
      next = 0;
      continue;
    }
    if (found.waits.empty() && !is_due_to_delays(found)) {
      findings_.warnings.push_back(
          fmt::format("The output changed ({}), and not because of the delays of that run.", hit.change));
      ++next;
      continue;
    }
    findings_.races.push_back(std::move(found));
    const Race& race = findings_.races.back();
    if (race.waits.empty()) {  // it would be found again and again
      findings_.ended_by = "the output changed and no wait was found that ends that";
      break;
    }
    if (findings_.races.size() >= options_.races) {
      findings_.ended_by = fmt::format("{} found", counted(findings_.races.size(), "race"));
      break;
    }
    // What else it needed is found and named by itself; the same at other times is no other race.
    for (const Wait& wait : race.repairs)
      if (std::find(repairs_.begin(), repairs_.end(), wait) == repairs_.end()) repairs_.push_back(wait);
  }
  summarise();
}

void Search::replay(Race race, std::size_t times, bool verifies, bool is_by_waits) {
  begun_ns_ = now_ns();
  std::vector<Outputs> plain = run_plainly();
  reference_.emplace(options_.rules, std::move(plain));
  if (is_by_waits) {  // the program itself is wrong without delays
    RunPlan waited;
    waited.waits = race.waits;
    std::vector<Outputs> right;
    for (std::size_t i = 0; i < options_.plain_runs; ++i)
      right.push_back(try_plan(waited, Purpose::stabilise).run.outputs);
    reference_.emplace(options_.rules, std::move(right));
    findings_.is_by_itself = true;
  }
  findings_.judged = reference_->judged();
  findings_.varying = reference_->varying();
  for (const std::string& varying : findings_.varying)
    findings_.warnings.push_back(
        fmt::format("Not judged, because it differs from one plain run to the next: {}.", varying));
  RunPlan delayed, cured;
  delayed.delays = cured.delays = race.delays;
  cured.waits = race.waits;
  race.delayed_runs = race.delayed_changes = race.cured_runs = race.cured_changes = 0;
  for (std::size_t i = 0; i < times; ++i) {
    const Tried tried = try_plan(delayed, Purpose::confirm);
    ++race.delayed_runs;
    race.delayed_changes += tried.change.has_value();
    if (tried.change) race.change = *tried.change;
    if (!verifies) continue;
    ++race.cured_runs;
    race.cured_changes += try_plan(cured, Purpose::verify).change.has_value();
  }
  const bool is_there = race.delayed_changes > 0;
  findings_.ended_by = fmt::format("the delays were tried {}", counted(times, "time"));
  if (is_there) findings_.races.push_back(std::move(race));
  summarise();
}

}  // namespace weir::race
