#include "report/page/trace.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "report/page/decoded_lane.h"
#include "report/page/gather.h"
#include "report/page/picture_documents.h"
#include "trace/export/chrome_json.h"
#include "trace/importer_testing.h"

namespace weir::page {
namespace {

using namespace weir::testing;

std::size_t add_file(Page& page, const std::filesystem::path& file, const TraceOptions& options) {
  ImportedTrace trace = read_trace(file, options);
  TraceJob job;
  job.join(file, trace);
  return add_trace(page, std::move(job), nullptr, options);
}

Json report_of(const std::filesystem::path& file, const TraceOptions& options = {}) {
  Page page("test", "2026-01-31T12:00:00Z", {});
  add_file(page, file, options);
  return std::move(page).document();
}

// Every lane against its own numbers; returns the spans in groups whose label has this word.
std::size_t check_lanes(const Json& timeline, const std::string& word) {
  std::size_t counted = 0;
  for (const Json& group : timeline["groups"])
    for (const Json& lane : group["lanes"]) {
      const auto spans = decode_lane(lane["spans"].get<std::string>());
      EXPECT_EQ(spans.size(), lane["count"].get<std::size_t>());
      EXPECT_EQ(busy_of(spans), lane["busy_ns"].get<std::uint64_t>()) << lane["label"];
      for (const DecodedSpan& span : spans) {
        if (span.name >= timeline["names"].size() ||
            span.start + span.duration > timeline["end_ns"].get<std::uint64_t>()) {
          ADD_FAILURE() << lane["label"] << " " << span.start << " " << span.duration << " " << span.name;
          break;
        }
      }
      if (group["label"].get<std::string>().find(word) != std::string::npos) counted += spans.size();
    }
  return counted;
}

TEST(PageTrace, draws_what_chrome_json_wrote) {
  const ScratchFolder folder;
  ChromeExport options;
  options.process = std::nullopt;
  write_chrome_json(traced_ranks(), options, folder / "trace.json", false);
  ASSERT_TRUE(is_trace(folder / "trace.json"));
  const Json report = report_of(folder / "trace.json");
  ASSERT_EQ(report["timelines"].size(), 1U);
  const Json& timeline = report["timelines"][0];
  EXPECT_EQ(timeline["title"], "trace.json");
  EXPECT_EQ(report["sources"][0]["schema"], "kineto");
  EXPECT_EQ(check_lanes(timeline, "Streams"), 12U);
  EXPECT_EQ(check_lanes(timeline, "Hardware queues"), 12U);
  EXPECT_EQ(check_lanes(timeline, "host threads"), 12U);
  EXPECT_EQ(check_lanes(timeline, "steps"), 4U);
  // Of the two ranks, one stands for both; overlap has a bar of each.
  EXPECT_EQ(report["waterfalls"].size(), 3U);
  ASSERT_EQ(report["overlaps"].size(), 1U);
  EXPECT_EQ(report["overlaps"][0]["bars"].size(), 2U);
  ASSERT_EQ(report["queue_maps"].size(), 1U);
  EXPECT_EQ(report["queue_maps"][0]["cells"][0]["commands"], 4);
}

// Operators are read for the page without being asked for.
TEST(PageTrace, says_which_operators_the_device_worked_for) {
  const ScratchFolder folder;
  std::ofstream(folder / "t.json") << R"json({"schemaVersion": 1, "traceEvents": [
    {"ph": "X", "cat": "python_function", "name": "nn.Module: Linear_0", "pid": 9, "tid": 9, "ts": 90, "dur": 40},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 100, "dur": 20,
     "args": {"Input type": ["float", "float"], "Input Dims": [[8, 4], [4, 2]]}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 105, "dur": 2,
     "args": {"correlation": 1}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 110, "dur": 50,
     "args": {"device": 0, "stream": 7, "correlation": 1}}]})json";
  const Json report = report_of(folder / "t.json");
  ASSERT_EQ(report["models"].size(), 1U);
  const Json& item = report["models"][0];
  ASSERT_EQ(item["modules"].size(), 1U);
  EXPECT_EQ(item["modules"][0]["name"], "Linear_0");
  EXPECT_EQ(item["modules"][0]["total_ns"], 50'000);
  ASSERT_EQ(item["operators"].size(), 1U);
  EXPECT_EQ(item["operators"][0]["name"], "aten::mm");
  EXPECT_EQ(item["operators"][0]["shapes"], "f32 [8, 4], f32 [4, 2]");
  EXPECT_EQ(item["operators"][0]["share"], 1);
}

// A file of each rank.
void write_ranks(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    ChromeExport options;
    options.process = rank;
    options.world_size = 2;
    write_chrome_json(traced_ranks(), options, folder / ("rank" + std::to_string(rank) + ".json"), false);
  }
}

Json gathered(const std::vector<std::filesystem::path>& paths, const std::filesystem::path& baseline = {}) {
  Page page("test", "2026-01-31T12:00:00Z", {});
  GatherOptions options;
  options.baseline = baseline;
  EXPECT_EQ(gather(page, paths, options).is_baseline_trace, !baseline.empty());
  return std::move(page).document();
}

TEST(PageTrace, ranks_of_one_job_are_one_card) {
  const ScratchFolder folder;
  write_ranks(folder / "job");
  const Json report = gathered({folder / "job"});
  EXPECT_TRUE(report["refused"].empty()) << report["refused"].dump();
  EXPECT_EQ(report["sources"].size(), 2U);
  ASSERT_EQ(report["timelines"].size(), 1U);
  EXPECT_EQ(report["timelines"][0]["title"], "rank0.json and 1 more rank");
  EXPECT_EQ(check_lanes(report["timelines"][0], "Streams"), 12U);  // of both
  ASSERT_EQ(report["overlaps"].size(), 1U);
  EXPECT_EQ(report["overlaps"][0]["bars"].size(), 2U);
  EXPECT_EQ(report["texts"].size(), 1U);
  // The same rank twice is two runs.
  write_ranks(folder / "other");
  EXPECT_EQ(gathered({folder / "job", folder / "other"})["timelines"].size(), 2U);
}

TEST(PageTrace, a_baseline_is_compared_and_leads) {
  const ScratchFolder folder;
  write_ranks(folder / "before");
  write_ranks(folder / "after");
  for (const char* path : {"before", "before/rank0.json"}) {
    const bool is_job = std::filesystem::is_directory(folder / path);
    const Json report = gathered({folder / (is_job ? "after" : "after/rank0.json")}, folder / path);
    ASSERT_EQ(report["comparisons"].size(), 1U) << report["refused"].dump();
    const Json& item = report["comparisons"][0];
    EXPECT_EQ(item["totals"][0]["quantity"], "span");
    EXPECT_EQ(item["totals"][0]["ratio"], 1);
    ASSERT_FALSE(item["pairs"].empty());
    EXPECT_EQ(item["pairs"][0]["label"], "time per iteration");
    // Two iterations cannot be judged, and this comes before all that is said of the trace itself.
    EXPECT_EQ(report["verdict"]["findings"][0]["anchor"], item["id"]);
    EXPECT_TRUE(report["verdict"]["headline"].get<std::string>().starts_with("Ambiguous: an iteration took"))
        << report["verdict"]["headline"];
  }
  // Two runs are no baseline; a result has no partner here.
  EXPECT_THROW(gathered({folder / "after"}, folder / ""), Error);
  Page page("test", "2026-01-31T12:00:00Z", {});
  GatherOptions options;
  options.baseline = folder / "before";
  gather(page, {folder.write("text.json", R"({"schema": "weir.unknown/1"})")}, options);
  EXPECT_EQ(page.refused().back()["path"], (folder / "before").string());
}

TEST(PageTrace, counts_the_streams_of_a_shared_queue_apart) {
  const ScratchFolder folder;
  Timeline timeline = traced_ranks();
  for (Span& span : timeline.spans)
    if (span.queue == 1) span.queue = 0;
  ChromeExport options;
  options.process = 0;
  write_chrome_json(timeline, options, folder / "trace.json", false);
  const Json report = report_of(folder / "trace.json");
  ASSERT_EQ(report["queue_maps"].size(), 1U);
  std::vector<int> commands;
  for (const Json& cell : report["queue_maps"][0]["cells"]) commands.push_back(cell["commands"].get<int>());
  std::sort(commands.begin(), commands.end());
  EXPECT_EQ(commands, (std::vector<int>{2, 4}));
}

TEST(PageTrace, keeps_to_its_limit_and_says_what_is_left_out) {
  const ScratchFolder folder;
  ChromeExport options;
  options.process = std::nullopt;
  write_chrome_json(traced_ranks(), options, folder / "trace.json", false);
  TraceOptions few;
  few.max_spans = 10;
  Page page("test", "2026-01-31T12:00:00Z", {});
  EXPECT_EQ(add_file(page, folder / "trace.json", few), 10U);
  const Json report = std::move(page).document();
  EXPECT_EQ(report["timelines"][0]["left_out"], 14);
  EXPECT_TRUE(report["timelines"][0]["left_out_reason"].is_string());
}

TEST(PageTrace, tells_traces_from_other_files) {
  const ScratchFolder folder;
  EXPECT_FALSE(is_trace(folder / "missing.json"));
  EXPECT_FALSE(is_trace(folder.write("a.json", R"({"schema": "weir.result/2"})")));
  EXPECT_FALSE(is_trace(folder.write("b.bin", std::string("\0\1\2\3", 4))));
  EXPECT_FALSE(is_trace(folder.write("empty.json", "")));
  EXPECT_TRUE(is_trace(folder.write("c.json", R"({"traceEvents": []})")));
  Page page("test", "2026-01-31T12:00:00Z", {});
  EXPECT_THROW(add_file(page, folder / "b.bin", {}), Error);
}

TEST(PageTrace, draws_real_captures) {
  for (const char* name :
       {"kineto/mi250_minitoy.json.gz", "kineto/a100_ddp_4streams.json.gz", "kineto/cpu_only.json.gz",
        "nsys/mfu_2gpu_after.sqlite", "rpd/matmul_result.rpd", "cupti/activity_dump.txt"}) {
    const auto file = real_file(name);
    if (!file) GTEST_SKIP() << "WEIR_REAL_DATA does not name the folder of real captures";
    ImportOptions none;
    const auto traces = import_traces({*file}, none);
    const Json report = report_of(*file);
    std::size_t commands = 0;
    for (const Json& timeline : report["timelines"]) commands += check_lanes(timeline, "Streams");
    EXPECT_EQ(commands, traces[0].timeline.spans.size()) << name;
  }
}

}  // namespace
}  // namespace weir::page
