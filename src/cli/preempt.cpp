// weir preempt: how long urgent work waits behind long kernels, for every mechanism that the device offers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "base/plain_text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "cli/run_flags.h"
#include "lab/preempt/curve.h"
#include "lab/preempt/document.h"
#include "lab/preempt/experiment.h"
#include "lab/preempt/stage.h"
#include "report/text/documents.h"
#include "report/text/svg.h"

namespace weir::cli {
namespace {

using preempt::Curve;
using preempt::ExperimentPlan;
using preempt::Findings;
using preempt::Mechanism;
using preempt::Observation;
using preempt::Point;
using preempt::Undisturbed;
using preempt::Victim;
using preempt::VictimKind;

// As typed. Numbers are kept as text, so that messages can show the flag and the word.
struct PreemptCommandFlags {
  std::string device = "auto";
  std::string mechanisms = "all";
  std::string victims, waves, block_times;
  std::string requests, interval, intruder;
  std::string in_flight = "2", queued_ahead = "8", alone = "3", seed = "1";
  std::string hardware_queues;
  std::vector<std::string> sim;
  bool is_quick = false;
  std::string svg;
  DocumentOutput document_output;
  std::string child;  // this process is a child: the file with its request

  void add_to(CommandSyntax syntax);
  // Rejects bad values, naming the flag.
  ExperimentPlan plan() const;
  std::vector<const Mechanism*> chosen() const;
  // The plan for one victim: values that were not given follow from the length of its kernels.
  ExperimentPlan paced(const ExperimentPlan& plan, const Victim& victim) const;
};

constexpr std::int64_t kShortestBlockNs = 10'000, kLongestBlockNs = 10'000'000;
constexpr std::size_t kMaxVictims = 1000;

std::int64_t one_time(const char* flag, const std::string& text, std::int64_t lowest_ns, std::int64_t highest_ns) {
  const std::vector<std::int64_t> times = parse_times(flag, text, lowest_ns, highest_ns);
  if (times.size() != 1) reject(fmt::format("{} {}: one time is needed here", flag, text));
  return times[0];
}

std::vector<VictimKind> kinds_of(const std::string& text) {
  constexpr VictimKind kAll[] = {VictimKind::waves, VictimKind::persistent, VictimKind::memory};
  if (text.empty()) return {kAll, kAll + 3};
  std::vector<std::string> names;
  for (const VictimKind kind : kAll) names.emplace_back(name_of(kind));
  std::vector<VictimKind> kinds;
  for (const std::string& name : parse_names("--victims", text)) {
    const auto kind = preempt::victim_kind_named(name);
    if (!kind) reject(fmt::format("--victims {}: unknown victim '{}'", text, name), suggestion(name, names));
    if (std::find(kinds.begin(), kinds.end(), *kind) == kinds.end()) kinds.push_back(*kind);
  }
  return kinds;
}

std::vector<Victim> victims_of(const PreemptCommandFlags& flags) {
  const std::vector<VictimKind> kinds = kinds_of(flags.victims);
  if (flags.waves.empty() && flags.block_times.empty()) return preempt::usual_victims(kinds, flags.is_quick);
  const std::vector<int> waves =
      flags.waves.empty() ? std::vector{4} : parse_counts("--waves", flags.waves, 1, preempt::kMaxWaves);
  const std::vector<std::int64_t> blocks =
      flags.block_times.empty() ? std::vector<std::int64_t>{100'000}
                                : parse_times("--block-times", flags.block_times, kShortestBlockNs, kLongestBlockNs);
  std::vector<Victim> victims;
  for (const VictimKind kind : kinds)
    for (const int wave : kind == VictimKind::persistent ? std::vector{4} : waves)
      for (const std::int64_t block : blocks) victims.push_back({kind, wave, block});
  if (victims.size() > kMaxVictims)
    reject(fmt::format("--waves and --block-times make {} victims", victims.size()),
           fmt::format("{} are the most; give fewer.", kMaxVictims));
  return victims;
}

void PreemptCommandFlags::add_to(CommandSyntax syntax) {
  syntax.add("--device NAME", device, "auto, cpu, cuda:0, hip:0, sim:h200 (auto: the first GPU, else cpu)");
  std::string names;
  for (const Mechanism& mechanism : preempt::mechanisms())
    names += (names.empty() ? "" : ", ") + std::string(mechanism.name);
  syntax.add("--mechanisms NAME", mechanisms, "all, or a list of: " + names);
  syntax.add("--victims NAME", victims, "kinds of long kernels: waves, persistent, memory (default: all)");
  syntax.add("--waves N", waves, "how often a kernel's blocks fill the device, 1 to 256: 4 or 1..256:x4");
  syntax.add("--block-times DURATION", block_times, "how long a block runs, 10us to 10ms: 100us,1ms or 10us..10ms");
  syntax.add("--iterations N", requests,
             "of the urgent command, per mechanism and victim (default: 1000, fewer for long ones)");
  syntax.add("--interval DURATION", interval, "between them on average (default: 2ms, or 1.25 kernels of the victim)");
  syntax.add("--intruder-time DURATION", intruder, "how long the urgent command runs (default: as short as can be)");
  syntax.add("--in-flight N", in_flight, "commands in flight that the launch gate allows");
  syntax.add("--queued-ahead N", queued_ahead, "kernels that the victim keeps queued where nothing bounds them");
  syntax.add("--alone N", alone, "how often the urgent command is timed alone, spread over the run");
  syntax.add("--seed N", seed, "of the moments at which requests are due");
  syntax.add("--hw-queues N", hardware_queues, "hardware queues of the devices cpu and sim");
  syntax.add("--sim NAME=VALUE", sim, "name=value, repeatable: a setting of the simulated device (docs/sim.md)");
  syntax.add("--quick", is_quick, "200 requests and fewer victims: no p99.9, a first look");
  syntax.add("--svg PATH", svg, "draw latency over block time into this file");
  document_output.add_to(syntax);
  syntax.add("--child", child).hidden();
}

ExperimentPlan PreemptCommandFlags::plan() const {
  ExperimentPlan plan;
  plan.victims = victims_of(*this);
  plan.requests = requests.empty() ? (is_quick ? 200 : 1000) : one_count("--iterations", requests, 10, 1'000'000);
  plan.interval_ns = interval.empty() ? 2'000'000 : one_time("--interval", interval, 100'000, 10'000'000'000);
  plan.intruder_ns = intruder.empty() ? 0 : one_time("--intruder-time", intruder, 0, 100'000'000);
  plan.alone_repeats = one_count("--alone", alone, 1, 100);
  plan.in_flight = static_cast<std::uint32_t>(one_count("--in-flight", in_flight, 1, 64));
  plan.queued_ahead = static_cast<std::uint32_t>(one_count("--queued-ahead", queued_ahead, 1, 64));
  const auto number = parse_integer(seed);
  if (!number || *number < 0)
    reject(fmt::format("--seed {}: not a whole number from 0 on", without_controls(seed, ' ')));
  plan.seed = static_cast<std::uint64_t>(*number);
  plan.undisturbed_ns = is_quick ? 200'000'000 : 300'000'000;
  if (plan.intruder_ns >= plan.interval_ns)
    reject(fmt::format("--intruder-time {}: the urgent command would run all the time", intruder),
           "It has to be shorter than --interval.");
  return plan;
}

// Behind a kernel only one request passes at a time, so faster requests would queue up without end. They are therefore
// sent at most once per kernel; where that would take long there are fewer of them, but enough for a p99.
ExperimentPlan PreemptCommandFlags::paced(const ExperimentPlan& plan, const Victim& victim) const {
  constexpr double kKernels = 1.25;
  ExperimentPlan paced = plan;
  if (interval.empty()) {
    const std::int64_t kernel_ns = victim.kind == VictimKind::persistent
                                       ? std::max(preempt::kPersistentNs, preempt::kPersistentBlocks * victim.block_ns)
                                       : victim.waves * victim.block_ns;
    paced.interval_ns =
        std::max<std::int64_t>(plan.interval_ns, std::llround(kKernels * static_cast<double>(kernel_ns)));
  }
  if (requests.empty()) {
    const std::int64_t max_ns = is_quick ? 1'000'000'000 : 3'000'000'000;
    paced.requests = static_cast<int>(std::clamp<std::int64_t>(max_ns / paced.interval_ns, 100, plan.requests));
  }
  return paced;
}

std::vector<const Mechanism*> PreemptCommandFlags::chosen() const {
  std::vector<const Mechanism*> found;
  if (mechanisms == "all") {
    for (const Mechanism& mechanism : preempt::mechanisms()) found.push_back(&mechanism);
    return found;
  }
  for (const std::string& name : parse_names("--mechanisms", mechanisms)) {
    const Mechanism* const mechanism = &preempt::mechanism_named(name);
    if (std::find(found.begin(), found.end(), mechanism) == found.end()) found.push_back(mechanism);
  }
  return found;
}

class Run {
 public:
  Run(const PreemptCommandFlags& flags, const ExperimentPlan& plan, const std::vector<const Mechanism*>& chosen)
      : flags_(flags),
        plan_(plan),
        stage_(flags.device, device_options(flags.hardware_queues, flags.sim), catch_interrupts()),
        is_stopped_(catch_interrupts()),
        line_(flags.document_output.is_quiet),
        begun_ns_(now_ns()) {
    const DocumentOutput& document = flags.document_output;
    if (document.has_file()) file_.emplace(document.output, document.is_forced);
    const RunContext context = run_context();
    circumstances_ = {context.command_line, to_json(stage_.info()), context.environment};
    for (const Mechanism* mechanism : chosen) {
      Curve curve;
      curve.mechanism = mechanism;
      curve.offered = stage_.offered(*mechanism);
      offered_ += curve.offered ? 1 : 0;
      curves_.push_back(std::move(curve));
    }
    // The intruder alone; each victim with every mechanism, and undisturbed before and after.
    steps_ = plan.alone_repeats + static_cast<int>(plan.victims.size()) * (offered_ + 2);
  }

  int execute() {
    if (offered_ == 0)
      reject(fmt::format("--device {}: nothing can be observed there: {}", stage_.info().name,
                         curves_.front().offered.reason),
             "Use --device cpu, sim or a GPU.");
    print_schedule();
    const int points = static_cast<int>(plan_.victims.size()) * offered_;
    int done = 0;
    time_alone(done, points);
    for (const Victim& victim : plan_.victims) {
      if (is_stopped_) break;
      leave_alone(victim);
      for (Curve& curve : curves_) {
        if (!curve.offered || is_stopped_) continue;
        add_point(curve, victim);
        ++done;
        if (!is_stopped_) time_alone(done, points);
        save(false);
      }
      if (!is_stopped_) leave_alone(victim);
    }
    line_.clear();
    return finish();
  }

 private:
  void print_schedule() const {
    if (flags_.document_output.is_quiet) return;
    const auto length = [](const ExperimentPlan& plan) {
      return static_cast<double>(plan.requests) * static_cast<double>(plan.interval_ns);
    };
    double all = length(plan_) * plan_.alone_repeats;
    for (const Victim& victim : plan_.victims)
      all += length(flags_.paced(plan_, victim)) * offered_ + 2 * static_cast<double>(plan_.undisturbed_ns);
    print_err("{} mechanisms, {} victims: about {}{}\n", offered_, plan_.victims.size(), format_duration(all),
              stage_.info().is_virtual ? " of simulated time" : "");
  }

  preempt::Progress progress(const std::string& what) {
    return [this, what](std::string_view, int done, int of) {
      const double share = of > 0 ? std::min(1.0, static_cast<double>(done) / of) : 0;
      const double passed = static_cast<double>(step_) + share;
      const auto spent = static_cast<double>(now_ns() - begun_ns_);
      const std::string left =
          passed < 1 ? "" : ", " + format_duration(spent * (static_cast<double>(steps_) - passed) / passed) + " left";
      line_.show(what + left + ",", step_, steps_);
      return !is_stopped_.load(std::memory_order_relaxed);
    };
  }

  // Observes, or records why not: one failed observation does not affect the others.
  template <class Observe>
  Observation attempt(const std::string& what, std::string& failure, const Observe& observe) {
    Observation seen;
    const preempt::Progress shown = progress(what);
    shown("", 0, 0);
    try {
      seen = observe(shown);
    } catch (const Error& error) {
      failure = in_terms_of_flags(error);
      if (!error.hint.empty()) failure += fmt::format(" ({})", error.hint);
    }
    ++step_;
    return seen;
  }

  // As often as the plan requires: first, last, and evenly in between.
  void time_alone(int done, int points) {
    while (static_cast<int>(alone_.size()) < plan_.alone_repeats) {
      const int next = static_cast<int>(alone_.size());
      if (next > 0 && done < points * next / (plan_.alone_repeats - 1)) return;
      std::string failure;
      Observation seen = attempt("alone", failure, [&](const auto& shown) { return stage_.alone(plan_, shown); });
      if (!failure.empty() && next == 0) fail(fmt::format("the urgent command alone: {}", failure));
      if (!failure.empty())
        warnings_.push_back(fmt::format("the urgent command could not be timed alone again: {}", failure));
      alone_.push_back(std::move(seen));
      if (is_stopped_) return;
    }
  }

  void leave_alone(const Victim& victim) {
    Undisturbed one;
    one.victim = victim;
    one.observation = attempt(words_for(victim) + " alone", one.failure,
                              [&](const auto& shown) { return stage_.undisturbed(plan_, victim, shown); });
    undisturbed_.push_back(std::move(one));
  }

  void add_point(Curve& curve, const Victim& victim) {
    std::string failure;
    const ExperimentPlan paced = flags_.paced(plan_, victim);
    Observation seen =
        attempt(fmt::format("{}, {}", curve.mechanism->name, words_for(victim)), failure,
                [&](const auto& shown) { return stage_.observe(*curve.mechanism, paced, victim, shown); });
    // Interrupted before any result.
    if (failure.empty() && is_stopped_ && seen.requests.empty()) return;
    Point point = point_of(victim, std::move(seen), paced);
    point.failure = failure;
    curve.points.push_back(std::move(point));
  }

  Json document(bool is_complete) {
    // Quantiles with intervals are slow to compute, and only change with a new repeat.
    if (summary_.repeats.size() != alone_.size()) summary_ = preempt::alone_of(alone_, plan_.seed);
    Findings findings = conclude(plan_, summary_, undisturbed_, curves_);
    findings.is_complete = is_complete;
    findings.warnings.insert(findings.warnings.end(), warnings_.begin(), warnings_.end());
    failures_ = findings.failures;
    return preempt_document(findings, circumstances_);
  }

  std::string text_of(const Json& document) const {
    const DocumentOutput& output = flags_.document_output;
    return output.wants_json()       ? to_text(document)
           : output.wants_markdown() ? report_markdown(preempt_report(document, true))
                                     : report_text(preempt_report(document, false));
  }

  Json save(bool is_complete) {
    Json all = document(is_complete);
    if (file_) file_->save(text_of(all));
    return all;
  }

  int finish() {
    const Json all = save(!is_stopped_);
    if (!flags_.svg.empty()) write_file(flags_.svg, preempt_svg(all), flags_.document_output.is_forced);
    const bool has_file = flags_.document_output.has_file();
    if (!has_file) {
      flags_.document_output.wants_json() ? write_json(text_of(all)) : write_out(text_of(all));
    } else if (!flags_.document_output.is_quiet) {
      print_out("{}\n", report_text(preempt_report(all, false)));
      flags_.document_output.report_written(flags_.document_output.output);
    }
    if (!flags_.svg.empty() && !flags_.document_output.prints_json()) flags_.document_output.report_written(flags_.svg);
    if (is_stopped_) return kExitInterrupted;
    if (!failures_.empty())
      fail(fmt::format("{}{}", failures_.front(),
                       failures_.size() > 1 ? fmt::format(" (and {} more)", failures_.size() - 1) : ""),
           "The report says all; what was observed is in it.");
    return 0;
  }

  const PreemptCommandFlags& flags_;
  const ExperimentPlan& plan_;
  preempt::Stage stage_;
  const std::atomic<bool>& is_stopped_;
  ProgressLine line_;
  preempt::Circumstances circumstances_;
  std::vector<Curve> curves_;
  std::vector<Observation> alone_;
  preempt::Alone summary_;  // of the repeats
  std::vector<Undisturbed> undisturbed_;
  std::vector<std::string> warnings_, failures_;
  std::int64_t begun_ns_;
  int offered_ = 0, steps_ = 0, step_ = 0;
  std::optional<SavedFile> file_;
};

int execute_preempt(const PreemptCommandFlags& flags) {
  if (!flags.child.empty()) {
    preempt::run_preempt_child(flags.child, device_options("", {}), catch_interrupts());
    return 0;
  }
  if (job_ranks().count > 1)
    reject("preempt: this job has several ranks", "Start it as one process, without mpirun or srun.");
  const ExperimentPlan plan = flags.plan();
  const std::vector<const Mechanism*> chosen = flags.chosen();
  flags.document_output.check_output();
  if (!flags.svg.empty()) check_writable(flags.svg, flags.document_output.is_forced);
  return Run(flags, plan, chosen).execute();
}

}  // namespace

CliCommand preempt() {
  return command("preempt", "how long urgent work waits behind long kernels, and what lets it pass", execute_preempt);
}

}  // namespace weir::cli
