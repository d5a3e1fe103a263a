// Every command with a document: `--json` and `-o -` put it on standard output, valid, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/json.h"
#include "cli/bench_packages.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

using Words = std::vector<std::string>;

const std::string kSeeds = WEIR_SOURCE_DIR "/fuzz/seeds/";

struct DocumentRow {
  std::string command;
  std::string schema;  // empty: only that it is JSON
  Words words;
  bool has_output = true;  // `-o -` is another way to get the document
};

// In a folder that holds a.json and b.json (results), trace.json, history.db, kernels/, and a daemon's sched.sock.
std::vector<DocumentRow> rows() {
  const Words tiny = {"--device", "sim:h200", "--scale", "tiny", "--iterations", "3"};
  const auto sim = [](Words words) {
    words.insert(words.end(), {"--device", "sim:h200"});
    return words;
  };
  const auto with = [](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  return {
      {"run", "weir.result/1", with({"moe"}, tiny)},
      {"run", "weir.report/1", with({"P3", "--no-trace"}, tiny)},
      {"sweep", "weir.sweep/1", with({"moe", "--streams", "4,8"}, tiny)},
      // -o is the trace, not the document.
      {"profile", "weir.profile/1", with({"moe", "-o", "profiled.json", "-f"}, tiny), false},
      {"analyze", "weir.analysis/1", {"trace.json"}},
      {"watch", "weir.watch/1", sim({"--source", "device", "--scale", "tiny", "--once"})},
      {"queues map", "weir.queues/1", sim({})},
      {"queues limits", "weir.queues/1", sim({"--most", "16"})},
      {"queues switch", "weir.queues/1", sim({"--iterations", "3"})},
      {"queues cost", "weir.queues/1", sim({"moe", "--scale", "tiny"})},
      {"queues sweep", "weir.queues/1",
       sim({"tiny_kernel_stress", "--scale", "tiny", "--iterations", "6", "--processes", "2", "--streams", "2",
            "--hw-queues", "1,2"})},
      {"queues convoy", "weir.queues/1", sim({})},
      {"queues fairness", "weir.queues/1", sim({"--iterations", "2"})},
      {"preempt", "weir.preempt/1",
       sim({"--iterations", "20", "--block-times", "50us", "--waves", "2", "--victims", "waves", "--alone", "2"})},
      {"overlap", "weir.overlap/1", sim({"default", "--set", "run.scale=tiny"})},
      {"overlap tune", "weir.overlap_tune/1", sim({"default", "--set", "run.scale=tiny", "--budget", "1s"})},
      {"channel", "weir.channel/1", {"ping_pong", "--quick", "--samples", "2"}},
      {"bench",
       "weir.bench/1",
       {"--iterations", "5", "--budget", "1s", "--no-roofline", "--device", "cpu", "--precision", "fp32"}},
      {"compare", "weir.comparison/1", {"a.json", "b.json"}},
      {"compare", "weir.trace_comparison/1", {"trace.json", "trace.json"}},
      {"try", "weir.trials/1", {"--trials", "2", "--", "true"}},
      {"history add", "weir.history/1", {"b.json", "--db", "history.db"}},
      {"history list", "weir.history/1", {"--db", "history.db"}},
      {"history show", "weir.history/1", {"1", "--db", "history.db"}},
      {"history trend", "weir.history/1", {"moe", "--db", "history.db"}},
      {"report", "weir.report/1", {"a.json"}},
      {"sched status", "weir.sched_status/1", {"--socket", "sched.sock"}},
      {"amd capture", "weir.amd_capture/1", {"--no-ftrace", "-o", "captured", "-f", "--", "true"}, false},
      {"amd log", "weir.amd_log/1", {kSeeds + "amd_log/rocm63_level5.log"}},
      {"amd hqd", "weir.amd_hqd/1", {kSeeds + "kfd/gfx943"}},
      {"amd ftrace", "weir.amd_ftrace/1", {kSeeds + "amd_ftrace/function.txt"}},
      {"amd join", "weir.amd_join/1", {"--log", kSeeds + "amd_log/rocm63_level5.log", "--no-timeline"}},
      {"amd compare", "weir.amd_compare/1", {"trace.json", "trace.json"}},
      {"info", "", {}, false},
      {"list", "", {}, false},
      {"conformance", "weir.conformance/1", sim({"--filter", "gemm"})},
      {"calibrate",
       "weir.calibration/1",
       {"moe", "--device", "cpu", "--scale", "tiny", "--processes", "5", "--iterations", "5", "-o", "spreads.json"},
       false},
      {"calibrate",
       "weir.calibration/1",
       {"moe", "--device", "cpu", "--scale", "tiny", "--processes", "5", "--iterations", "5", "-o", "-"},
       false},
  };
}

Words line_of(const DocumentRow& row, const Words& last) {
  Words words;
  for (std::size_t begin = 0; begin <= row.command.size();) {
    const std::size_t end = std::min(row.command.find(' ', begin), row.command.size());
    words.push_back(row.command.substr(begin, end - begin));
    begin = end + 1;
  }
  words.insert(words.end(), row.words.begin(), row.words.end());
  words.insert(std::find(words.begin(), words.end(), "--"), last.begin(), last.end());
  return words;
}

class Documents : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto make = [&](Words words) {
      words.insert(words.end(), {"--device", "sim:h200", "--scale", "tiny", "--iterations", "5", "-q"});
      ASSERT_EQ(weir(words, folder_.path()).code, 0);
    };
    make({"run", "moe", "-o", "a.json"});
    make({"run", "moe", "-o", "b.json"});
    make({"profile", "moe", "-o", "trace.json"});
    make_package(folder_.path(), "doubles", "precisions: [fp32]\n");
    ASSERT_EQ(weir({"history", "add", "a.json", "--db", "history.db"}, folder_.path()).code, 0);
    ASSERT_EQ(weir({"sched", "start", "--socket", "sched.sock"}, folder_.path()).code, 0);
  }
  void TearDown() override { weir({"sched", "stop", "--socket", "sched.sock"}, folder_.path()); }

  void expect_document(const DocumentRow& row, const Words& last) {
    const Words words = line_of(row, last);
    std::string line = "weir";
    for (const std::string& word : words) line += " " + word;
    SCOPED_TRACE(line);
    const Outcome outcome = weir(words, folder_.path());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    Json document;
    EXPECT_NO_THROW(document = parse_json(outcome.out, "standard output")) << outcome.out.substr(0, 400);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "-"));
    if (row.schema.empty() || !document.is_object()) return;
    EXPECT_EQ(document["schema"], row.schema);
    std::string file = row.schema + ".json";
    std::replace(file.begin(), file.end(), '/', '.');
    std::ofstream(folder_ / "document") << outcome.out;
    expect_valid_as(folder_ / "document", file);
  }

  const Folder folder_;
};

TEST_F(Documents, of_every_command_are_printed_alone_and_valid) {
  for (const DocumentRow& row : rows()) {
    expect_document(row, {"--json"});
    if (row.has_output) expect_document(row, {"-o", "-"});
  }
}

// A new command with a document needs a row above.
TEST(DocumentRows, cover_every_command_with_a_document) {
  std::set<std::string> with_row, with_document;
  for (const DocumentRow& row : rows()) with_row.insert(row.command);
  std::string command;
  for (const std::string& line : lines_of(weir({"help", "--markdown"}).out)) {
    if (const std::size_t at = line.find("# weir "); line.starts_with("##") && at != std::string::npos)
      command = line.substr(at + 7);
    if (line.starts_with("| `--json")) with_document.insert(command);
  }
  EXPECT_GT(with_document.size(), 30U);
  for (const std::string& each : with_document) EXPECT_TRUE(with_row.contains(each)) << each;
}

// What is asked to go to standard output is not kept anywhere.
TEST_F(Documents, on_standard_output_leave_no_files) {
  const auto names = [&] {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) found.insert(entry.path().filename());
    return found;
  };
  const std::set<std::string> before = names();
  const Words tiny = {"--device", "sim:h200", "--scale", "tiny", "--iterations", "3"};
  for (Words words : {Words{"run", "P3", "--no-trace", "--device", "sim:h200", "--scale", "tiny", "--iterations", "2"},
                      Words{"overlap", "default", "--device", "sim:h200", "--set", "run.scale=tiny"},
                      Words{"bench", "--iterations", "5", "--budget", "1s", "--no-roofline", "--device", "cpu"},
                      Words{"try", "--trials", "2", "true"}}) {
    words.insert(words.end(), {"-o", "-"});
    EXPECT_EQ(weir(words, folder_.path()).code, 0) << words[0];
  }
  EXPECT_EQ(names(), before);
}

TEST_F(Documents, of_a_profile_are_the_trace_where_that_goes_to_standard_output) {
  const Words words = {"profile", "moe", "--device", "sim:h200", "--scale", "tiny", "--iterations", "3", "-o", "-"};
  const Outcome outcome = weir(words, folder_.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(parse_json(outcome.out, "trace")["traceEvents"].is_array());
  EXPECT_TRUE(has(outcome.err, "weir profile moe")) << outcome.err;
  Words both = words;
  both.emplace_back("--json");
  EXPECT_EQ(weir(both, folder_.path()).code, 2) << "two documents on one output";
  const Outcome program = weir({"profile", "-o", "-", "--", "true"}, folder_.path());
  EXPECT_EQ(program.code, 2);
  EXPECT_TRUE(has(program.err, "standard output is the program's")) << program.err;
}

}  // namespace
}  // namespace weir::testing
