// weir preempt: how long urgent work waits behind long kernels, for every mechanism that the device offers.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/list.h"
#include "cli/preempt_flags.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "cli/run_flags.h"
#include "lab/preempt/curve.h"
#include "lab/preempt/document.h"
#include "lab/preempt/stage.h"
#include "report/text/documents.h"
#include "report/text/svg.h"

namespace weir::cli {
namespace {

using preempt::Curve;
using preempt::Findings;
using preempt::Mechanism;
using preempt::Observation;
using preempt::Plan;
using preempt::Point;
using preempt::Undisturbed;
using preempt::Victim;

class Run {
 public:
  Run(const PreemptFlags& flags, const Plan& plan, const std::vector<const Mechanism*>& chosen)
      : flags_(flags),
        plan_(plan),
        stage_(flags.device, device_options(flags.hardware_queues, flags.sim), catch_interrupts()),
        is_stopped_(catch_interrupts()),
        line_(flags.document_output.is_quiet),
        begun_ns_(now_ns()) {
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
    say_what_comes();
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
  void say_what_comes() const {
    if (flags_.document_output.is_quiet) return;
    const auto length = [](const Plan& plan) {
      return static_cast<double>(plan.requests) * static_cast<double>(plan.interval_ns);
    };
    double all = length(plan_) * plan_.alone_repeats;
    for (const Victim& victim : plan_.victims)
      all += length(flags_.paced(plan_, victim)) * offered_ + 2 * static_cast<double>(plan_.undisturbed_ns);
    fmt::print(stderr, "{} mechanisms, {} victims: about {}{}\n", offered_, plan_.victims.size(), format_duration(all),
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
      failure = error.hint.empty() ? error.what() : fmt::format("{} ({})", error.what(), error.hint);
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
    const Plan paced = flags_.paced(plan_, victim);
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

  std::string told(const Json& document) const {
    const std::string& report = flags_.document_output.report;
    return report == "json"       ? to_text(document)
           : report == "markdown" ? report_markdown(preempt_report(document, true))
                                  : report_text(preempt_report(document, false));
  }

  // Weir's own file may be replaced; any other only with --force.
  Json save(bool is_complete) {
    Json all = document(is_complete);
    if (!flags_.document_output.output.empty()) {
      write_file(flags_.document_output.output, told(all), flags_.document_output.is_forced || has_saved_);
      has_saved_ = true;
    }
    return all;
  }

  int finish() {
    const Json all = save(!is_stopped_);
    if (!flags_.svg.empty()) write_file(flags_.svg, preempt_svg(all), flags_.document_output.is_forced);
    const bool has_file = !flags_.document_output.output.empty();
    if (!has_file) {
      fmt::print("{}", told(all));
    } else if (!flags_.document_output.is_quiet) {
      fmt::print("{}\n", report_text(preempt_report(all, false)));
      flags_.document_output.say_written(flags_.document_output.output);
    }
    if (!flags_.svg.empty() && flags_.document_output.report != "json") flags_.document_output.say_written(flags_.svg);
    if (is_stopped_) return kExitInterrupted;
    if (!failures_.empty())
      fail(fmt::format("{}{}", failures_.front(),
                       failures_.size() > 1 ? fmt::format(" (and {} more)", failures_.size() - 1) : ""),
           "The report says all; what was observed is in it.");
    return 0;
  }

  const PreemptFlags& flags_;
  const Plan& plan_;
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
  bool has_saved_ = false;
};

int execute(PreemptFlags& flags, bool has_report) {
  if (!flags.child.empty()) {
    preempt::run_preempt_child(flags.child, device_options("", {}), catch_interrupts());
    return 0;
  }
  if (job_ranks().count > 1)
    reject("preempt: this job has several ranks", "Start it as one process, without mpirun or srun.");
  if (!has_report && flags.document_output.output.ends_with(".json")) flags.document_output.report = "json";
  if (!has_report && flags.document_output.output.ends_with(".md")) flags.document_output.report = "markdown";
  const Plan plan = flags.plan();
  const std::vector<const Mechanism*> chosen = flags.chosen();
  flags.document_output.check_output();
  if (!flags.svg.empty()) check_writable(flags.svg, flags.document_output.is_forced);
  return Run(flags, plan, chosen).execute();
}

}  // namespace

CliCommand preempt() {
  return {"preempt", "how long urgent work waits behind long kernels, and what lets it pass",
          [](CommandSyntax syntax) -> std::function<int()> {
            const auto flags = std::make_shared<PreemptFlags>();
            flags->add_to(syntax);
            return [flags, syntax] { return execute(*flags, syntax.has("--report")); };
          }};
}

}  // namespace weir::cli
