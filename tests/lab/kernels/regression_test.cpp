// Verdicts between bench summaries: what counts as a regression, what is not comparable, and how often equal runs are
// told apart, on synthetic noise with fixed seeds.
#include "lab/kernels/regression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/error.h"
#include "lab/kernels/latency_change.h"
#include "measure/bootstrap.h"
#include "support/gauss.h"

namespace weir::testing {
namespace {

using bench::compare_summaries;
using bench::RegressionOptions;

// Three processes of ten samples about `level`, half a percent of noise upwards.
Json entry(const std::string& key, double level, std::uint64_t seed = 1) {
  SplitMix random(seed + std::hash<std::string>()(key));
  Json samples = Json::array(), yardstick = Json::array();
  for (int round = 0; round < 3; ++round) {
    const double process_spread = std::exp(0.005 * gauss(random));
    for (int i = 0; i < 10; ++i) {
      samples.push_back(level * process_spread * (1 + 0.005 * random.fraction()));
      yardstick.push_back(19000 * (1 + 0.002 * random.fraction()));
    }
  }
  return {{"key", key},
          {"backend", "cpu"},
          {"precision", "fp32"},
          {"problem_size", {{"rows", 64}}},
          {"seed", 1337},
          {"device", {{"name", "cpu"}, {"model", "Some CPU"}}},
          {"timing",
           {{"latency_ns", {{"p50", level}}}, {"samples_ns", samples}, {"rounds", {10, 10, 10}}, {"is_cold", false}}},
          {"accuracy", {{"rmse", 1e-6}, {"max_error", 1e-5}, {"relative_error", 1e-6}}},
          {"yardstick_ns", yardstick},
          {"success", true},
          {"status", "ok"},
          {"error", nullptr}};
}

Json failed(const std::string& key, const std::string& status) {
  Json json = entry(key, 1);
  json["status"] = status;
  json["success"] = false;
  json["timing"] = nullptr;
  json["accuracy"] = nullptr;
  json["error"] = {{"what", "ended by SIGSEGV"}};
  return json;
}

Json summary(std::vector<Json> cases) {
  return {{"schema", "weir.bench/2"},
          {"environment", {{"architecture", "aarch64"}, {"cpus", 2}, {"kernel", "Linux 6.1"}}},
          {"options", {{"threads", 1}}},
          {"cases", cases}};
}

Json compared(const Json& before, const Json& after, const RegressionOptions& options = {}) {
  return compare_summaries(summary({before}), summary({after}), "before.json", options);
}

Json only_case(const Json& regressions) {
  EXPECT_EQ(regressions["cases"].size(), 1U);
  return regressions["cases"][0];
}

std::string verdict(const Json& before, const Json& after, const RegressionOptions& options = {}) {
  return only_case(compared(before, after, options))["verdict"].string();
}

TEST(Regressions, the_same_run_is_the_same) {
  const Json same = compared(entry("a", 1), entry("a", 1, 2));
  EXPECT_EQ(same["verdict"], "same") << same.dump(1);
  EXPECT_EQ(only_case(same)["verdict"], "same");
  EXPECT_EQ(bench::exit_code(same), 0);
}

TEST(Regressions, twelve_percent_slower_is_a_regression_of_exit_3) {
  const Json slower = compared(entry("a", 1), entry("a", 1.12, 2));
  EXPECT_EQ(slower["verdict"], "regressed") << slower.dump(1);
  const Json found = only_case(slower);
  EXPECT_EQ(found["verdict"], "slower");
  EXPECT_TRUE(found["is_regression"].get<bool>());
  EXPECT_NEAR(found["ratio"].get<double>(), 1.12, 0.01);
  EXPECT_LT(found["interval"][0].get<double>(), found["ratio"].get<double>());
  EXPECT_GT(found["interval"][1].get<double>(), found["ratio"].get<double>());
  EXPECT_GT(found["interval"][0].get<double>(), 1);
  EXPECT_LT(found["adjusted_p"].get<double>(), 0.01);
  EXPECT_EQ(bench::exit_code(slower), 3);
}

TEST(Regressions, a_slowdown_below_the_threshold_is_none) {
  EXPECT_NE(verdict(entry("a", 1), entry("a", 1.08, 2)), "slower");
  EXPECT_EQ(verdict(entry("a", 1), entry("a", 1.12, 2), {.latency = 0.30}), "same");
  EXPECT_EQ(verdict(entry("a", 1), entry("a", 1.09, 2), {.latency = 0.05}), "slower");
}

TEST(Regressions, faster_is_said_and_no_regression) {
  const Json faster = compared(entry("a", 1), entry("a", 0.8, 2));
  EXPECT_EQ(only_case(faster)["verdict"], "faster");
  EXPECT_EQ(faster["verdict"], "same");
  EXPECT_EQ(bench::exit_code(faster), 0);
}

TEST(Regressions, processes_that_differ_among_themselves_prove_nothing) {
  Json before = entry("a", 1), after = entry("a", 1.15, 2);
  for (Json* side : {&before, &after})  // one process in three is 40 % slower
    for (std::size_t i = 20; i < 30; ++i)
      (*side)["timing"]["samples_ns"][i] = 1.4 * (*side)["timing"]["samples_ns"][i].get<double>();
  const Json found = only_case(compared(before, after));
  EXPECT_EQ(found["verdict"], "ambiguous") << found.dump(1);
  EXPECT_NE(found["reason"].get<std::string>().find("processes differ by"), std::string::npos);
}

TEST(Regressions, samples_of_one_process_are_no_proof_however_many) {
  Json before = entry("a", 1), after = entry("a", 1.15, 2);
  for (Json* side : {&before, &after}) (*side)["timing"]["rounds"] = {30};
  EXPECT_EQ(verdict(before, after), "ambiguous");
  for (Json* side : {&before, &after}) (*side)["timing"].erase("rounds");
  EXPECT_EQ(verdict(before, after), "ambiguous");
  // Ten times slower is no luck of a process.
  EXPECT_EQ(verdict(before, entry("a", 10)), "slower");
  Json much = entry("a", 10);
  much["timing"].erase("rounds");
  EXPECT_EQ(verdict(before, much), "slower");
}

TEST(Regressions, a_slowdown_that_the_yardstick_shares_is_the_machine_s) {
  const auto with_yardstick = [](Json json, double factor) {
    for (Json& value : json["yardstick_ns"]) value = factor * value.get<double>();
    return json;
  };
  const Json before = entry("a", 1);
  const Json found = only_case(compared(before, with_yardstick(entry("a", 1.15, 2), 1.15)));
  EXPECT_EQ(found["verdict"], "ambiguous");
  EXPECT_NEAR(found["machine_ratio"].get<double>(), 1.15, 0.01);
  EXPECT_NE(found["reason"].get<std::string>().find("the machine itself was 15"), std::string::npos) << found.dump(1);
  // Beyond what the machine explains; hidden by a faster machine; a kernel that does not care.
  EXPECT_EQ(verdict(before, with_yardstick(entry("a", 1.40, 2), 1.15)), "slower");
  EXPECT_EQ(verdict(before, with_yardstick(entry("a", 1.00, 2), 0.85)), "ambiguous");
  EXPECT_EQ(verdict(before, with_yardstick(entry("a", 1.00, 2), 1.15)), "same");
}

TEST(Regressions, accuracy_may_drift_by_a_thousandth) {
  const auto with_rmse = [](double value) {
    Json json = entry("a", 1, 2);
    json["accuracy"] = {{"rmse", value}};  // without the others: nothing tells the size of the data
    return json;
  };
  EXPECT_EQ(verdict(entry("a", 1), with_rmse(0.9e-3)), "same");
  const Json drifted = compared(entry("a", 1), with_rmse(1.1e-3));
  EXPECT_EQ(only_case(drifted)["verdict"], "less_accurate");
  EXPECT_EQ(bench::exit_code(drifted), 3);
  EXPECT_EQ(verdict(entry("a", 1), with_rmse(1.1e-3), {.accuracy = 0.01}), "same");
  EXPECT_EQ(verdict(with_rmse(0.5), entry("a", 1)), "same");  // better
  Json unchecked = entry("a", 1, 2);
  unchecked["accuracy"] = {{"rmse", nullptr}, {"reason", "no reference"}};
  EXPECT_NE(only_case(compared(entry("a", 1), unchecked))["reason"].get<std::string>().find("is not now"),
            std::string::npos);
}

// A sum of 2^25 numbers by atomic additions: right to eight digits, and another order each time.
TEST(Regressions, errors_of_large_data_are_judged_by_their_size) {
  const auto with_error = [](double error, double scale) {
    Json json = entry("a", 1, 2);
    json["accuracy"] = {{"rmse", error}, {"max_error", error}, {"relative_error", error / scale}};
    return json;
  };
  EXPECT_EQ(verdict(with_error(0.36, 1.7e7), with_error(0.64, 1.7e7)), "same");
  EXPECT_EQ(verdict(with_error(0.36, 1.7e7), with_error(0.64, 1)), "less_accurate");
  // The rmse may grow though the worst element does not.
  Json narrow = with_error(0.5, 10), spread = narrow;
  narrow["accuracy"]["rmse"] = 0.001;
  spread["accuracy"]["rmse"] = 0.03;
  EXPECT_EQ(verdict(narrow, spread), "less_accurate");
  // Of small data the relative error tells.
  EXPECT_EQ(verdict(with_error(1e-9, 1e-6), with_error(1.5e-9, 1e-6)), "same");
  EXPECT_EQ(verdict(with_error(1e-12, 1e-6), with_error(2e-9, 1e-6)), "less_accurate");
}

TEST(Regressions, a_kernel_that_worked_and_fails_now_is_one) {
  for (const char* status : {"failed", "crashed", "timed_out"}) {
    const Json found = compared(entry("a", 1), failed("a", status));
    EXPECT_EQ(only_case(found)["verdict"], "failed");
    EXPECT_NE(only_case(found)["reason"].get<std::string>().find("SIGSEGV"), std::string::npos);
    EXPECT_EQ(bench::exit_code(found), 3);
  }
  EXPECT_EQ(bench::exit_code(compared(failed("a", "crashed"), failed("a", "crashed"))), 0);
  EXPECT_EQ(bench::exit_code(compared(failed("a", "crashed"), entry("a", 1))), 0);
  Json wrong = entry("a", 1, 2);
  wrong["status"] = "inaccurate";
  wrong["error"] = {{"what", "NaN in y"}};
  EXPECT_EQ(verdict(entry("a", 1), wrong), "less_accurate");
  EXPECT_EQ(bench::exit_code(compared(entry("a", 1), wrong)), 3);
}

TEST(Regressions, what_has_no_partner_is_named) {
  const Json found = compare_summaries(summary({entry("a", 1), entry("old", 1), failed("never", "skipped")}),
                                       summary({entry("a", 1, 2), entry("fresh", 1), failed("never", "skipped")}), "b");
  ASSERT_EQ(found["cases"].size(), 3U) << found.dump(1);
  EXPECT_EQ(found["counts"], (Json{{"gone", 1}, {"new", 1}, {"same", 1}}));
  EXPECT_EQ(found["cases"][0]["key"], "old");
  EXPECT_EQ(found["cases"][0]["verdict"], "gone");
  EXPECT_EQ(found["verdict"], "same");
  const Json skipped = compared(entry("a", 1), failed("a", "skipped"));
  EXPECT_EQ(only_case(skipped)["verdict"], "gone");
  EXPECT_EQ(skipped["verdict"], "ambiguous");
}

TEST(Regressions, other_conditions_are_not_comparable_and_said_so) {
  const std::pair<const char*, std::function<void(Json&)>> changes[] = {
      {"device (Some CPU then, Other CPU now)", [](Json& json) { json["device"]["model"] = "Other CPU"; }},
      {"seed (1337 then, 7 now)", [](Json& json) { json["seed"] = 7; }},
      {"problem size", [](Json& json) { json["problem_size"]["rows"] = 128; }},
      {"cold caches (false then, true now)", [](Json& json) { json["timing"]["is_cold"] = true; }},
  };
  for (const auto& [words, change] : changes) {
    Json after = entry("a", 2);
    change(after);
    const Json found = compared(entry("a", 1), after);
    EXPECT_EQ(only_case(found)["verdict"], "not_comparable") << words;
    EXPECT_NE(only_case(found)["reason"].get<std::string>().find(words), std::string::npos) << found.dump(1);
    EXPECT_EQ(found["verdict"], "ambiguous");
  }
  Json elsewhere = summary({entry("a", 2)});
  elsewhere["environment"]["cpus"] = 64;
  const Json found = compare_summaries(summary({entry("a", 1)}), elsewhere, "b");
  EXPECT_EQ(only_case(found)["verdict"], "not_comparable");
  EXPECT_NE(found["notes"][0].get<std::string>().find("cpus (2 then, 64 now)"), std::string::npos) << found.dump(1);
  // Another kernel version may be the very reason: compared, with a note.
  Json updated = summary({entry("a", 2)});
  updated["environment"]["kernel"] = "Linux 6.2";
  const Json verdicts = compare_summaries(summary({entry("a", 1)}), updated, "b");
  EXPECT_EQ(only_case(verdicts)["verdict"], "slower");
  EXPECT_NE(verdicts["notes"][0].get<std::string>().find("kernel (Linux 6.1 then, Linux 6.2 now)"), std::string::npos);
}

TEST(Regressions, a_file_that_is_no_summary_is_rejected_by_name) {
  const Json good = summary({entry("a", 1)});
  Json other = good, twice = good, without = good, nameless = good;
  other["schema"] = "weir.result/2";
  twice["cases"].push_back(entry("a", 1));
  without.erase("cases");
  nameless["cases"][0].erase("key");
  for (const Json& bad : {Json(), Json::array(), Json::object(), other, twice, without, nameless}) {
    try {
      compare_summaries(bad, good, "old/summary.json");
      ADD_FAILURE() << bad.dump();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::input);
      EXPECT_TRUE(std::string(error.what()).starts_with("old/summary.json: ")) << error.what();
    }
  }
}

TEST(Regressions, samples_that_are_no_durations_are_not_compared) {
  for (const Json& samples : {Json(), Json::array(), Json({1, -1}), Json({1, "2"}), Json({0, 1}), Json({1e300})}) {
    Json bad = entry("a", 1);
    bad["timing"]["samples_ns"] = samples;
    EXPECT_EQ(verdict(bad, entry("a", 2)), "not_comparable") << samples.dump();
  }
  Json strange = entry("a", 1);
  for (const Json& rounds : {Json({10, 10}), Json({-1, 31}), Json({18446744073709551615U, 31}), Json({1.5, 28.5})}) {
    strange["timing"]["rounds"] = rounds;
    const Json found = compared(strange, entry("a", 1, 2));
    EXPECT_EQ(only_case(found)["rounds_before"], 1) << rounds.dump();
    EXPECT_FALSE(found["notes"].empty());
  }
}

TEST(Regressions, options_out_of_range_are_rejected) {
  const Json one = entry("a", 1);
  EXPECT_THROW(compared(one, one, {.latency = 0}), Error);
  EXPECT_THROW(compared(one, one, {.latency = NAN}), Error);
  EXPECT_THROW(compared(one, one, {.accuracy = -1}), Error);
  EXPECT_THROW(compared(one, one, {.certainty = 1}), Error);
}

TEST(Regressions, many_cases_share_the_doubt) {
  std::vector<Json> before, after;
  for (int i = 0; i < 40; ++i) {
    before.push_back(entry(std::to_string(i), 1));
    after.push_back(entry(std::to_string(i), i == 7 ? 1.12 : 1, 2));
  }
  const Json found = compare_summaries(summary(before), summary(after), "b");
  EXPECT_EQ(found["counts"], (Json{{"slower", 1}, {"same", 39}})) << found["counts"].dump();
  EXPECT_EQ(found["cases"][0]["key"], "7");
  EXPECT_GE(found["cases"][0]["adjusted_p"].get<double>(), 39 * found["cases"][0]["p"].get<double>());
}

// A run of 3 or 5 processes whose level differs by `process_spread` (standard deviation), 6 samples each, some of them
// held up.
bench::RunTimes noisy(SplitMix& random, double level, int rounds, double process_spread) {
  bench::RunTimes times;
  for (int round = 0; round < rounds; ++round) {
    const double mine = level * std::exp(process_spread * gauss(random));
    std::vector<double>& samples = times.rounds.emplace_back();
    for (int i = 0; i < 6; ++i) {
      const double usual = 1 + 0.003 * random.fraction();
      samples.push_back(mine * (usual + (random.fraction() < 0.2 ? random.fraction() : 0)));
    }
  }
  return times;
}

struct Verdicts {
  int slower = 0, faster = 0;
};
// Of 1,000 comparisons with 12 cases each.
Verdicts verdicts_of(double factor, int rounds, double process_spread) {
  SplitMix random(7);
  Verdicts verdicts;
  for (int i = 0; i < 1000; ++i) {
    const bench::RunTimes before = noisy(random, 100, rounds, process_spread),
                          after = noisy(random, 100 * factor, rounds, process_spread);
    const auto verdict = bench::judge_latency(*bench::latency_change(before, after), 0.1, 0.99, 12).verdict;
    verdicts.slower += verdict == Verdict::slower ? 1 : 0;
    verdicts.faster += verdict == Verdict::faster ? 1 : 0;
  }
  return verdicts;
}

TEST(LatencyChange, equal_runs_are_not_told_apart_however_much_processes_differ) {
  for (const int rounds : {3, 5})
    for (const double process_spread : {0.0, 0.01, 0.03, 0.05, 0.10, 0.20}) {
      const Verdicts verdicts = verdicts_of(1, rounds, process_spread);
      EXPECT_LE(verdicts.slower + verdicts.faster, 10) << rounds << " rounds, " << process_spread;
    }
}

TEST(LatencyChange, twelve_percent_are_found_where_processes_differ_by_one) {
  EXPECT_GE(verdicts_of(1.12, 3, 0.005).slower, 950);
  EXPECT_GE(verdicts_of(1.12, 5, 0.01).slower, 950);
}

TEST(LatencyChange, one_process_with_bad_luck_moves_no_ratio) {
  const std::vector<double> good(6, 100), bad(6, 150), slower(6, 112);
  const auto change =
      bench::latency_change({{good, good, good, good, bad}, {}}, {{slower, slower, slower, slower, slower}, {}});
  EXPECT_NEAR(std::exp(change->log_ratio), 1.12, 1e-9);
  EXPECT_LT(change->log_means, change->log_ratio);
  const Interval likely = change->ratio_interval(0.99);
  EXPECT_LT(likely.low, std::exp(change->log_means));
  EXPECT_GT(likely.high, 1.12);
}

TEST(LatencyChange, many_rounds_take_no_square_of_time) {
  const std::vector<std::vector<double>> rounds(10'000, std::vector<double>{100});
  EXPECT_NEAR(bench::latency_change({rounds, {}}, {rounds, {}})->log_ratio, 0, 1e-12);
}

TEST(LatencyChange, nothing_comes_of_no_samples) {
  EXPECT_FALSE(bench::latency_change({}, {{{1.0}}, {}}));
  EXPECT_FALSE(bench::latency_change({{{}, {}}, {}}, {{{1.0}}, {}}));
}

}  // namespace
}  // namespace weir::testing
