// Made-up runs with the kinds of noise that machines have, and counts of what the comparison says of them. Knows no
// machine: whatever holds for one only is not to be tuned for.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "lab/kernels/latency_change.h"
#include "measure/bootstrap.h"

namespace weir::bench {

struct TrialCounts {
  int comparisons = 0, slower = 0, faster = 0, ambiguous = 0;
  std::vector<double> log_ratios;

  void add(const RunTimes& before, const RunTimes& after, double p_share) {
    const LatencyChange change = latency_change(before, after).value();
    const Verdict verdict = judge_latency(change, 0.10, 0.99, p_share).verdict;
    ++comparisons;
    slower += verdict == Verdict::slower ? 1 : 0;
    faster += verdict == Verdict::faster ? 1 : 0;
    ambiguous += verdict == Verdict::ambiguous ? 1 : 0;
    log_ratios.push_back(change.log_ratio);
  }
  void add(const TrialCounts& other) {
    comparisons += other.comparisons;
    slower += other.slower;
    faster += other.faster;
    ambiguous += other.ambiguous;
    log_ratios.insert(log_ratios.end(), other.log_ratios.begin(), other.log_ratios.end());
  }
  // Standard deviation of the estimate.
  double spread() const {
    double sum = 0, squares = 0;
    for (const double value : log_ratios) sum += value;
    const double mean = sum / static_cast<double>(log_ratios.size());
    for (const double value : log_ratios) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / static_cast<double>(log_ratios.size()));
  }
};

// "2/300 = 0.67 % (0.18..2.40)": the share with Wilson's 95 % interval.
inline std::string share(int hits, int of) {
  if (of == 0) return "-";
  const double n = of, p = hits / n, z = 1.96, wide = 1 + z * z / n;
  const double middle = (p + z * z / (2 * n)) / wide,
               half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / wide;
  return fmt::format("{}/{} {:.2f}% ({:.2f}..{:.2f})", hits, of, 100 * p, 100 * std::max(0.0, middle - half),
                     100 * std::min(1.0, middle + half));
}
inline std::string trial_heading() {
  return fmt::format("{:<12} {:<32} {:>9}  {:<34} {:>7}\n", "", "A/A: false verdicts (95 %)", "ambiguous",
                     "12 % slower: caught (95 %)", "spread");
}
inline std::string trial_line(const char* name, const TrialCounts& equal, const TrialCounts& slower) {
  return fmt::format("{:<12} {:<32} {:>9}  {:<34} {:>6.2f}%\n", name,
                     share(equal.slower + equal.faster, equal.comparisons), equal.ambiguous,
                     share(slower.slower, slower.comparisons), 100 * equal.spread());
}

// What one machine does to times. Fractions of the kernel's time.
struct NoiseModel {
  const char* name;
  double jitter = 0.002;      // of samples, both ways
  double tail = 0;            // part of the samples that something held up ...
  double tail_size = 0;       // ... by this much on average (exponential)
  double process_spread = 0;  // of processes, both ways
  double slow_processes = 0;  // part of the processes that are slow by `slow_by`
  double slow_by = 0;
  double drift = 0;          // of the machine within a run, from -half to +half
  double run_spread = 0;     // of the machine from run to run; the yardstick sees it
  double unseen_spread = 0;  // from run to run, where the yardstick sees nothing
};
inline constexpr NoiseModel kNoiseModels[] = {
    {.name = "quiet"},
    {.name = "heavy_tail", .jitter = 0.005, .tail = 0.4, .tail_size = 0.5},
    {.name = "luck_1%", .process_spread = 0.01},
    {.name = "luck_2%", .tail = 0.1, .tail_size = 0.2, .process_spread = 0.02},
    {.name = "luck_5%", .process_spread = 0.05},
    {.name = "slow_1_in_10", .slow_processes = 0.1, .slow_by = 0.2},
    {.name = "bimodal_20%", .slow_processes = 0.5, .slow_by = 0.2},
    {.name = "drift_5%", .process_spread = 0.005, .drift = 0.05},
    {.name = "machine_10%", .process_spread = 0.005, .run_spread = 0.10},
    {.name = "unseen_3%", .process_spread = 0.005, .unseen_spread = 0.03},
};

class NoisyMachine {
 public:
  NoisyMachine(const NoiseModel& model, std::uint64_t seed) : model_(model), random_(seed) {}

  RunTimes run(double level, int rounds, int samples) {
    RunTimes times;
    const double machine = std::exp(model_.run_spread * gauss()), unseen = std::exp(model_.unseen_spread * gauss());
    const double direction = random_.fraction() < 0.5 ? -1 : 1;
    for (int round = 0; round < rounds; ++round) {
      std::vector<double> taken, yardstick;
      double process_spread = std::exp(model_.process_spread * gauss());
      if (random_.fraction() < model_.slow_processes) process_spread *= 1 + model_.slow_by;
      for (int i = 0; i < samples; ++i) {
        const double place = (round * samples + i + 0.5) / (rounds * samples) - 0.5;
        const double now = machine * (1 + direction * model_.drift * place);
        double held_up = 0;
        if (random_.fraction() < model_.tail) held_up = -model_.tail_size * std::log(1 - random_.fraction());
        taken.push_back(level * unseen * process_spread * now * std::exp(model_.jitter * gauss()) * (1 + held_up));
        yardstick.push_back(now * std::exp(0.003 * gauss()));
      }
      times.rounds.push_back(std::move(taken));
      times.yardstick.push_back(std::move(yardstick));
    }
    return times;
  }

 private:
  double gauss() {
    const double radius = std::sqrt(-2 * std::log(1 - random_.fraction()));
    return radius * std::cos(6.283185307179586 * random_.fraction());
  }
  const NoiseModel& model_;
  SplitMix random_;
};

// `p_share`: as many cases as are supposed to be judged together.
inline void simulate(const NoiseModel& model, int comparisons, int rounds, int samples, double p_share,
                     TrialCounts& equal, TrialCounts& slower) {
  NoisyMachine machine(model, 20261116);
  for (int i = 0; i < comparisons; ++i) {
    const RunTimes before = machine.run(100, rounds, samples);
    equal.add(before, machine.run(100, rounds, samples), p_share);
    slower.add(before, machine.run(112, rounds, samples), p_share);
  }
}
inline void simulate_trials(int comparisons, int rounds, int samples) {
  if (comparisons <= 0) return;
  fmt::print("\nmade-up noise, {} rounds of {} samples, 12 cases judged together\n\n{}", rounds, samples,
             trial_heading());
  for (const NoiseModel& model : kNoiseModels) {
    TrialCounts equal, slower;
    simulate(model, comparisons, rounds, samples, 12, equal, slower);
    fmt::print("{}", trial_line(model.name, equal, slower));
  }
}

}  // namespace weir::bench
