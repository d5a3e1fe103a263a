#include "lab/fleet/probe/meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/relax.h"
#include "lab/fleet/figures.h"
#include "measure/statistics.h"
#include "run/check.h"
#include "submit/placement.h"

namespace weir::fleet {
namespace {

constexpr std::size_t kMostIterations = 2000;
constexpr double kReadingNs = 50e6;

std::string_view words_of(const std::string& figure) {
  const FigureKind* const kind = find_figure(figure);
  return kind == nullptr ? std::string_view(figure) : kind->words;
}

// Of all bits, at memory's speed: no protection against malice, but every changed bit changes it.
std::uint64_t digest_of(std::span<const std::byte> bytes) {
  std::uint64_t digest = bytes.size(), word = 0;
  for (std::size_t i = 0; i + sizeof word <= bytes.size(); i += sizeof word) {
    std::memcpy(&word, bytes.data() + i, sizeof word);
    digest = (digest ^ word) * 0x9e3779b97f4a7c15u;  // odd, so that each step is a bijection of the digest
    digest ^= digest >> 29;
  }
  for (std::size_t i = bytes.size() / sizeof word * sizeof word; i < bytes.size(); ++i)
    digest = (digest ^ static_cast<std::uint64_t>(bytes[i])) * 0x9e3779b97f4a7c15u;
  return digest;
}

}  // namespace

void Meters::lacks(const std::string& figure, std::string reason) {
  Figure none;
  none.name = figure;
  none.reason = std::move(reason);
  without.push_back(std::move(none));
}

StepMeter::StepMeter(Device& device, MeterPlan plan)
    : Meter(plan.figure),
      plan_(std::move(plan)),
      computes_(device.info().computes),
      is_virtual_(device.info().is_virtual),
      placement_(place(plan_.step, "natural")) {
  figure.to = plan_.to;
  const SubmitChoice choice = parse_submit(plan_.submit, placement_.stream_count);
  SessionOptions options = choice.session_options();
  options.marks_iterations = false;               // they cost a launch, and the host's clock is enough
  options.is_pipelined = plan_.same.has_value();  // telemetry_under_load() submits several at once
  session_ = device.prepare(plan_.step, placement_, options);
  submitter_ = make_submitter(choice, plan_.step, placement_, *session_);
}

double StepMeter::iterate() {
  const std::int64_t opened_ns = session_->now_ns();
  session_->begin_iteration();
  const std::int64_t begun_ns = plan_.times_submit ? session_->now_ns() : opened_ns;
  submitter_->submit_step();
  if (!plan_.times_submit) session_->finish();
  std::int64_t ended_ns = session_->now_ns();
  if (plan_.extra > 0) {
    const auto until = ended_ns + static_cast<std::int64_t>(static_cast<double>(ended_ns - begun_ns) * plan_.extra);
    if (is_virtual_) {
      session_->pause(until - ended_ns);
      ended_ns = session_->now_ns();
    } else {
      while ((ended_ns = session_->now_ns()) < until) weir::relax(0);
    }
  }
  if (plan_.times_submit) session_->finish();
  return static_cast<double>(ended_ns - begun_ns);
}

double StepMeter::sample() {
  iterate();  // caches and clocks are those of other figures before it
  std::vector<double> times;
  const std::int64_t begun_ns = session_->now_ns();
  while (times.size() < static_cast<std::size_t>(plan_.iterations) ||
         (session_->now_ns() - begun_ns < plan_.least_ns && times.size() < kMostIterations))
    times.push_back(iterate());
  compare_bits();
  const double ns = median(times);
  iteration_ns_ = ns;
  return plan_.is_rate ? plan_.amount * 1e9 / ns : ns / plan_.amount;
}

std::optional<Telemetry> StepMeter::telemetry_under_load(Device& device) {
  // Enough that the device still works when the reading ends, which takes some milliseconds.
  const double wanted = iteration_ns_ > 0 ? kReadingNs / iteration_ns_ : 1;
  for (int i = std::clamp(static_cast<int>(std::min(wanted, 1e3)), 4, 100); i > 0; --i) {
    session_->begin_iteration();
    submitter_->submit_step();
  }
  Telemetry telemetry = device.telemetry();
  session_->finish();
  return telemetry;
}

void StepMeter::compare_bits() {
  ++sample_count_;
  if (!plan_.same || !computes_) return;
  std::vector<std::byte> bytes(plan_.step.buffers()[*plan_.same].size_bytes());
  session_->read(*plan_.same, bytes);
  const std::uint64_t digest = digest_of(bytes);
  if (!bits_) bits_ = digest;
  if (*bits_ != digest)
    wrong_.push_back(fmt::format("{}: the same operands gave other bits in repetition {} than in the first",
                                 words_of(plan_.figure), sample_count_));
}

std::vector<std::string> StepMeter::check() {
  if (!computes_) return wrong_;
  const CheckReport report = check_outputs(plan_.step, *session_);
  if (report.status == CheckReport::Status::failed)
    wrong_.push_back(fmt::format("{}: {}", words_of(plan_.figure), report.reason));
  return wrong_;
}

}  // namespace weir::fleet
