// Lifetimes: concurrent sessions, sessions that end with work in flight, are reset, reused, or outlive their device.
#include <fmt/format.h>

#include "lab/conformance/checks.h"
#include "lab/conformance/list.h"

namespace weir::conformance {
namespace {

std::string wrong_in(Subject& subject, Session& session, const Step& step, int iterations) {
  if (!subject.info.computes) return {};
  return difference_of(step, read_all(session, step), reference(step, iterations));
}

// Two sessions with work in flight at once: neither touches the other's buffers.
CaseOutcome beside_each_other(Subject& subject) {
  const Step first = random_step(41, 3), second = random_step(42, 5);
  const Placement first_placement = natural(first), second_placement = natural(second);
  const auto one = subject.device.prepare(first, first_placement, {.is_pipelined = true});
  const auto two = subject.device.prepare(second, second_placement, {.is_pipelined = true});
  const auto submit_one = inline_submitter(first, *one), submit_two = inline_submitter(second, *two);
  constexpr int kIterations = 5;
  for (int i = 0; i < kIterations; ++i) {
    one->begin_iteration();
    two->begin_iteration();
    submit_one->submit_step();
    submit_two->submit_step();
  }
  two->finish();
  one->finish();
  if (const std::string wrong = wrong_in(subject, *one, first, kIterations); !wrong.empty())
    return failed("the first session: " + wrong);
  if (const std::string wrong = wrong_in(subject, *two, second, kIterations); !wrong.empty())
    return failed("the second session: " + wrong);
  return passed();
}

CaseOutcome one_after_the_other(Subject& subject) {
  for (std::uint64_t seed = 43; seed < 53; ++seed) {
    const Step step = random_step(seed, 4);
    if (CaseOutcome outcome = same_buffers(subject, step, natural(step), {}); !outcome.is_passed()) return outcome;
  }
  return passed();
}

// Ends sessions without waiting; a concurrent session and a later one must be right.
CaseOutcome ended_in_flight(Subject& subject, const std::string& submit) {
  const Step step = random_step(44, 4);
  const Placement placement = natural(step);
  const SubmitChoice choice = parse_submit(submit, 4);
  const auto kept = subject.device.prepare(step, placement, options_of(choice, true));
  const auto submit_kept = make_submitter(choice, step, placement, *kept);
  kept->begin_iteration();
  submit_kept->submit_step();
  for (int i = 0; i < 3; ++i) {
    const auto session = subject.device.prepare(step, placement, options_of(choice, true));
    const auto submitter = make_submitter(choice, step, placement, *session);
    for (int k = 0; k < 3; ++k) {
      session->begin_iteration();
      submitter->submit_step();
    }
  }
  kept->finish();
  if (const std::string wrong = wrong_in(subject, *kept, step, 1); !wrong.empty())
    return failed("the session beside them: " + wrong);
  return same_buffers(subject, step, placement, {submit, true, 2});
}

CaseOutcome reset_and_again(Subject& subject) {
  const Step step = random_step(45, 3);
  const Placement placement = natural(step);
  const auto session = subject.device.prepare(step, placement, {});
  const auto submitter = inline_submitter(step, *session);
  for (const int iterations : {2, 1, 3}) {
    iterate(*session, *submitter, {.iterations = iterations});
    if (const std::string wrong = wrong_in(subject, *session, step, iterations); !wrong.empty())
      return failed(fmt::format("after {} iterations: {}", iterations, wrong));
    session->reset();
  }
  return passed();
}

CaseOutcome outlives_its_device(Subject& subject) {
  auto device = subject.open_again({});
  const Step step = random_step(46, 2);
  const Placement placement = natural(step);
  const auto session = device->prepare(step, placement, {});
  device.reset();
  iterate(*session, *inline_submitter(step, *session), {});
  const std::string wrong = wrong_in(subject, *session, step, 1);
  return wrong.empty() ? passed() : failed(wrong);
}

CaseOutcome finish_without_work(Subject& subject) {
  const Step step = random_step(47, 2);
  const Placement placement = natural(step);
  const auto session = subject.device.prepare(step, placement, {});
  session->finish();
  session->finish();
  iterate(*session, *inline_submitter(step, *session), {});
  const std::string wrong = wrong_in(subject, *session, step, 1);
  return wrong.empty() ? passed() : failed(wrong);
}

}  // namespace

Cases sessions() {
  Cases cases;
  cases.push_back({"sessions", "beside each other", {}, beside_each_other});
  cases.push_back({"sessions", "one after the other", {}, one_after_the_other});
  cases.push_back(
      {"sessions", "ended in flight", {}, [](Subject& subject) { return ended_in_flight(subject, "inline"); }});
  cases.push_back({"sessions", "ended in flight/graph", {.graphs = true}, [](Subject& subject) {
                     return ended_in_flight(subject, "graph");
                   }});
  cases.push_back({"sessions", "reset and used again", {}, reset_and_again});
  cases.push_back({"sessions", "finish without work", {}, finish_without_work});
  cases.push_back({"sessions", "outliving their device", {.second_device = true}, outlives_its_device});
  return cases;
}

}  // namespace weir::conformance
