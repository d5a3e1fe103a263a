#include "lab/race/step_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "run/check.h"

namespace weir::race {
namespace {

// More than a virtual host needs to submit any step; virtual time costs nothing.
constexpr std::int64_t kVirtualDelayNs = 100'000'000'000;

std::uint64_t digest(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  };
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    add(word);
  }
  for (; at < bytes.size(); ++at) add(static_cast<std::uint64_t>(bytes[at]));
  return hash;
}

}  // namespace

StepTrial::StepTrial(Device& device, const Step& step, const Placement& placement, bool is_pipelined)
    : device_(device),
      step_(step),
      placement_(placement),
      is_pipelined_(is_pipelined),
      is_virtual_(device.info().is_virtual) {}

Disturbance StepTrial::disturbance(StepCommand first, StepCommand second, std::int64_t patience_ns) const {
  Disturbance::Delay delay;
  delay.command = first.command;
  delay.ns = is_virtual_ ? kVirtualDelayNs : patience_ns;
  delay.until = second.command;
  delay.iterations_later = second.iteration - first.iteration;
  delay.iteration = first.iteration;
  return {{}, {delay}};
}

StepOutcome StepTrial::run(const Disturbance& disturbance) {
  SessionOptions options;
  options.is_pipelined = is_pipelined_;
  options.disturbance = disturbance;
  options.is_traced = true;
  const int iterations = is_pipelined_ ? 2 : 1;
  options.trace_iterations = iterations;
  const auto session = device_.prepare(step_, placement_, options);
  std::vector<CommandId> ids(step_.commands().size());
  std::iota(ids.begin(), ids.end(), 0);
  StepOutcome outcome;
  for (int i = 0; i < iterations; ++i) {
    session->begin_iteration();
    session->submit(ids);
  }
  try {
    session->finish();
  } catch (const Error& error) {
    outcome.wrong = error.what();
  }
  outcome.timeline = session->timeline();
  if (is_virtual_) return outcome;
  std::vector<std::byte> bytes;
  for (BufferId id = 0; id < step_.buffers().size(); ++id) {
    bytes.resize(step_.buffers()[id].size_bytes());
    session->read(id, bytes);
    outcome.digests.push_back(digest(bytes));
  }
  if (outcome.wrong.empty() && (!is_pipelined_ || step_.is_repeatable())) {
    const CheckReport check = check_outputs(step_, *session);
    if (check.status == CheckReport::Status::failed) outcome.wrong = check.reason;
  }
  return outcome;
}

const StepOutcome& StepTrial::intact() {
  if (!intact_) {
    intact_ = run({});
    if (!intact_->wrong.empty()) fail(fmt::format("the step is wrong before any wait is missing: {}", intact_->wrong));
  }
  return *intact_;
}

TrialVerdict StepTrial::judge(const Disturbance& disturbance, StepCommand first, StepCommand second) {
  if (!is_virtual_) intact();
  const StepOutcome outcome = run(disturbance);
  const auto span_of = [&](StepCommand which) {
    for (const Span& span : outcome.timeline.spans)
      if (span.command == which.command && span.iteration == which.iteration) return span;
    fail("the timeline lacks a command of the step");
  };
  const Span before = span_of(first), after = span_of(second);
  TrialVerdict verdict;
  verdict.is_overtaken = after.started_ns < before.ended_ns;
  verdict.said = verdict.is_overtaken ? fmt::format("the second started {} ns before the first ended",
                                                    before.ended_ns - after.started_ns)
                                      : "the second started after the first had ended";
  if (is_virtual_) {
    verdict.is_wrong = verdict.is_overtaken;
    verdict.said += ", in virtual time";
  } else if (!outcome.wrong.empty()) {
    verdict.is_wrong = true;
    verdict.said += "; " + outcome.wrong;
  } else if (const auto other = std::mismatch(outcome.digests.begin(), outcome.digests.end(), intact().digests.begin());
             other.first != outcome.digests.end()) {
    verdict.is_wrong = true;
    verdict.said += fmt::format("; buffer {} ends with other contents", other.first - outcome.digests.begin());
  } else {
    verdict.said += "; all buffers end with the same contents as otherwise";
  }
  return verdict;
}

}  // namespace weir::race
