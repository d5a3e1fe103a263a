// The CSV export: one row per command, empty where nothing is known, quoted where names need it.
#include "trace/export/timeline_csv.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "support/programs.h"
#include "support/sink_rules.h"
#include "support/text.h"

namespace weir {
namespace {

TEST(TimelineCsv, rows_are_rfc_4180) {
  std::string folder = (std::filesystem::temp_directory_path() / "weir_csv_XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::filesystem::path file = std::filesystem::path(folder) / "t.csv";
  Timeline t;
  t.names = {"f<int, \"x\">", "plain"};
  t.processes = {{1, "p"}};
  t.devices = {{0, 2, "GPU"}};
  t.streams = {{0, 7, "stream 7"}};
  t.queues = {{kCopyQueues, 0, "copy engine 0"}};
  Span span;
  span.name = 0;
  span.started_ns = 10;
  span.ended_ns = 20;
  span.iteration = 3;
  t.spans.push_back(span);
  span.name = 1;
  span.kind = SpanKind::copy;
  span.queue = kCopyQueues;
  span.bytes = 64;
  span.submitted_ns = 5;
  span.seen_ns = 30;
  t.spans.push_back(span);
  write_timeline_csv(t, file, false);
  EXPECT_THROW(write_timeline_csv(t, file, false), Error);
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  EXPECT_EQ(text.str(),
            "rank,device,stream,queue,kind,name,iteration,enqueued_ns,submitted_ns,accepted_ns,launched_ns,started_ns,"
            "ended_ns,seen_ns,bytes\r\n"
            "1,2,7,,kernel,\"f<int, \"\"x\"\">\",3,,,,,10,20,,\r\n"
            "1,2,7,copy engine 0,copy,plain,3,,5,,,10,20,30,64\r\n");
  std::filesystem::remove_all(folder);
}

// Names and labels of queues come from files and programs.
TEST(TimelineCsv, hostile_names_stay_in_their_cells) {
  const testing::Folder folder;
  Timeline t;
  t.processes = {{0, "p"}};
  t.devices = {{0, 0, "GPU"}};
  t.streams = {{0, 7, "stream 7"}};
  for (const std::string& text : testing::hostile_texts()) {
    Span span;
    span.name = static_cast<std::uint32_t>(t.names.size());
    span.queue = static_cast<std::int32_t>(t.names.size());
    t.names.push_back(text);
    t.queues.push_back({span.queue, 0, text});
    t.spans.push_back(span);
  }
  write_timeline_csv(t, folder / "t.csv", false);
  const std::string text = content(folder / "t.csv");
  EXPECT_EQ(testing::csv_rule(text), "") << text;
  EXPECT_EQ(lines_of(text).size(), t.spans.size() + 1);
}

}  // namespace
}  // namespace weir
