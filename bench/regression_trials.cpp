// How often the comparison of bench runs is wrong: real kernels on this machine, each round in a process of its own as
// `weir bench` does it, equal runs compared with each other and with runs that have 12 % more to do. Then the same on
// made-up noise, 10,000 times per model. The bars: at most 1 % false verdicts, at least 95 % of the slowdowns found.
// usage: bench_regression_trials [TRIALS [ROUNDS [SAMPLES [SIMULATIONS]]]]   (3 rounds, 30 samples; a trial is one
// comparison of each kind and kernel: 27 processes, some 0.1 s each). RAW=FILE keeps all samples.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/clock.h"
#include "lab/kernels/latency_change.h"
#include "lab/kernels/method.h"
#include "regression_noise.h"

namespace {

using namespace weir;
using bench::RunTimes;

constexpr const char* kKernels[] = {"compute", "memory", "branches"};
constexpr int kKernelCount = 3;
// Parts of work in a run: 28 instead of 25 are 12 % more, in every kernel.
constexpr int kParts = 25, kMoreParts = 28;

class TrialKernel : public package::ReadyKernel {
 public:
  TrialKernel(int kind, int parts) : kind_(kind), parts_(parts) {
    if (kind == 1) memory_.assign(kMemoryWords, 1);
    if (kind == 2) {
      SplitMix random(1337);
      for (int i = 0; i < kChoices; ++i) choices_.push_back(static_cast<std::uint32_t>(random.next()));
    }
  }
  const package::Work& work() const override { return work_; }
  std::string how() const override { return "called"; }
  std::string device_name() const override { return "cpu"; }
  std::string device_model() const override { return "this"; }
  std::string clock() const override { return "CLOCK_MONOTONIC"; }
  double resolution_ns() const override { return 10; }
  package::BatchTime run(std::uint64_t count) override {
    const std::int64_t begun = now_ns();
    for (std::uint64_t i = 0; i < count; ++i) run_once();
    const auto taken = static_cast<double>(now_ns() - begun);
    return {.device_ns = taken, .host_ns = taken, .wall_ns = std::nullopt};
  }
  package::BatchTime run_cold() override { return run(1); }
  std::string cold_reason() const override { return "not here"; }
  package::Checked check() override { return {.outputs = {}, .reason = "no reference", .faults = {}}; }
  package::KernelMemory memory() override { return {}; }
  Telemetry telemetry() override { return {}; }
  std::optional<std::uint64_t> launches_per_run() const override { return std::nullopt; }

 private:
  static constexpr std::size_t kMemoryWords = (std::size_t{48} << 20) / sizeof(double), kSlice = 8192;
  static constexpr int kChoices = 1 << 16;

  void run_once() {
    for (int part = 0; part < parts_; ++part) {
      if (kind_ == 0) {
        double value = sink_;
        for (int i = 0; i < 1500; ++i) value = value * 0.999999 + 1e-6;
        sink_ = value;
      } else if (kind_ == 1) {
        // Always the slice that was touched longest ago: it is in no cache.
        double* const slice = memory_.data() + next_;
        for (std::size_t i = 0; i < kSlice; ++i) slice[i] = slice[i] * 0.5 + 1;
        next_ = (next_ + kSlice) % kMemoryWords;
      } else {
        std::uint32_t state = static_cast<std::uint32_t>(sink_);
        for (int i = 0; i < 600; ++i) {
          const std::uint32_t choice = choices_[next_++ % kChoices];
          if ((choice & 1U) != 0)
            state += choice >> 3;
          else if ((choice & 2U) != 0)
            state ^= choice << 1;
          else
            state = state * 3 + 1;
        }
        sink_ = static_cast<double>(state);
      }
    }
  }

  int kind_, parts_;
  package::Work work_;
  volatile double sink_ = 1;
  std::vector<double> memory_;
  std::vector<std::uint32_t> choices_;
  std::size_t next_ = 0;
};

struct Round {
  std::vector<double> samples, yardstick;
};

// bench_regression_trials --round KIND PARTS SAMPLES: what one process of `weir bench` measures, as text.
int measure_round(char** words) {
  TrialKernel kernel(std::atoi(words[0]), std::atoi(words[1]));
  bench::MethodOptions options;
  options.iterations = std::atoi(words[2]);
  options.measures_energy = false;
  const bench::MeasuredKernel found = bench::measure(kernel, Precision::fp64, options, nullptr);
  for (const double sample : found.samples_ns) fmt::print("{:.1f} ", sample);
  fmt::print("|");
  for (const double time : found.yardstick_ns) fmt::print(" {:.0f}", time);
  fmt::print("\n");
  return 0;
}

Round run_round(int kind, int parts, int samples) {
  // Executed anew, not only forked: a fork would inherit the layout of this process, and with it its luck.
  const std::string command = fmt::format("/proc/{}/exe --round {} {} {}", getpid(), kind, parts, samples);
  std::FILE* const pipe = popen(command.c_str(), "r");
  Round round;
  std::vector<double>* into = &round.samples;
  std::array<char, 64> word{};
  while (pipe != nullptr && std::fscanf(pipe, "%63s", word.data()) == 1) {
    if (word[0] == '|') {
      into = &round.yardstick;
      continue;
    }
    into->push_back(std::strtod(word.data(), nullptr));
  }
  if (pipe == nullptr || pclose(pipe) != 0 || round.samples.empty()) {
    fmt::print(stderr, "a round failed\n");
    std::exit(1);
  }
  return round;
}

std::string load_average() {
  std::ifstream file("/proc/loadavg");
  std::string load;
  file >> load;
  return load;
}

void run_trials(int trials, int rounds, int samples) {
  fmt::print("real kernels, {} samples over {} rounds on each side; load {} at the beginning\n\n", samples, rounds,
             load_average());
  std::ofstream raw;
  if (const char* const name = std::getenv("RAW")) raw.open(name);
  std::array<bench::TrialCounts, kKernelCount> equal, slower;
  const std::int64_t begun = now_ns();
  const auto at = [](int index) { return static_cast<std::size_t>(index); };
  for (int trial = 0; trial < trials; ++trial) {
    std::array<std::array<RunTimes, kKernelCount>, 3> runs;  // equal, equal, 12 % more
    for (int run = 0; run < 3; ++run)
      for (int round = 0; round < rounds; ++round)
        for (int kind = 0; kind < kKernelCount; ++kind) {
          const Round found = run_round(kind, run == 2 ? kMoreParts : kParts, samples / rounds);
          runs[at(run)][at(kind)].rounds.push_back(found.samples);
          runs[at(run)][at(kind)].yardstick.push_back(found.yardstick);
          if (raw.is_open()) {
            raw << fmt::format("{} {} {} {}", trial, run, round, kind);
            for (const double value : found.samples) raw << fmt::format(" {:.1f}", value);
            raw << " |";
            for (const double value : found.yardstick) raw << fmt::format(" {:.0f}", value);
            raw << std::endl;
          }
        }
    for (int kind = 0; kind < kKernelCount; ++kind) {
      equal[at(kind)].add(runs[0][at(kind)], runs[1][at(kind)], kKernelCount);
      slower[at(kind)].add(runs[0][at(kind)], runs[2][at(kind)], kKernelCount);
    }
  }
  bench::TrialCounts all_equal, all_slower;
  fmt::print("{}", bench::trial_heading());
  for (int kind = 0; kind < kKernelCount; ++kind) {
    fmt::print("{}", bench::trial_line(kKernels[at(kind)], equal[at(kind)], slower[at(kind)]));
    all_equal.add(equal[at(kind)]);
    all_slower.add(slower[at(kind)]);
  }
  fmt::print("{}\n{:.0f} s; load {} at the end\n", bench::trial_line("all", all_equal, all_slower),
             static_cast<double>(now_ns() - begun) * 1e-9, load_average());
}

}  // namespace

int main(int count, char** words) {
  if (count == 5 && std::strcmp(words[1], "--round") == 0) return measure_round(words + 2);
  const auto number = [&](int index, int otherwise) { return count > index ? std::atoi(words[index]) : otherwise; };
  const int trials = number(1, 4), rounds = std::max(1, number(2, 3)), samples = number(3, 30);
  if (trials > 0) run_trials(trials, rounds, samples);
  bench::simulate_trials(number(4, 10'000), rounds, samples / rounds);
  return 0;
}
