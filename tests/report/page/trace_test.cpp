#include "report/page/trace.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "report/page/decoded_lane.h"
#include "report/page/picture_documents.h"
#include "trace/export/chrome_json.h"
#include "trace/importer_testing.h"

namespace weir::page {
namespace {

using namespace weir::testing;

Json report_of(const std::filesystem::path& file, const TraceOptions& options = {}) {
  Page page("test", "2026-01-31T12:00:00Z", {});
  add_trace(page, file, options);
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
  EXPECT_EQ(report["waterfalls"].size(), 6U);
  EXPECT_EQ(report["overlaps"].size(), 1U);
  ASSERT_EQ(report["queue_maps"].size(), 2U);
  EXPECT_EQ(report["queue_maps"][0]["cells"][0]["commands"], 4);
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
  EXPECT_EQ(add_trace(page, folder / "trace.json", few), 10U);
  const Json report = std::move(page).document();
  EXPECT_EQ(report["timelines"][0]["left_out"], 14);
  EXPECT_TRUE(report["timelines"][0]["left_out_reason"].is_string());
}

TEST(PageTrace, tells_traces_from_other_files) {
  const ScratchFolder folder;
  EXPECT_FALSE(is_trace(folder / "missing.json"));
  EXPECT_FALSE(is_trace(folder.write("a.json", R"({"schema": "weir.result/1"})")));
  EXPECT_FALSE(is_trace(folder.write("b.bin", std::string("\0\1\2\3", 4))));
  EXPECT_FALSE(is_trace(folder.write("empty.json", "")));
  EXPECT_TRUE(is_trace(folder.write("c.json", R"({"traceEvents": []})")));
  Page page("test", "2026-01-31T12:00:00Z", {});
  EXPECT_THROW(add_trace(page, folder / "b.bin", {}), Error);
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
