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
#include "cli/preempt_stage.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "cli/run_flags.h"
#include "cli/talking_process.h"
#include "lab/preempt/curve.h"
#include "lab/preempt/document.h"
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

using preempt::Experiment;

constexpr std::int64_t kTellNs = 1'000'000'000;  // rarely, so that the parent does not take a core from the measurement

// The child's side: runs the request in a file in a separate process, because a driver reads some settings only once,
// or because the victim must be another process. Requests, and reports as lines of JSON:
//   {"task": "observe", "mechanism", "device", "sim", "hardware_queues", "plan", "victim"}
//     {"event": "progress", "done", "of"}              now and then
//     {"event": "observed", "observation": {...}}
//   {"task": "victim", ...}                            until a SIGTERM comes
//     {"event": "running"}                             the victim keeps the device busy from here on
//     {"event": "observed", "observation": {...}}
// Rejects a file that is not a request.
int run_preempt_child(const std::string& file) {
  const Json request = read_json(file);
  const auto word = [&](const char* key) {
    const auto found = request.is_object() ? request.find(key) : request.end();
    if (!request.is_object() || found == request.end() || !found->is_string())
      reject(fmt::format("--child {}: is no request of weir preempt", file));
    return found->get<std::string>();
  };
  const auto part = [&](const char* key) -> const Json& {
    if (!request.contains(key)) reject(fmt::format("--child {}: is no request of weir preempt", file));
    return request[key];
  };
  const std::string task = word("task");
  const preempt::Mechanism& mechanism = preempt::mechanism_named(word("mechanism"));
  const preempt::Plan plan = preempt::plan_from(part("plan"), file);
  const preempt::Victim victim = preempt::victim_from(part("victim"), file);
  std::vector<std::string> sim;
  for (const Json& setting : part("sim"))
    if (setting.is_string()) sim.push_back(setting.get<std::string>());
  const std::atomic<bool>& is_interrupted = catch_interrupts();
  const ToParent parent;
  DeviceOptions options = device_options(word("hardware_queues"), sim);
  const bool is_victim = task == "victim";
  if (!is_victim && mechanism.device_options != nullptr) options = mechanism.device_options(options);
  const std::unique_ptr<Device> device = open_able(word("device"), options);

  Experiment experiment{device.get(), &plan, {}};
  Observation seen;
  if (is_victim) {
    bool has_told = false;
    seen = preempt::run_victim(experiment, victim, [&] {
      if (!std::exchange(has_told, true)) parent.send({{"event", "running"}});
      return is_interrupted.load(std::memory_order_relaxed);
    });
  } else {
    std::int64_t told_ns = now_ns();
    experiment.progress = [&](std::string_view, int done, int of) {
      if (now_ns() - told_ns > kTellNs) {
        told_ns = now_ns();
        parent.send({{"event", "progress"}, {"done", done}, {"of", of}});
      }
      return !is_interrupted.load(std::memory_order_relaxed);
    };
    seen = mechanism.observe(experiment, &victim);
  }
  parent.send({{"event", "observed"}, {"observation", to_json(seen)}});
  return 0;
}

class Run {
 public:
  Run(const PreemptFlags& flags, const Plan& plan, const std::vector<const Mechanism*>& chosen)
      : flags_(flags),
        plan_(plan),
        stage_(flags),
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
  PreemptStage stage_;
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

int execute_preempt(PreemptFlags& flags, bool has_report) {
  if (!flags.child.empty()) return run_preempt_child(flags.child);
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
            return [flags, syntax] { return execute_preempt(*flags, syntax.has("--report")); };
          }};
}

}  // namespace weir::cli
