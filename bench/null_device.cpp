// What the submit path itself costs: ns per command on the null device, by batch size and submitter, on one core.
// The bar is 5 ns at batch 64.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "measure/statistics.h"
#include "step/workload/workload.h"
#include "submit/placement.h"
#include "submit/submitter.h"

namespace {

using namespace weir;

constexpr int kStreams = 8;
constexpr int kRounds = 21;

// Median over rounds of the time of one whole step, divided by its commands.
template <class Body>
void report(const char* what, std::size_t batch, std::size_t commands, Body&& body) {
  std::vector<double> samples;
  for (int round = 0; round < kRounds; ++round) {
    constexpr int kRepeat = 50;
    const std::int64_t begun = now_ns();
    for (int i = 0; i < kRepeat; ++i) body();
    samples.push_back(static_cast<double>(now_ns() - begun) / kRepeat / static_cast<double>(commands));
  }
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  fmt::print("{:<22}{:>8}  {:>8.2f}   [{:.2f} .. {:.2f}]\n", what, batch, median(samples), *least, *most);
}

}  // namespace

int main() {
  const Workload& workload = workload_named("tiny_kernel_stress");
  const Step step = workload.build(Params(workload.params, Scale::small, {}), kStreams);
  const Placement placement = place(step, "natural");
  const auto device = open_device("null", {});
  const auto session = device->prepare(step, placement, {});
  std::vector<CommandId> ids(step.commands().size());
  std::iota(ids.begin(), ids.end(), CommandId{0});

  fmt::print("null device, tiny_kernel_stress, {} streams, {} commands a step\n\n", kStreams, ids.size());
  fmt::print("{:<22}{:>8}  {:>8}\n", "", "batch", "ns/command");
  for (const std::size_t batch : {std::size_t{1}, std::size_t{8}, std::size_t{64}, ids.size()}) {
    report("session, by hand", batch, ids.size(), [&] {
      for (std::size_t i = 0; i < ids.size(); i += batch)
        session->submit(std::span(ids).subspan(i, std::min(batch, ids.size() - i)));
    });
  }
  for (const char* way : {"inline", "threads:2"}) {
    const auto submitter = make_submitter(parse_submit(way, kStreams), step, placement, *session);
    report(way, ids.size(), ids.size(), [&] { submitter->submit_step(); });
  }
  return 0;
}
