// How fast virtual time goes: commands per second of one core's time, submitted inline and finished. The bar is 5
// million for tiny_kernel_stress. Counted by the thread's own clock, so that other programs on the machine do not
// matter much.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "measure/statistics.h"
#include "step/workload/workload.h"
#include "submit/placement.h"
#include "submit/submitter.h"

namespace {

using namespace weir;

std::int64_t core_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void report(const char* name, int streams, const char* submit) {
  constexpr int kRounds = 11;
  const Workload& workload = workload_named(name);
  const Step step = workload.build(Params(workload.params, Scale::full, {}), streams);
  const Placement placement = place(step, "natural");
  const auto device = open_device("sim:h200", {});
  const SubmitChoice choice = parse_submit(submit, streams);
  const auto session = device->prepare(step, placement, {.mode = choice.mode});
  const auto submitter = make_submitter(choice, step, placement, *session);
  const int repeat = std::max(1, static_cast<int>(200'000 / step.commands().size()));
  std::vector<double> samples;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t begun = core_ns();
    for (int i = 0; i < repeat; ++i) {
      session->begin_iteration();
      submitter->submit_step();
      session->finish();
    }
    session->take_spans();
    samples.push_back(static_cast<double>(step.commands().size()) * repeat / static_cast<double>(core_ns() - begun) *
                      1e3);
  }
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  fmt::print("{:<20}{:>8}  {:<8}{:>10.2f}   [{:.2f} .. {:.2f}]\n", name, streams, submit, median(samples), *least,
             *most);
}

}  // namespace

int main() {
  fmt::print("{:<20}{:>8}  {:<8}{:>10}\n", "sim:h200", "streams", "submit", "M commands/s");
  for (const int streams : {1, 16, 128}) report("tiny_kernel_stress", streams, "inline");
  report("tiny_kernel_stress", 16, "graph");
  report("hetero_kernels", 8, "inline");
  return 0;
}
