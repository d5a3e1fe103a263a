// Pairing, verdicts and exit codes of a comparison; and how often it cries wolf on equal runs (fixed seeds, no timing).
#include "run/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "run/pairing.h"
#include "support/gauss.h"
#include "support/text.h"

namespace weir {
namespace {

// Lognormal times around `median_ns` whose logarithms follow an AR(1) process.
std::vector<double> times(SplitMix& random, int count, double median_ns, double sigma, double rho = 0) {
  std::vector<double> values;
  double state = gauss(random);
  for (int i = 0; i < count; ++i) {
    values.push_back(median_ns * std::exp(sigma * state));
    state = rho * state + std::sqrt(1 - rho * rho) * gauss(random);
  }
  return values;
}

// A point of one process.
ResultPoint single(const std::vector<double>& latency, int streams = 8, const std::string& submit = "inline") {
  ResultPoint made;
  made.key = {{"workload", "moe"}, {"streams", std::to_string(streams)}, {"submit", submit}, {"param.hidden", "64"}};
  made.device = "cpu";
  made.latency = {latency, "ns", latency.empty() ? "no samples" : "", false};
  made.throughput = {{}, "tokens/s", "no samples", false};
  for (const double time : latency) made.throughput.samples.push_back(1e9 / time);
  made.origin = "file";
  return made;
}

// The same samples from five processes, if there are five for each.
ResultPoint point(const std::vector<double>& latency, int streams = 8, const std::string& submit = "inline") {
  ResultPoint made = single(latency, streams, submit);
  if (latency.size() >= 25 && latency.size() % 5 == 0)
    made.latency.processes = made.throughput.processes = std::vector<std::size_t>(5, latency.size() / 5);
  return made;
}

// Five processes that know nothing of each other.
ResultPoint apart(SplitMix& random, int count, double median_ns, double sigma, double rho = 0, int streams = 8) {
  std::vector<double> all;
  for (int i = 0; i < 5; ++i) {
    const std::vector<double> one = times(random, count / 5, median_ns, sigma, rho);
    all.insert(all.end(), one.begin(), one.end());
  }
  return point(all, streams);
}

ResultFile file(std::vector<ResultPoint> points, const std::string& name = "file") {
  return {name, std::move(points), {}};
}

Comparison compare_points(const ResultPoint& baseline, const ResultPoint& test, const CompareOptions& options = {}) {
  const std::vector<ResultFile> tests{file({test}, "test")};
  return compare_results(file({baseline}, "baseline"), tests, options);
}

Verdict verdict_of(const ResultPoint& baseline, const ResultPoint& test, const CompareOptions& options = {}) {
  return compare_points(baseline, test, options).tests.at(0).pairs.at(0).verdict;
}

bool any_has(const std::vector<std::string>& texts, const std::string& part) {
  for (const std::string& text : texts)
    if (has(text, part)) return true;
  return false;
}

TEST(Compare, TellsSlowerFasterSameAmbiguous) {
  SplitMix random(1);
  const ResultPoint baseline = point(times(random, 100, 1e6, 0.02));
  const ResultPoint slower = point(times(random, 100, 1.10e6, 0.02));
  const ResultPoint faster = point(times(random, 100, 0.85e6, 0.02));
  const ResultPoint same = point(times(random, 100, 1.01e6, 0.02));
  const ResultPoint noisy = point(times(random, 20, 1.05e6, 0.5));
  EXPECT_EQ(verdict_of(baseline, slower), Verdict::slower);
  EXPECT_EQ(verdict_of(baseline, faster), Verdict::faster);
  EXPECT_EQ(verdict_of(baseline, same), Verdict::same);
  EXPECT_EQ(verdict_of(baseline, noisy), Verdict::ambiguous);
  EXPECT_EQ(verdict_of(baseline, baseline), Verdict::same);

  const Comparison comparison = compare_points(baseline, slower);
  const auto& metrics = comparison.tests[0].pairs[0].metrics;
  ASSERT_EQ(metrics.size(), 2U);
  EXPECT_EQ(metrics[0].metric, "latency");
  EXPECT_NEAR(*metrics[0].ratio, 1.10, 0.01);
  EXPECT_NEAR(*metrics[1].ratio, 1 / 1.10, 0.01);
  EXPECT_EQ(metrics[1].verdict, Verdict::slower);
  EXPECT_LT(metrics[0].interval->low, *metrics[0].ratio);
  EXPECT_GT(metrics[0].interval->high, *metrics[0].ratio);
  EXPECT_EQ(comparison.hypotheses, 1U) << "latency and throughput are one measurement";
  EXPECT_EQ(exit_code(comparison, false), 3);
  EXPECT_EQ(exit_code(compare_points(baseline, noisy), false), 0);
  EXPECT_EQ(exit_code(compare_points(baseline, noisy), true), 4);
  EXPECT_EQ(exit_code(compare_points(baseline, faster), true), 0);
}

TEST(Compare, ThresholdDecidesWhatMatters) {
  SplitMix random(2);
  const ResultPoint baseline = point(times(random, 200, 1e6, 0.02));
  const ResultPoint test = point(times(random, 200, 1.04e6, 0.02));
  CompareOptions options;
  options.threshold = 0.10;
  EXPECT_EQ(verdict_of(baseline, test, options), Verdict::same);
  options.threshold = 0.01;
  EXPECT_EQ(verdict_of(baseline, test, options), Verdict::slower);
  options.threshold = 0.041;
  const Comparison close = compare_points(baseline, test, options);
  EXPECT_EQ(close.tests[0].pairs[0].verdict, Verdict::ambiguous);
  EXPECT_TRUE(has(close.tests[0].pairs[0].metrics[0].reason, "either side of the threshold"));
}

TEST(Compare, ConstantSamplesAreJudged) {
  const ResultPoint five = point(std::vector<double>(30, 5.0));
  const ResultPoint six = point(std::vector<double>(30, 6.0));
  EXPECT_EQ(verdict_of(five, five), Verdict::same);
  EXPECT_EQ(verdict_of(five, six), Verdict::slower);
  EXPECT_EQ(verdict_of(six, five), Verdict::faster);
}

TEST(Compare, FailuresCountAsSlower) {
  SplitMix random(3);
  const ResultPoint good = point(times(random, 50, 1e6, 0.02));
  ResultPoint bad = good;
  bad.failure = "its output is wrong";
  const Comparison comparison = compare_points(good, bad);
  EXPECT_EQ(comparison.tests[0].pairs[0].verdict, Verdict::slower);
  EXPECT_EQ(comparison.tests[0].pairs[0].failure, "test: its output is wrong");
  EXPECT_EQ(exit_code(comparison, false), 3);
  EXPECT_EQ(verdict_of(bad, good), Verdict::not_comparable);
  EXPECT_EQ(verdict_of(bad, bad), Verdict::slower);
}

TEST(Compare, MissingSamplesAreNotComparableWithAReason) {
  SplitMix random(4);
  const ResultPoint whole = point(times(random, 50, 1e6, 0.02));
  ResultPoint empty = point({});
  Comparison comparison = compare_points(whole, empty);
  EXPECT_EQ(comparison.tests[0].pairs[0].verdict, Verdict::not_comparable);
  EXPECT_EQ(comparison.tests[0].pairs[0].metrics[0].reason, "test: no samples");
  EXPECT_EQ(exit_code(comparison, false), 0);
  EXPECT_EQ(exit_code(comparison, true), 4);
  // Sync mode none has no latency on either side: that is no finding.
  ResultPoint before = whole;
  ResultPoint after = whole;
  before.latency = after.latency = {{}, "ns", "sync mode none", true};
  comparison = compare_points(before, after);
  EXPECT_EQ(comparison.tests[0].pairs[0].verdict, Verdict::same);
  EXPECT_TRUE(any_has(comparison.tests[0].pairs[0].notes, "latency is not judged: sync mode none"));
  EXPECT_EQ(verdict_of(point({1, 2, 3, 4}), point({1, 2, 3, 4})), Verdict::ambiguous);
  comparison = compare_points(point(std::vector<double>(20, 0.0)), whole);
  EXPECT_EQ(comparison.tests[0].pairs[0].metrics[0].verdict, Verdict::not_comparable);
  after = whole;
  after.throughput.unit = "GFLOP/s";
  EXPECT_TRUE(has(compare_points(whole, after).tests[0].pairs[0].metrics[1].reason, "units differ"));
  before = whole;
  before.throughput.unit = "samples/sec";
  after.throughput.unit = "samples/s";
  EXPECT_EQ(verdict_of(before, after), Verdict::same);
}

TEST(Compare, PairsByKeyNotByPosition) {
  SplitMix random(5);
  const auto quick = times(random, 60, 1e6, 0.01);
  const auto slow = times(random, 60, 3e6, 0.01);
  const ResultFile baseline = file({point(quick, 8), point(slow, 16), point(quick, 32)}, "baseline");
  const std::vector<ResultFile> tests{file({point(slow, 16), point(quick, 64), point(quick, 8)}, "test")};
  const Comparison comparison = compare_results(baseline, tests);
  const TestComparison& result = comparison.tests[0];
  ASSERT_EQ(result.pairs.size(), 2U);
  EXPECT_EQ(result.pairs[0].verdict, Verdict::same);
  EXPECT_EQ(result.pairs[1].verdict, Verdict::same);
  ASSERT_EQ(result.baseline_only.size(), 1U);
  ASSERT_EQ(result.test_only.size(), 1U);
  EXPECT_EQ(result.baseline_only[0].label, "moe, 32 streams, inline");
  EXPECT_TRUE(has(result.test_only[0].nearest, "nearest differs in streams: 64 vs "));
}

TEST(Compare, NothingPairedIsBadInput) {
  SplitMix random(6);
  const auto sample = times(random, 20, 1e6, 0.01);
  const std::vector<ResultFile> tests{file({point(sample, 16, "graph")}, "test.json")};
  try {
    compare_results(file({point(sample, 8)}, "base.json"), tests);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_TRUE(has(error.what(), "test.json: no result has a partner in base.json"));
    EXPECT_TRUE(has(error.hint, "streams: 16 vs 8"));
    EXPECT_TRUE(has(error.hint, "submit: graph vs inline"));
  }
}

TEST(Compare, RepeatsArePooledAndCopiesCountOnce) {
  SplitMix random(7);
  const ResultPoint first = point(times(random, 30, 1e6, 0.02));
  const ResultPoint second = point(times(random, 30, 1e6, 0.02));
  const std::vector<ResultPoint> points{first, second, first};
  const std::vector<ResultPoint> pooled = pool_repeats(points);
  ASSERT_EQ(pooled.size(), 1U);
  EXPECT_EQ(pooled[0].latency.samples.size(), 60U);
  EXPECT_TRUE(any_has(pooled[0].notes, "2 runs of one configuration are pooled"));
  EXPECT_TRUE(any_has(pooled[0].notes, "counts once"));
  ResultPoint failed = second;
  failed.failure = "the run failed";
  EXPECT_EQ(pool_repeats(std::vector<ResultPoint>{first, failed})[0].failure, "the run failed");
}

TEST(Compare, TheNullDeviceKeepsToItself) {
  SplitMix random(8);
  ResultPoint floor = point(times(random, 30, 1e3, 0.02));
  floor.device = "null";
  const ResultPoint real = point(times(random, 30, 1e6, 0.02));
  ResultPoint other = real;
  other.device = "cuda:0";
  const std::vector<ResultPoint> both{floor, real};
  EXPECT_EQ(pool_repeats(both).size(), 2U);
  EXPECT_EQ(pair_points(both, both).pairs.size(), 2U);
  EXPECT_TRUE(pair_points(std::vector<ResultPoint>{floor}, std::vector<ResultPoint>{real}).pairs.empty());
  // Another device is a fair question, with a note.
  const Comparison across = compare_points(real, other);
  EXPECT_TRUE(any_has(across.tests[0].notes, "device differs: cpu vs cuda:0"));
  // But the same device goes first.
  const std::vector<ResultPoint> devices{other, real};
  const Pairing pairing = pair_points(std::vector<ResultPoint>{real}, devices);
  ASSERT_EQ(pairing.pairs.size(), 1U);
  EXPECT_EQ(pairing.pairs[0].second, 1U);
}

TEST(Compare, IncompleteKeysPairOnWhatBothKnow) {
  SplitMix random(9);
  ResultPoint foreign = point(times(random, 30, 1e6, 0.02));
  foreign.is_key_complete = false;
  foreign.key = {{"workload", "moe"}, {"streams", "8"}};
  const ResultPoint inline_point = point(times(random, 30, 1e6, 0.02), 8, "inline");
  const ResultPoint graph_point = point(times(random, 30, 1e6, 0.02), 8, "graph");
  const Comparison comparison = compare_points(foreign, inline_point);
  EXPECT_EQ(comparison.tests[0].pairs.size(), 1U);
  EXPECT_TRUE(any_has(comparison.tests[0].notes, "compare two programs"));
  const Pairing unclear =
      pair_points(std::vector<ResultPoint>{foreign}, std::vector<ResultPoint>{inline_point, graph_point});
  EXPECT_TRUE(unclear.pairs.empty());
  EXPECT_TRUE(has(unclear.baseline_only.at(0).nearest, "fits 2 points"));
}

TEST(Compare, NotesWhatElseDiffers) {
  SplitMix random(10);
  ResultPoint baseline = point(times(random, 60, 1e6, 0.02));
  ResultPoint test = point(times(random, 60, 1e6, 0.02));
  baseline.settings = {{"device.model", "A100"}, {"weir.version", "0.1.0"}, {"environment.free_memory", "1"}};
  test.settings = {{"device.model", "H200"},
                   {"weir.version", "0.2.0"},
                   {"environment.free_memory", "2"},
                   {"environment.variables.GPU_MAX_HW_QUEUES", "8"}};
  const auto notes = compare_points(baseline, test).tests[0].notes;
  EXPECT_TRUE(any_has(notes, "device.model differs: A100 vs H200"));
  EXPECT_TRUE(any_has(notes, "weir.version differs: 0.1.0 vs 0.2.0"));
  EXPECT_TRUE(any_has(notes, "GPU_MAX_HW_QUEUES differs: (not set) vs 8"));
  EXPECT_FALSE(any_has(notes, "free_memory"));
}

TEST(Compare, WarnsOfDriftAndTails) {
  SplitMix random(12);
  const std::vector<double> steady = times(random, 100, 1e6, 0.01);
  std::vector<double> drifting = steady;
  for (std::size_t i = 0; i < drifting.size(); ++i) drifting[i] *= 1 + 0.2 * static_cast<double>(i) / 100;
  EXPECT_TRUE(any_has(compare_points(single(steady), single(drifting)).tests[0].pairs[0].notes,
                      "test: the last iterations took 1.1"));
  std::vector<double> stalling = steady;
  for (std::size_t i = 7; i < stalling.size(); i += 25) stalling[i] *= 5;
  EXPECT_TRUE(any_has(compare_points(point(steady), point(stalling)).tests[0].pairs[0].notes, "the tail grew"));
}

TEST(Compare, StronglyCorrelatedShortRunsAreNotJudged) {
  std::vector<double> low;
  std::vector<double> high;
  for (int i = 0; i < 20; ++i) {
    low.push_back(1e6 + 1e3 * i);
    high.push_back(1.2e6 + 1e3 * i);
  }
  const Comparison comparison = compare_points(point(low), point(high));
  EXPECT_EQ(comparison.tests[0].pairs[0].verdict, Verdict::ambiguous);
  EXPECT_TRUE(has(comparison.tests[0].pairs[0].metrics[0].reason, "independent"));
}

TEST(Compare, OneProcessOnEachSideSaysSo) {
  SplitMix random(13);
  ResultPoint before = single(times(random, 60, 1e6, 0.01)), after = single(times(random, 60, 1.3e6, 0.01));
  after.command = {"weir", "run", "moe", "--device", "cpu", "--sim", "a b=1", "-o", "x.json", "--force"};
  const Comparison open = compare_points(before, after);
  const PairComparison& pair = open.tests[0].pairs[0];
  EXPECT_EQ(pair.verdict, Verdict::ambiguous);
  EXPECT_EQ(exit_code(open, false), 0);
  EXPECT_EQ(exit_code(open, true), 4);
  for (const MetricComparison& metric : pair.metrics) {
    EXPECT_FALSE(metric.interval);
    EXPECT_EQ(metric.reason, "one process on each side, and how much identical processes differ here is not known");
  }
  EXPECT_NEAR(*pair.metrics[0].ratio, 1.3, 0.01);
  EXPECT_TRUE(any_has(
      pair.notes, "to settle it, run both sides as: weir run moe --device cpu --sim 'a b=1' --processes 5 -o FILE"));

  const auto known = [](double deviation) {
    return [deviation](const ResultPoint&, const ResultPoint&) -> std::optional<Spread> {
      return Spread{deviation, 9, "weir calibrate of yesterday"};
    };
  };
  const std::vector<ResultFile> tests{file({after}, "test")};
  const Comparison quiet = compare_results(file({before}), tests, {}, known(0.002));
  EXPECT_EQ(quiet.tests[0].pairs[0].verdict, Verdict::slower);
  EXPECT_TRUE(any_has(quiet.tests[0].pairs[0].notes,
                      "one process on each side: judged with a spread of 0.2 % between "
                      "processes (weir calibrate of yesterday)"));
  const Comparison loud = compare_results(file({before}), tests, {}, known(0.12));
  EXPECT_EQ(loud.tests[0].pairs[0].verdict, Verdict::ambiguous);
  EXPECT_TRUE(has(loud.tests[0].pairs[0].metrics[0].reason, "two sides of identical processes may differ by"));

  after.command = {"weir", "sweep", "moe", "--streams", "4,8", "--resume"};
  EXPECT_EQ(settling_command(after, 0.01), "weir sweep moe --streams 4,8 --processes 5");
  after.command = {};  // not recorded
  EXPECT_EQ(settling_command(after, 0.01),
            "weir run moe --streams 8 --device cpu --submit inline --processes 5 -o FILE");
  after.command = {"weir",    "run",   "it's",        "--processes=2..9",
                   "--until", "3%",    "--budget=5m", "--host-profile",
                   "a.svg",   "--dot", "-",           "--sim",
                   "a#!b",    "-o",    "x.json",      "--force"};
  EXPECT_EQ(settling_command(after, 0.01), R"(weir run 'it'\''s' --sim 'a#!b' --processes 5 -o FILE)");
  // Several processes on one side do not speak for the other.
  EXPECT_EQ(verdict_of(point(times(random, 60, 1e6, 0.01)), after), Verdict::ambiguous);
  // Virtual time is the same in every process.
  before.device = after.device = "sim:h200";
  EXPECT_EQ(verdict_of(before, after), Verdict::slower);
}

// Runs of one configuration in a folder are processes, not one series.
TEST(Compare, PooledRunsAreProcesses) {
  struct Pool {
    int runs, samples;
  };
  for (const Pool pool : {Pool{3, 100}, Pool{5, 100}, Pool{10, 50}}) {
    SplitMix random(static_cast<std::uint64_t>(pool.runs));
    CompareOptions options;
    options.bootstrap.resamples = 400;
    int accused = 0;
    for (int round = 0; round < 500; ++round) {
      const auto folder = [&] {
        std::vector<ResultPoint> runs;
        for (int i = 0; i < pool.runs; ++i)
          runs.push_back(single(times(random, pool.samples, 1e6 * std::exp(0.06 * gauss(random)), 0.02)));
        return file(runs);
      };
      const ResultFile baseline = folder();
      const std::vector<ResultFile> tests{folder()};
      const Comparison comparison = compare_results(baseline, tests, options);
      const PairComparison& pair = comparison.tests[0].pairs.at(0);
      EXPECT_EQ(pair.metrics[0].test_processes, static_cast<std::size_t>(pool.runs));
      accused += pair.verdict == Verdict::slower || pair.verdict == Verdict::faster;
    }
    EXPECT_LE(accused, 10) << pool.runs << " x " << pool.samples;
  }
}

TEST(Compare, SamplesOfTwoModesAreMentioned) {
  SplitMix random(14);
  std::vector<double> bistable;
  for (int i = 0; i < 30; ++i) bistable.push_back((i / 5 % 2 == 0 ? 1e6 : 1.1e6) * std::exp(0.003 * gauss(random)));
  const auto notes = compare_points(single(bistable), single(times(random, 30, 1e6, 0.003))).tests[0].pairs[0].notes;
  EXPECT_TRUE(any_has(notes, "baseline: samples gather around two values, 1.00 ms and 1.10 ms (50 and 50 %)"))
      << notes.back();
}

// Equal distributions, so every "slower" or "faster" is false: 1 % of the comparisons, by the default. Of 200, four may
// be.
TEST(CompareProperty, CriesWolfRarely) {
  struct Noise {
    int count;
    double sigma;
    double rho;
  };
  for (const Noise noise : {Noise{100, 0.02, 0}, Noise{100, 0.2, 0}, Noise{30, 0.2, 0}, Noise{100, 0.2, 0.3},
                            Noise{100, 0.2, 0.6}, Noise{100, 0.2, 0.9}, Noise{300, 0.1, 0.6}}) {
    SplitMix random(2026);
    CompareOptions options;
    options.bootstrap.resamples = 500;
    constexpr int kRounds = 200;
    int false_alarms = 0;
    for (int round = 0; round < kRounds; ++round) {
      const Verdict verdict = verdict_of(apart(random, noise.count, 1e6, noise.sigma, noise.rho),
                                         apart(random, noise.count, 1e6, noise.sigma, noise.rho), options);
      false_alarms += verdict == Verdict::slower || verdict == Verdict::faster;
    }
    EXPECT_LE(false_alarms, kRounds * 2 / 100) << noise.count << ' ' << noise.sigma << ' ' << noise.rho;
  }
}

// Twenty equal configurations in one comparison: Holm keeps the family near 1 % (13 of 1,000), not each pair.
TEST(CompareProperty, ManyPairsShareTheirDoubt) {
  SplitMix random(99);
  CompareOptions options;
  options.bootstrap.resamples = 400;
  options.threshold = 0.01;  // hardly any protection from the threshold
  int alarmed = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<ResultPoint> before;
    std::vector<ResultPoint> after;
    for (int streams = 1; streams <= 20; ++streams) {
      before.push_back(apart(random, 50, 1e6, 0.1, 0, streams));
      after.push_back(apart(random, 50, 1e6, 0.1, 0, streams));
    }
    const std::vector<ResultFile> tests{file(after)};
    const auto counts = count_verdicts(compare_results(file(before), tests, options));
    alarmed += counts.contains(Verdict::slower) || counts.contains(Verdict::faster);
  }
  EXPECT_LE(alarmed, 4);
}

// And it must still see what is there: 10 % slower under 5 % noise, 100 samples.
TEST(CompareProperty, SeesRealRegressions) {
  SplitMix random(7);
  CompareOptions options;
  options.bootstrap.resamples = 500;
  int seen = 0;
  for (int round = 0; round < 100; ++round)
    seen += verdict_of(point(times(random, 100, 1e6, 0.05)), point(times(random, 100, 1.1e6, 0.05)), options) ==
            Verdict::slower;
  EXPECT_GE(seen, 95);
}

}  // namespace
}  // namespace weir
