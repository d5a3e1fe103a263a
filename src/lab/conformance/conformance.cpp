#include "lab/conformance/conformance.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "lab/conformance/steps.h"

namespace weir::conformance {
namespace {

std::string message_of(const std::exception& error) {
  const auto* const ours = dynamic_cast<const Error*>(&error);
  return ours == nullptr || ours->hint.empty() ? error.what() : fmt::format("{} ({})", error.what(), ours->hint);
}

CaseOutcome examine(Subject& subject, const ConformanceCase& each) {
  if (std::string reason = reason_to_skip(subject, each.needs); !reason.empty()) return skipped(std::move(reason));
  try {
    return each.examine(subject);
  } catch (const std::exception& error) {
    return failed("it throws: " + message_of(error));
  }
}

// The error of a device that cannot even fill a buffer; empty if it can.
std::string device_problem(Subject& subject) {
  try {
    StepBuilder builder(1);
    builder.launch("fill", {}, {.dims = {4}, .scalars = {1}}, {{builder.output(ElementType::f32, 4)}});
    const Step step = std::move(builder).seal(1);
    const Placement placement = natural(step);
    const auto session = subject.device.prepare(step, placement, {});
    iterate(*session, *inline_submitter(step, *session), {});
    if (subject.info.computes) read_all(*session, step);
    return {};
  } catch (const std::exception& error) {
    return message_of(error);
  }
}

bool matches(const std::string& name, const std::string& pattern) {
  if (pattern.find_first_of("*?[") == std::string::npos) return name.find(pattern) != std::string::npos;
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace

std::string_view name_of(CaseOutcome::Status status) {
  constexpr std::string_view kNames[] = {"passed", "skipped", "failed", "not run"};
  return kNames[static_cast<int>(status)];
}

std::string reason_to_skip(const Subject& subject, const Needs& needs) {
  const DeviceInfo& info = subject.info;
  if (needs.runs && !info.runs()) return "it runs nothing";
  if (needs.results && !info.computes) return "it computes nothing that could be compared";
  const std::pair<bool, std::pair<const Capability*, const char*>> capabilities[] = {
      {needs.graphs, {&info.graphs, "no graphs"}},
      {needs.host_functions, {&info.host_functions, "no host functions"}},
      {needs.host_memory, {&info.host_memory, "no host memory that kernels use while the host does"}},
      {needs.kernel_clock, {&info.kernel_clock, "no clock in kernels"}},
      {needs.compute_units, {&info.compute_units, "no streams on a part of the compute units"}}};
  for (const auto& [is_needed, declared] : capabilities)
    if (is_needed && !*declared.first) return fmt::format("{}: {}", declared.second, declared.first->reason);
  if (needs.precision &&
      std::find(info.precisions.begin(), info.precisions.end(), *needs.precision) == info.precisions.end())
    return fmt::format("precision {} is not offered", name_of(*needs.precision));
  if (needs.second_device && !subject.open_again) return "it cannot be opened a second time";
  return {};
}

std::vector<const ConformanceCase*> matching(std::span<const ConformanceCase> all,
                                             std::span<const std::string> patterns) {
  std::vector<const ConformanceCase*> chosen;
  for (const ConformanceCase& each : all) {
    const std::string name = each.full_name();
    if (patterns.empty() || std::any_of(patterns.begin(), patterns.end(),
                                        [&](const std::string& pattern) { return matches(name, pattern); }))
      chosen.push_back(&each);
  }
  return chosen;
}

std::size_t ConformanceResults::count(CaseOutcome::Status status) const {
  return static_cast<std::size_t>(std::count_if(
      results.begin(), results.end(), [&](const CaseResult& result) { return result.outcome.status == status; }));
}

ConformanceResults examine(Subject& subject, std::span<const ConformanceCase* const> cases, const Control& control) {
  ConformanceResults report{subject.info, {}, {}, false};
  std::string reason_not_to_run;
  for (const ConformanceCase* const each : cases) {
    if (reason_not_to_run.empty() && control.stop != nullptr &&
        control.stop->load(std::memory_order_relaxed)) {  // set by a signal; orders nothing else
      report.is_interrupted = true;
      reason_not_to_run = "interrupted";
    }
    if (!reason_not_to_run.empty()) {
      report.results.push_back({each, {CaseOutcome::Status::not_run, reason_not_to_run}, 0});
      continue;
    }
    if (control.progress)
      control.progress(*each, static_cast<int>(report.results.size()), static_cast<int>(cases.size()));
    const std::int64_t begun_ns = now_ns();
    CaseOutcome outcome = examine(subject, *each);
    if (outcome.status == CaseOutcome::Status::failed) {
      report.lost = device_problem(subject);
      if (!report.lost.empty()) reason_not_to_run = "the device was lost in " + each->full_name();
    }
    report.results.push_back({each, std::move(outcome), static_cast<double>(now_ns() - begun_ns) * 1e-9});
  }
  return report;
}

}  // namespace weir::conformance
