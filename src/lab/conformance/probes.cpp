// Probe kernels: host and device use the same memory while a kernel runs, and kernels read a clock.
#include <fmt/format.h>

#include <atomic>
#include <vector>

#include "kernel/moment.h"
#include "kernel/toil.h"
#include "lab/conformance/checks.h"
#include "lab/conformance/list.h"

namespace weir::conformance {
namespace {

constexpr std::int64_t kLimitNs = 5'000'000'000;  // a hold ends by itself after this time
constexpr Needs kProbeNeeds{.runs = true, .host_memory = true, .kernel_clock = true};

std::int32_t* elements(Session& session, BufferId buffer) {
  return reinterpret_cast<std::int32_t*>(session.host_memory(buffer).data());
}

// Lets time pass until `is_done`; returns false if the limit passes first.
template <class Condition>
bool await(Session& session, bool is_virtual, StreamId stream, Condition&& is_done) {
  const std::int64_t begun_ns = session.now_ns();
  while (!is_done()) {
    if (session.now_ns() - begun_ns > kLimitNs) return false;
    session.poll(stream);
    session.pause(is_virtual ? 500 : 20'000);
  }
  return true;
}

// Always released at the end: a failed check must not leave anything hanging.
class Flag {
 public:
  explicit Flag(std::int32_t* at) : at_(at) {}
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  ~Flag() { set(); }
  void set() { std::atomic_ref(*at_).store(1, std::memory_order_release); }  // pairs with the loads in hold's bodies

 private:
  std::int32_t* at_;
};

// The host sees that a kernel runs, the kernel sees what the host writes, and commands behind it wait.
CaseOutcome flag_while_it_runs(Subject& subject) {
  StepBuilder builder(1);
  const BufferId flag = builder.host(ElementType::i32, 1, Init::constant, 1, 0);
  const BufferId held = builder.host(ElementType::i32, kMomentElements, Init::constant, 1, 0);
  const BufferId behind = builder.host(ElementType::i32, kMomentElements, Init::constant, 1, 0);
  builder.launch("hold", {}, {.type = ElementType::i32, .dims = {kLimitNs}}, {{flag}, {held}});
  builder.launch("stamp", {}, {.type = ElementType::i32, .dims = {1'000, 1}}, {{behind}});
  const Step step = std::move(builder).seal(1);
  const Placement placement = natural(step);
  const auto session = subject.device.prepare(step, placement, {.marks_iterations = false});
  session->begin_iteration();
  const auto submitter = inline_submitter(step, *session);
  Flag release(elements(*session, flag));
  submitter->submit_step();
  const auto moment = [&](BufferId buffer) { return read_moment(elements(*session, buffer)); };
  const bool was_seen = await(*session, subject.info.is_virtual, 0, [&] { return moment(held).started_ns != 0; });
  session->pause(1'000'000);
  const bool has_ended = moment(held).ended_ns != 0, was_overtaken = moment(behind).started_ns != 0;
  release.set();
  session->finish();
  if (!was_seen) return failed("the host does not see that a kernel has started while it runs");
  if (has_ended) return failed("a kernel that waits for the host's flag ended without it");
  if (was_overtaken) return failed("the command behind a kernel that is held has started");
  const Moment first = moment(held), second = moment(behind);
  if (first.ended_ns < first.started_ns) return failed("a kernel that was held ends before it starts");
  if (first.ended_ns - first.started_ns >= kLimitNs)
    return failed("a kernel that waits for the host's flag does not see it");
  if (second.started_ns < first.ended_ns)
    return failed(fmt::format("the command behind it starts {} ns too early", first.ended_ns - second.started_ns));
  return passed();
}

// Blocks of a stamp take at least as long as requested, on the kernel's clock.
CaseOutcome stamps_last(Subject& subject) {
  constexpr std::int64_t kStampNs = 300'000, kBlocks = 3;
  StepBuilder builder(1);
  const BufferId moments =
      builder.host(ElementType::i32, static_cast<std::uint64_t>(2 * kBlocks * kMomentElements), Init::constant, 1, 0);
  for (std::uint64_t i = 0; i < 2; ++i)
    builder.launch("stamp", {}, {.type = ElementType::i32, .dims = {kStampNs, kBlocks}},
                   {{moments, i * kBlocks * kMomentElements, kBlocks * kMomentElements}});
  const Step step = std::move(builder).seal(1);
  const Placement placement = natural(step);
  const auto session = subject.device.prepare(step, placement, {});
  iterate(*session, *inline_submitter(step, *session), {});
  std::int64_t last_end_ns = 0;
  for (std::ptrdiff_t block = 0; block < 2 * kBlocks; ++block) {
    const Moment moment = read_moment(elements(*session, moments) + block * kMomentElements);
    if (moment.started_ns == 0 || moment.ended_ns - moment.started_ns < kStampNs)
      return failed(fmt::format("block {} of {} ns starts at {} and ends at {}", block, kStampNs, moment.started_ns,
                                moment.ended_ns));
    if (block >= kBlocks && moment.started_ns < last_end_ns)
      return failed(fmt::format("block {} starts {} ns before the kernel in front of it ends", block,
                                last_end_ns - moment.started_ns));
    if (block < kBlocks) last_end_ns = std::max(last_end_ns, moment.ended_ns);
  }
  return passed();
}

// Spins on one stream cannot overlap: together they take at least the sum, on the session's clock.
CaseOutcome spins_last(Subject& subject) {
  constexpr std::int64_t kSpinNs = 1'000'000;
  constexpr int kSpins = 4;
  StepBuilder builder(1);
  for (int i = 0; i < kSpins; ++i)
    builder.launch("spin", {}, {.dims = {kSpinNs, 1}}, {{builder.output(ElementType::f32, 1)}});
  const Step step = std::move(builder).seal(1);
  const Placement placement = natural(step);
  const auto session = subject.device.prepare(step, placement, {});
  const auto submitter = inline_submitter(step, *session);
  const std::int64_t begun_ns = session->now_ns();
  iterate(*session, *submitter, {});
  const std::int64_t took_ns = session->now_ns() - begun_ns;
  // A device's clock may run a little faster than the host's.
  if (took_ns < kSpins * kSpinNs * 99 / 100)
    return failed(fmt::format("{} spins of {} ns took {} ns", kSpins, kSpinNs, took_ns));
  return passed();
}

// A job that is told to end at once and then launched again does every unit once: counted by launch, by unit and by the
// kernel itself.
CaseOutcome units_are_done_once(Subject& subject) {
  constexpr std::int64_t kUnits = 50, kBlocks = 4, kUnitNs = 10'000;
  StepBuilder builder(1);
  const bool is_virtual = subject.info.is_virtual;  // such a device keeps only the host's buffers
  const auto buffer = [&](std::uint64_t count) {
    return is_virtual ? builder.host(ElementType::i32, count, Init::constant, 1, 0)
                      : builder.constant(ElementType::i32, count, 0);
  };
  const BufferId flag = builder.host(ElementType::i32, 1, Init::constant, 1, 0);
  const BufferId records = builder.host(ElementType::i32, kToilRecordElements, Init::constant, 1, 0);
  const BufferId state = buffer(kToilStateElements), done = buffer(kUnits), memory = buffer(4);
  builder.launch("toil", {}, {.type = ElementType::i32, .dims = {kUnitNs, kUnits, kBlocks, kToilStoppable}},
                 {{flag}, {records}, {state}, {done}, {memory}});
  const Step step = std::move(builder).seal(1);
  const Placement placement = natural(step);
  const auto session = subject.device.prepare(step, placement, {.marks_iterations = false});
  auto* const record = reinterpret_cast<std::int64_t*>(session->host_memory(records).data());
  std::atomic_ref stop_flag(*elements(*session, flag));
  const auto launch = [&](std::int64_t job, std::int64_t epoch) {
    record[kToilJob] = job;
    record[kToilEpoch] = epoch;
    session->begin_iteration();
    inline_submitter(step, *session)->submit_step();
    session->finish();
    return record[kToilTaken];
  };
  stop_flag.store(1, std::memory_order_release);  // pairs with the loads in toil's bodies
  if (const std::int64_t taken = launch(0, 0); taken != 0)
    return failed(fmt::format("told to end before it began, it takes {} units", taken));
  for (std::int64_t job = 0; job < 3; ++job)
    if (const std::int64_t taken = launch(job, 1); taken != kUnits)
      return failed(fmt::format("job {} ends with {} units of {}", job, taken, kUnits));
  if (record[kToilLaunches] != 4) return failed(fmt::format("it counts {} launches of 4", record[kToilLaunches]));
  // In the last launch, each of the blocks did its units one after the other.
  const std::int64_t min_ns = (kUnits + kBlocks - 1) / kBlocks * kUnitNs;
  const std::int64_t took_ns = record[kToilEnded] - record[kToilStarted];
  if (!is_virtual && took_ns < min_ns) return failed(fmt::format("{} ns of work took {} ns", min_ns, took_ns));
  const auto words = [&](BufferId from, std::size_t count) {
    std::vector<std::int32_t> read(count);
    if (is_virtual) {
      std::copy_n(elements(*session, from), count, read.begin());
    } else {
      session->read(from, std::as_writable_bytes(std::span(read)));
    }
    return read;
  };
  const std::vector<std::int32_t> jobs = words(done, kUnits), own = words(state, kToilStateElements);
  for (std::size_t unit = 0; unit < jobs.size(); ++unit)
    if (jobs[unit] != 3) return failed(fmt::format("unit {} was done in {} jobs of 3", unit, jobs[unit]));
  if (own[kToilLost] != 0 || own[kToilRepeated] != 0)
    return failed(fmt::format("{} units lost, {} repeated", own[kToilLost], own[kToilRepeated]));
  return passed();
}

}  // namespace

Cases probes() {
  Cases cases;
  constexpr auto kType = ElementType::i32;
  cases.push_back({"probes", "a flag while it runs", kProbeNeeds, flag_while_it_runs, "hold", kType});
  cases.push_back({"probes", "stamps last as long as they should", kProbeNeeds, stamps_last, "stamp", kType});
  cases.push_back({"probes", "units are done once", kProbeNeeds, units_are_done_once, "toil", kType});
  cases.push_back({"probes",
                   "spins last as long as they should",
                   {.runs = true, .kernel_clock = true},
                   spins_last,
                   "spin",
                   ElementType::f32});
  return cases;
}

}  // namespace weir::conformance
