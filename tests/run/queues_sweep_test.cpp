// The queue sweep without processes: what is complete, what is mismatched, and what counts as a difference.
#include "lab/queues/queues_sweep.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "lab/queues/convoy.h"
#include "measure/bootstrap.h"

namespace weir {
namespace {

// Around `level`, by a few per cent; repeatable.
Json samples(double level, std::uint64_t seed, int count = 50) {
  SplitMix random(seed);
  Json list = Json::array();
  for (int i = 0; i < count; ++i) list.push_back(std::round(level * (1 + 0.02 * random.fraction())));
  return list;
}

PointRun result(int queues, double level, std::uint64_t seed, const Json& variables = Json::object(), int count = 50) {
  PointRun run;
  run.result = {
      {"device", {{"hardware_queues", queues > 0 ? Json(queues) : Json(nullptr)}}},
      {"environment", {{"variables", variables}}},
      {"samples", {{"latency_ns", samples(level, seed, count)}}},
      {"metrics",
       {{"latency_ns", {{"p50", level * 1.01}}}, {"throughput", {{"value", 1e9 / level}, {"unit", "steps/s"}}}}},
      {"warnings", Json::array()}};
  return run;
}

Json point(int queues, std::initializer_list<double> levels, int count = 50) {
  Json json = empty_point({queues, 8, Scale::tiny, {}});
  std::uint64_t seed = static_cast<std::uint64_t>(queues) * 100;
  for (const double level : levels)
    add_run(json, "--hw-queues", static_cast<int>(levels.size()), result(queues, level, ++seed, Json::object(), count));
  return json;
}

Json judged(std::initializer_list<Json> points) {
  Json sweep = {{"points", Json::array()}};
  for (const Json& one : points) sweep["points"].push_back(one);
  judge_points(sweep);
  return sweep;
}

TEST(QueuesSweep, APointIsCompleteOnlyIfItsProcessSawTheCount) {
  const auto status = [](const std::string& setting, const PointRun& run) {
    Json json = empty_point({16, 8, Scale::tiny, {}});
    add_run(json, setting, 1, run);
    return json["status"].get<std::string>();
  };
  const std::string variable = "CUDA_DEVICE_MAX_CONNECTIONS";
  EXPECT_EQ(status("--hw-queues", result(16, 1000, 1)), "complete");
  EXPECT_EQ(status("--hw-queues", result(8, 1000, 1)), "mismatched");
  EXPECT_EQ(status("--hw-queues", result(0, 1000, 1)), "mismatched") << "nothing says that it had them";
  EXPECT_EQ(status(variable, result(16, 1000, 1, {{variable, "16"}})), "complete");
  EXPECT_EQ(status(variable, result(16, 1000, 1)), "mismatched") << "it did not see the variable";
  EXPECT_EQ(status(variable, result(8, 1000, 1, {{variable, "16"}})), "mismatched") << "the driver did not take it";
  EXPECT_EQ(status(variable, result(0, 1000, 1, {{variable, "16"}})), "complete") << "the device cannot tell";
  PointRun failed;
  failed.failure = "out of memory";
  EXPECT_EQ(status("--hw-queues", failed), "failed");
}

TEST(QueuesSweep, FindsTheBestCount) {
  const Json sweep = judged({point(1, {3000, 3010, 2990}), point(2, {1500, 1490, 1510}), point(4, {1000, 1003, 998}),
                             point(8, {1001, 999, 1002})});
  EXPECT_EQ(sweep["points"][0]["verdict"], "slower");
  EXPECT_NEAR(sweep["points"][0]["ratio"].get<double>(), 3.0, 0.1);
  EXPECT_EQ(sweep["points"][1]["verdict"], "slower");
  const Json& best = sweep["best"][0];
  EXPECT_TRUE(best["queues"] == 4 || best["queues"] == 8);
  EXPECT_EQ(best["same"].size(), 1u);
  EXPECT_NE(best["sentence"].get<std::string>().find("slowest with 1 queue: 3."), std::string::npos) << best;
}

TEST(QueuesSweep, ProcessesThatDifferMoreThanCountsAreNoise) {
  // Each process by itself is precise; the counts differ by 20 % in the median, but the processes by more.
  const Json sweep = judged({point(1, {1000, 1300, 1210}), point(2, {1250, 1010, 1000})});
  EXPECT_EQ(sweep["best"][0]["sentence"], "no difference beyond noise between 1, 2 queues");
}

TEST(QueuesSweep, SmallDifferencesAreNone) {
  const Json sweep = judged({point(1, {1000, 1001, 1002}), point(2, {1012, 1013, 1014})});
  EXPECT_EQ(sweep["points"][1]["verdict"], "same");
}

TEST(QueuesSweep, TooFewSamplesAreNotJudged) {
  const Json sweep = judged({point(1, {1000}, 3), point(2, {2000}, 3)});
  EXPECT_TRUE(sweep["points"][1]["verdict"].is_null());
  EXPECT_NE(sweep["best"][0]["sentence"].get<std::string>().find("too few samples"), std::string::npos);
}

TEST(QueuesSweep, PointsTakeTurnsWithinTheirGroup) {
  QueuesSweepRequest request;
  request.queues = {1, 2};
  request.streams = {4, 8};
  request.scales = {Scale::tiny};
  request.params = {{"elements", {"1", "2"}}};
  const auto points = points_of(request);
  ASSERT_EQ(points.size(), 8u);
  EXPECT_EQ(points[0].queues, 1);
  EXPECT_EQ(points[1].queues, 2);
  EXPECT_EQ(points[1].streams, 4);
  EXPECT_EQ(points[2].streams, 8);
  EXPECT_EQ(points[4].params, (ParamValues{{"elements", "2"}}));
}

TEST(QueuesSweep, CountsTakeTurnsInRandomOrderAndNothingIsRepeated) {
  QueuesSweepRequest request;
  request.run.workload = "tiny_kernel_stress";
  request.queues = {1, 2, 4, 8};
  request.streams = {4, 8};
  request.scales = {Scale::tiny};
  request.setting = "--hw-queues";
  request.repeats = 5;
  request.output =
      std::filesystem::temp_directory_path() / ("weir_queues_sweep_" + std::to_string(::getpid()) + ".json");
  request.overwrites = request.resumes = true;
  std::vector<int> streams, queues;
  std::size_t most = 23;  // then it is interrupted
  QueuesSweepControl control;
  control.run = [&](const QueuesPoint& at) {
    PointRun run = result(at.queues, 1000, queues.size());
    run.is_interrupted = queues.size() == most;
    if (run.is_interrupted) return run;
    streams.push_back(at.streams);
    queues.push_back(at.queues);
    return run;
  };
  EXPECT_EQ(run_queues_sweep({}, request, {}, control)["sweep"]["status"], "interrupted");
  most = 1000;
  const Json sweep = run_queues_sweep({}, request, {}, control)["sweep"];
  std::filesystem::remove(request.output);
  EXPECT_EQ(sweep["status"], "complete");
  ASSERT_EQ(queues.size(), 40u) << "every process once";
  std::set<std::vector<int>> orders;
  for (std::size_t round = 0; round < 10; ++round) {
    const std::vector<int> order(queues.begin() + static_cast<std::ptrdiff_t>(4 * round),
                                 queues.begin() + static_cast<std::ptrdiff_t>(4 * round + 4));
    EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 4u) << "each count once a round";
    EXPECT_EQ(streams[4 * round], round < 5 ? 4 : 8) << "one group after the other";
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 3u);
  ASSERT_EQ(sweep["points"].size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(sweep["points"][i]["queues"], 1 << (i % 4)) << "in the order asked for";
    EXPECT_EQ(sweep["points"][i]["runs"].size(), 5u);
  }
}

Json convoy_case(ConvoyCase which, double level, std::size_t shared, double error_ns = 0) {
  ConvoyRequest request;
  request.which = which;
  ConvoyMeasurement measurement;
  for (const Json& sample : samples(level, 7, 300)) measurement.latency_ns.push_back(sample.get<double>());
  measurement.shared = shared;
  measurement.clock_error_ns = error_ns;
  return to_json(request, measurement);
}

Json convoy_document(const Json& alone, const Json& beside, const Json& behind) {
  Json document = {{"warnings", Json::array()},
                   {"unavailable", Json::object()},
                   {"convoy", {{"cases", {{"alone", alone}, {"beside", beside}, {"behind", behind}}}}}};
  judge_convoy(document);
  return document;
}

TEST(QueuesConvoy, IndicesAreRatiosOfTheTails) {
  const Json document =
      convoy_document(convoy_case(ConvoyCase::alone, 10e3, 0), convoy_case(ConvoyCase::beside, 20e3, 0),
                      convoy_case(ConvoyCase::behind, 500e3, 300));
  EXPECT_NEAR(document["convoy"]["convoy_index"]["p99"].get<double>(), 2, 0.01);
  EXPECT_NEAR(document["convoy"]["head_of_line_index"]["p99"].get<double>(), 25, 0.1);
  const Json& interval = document["convoy"]["head_of_line_index"]["p99_interval"];
  EXPECT_LE(interval[0].get<double>(), 25);
  EXPECT_GE(interval[1].get<double>(), 25);
  EXPECT_TRUE(document["warnings"].empty());
}

TEST(QueuesConvoy, SaysWhatLimitsIt) {
  const Json shared =
      convoy_document(convoy_case(ConvoyCase::alone, 10e3, 0, 9e3), convoy_case(ConvoyCase::beside, 20e3, 5),
                      convoy_case(ConvoyCase::behind, 20e3, 100));
  ASSERT_EQ(shared["warnings"].size(), 3u);
  EXPECT_EQ(shared["warnings"][0]["kind"], "coarse_clock");
  EXPECT_EQ(shared["warnings"][1]["kind"], "shared_queue");
  EXPECT_EQ(shared["warnings"][2]["kind"], "other_queue");
  EXPECT_NE(shared["convoy"]["sentence"].get<std::string>().find("no longer than beside them"), std::string::npos);

  ConvoyMeasurement nothing;
  nothing.reason = "no clock";
  const Json none = convoy_document(to_json({}, nothing), convoy_case(ConvoyCase::beside, 20e3, 0),
                                    convoy_case(ConvoyCase::behind, 500e3, 300));
  EXPECT_TRUE(none["convoy"]["convoy_index"].is_null());
  EXPECT_EQ(none["unavailable"]["convoy.cases.alone.latency_ns"], "no clock");
  EXPECT_TRUE(none["convoy"]["head_of_line_index"].is_object());
}

}  // namespace
}  // namespace weir
