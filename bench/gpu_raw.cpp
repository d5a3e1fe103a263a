// Weir against a hand-written CUDA loop on tiny_kernel_stress, in one process and in alternating rounds: what does the
// toolkit cost? The bar: at most 1.05x for each way to submit, at each number of streams.
#include "gpu_raw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "measure/statistics.h"
#include "step/workload/workload.h"
#include "submit/placement.h"
#include "submit/submitter.h"

namespace {

using namespace weir;

constexpr double kBar = 1.05;
constexpr std::int64_t kRound_ns = 50'000'000;  // of one side: short, so that both see the same machine

struct Side {
  std::function<void()> iterate;
  std::vector<double> us_per_command;  // by round
};

void measure(Side& side, int iterations, double commands) {
  const std::int64_t started = now_ns();
  for (int i = 0; i < iterations; ++i) side.iterate();
  side.us_per_command.push_back(static_cast<double>(now_ns() - started) / 1e3 / iterations / commands);
}

// Both sides in turn; who goes first alternates, so that a drift of clocks favours nobody.
void measure_both(Side& raw, Side& ours, int rounds, double commands) {
  for (int i = 0; i < 3; ++i) {
    raw.iterate();
    ours.iterate();
  }
  const std::int64_t started = now_ns();
  raw.iterate();
  ours.iterate();
  const std::int64_t both = std::max<std::int64_t>(1, now_ns() - started);
  const int iterations = static_cast<int>(std::clamp<std::int64_t>(2 * kRound_ns / both, 3, 2000));
  for (int round = 0; round < rounds; ++round) {
    measure(round % 2 == 0 ? raw : ours, iterations, commands);
    measure(round % 2 == 0 ? ours : raw, iterations, commands);
  }
}

// Each value went through four kernels, each of which rounds alike everywhere.
void verify(const std::vector<float>& in, const std::vector<float>& out, std::string_view who) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    const float product = in[i] * 1.5f;
    const float expected = std::clamp(std::fabs(product + 0.5f), 0.0f, 10.0f);
    if (out[i] != expected) fail(fmt::format("{}: element {} is {}, {} was expected", who, i, out[i], expected));
  }
}

std::vector<float> read(Session& session, const Step& step, BufferId id) {
  std::vector<float> values(step.buffers()[id].count);
  session.read(id, std::as_writable_bytes(std::span(values)));
  return values;
}

// One row of the table; true if the bar holds.
bool compare(Device& device, raw::Mode mode, int streams, int rounds) {
  const Workload& workload = workload_named("tiny_kernel_stress");
  const Params params(workload.params, Scale::full, {});
  const Step step = workload.build(params, streams);
  const double commands = static_cast<double>(step.commands().size());
  const Placement placement = place(step, "natural");
  const std::string name = mode == raw::Mode::loop      ? "inline"
                           : mode == raw::Mode::threads ? fmt::format("threads:{}", std::min(streams, 8))
                                                        : "graph";
  const SubmitChoice choice = parse_submit(name, streams);
  const std::unique_ptr<raw::Stress> stress = raw::make_stress(mode, streams, std::max(1, choice.threads));
  const std::unique_ptr<Session> session = device.prepare(step, placement, {.mode = choice.mode});
  const std::unique_ptr<Submitter> submitter = make_submitter(choice, step, placement, *session);

  Side raw_side{[&] { stress->iterate(); }, {}};
  Side our_side{[&] {
                  session->begin_iteration();
                  submitter->submit_step();
                  session->finish();
                },
                {}};
  measure_both(raw_side, our_side, rounds, commands);

  for (int s = 0; s < streams; ++s) {
    verify(stress->input(s), stress->output(s), "raw");
    const auto first = static_cast<BufferId>(2 * s);  // the workload makes input and output stream by stream
    verify(read(*session, step, first), read(*session, step, first + 1), "weir");
  }

  std::vector<double> ratios;
  for (std::size_t i = 0; i < raw_side.us_per_command.size(); ++i)
    ratios.push_back(our_side.us_per_command[i] / raw_side.us_per_command[i]);
  const auto interval = bootstrap_interval(ratios, [](std::span<const double> values) { return median(values); });
  const auto range = [](const std::vector<double>& values) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return fmt::format("{:.3f}-{:.3f}", *low, *high);
  };
  const double ratio = median(ratios);
  const bool is_unsure = interval && interval->low <= kBar && interval->high > kBar;
  const std::string verdict = fmt::format("{}{}", ratio <= kBar ? "ok" : "OVER", is_unsure ? "?" : "");
  fmt::print("| {:<10} | {:>7} | {:>6.3f} | {:>13} | {:>6.3f} | {:>13} | {:>6.3f} | {:>13} | {:<5} |\n", name, streams,
             median(raw_side.us_per_command), range(raw_side.us_per_command), median(our_side.us_per_command),
             range(our_side.us_per_command), ratio,
             interval ? fmt::format("{:.3f}-{:.3f}", interval->low, interval->high) : "-", verdict);
  std::fflush(stdout);
  return ratio <= kBar;
}

}  // namespace

int main(int argc, char** argv) try {
  // bench_gpu_raw [ROUNDS [loop|threads|graph]]
  const int rounds = argc > 1 ? std::max(5, std::atoi(argv[1])) : 41;
  const std::string_view only = argc > 2 ? argv[2] : "";
  const std::unique_ptr<Device> device = open_device("cuda:0", {});
  const DeviceInfo info = device->info();
  fmt::print(
      "tiny_kernel_stress, {} kernels per stream and iteration, {} ({}), {} rounds, three times as many with threads.\n"
      "us per command: median, min-max over rounds; ratio: median of the rounds' ratios and its 95 % interval\n\n",
      raw::kOperations * raw::kKernels, info.model, info.driver, rounds);
  fmt::print(
      "| submit     | streams |    raw |       min-max |   weir |       min-max |  ratio |      interval | bar   |\n");
  fmt::print(
      "| ---------- | ------- | ------ | ------------- | ------ | ------------- | ------ | ------------- | ----- |\n");
  bool is_within = true;
  for (const auto& [mode, name] :
       {std::pair{raw::Mode::loop, "loop"}, {raw::Mode::threads, "threads"}, {raw::Mode::graph, "graph"}}) {
    if (!only.empty() && only != name) continue;
    for (const int streams : {1, 8, 32, 64})
      is_within = compare(*device, mode, streams, mode == raw::Mode::threads ? 3 * rounds : rounds) && is_within;
  }
  fmt::print("\nbar: weir <= {:.2f}x raw: {}\n", kBar, is_within ? "holds" : "MISSED");
  return is_within ? 0 : 1;
} catch (const weir::Error& error) {
  fmt::print(stderr, "{}\n{}\n", error.what(), error.hint);
  return 1;
}
