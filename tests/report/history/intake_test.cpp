#include "report/history/intake.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "report/history/made.h"

namespace weir::history {
namespace {

using testing::HistoryTest;
using testing::MadeResult;
using testing::result_json;

Machine machine_with(const MadeResult& made) { return machine_of(parse_results(result_json(made), "made").points[0]); }

TEST(Machine, what_makes_numbers_incomparable_parts_machines) {
  const Machine first = machine_with({});
  EXPECT_EQ(first.id.size(), 12U);
  EXPECT_EQ(first.label, "NVIDIA H200, cuda:0");
  MadeResult other;
  other.model = "NVIDIA H100";
  EXPECT_NE(machine_with(other).id, first.id);
  other = {};
  other.driver = "580.2";
  EXPECT_NE(machine_with(other).id, first.id);
  other = {};
  other.variables["CUDA_DEVICE_MAX_CONNECTIONS"] = "32";
  EXPECT_NE(machine_with(other).id, first.id);
}

TEST(Machine, what_annotates_or_differs_from_job_to_job_does_not) {
  const Machine first = machine_with({});
  MadeResult other;
  other.kernel = "Linux 6.18";
  other.latency_ns = 5;
  other.streams = 2;
  other.variables = {{"SLURM_JOB_ID", "77"}, {"CUDA_HOME", "/opt/cuda"}};
  EXPECT_EQ(machine_with(other).id, first.id);
  Json json = result_json({});
  json["environment"]["memory_bytes"] = 25234767872 - 4096;
  json["environment"]["load_average"] = "9.9";
  EXPECT_EQ(machine_of(parse_results(json, "made").points[0]).id, first.id);
}

TEST(Machine, names_and_values_are_not_run_together) {
  ResultPoint one, two;
  one.settings = {{"device.a", "b\n8:device.c=1:d"}};
  two.settings = {{"device.a", "b"}, {"device.c", "d"}};
  EXPECT_NE(machine_of(one).id, machine_of(two).id);
}

TEST(Machine, digests_are_those_of_the_algorithm) {
  // The published value of FNV-1a, 128 bits, for "a" and for nothing.
  EXPECT_EQ(digest_of(""), "6c62272e07bb014262b821756295c58d");
  EXPECT_EQ(digest_of("a"), "d228cb696f1a8caf78912b704e4a8964");
}

using Intakes = HistoryTest;

TEST_F(Intakes, results_sweeps_and_folders_give_points) {
  MadeResult second;
  second.streams = 4;
  const Json sweep = {{"schema", "weir.sweep/1"}, {"results", {result_json({}), result_json(second)}}};
  const std::vector<std::filesystem::path> paths = {write("one.json", result_json({}).dump()),
                                                    write("sweep.json", sweep.dump())};
  const Intake files = read_intake(paths);
  ASSERT_EQ(files.points.size(), 3U);
  EXPECT_EQ(files.points[0].measured, "2026-11-01T00:00:00Z");
  EXPECT_EQ(files.points[0].weir_version, "0.1.0");
  EXPECT_EQ(files.points[0].device["model"], "NVIDIA H200");
  EXPECT_FALSE(files.points[0].environment.contains("load_average"));
  // The same result, once alone and once in a sweep.
  EXPECT_EQ(files.points[0].digest, files.points[1].digest);
  EXPECT_NE(files.points[1].digest, files.points[2].digest);

  write("other.json", R"({"schema": "weir.overlap/2"})");
  const std::vector<std::filesystem::path> folder = {folder_};
  const Intake all = read_intake(folder);
  EXPECT_EQ(all.points.size(), 3U);
  ASSERT_EQ(all.notes.size(), 1U);
  EXPECT_NE(all.notes[0].find("weir.overlap/2"), std::string::npos);
}

TEST_F(Intakes, what_cannot_be_read_is_named_each) {
  write("broken.json", R"({"schema": "weir.result/2", )");
  write("newer.json", R"({"schema": "weir.result/2"})");
  write("fine.json", result_json({}).dump());
  const std::vector<std::filesystem::path> paths = {folder_, folder_ / "nowhere.json"};
  const Intake intake = read_intake(paths);
  ASSERT_EQ(intake.refused.size(), 3U);
  EXPECT_NE(intake.refused[0].find("broken.json"), std::string::npos);
  EXPECT_NE(intake.refused[1].find("newer"), std::string::npos);
  EXPECT_NE(intake.refused[2].find("nowhere.json"), std::string::npos);
}

TEST_F(Intakes, a_date_that_is_none_is_not_known) {
  MadeResult made;
  made.created = "<b>yesterday</b>";
  const std::vector<std::filesystem::path> paths = {write("one.json", result_json(made).dump())};
  const Intake intake = read_intake(paths);
  ASSERT_EQ(intake.points.size(), 1U);
  EXPECT_EQ(intake.points[0].measured, "");
}

TEST(BenchPoints, cases_are_points_and_failures_are_kept) {
  const Json document = Json::parse(R"({
    "schema": "weir.bench/2", "created": "2026-11-02T00:00:00Z",
    "environment": {"weir": "0.1.0", "cpu_model": "EPYC", "cpus": 8, "kernel": "Linux", "load_average": "1",
      "variables": {"OMP_NUM_THREADS": "4"}, "compilers": {"host": "g++"},
      "devices": {"cpu": {"is_present": true, "name": "cpu", "model": "EPYC", "driver": null}}},
    "cases": [
      {"kernel_name": "softmax", "backend": "cpu", "precision": "fp32", "problem_size": {"rows": 1024}, "how": "called",
       "device": {"name": "cpu", "model": "EPYC"}, "status": "ok", "threads": 4,
       "timing": {"samples_ns": [1.5e6, 2.5e6, 2.0e6], "is_cold": false}},
      {"kernel_name": "gemm", "backend": "cpu", "status": "crashed", "error": {"what": "signal 11"}, "timing": null},
      {"kernel_name": "later", "backend": "cuda", "status": "skipped"},
      "nonsense", {"kernel_name": 5}]})");
  const std::vector<NewPoint> points = bench_points(document, document, "summary.json");
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].point.key.at("workload"), "softmax");
  EXPECT_EQ(points[0].point.key.at("param.rows"), "1024");
  EXPECT_EQ(points[0].point.key.at("threads"), "4");
  EXPECT_EQ(points[0].point.latency.samples, (std::vector<double>{1.5e6, 2.5e6, 2e6}));
  EXPECT_EQ(points[0].machine.label, "EPYC, cpu");
  EXPECT_EQ(points[0].machine.facts.at("environment.variables.OMP_NUM_THREADS"), "4");
  EXPECT_EQ(points[1].point.failure, "signal 11");
  EXPECT_EQ(points[1].point.origin, "summary.json: cases[1]");
  EXPECT_THROW(bench_points(Json::object(), Json::object(), "x"), Error);
}

// Digests that Weir 0.1 put into histories for these files: added again, they must be recognised.
TEST(Intake, RecognisesWhatAnEarlierVersionAdded) {
  const std::filesystem::path folder = WEIR_SOURCE_DIR "/tests/data/v0.1";
  const std::vector<std::filesystem::path> files = {folder / "result.json", folder / "sweep.json",
                                                    folder / "bench.json"};
  const Intake intake = read_intake(files);
  EXPECT_TRUE(intake.refused.empty());
  std::vector<std::string> digests;
  for (const NewPoint& point : intake.points) digests.push_back(point.digest);
  const std::vector<std::string> known = {
      "652500f7e90d677db1828c56dc17b57e", "7f8b59411c925ed44128a6e0b9fb042c", "f1df55c7cee4d5fa1290a2c4d1ce59cf",
      "1c1dc8279d0396a82d863bcf689eac3e", "0b377b767eed38264c91f49143165e31", "851e7c7b0dcfb45598512d7657c465f1",
      "5cb82213cbb03a0c16ea36d02d79ee78", "1b26ee7dd829c45dbaff6b765703810a", "9309ba75eeecc90220b6cf6530eaf283",
      "1fa918a21f885ef43746943f926dea20", "ead3d88ea5ce67ed5f694c187afa83ec"};
  EXPECT_EQ(digests, known);
}

TEST_F(HistoryTest, benchmarks_of_channels_are_points_and_failures_are_kept) {
  const Json document = Json::parse(R"({
    "schema": "weir.channel/1", "created": "2026-11-02T00:00:00Z",
    "environment": {"cpu_model": "EPYC", "cpus": 8, "load_average": "1", "variables": {}},
    "settings": {"capacity": 128, "placement": "auto", "device": "cpu"},
    "benchmarks": [
      {"group": "send_latency", "name": "small", "contestant": "spsc", "unit": "ns_per_operation", "status": "measured",
       "processes": [{"samples": [8.5, 9]}, {"samples": [10]}, {"samples": []}]},
      {"group": "throughput", "name": "batch/10", "contestant": "mpsc", "unit": "per_second", "status": "measured",
       "processes": [{"samples": [1e6]}]},
      {"group": "contention", "name": "4x250", "contestant": "mpmc", "unit": "ns_in_all", "status": "failed",
       "reason": "it hung", "processes": []},
      {"group": "devices", "name": "x", "contestant": "broadcast", "unit": "ns_in_all", "status": "unavailable"},
      7]})");
  const std::vector<std::filesystem::path> paths = {write("channel.json", document.dump())};
  const Intake intake = read_intake(paths);
  EXPECT_TRUE(intake.refused.empty());
  const std::vector<NewPoint>& points = intake.points;
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].point.key.at("workload"), "send_latency/small");
  EXPECT_EQ(points[0].point.key.at("channel"), "spsc");
  EXPECT_EQ(points[0].point.key.at("capacity"), "128");
  EXPECT_EQ(points[0].point.latency.samples, (std::vector<double>{8.5, 9, 10}));
  EXPECT_EQ(points[0].point.latency.processes, (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(points[0].machine.facts.at("environment.cpu_model"), "EPYC");
  EXPECT_EQ(points[0].measured, "2026-11-02T00:00:00Z");
  EXPECT_TRUE(points[1].point.latency.samples.empty());
  EXPECT_EQ(points[1].point.throughput.samples, std::vector<double>{1e6});
  EXPECT_EQ(points[2].point.failure, "it hung");
  EXPECT_NE(points[0].digest, points[1].digest);
  EXPECT_THROW(channel_points(Json::object(), "x"), Error);
  EXPECT_THROW(channel_points(Json::parse(R"({"benchmarks": [7]})"), "x"), Error);
}

}  // namespace
}  // namespace weir::history
