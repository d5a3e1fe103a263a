// One result from several processes: what is put together and how, when it stops, and what a failure leaves.
#include "run/processes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "measure/bootstrap.h"
#include "measure/statistics.h"

namespace weir {
namespace {

std::atomic<bool> never{false};

// A result of `count` samples around `level`, as one process of `weir run` writes it.
Json result(double level, std::size_t count, std::uint64_t seed, bool has_latency = true) {
  SplitMix random(seed);
  std::vector<std::int64_t> latency, submit;
  for (std::size_t i = 0; i < count; ++i) {
    latency.push_back(std::llround(level * (1 + 0.1 * random.fraction())));
    submit.push_back(std::llround(0.2 * level * (1 + 0.1 * random.fraction())));
  }
  double sum = 0;
  for (const std::int64_t ns : latency) sum += static_cast<double>(ns);
  const double rate = 4e9 * static_cast<double>(count) / sum;
  const Json samples = latency;
  return {
      {"schema", "weir.result/2"},
      {"status", "complete"},
      {"seed", 7},
      {"samples",
       {{"latency_ns", has_latency ? samples : Json()},
        {"interval_ns", samples},
        {"device_ns", nullptr},
        {"submit_ns", submit}}},
      {"metrics",
       {{"latency_ns", {{"p50", 0}}},
        {"device_ns", nullptr},
        {"throughput", {{"value", 2.5 * rate}, {"unit", "steps/s"}, {"interval", nullptr}}},
        {"commands_per_s", rate},
        {"host_ns_per_command", median(std::vector<double>(submit.begin(), submit.end())) / 4},
        {"memory", {{"allocated_bytes", 64 * count}}}}},
      {"warnings", Json::array({Json{{"code", level > 1500 ? "noisy" : "drift"}}})},
      {"unavailable", {{"metrics.latency_ns.p99_interval", "too few"}, {"metrics.throughput.interval", "too few"}}}};
}

std::vector<double> numbers(const Json& list) { return list.get<std::vector<double>>(); }

TEST(Processes, SamplesOfAllOneAfterTheOther) {
  SplitMix random(11);
  for (int trial = 0; trial < 8; ++trial) {
    Json all;
    std::vector<double> samples, submits;
    double iterations = 0, seconds = 0;
    const std::size_t processes = 2 + random.below(6);
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < processes; ++i) {
      sizes.push_back(1 + random.below(80));
      const Json one = result(1000 + random.below(1000), sizes.back(), random.next());
      for (const double sample : numbers(one["samples"]["latency_ns"])) samples.push_back(sample);
      for (const double sample : numbers(one["samples"]["submit_ns"])) submits.push_back(sample);
      iterations += static_cast<double>(sizes.back());
      seconds += static_cast<double>(sizes.back()) / one["metrics"]["throughput"]["value"].get<double>();
      add_process_result(all, one, 1000 + static_cast<std::int64_t>(i));
    }
    ASSERT_EQ(process_count(all), processes);
    EXPECT_EQ(numbers(all["samples"]["latency_ns"]), samples);
    EXPECT_TRUE(all["samples"]["device_ns"].is_null());
    std::size_t begin = 0;
    for (std::size_t i = 0; i < processes; ++i) {
      const Json& process = all["processes"][i];
      EXPECT_EQ(process["samples"], sizes[i]);
      EXPECT_EQ(process["seed"], 7);
      EXPECT_EQ(process["wall_ns"], 1000 + i);
      EXPECT_EQ(process["latency_ns"]["p50"], median(std::span(samples).subspan(begin, sizes[i])));
      begin += sizes[i];
    }
    EXPECT_EQ(all["metrics"]["latency_ns"]["count"], samples.size());
    EXPECT_EQ(all["metrics"]["latency_ns"]["p50"], median(samples));
    EXPECT_NEAR(all["metrics"]["throughput"]["value"].get<double>(), iterations / seconds, 1e-6 * iterations / seconds);
    EXPECT_NEAR(all["metrics"]["host_ns_per_command"].get<double>(), median(submits) / 4, 1e-6);
    EXPECT_EQ(all["metrics"]["memory"]["allocated_bytes"], 64 * sizes[0]) << "the first process's";
    EXPECT_LE(all["warnings"].size(), 2u) << "each kind once";
    EXPECT_EQ(all["unavailable"].contains("metrics.latency_ns.p99_interval"), samples.size() < 200);
  }
}

TEST(Processes, WithoutLatencyTheIntervalsCount) {
  Json all;
  for (const double level : {1000, 1100}) add_process_result(all, result(level, 9, 3, false), 1);
  EXPECT_EQ(all["processes"][1]["samples"], 9);
  EXPECT_TRUE(all["samples"]["latency_ns"].is_null());
  EXPECT_NEAR(all["processes"][1]["latency_ns"]["p50"].get<double>(), 1150, 50);
}

TEST(Processes, TheErrorIsThatOfTheMeanOfTheMedians) {
  const auto error = [](const std::vector<double>& medians) {
    Json document = {{"processes", Json::array()}};
    for (const double each : medians)
      document["processes"].push_back({{"latency_ns", {{"p50", number_or_null(each)}}}});
    return median_error(document);
  };
  EXPECT_EQ(error({100}), std::nullopt);
  EXPECT_EQ(error({100, NAN}), std::nullopt);
  EXPECT_EQ(error({100, 0}), std::nullopt);
  EXPECT_EQ(error({100, 100, 100}), 0);
  // Three medians with logarithms -0.01, 0, 0.01: t(0.975, 2) = 4.303, sd 0.01.
  EXPECT_NEAR(*error({100 * std::exp(-0.01), 100, 100 * std::exp(0.01)}), std::expm1(4.3027 * 0.01 / std::sqrt(3)),
              1e-5);
}

TEST(Processes, CoverTheMedianOfAllProcesses) {
  // 95 % of the intervals from five processes of a known distribution hold its centre.
  SplitMix random(5);
  int held = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    Json document = {{"processes", Json::array()}};
    double sum = 0;
    for (int i = 0; i < 5; ++i) {
      double normal = -6;  // the sum of twelve uniform values
      for (int k = 0; k < 12; ++k) normal += random.fraction();
      sum += 0.06 * normal;
      document["processes"].push_back({{"latency_ns", {{"p50", 1000 * std::exp(0.06 * normal)}}}});
    }
    held += std::fabs(sum / 5) <= std::log1p(*median_error(document)) ? 1 : 0;
  }
  EXPECT_NEAR(held, 950, 25);
}

struct Scripted {
  std::map<std::size_t, std::vector<double>> levels;  // by side; the last one repeats
  std::vector<std::pair<std::size_t, std::size_t>> runs;
  ProcessesControl control() {
    ProcessesControl made;
    made.run = [this](std::size_t side, std::size_t round) {
      runs.emplace_back(side, round);
      const std::vector<double>& own = levels[side];
      ChildOutcome outcome;
      const double level = own[std::min(round, own.size() - 1)];
      outcome.end = level == 0 ? ChildEnd::failed : level < 0 ? ChildEnd::interrupted : ChildEnd::done;
      if (level > 0) outcome.document = result(level, 10, 1);
      if (level == 0) outcome.message = "out of memory";
      outcome.wall_ns = 1;
      return outcome;
    };
    return made;
  }
};

TEST(Processes, RoundsInterleaveTheSides) {
  Scripted script{{{0, {1000}}, {1, {1000}}, {2, {1000}}}, {}};
  std::vector<Json> sides(3);
  EXPECT_EQ(run_in_processes({4, 4}, 1, sides, script.control(), never).rounds, 4U);
  ASSERT_EQ(script.runs.size(), 12U);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(script.runs[i].second, i / 3) << "one round after the other";
  for (const Json& side : sides) {
    EXPECT_EQ(process_count(side), 4U);
    EXPECT_EQ(side["status"], "complete");
  }
}

TEST(Processes, ARangeEndsWhenTheMediansAreKnown) {
  Scripted script{{{0, {1000}}, {1, {1000, 1300, 900, 1200, 1500}}}, {}};
  std::vector<Json> sides(2);
  EXPECT_EQ(run_in_processes({3, 8, 0.02}, 1, sides, script.control(), never).end, RoundsEnd::enough);
  EXPECT_EQ(process_count(sides[0]), 3U) << "they agree";
  EXPECT_EQ(process_count(sides[1]), 8U) << "they never do";
  const auto message_of = [](const Json& document, const char* code) {
    for (const Json& warning : document["warnings"])
      if (warning["code"] == code) return warning["message"].get<std::string>();
    return std::string();
  };
  EXPECT_EQ(message_of(sides[0], "imprecise"), "");
  EXPECT_TRUE(message_of(sides[1], "imprecise").starts_with("8 processes, and the mean of their medians is known to "))
      << sides[1]["warnings"];
  // More processes are allowed now, but there is no time for them.
  std::vector<Json> late(1);
  EXPECT_EQ(run_in_processes({500, 500, 0.02, 1}, 1, late, script.control(), never).end, RoundsEnd::budget);
  EXPECT_EQ(message_of(late[0], "budget_ended"), "the budget ended after 1 of 500 processes");
  run_in_processes({2, 2}, 1, late, script.control(), never);
  EXPECT_EQ(message_of(late[0], "budget_ended"), "") << "that was then";
}

TEST(Processes, NothingIsRepeatedOnResume) {
  Scripted script{{{0, {1000}}, {1, {1000, 1000, -1}}}, {}};
  std::vector<Json> sides(2);
  EXPECT_EQ(run_in_processes({5, 5}, 3, sides, script.control(), never).end, RoundsEnd::interrupted);
  EXPECT_EQ(process_count(sides[1]), 2U);
  for (const Json& side : sides) EXPECT_EQ(side["status"], "interrupted");
  const std::vector<Json> before = sides;
  Scripted rest{{{0, {2000}}, {1, {2000}}}, {}};
  run_in_processes({5, 5}, 3, sides, rest.control(), never);
  EXPECT_EQ(rest.runs.size(), 10 - process_count(before[0]) - process_count(before[1]));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(process_count(sides[i]), 5U);
    EXPECT_EQ(sides[i]["status"], "complete");
    EXPECT_EQ(sides[i]["processes"][0], before[i]["processes"][0]);
  }
}

TEST(Processes, AFailureEndsItsSideOnly) {
  Scripted script{{{0, {1000}}, {1, {1000, 0}}, {2, {0}}}, {}};
  std::vector<Json> sides(3);
  run_in_processes({3, 3}, 1, sides, script.control(), never);
  EXPECT_EQ(sides[0]["status"], "complete");
  EXPECT_EQ(sides[1]["status"], "failed");
  EXPECT_EQ(sides[1]["failure"], "process 2: out of memory");
  EXPECT_EQ(process_count(sides[1]), 1U) << "what was measured is kept";
  EXPECT_EQ(sides[2]["failure"], "out of memory");
  EXPECT_EQ(script.runs.size(), 3U + 2U + 1U) << "not tried again";
}

}  // namespace
}  // namespace weir
