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
  std::string schema;  // "result" for weir.result/1; empty: whichever it has
  Words words;
  // What -o names: the document, so that `-o -` prints it; a report in the form that other flags name; or another file.
  enum { document, report, other } output = document;
};

// In a folder that holds a.json and b.json (results), trace.json, node.json (of a fleet), history.db, kernels/, and a
// daemon's sched.sock.
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
      {"run", "result", with({"moe"}, tiny)},
      {"run", "report", with({"P3", "--no-trace"}, tiny)},
      {"sweep", "sweep", with({"moe", "--streams", "4,8"}, tiny)},
      // -o is the trace, not the document.
      {"profile", "profile", with({"moe", "-o", "profiled.json", "-f"}, tiny), DocumentRow::other},
      {"analyze", "analysis", {"trace.json"}, DocumentRow::report},
      {"advise", "advice", {"trace.json"}, DocumentRow::report},
      {"watch", "watch", sim({"--source", "device", "--scale", "tiny", "--once"})},
      {"queues map", "queues", sim({})},
      {"queues limits", "queues", sim({})},
      {"queues switch", "queues", sim({"--iterations", "3"})},
      {"queues cost", "queues", sim({"moe", "--scale", "tiny"})},
      {"queues sweep", "queues",
       sim({"tiny_kernel_stress", "--scale", "tiny", "--iterations", "6", "--processes", "2", "--streams", "2",
            "--hw-queues", "1,2"})},
      {"queues convoy", "queues", sim({})},
      {"queues fairness", "queues", sim({"--iterations", "2"})},
      {"preempt", "preempt",
       sim({"--iterations", "20", "--block-times", "50us", "--waves", "2", "--victims", "waves", "--alone", "2"}),
       DocumentRow::report},
      {"overlap", "overlap", sim({"default", "--set", "run.scale=tiny"})},
      {"overlap tune", "overlap_tune", sim({"default", "--set", "run.scale=tiny", "--budget", "1s"})},
      {"overlap sweep", "overlap_sweep", sim({"--gemm", "64", "--bytes", "4K", "--iterations", "2"})},
      {"channel", "channel", {"ping_pong", "--quick", "--samples", "2"}},
      {"bench",
       "bench",
       {"--iterations", "5", "--budget", "1s", "--no-roofline", "--device", "cpu", "--precision", "fp32"}},
      {"compare", "comparison", {"a.json", "b.json"}, DocumentRow::report},
      {"compare", "trace_comparison", {"trace.json", "trace.json"}, DocumentRow::report},
      {"race", "race", {"moe", "--device", "sim"}},
      {"try", "trials", {"--trials", "2", "--", "true"}},
      {"history add", "history", {"b.json", "--db", "history.db"}, DocumentRow::report},
      {"history list", "history", {"--db", "history.db"}, DocumentRow::report},
      {"history show", "history", {"1", "--db", "history.db"}, DocumentRow::report},
      {"history trend", "history", {"moe", "--db", "history.db"}, DocumentRow::report},
      {"fleet report", "fleet", {"node.json"}, DocumentRow::report},
      {"report", "report", {"a.json"}},
      {"sched status", "sched_status", {"--socket", "sched.sock"}, DocumentRow::report},
      {"amd capture", "amd_capture", {"--no-ftrace", "-o", "captured", "-f", "--", "true"}, DocumentRow::other},
      {"amd log", "amd_log", {kSeeds + "amd_log/rocm63_level5.log"}, DocumentRow::report},
      {"amd hqd", "amd_hqd", {kSeeds + "kfd/gfx943"}, DocumentRow::report},
      {"amd ftrace", "amd_ftrace", {kSeeds + "amd_ftrace/function.txt"}, DocumentRow::report},
      {"amd join", "amd_join", {"--log", kSeeds + "amd_log/rocm63_level5.log", "--no-timeline"}, DocumentRow::report},
      {"compare", "amd_compare", {"--queues", "trace.json", "trace.json"}, DocumentRow::report},
      {"fleet probe", "fleet_probe", sim({})},
      {"info", "", {}, DocumentRow::other},
      {"list", "", {}, DocumentRow::other},
      {"conformance", "conformance", sim({"--filter", "gemm"})},
      {"calibrate",
       "calibration",
       {"moe", "--device", "cpu", "--scale", "tiny", "--processes", "5", "--iterations", "5", "-o", "spreads.json"},
       DocumentRow::other},
      {"calibrate",
       "calibration",
       {"moe", "--device", "cpu", "--scale", "tiny", "--processes", "5", "--iterations", "5", "-o", "-"},
       DocumentRow::other},
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

class DocumentsOfCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto make = [&](Words words) {
      words.insert(words.end(), {"--device", "sim:h200", "--scale", "tiny", "--iterations", "5", "-q"});
      ASSERT_EQ(weir(words, folder_.path()).code, 0);
    };
    make({"run", "moe", "-o", "a.json"});
    make({"run", "moe", "-o", "b.json"});
    make({"profile", "moe", "-o", "trace.json"});
    std::ofstream(folder_ / "node.json") << R"({"schema": "weir.fleet_probe/1", "name": "node1",
      "devices": [{"name": "cpu", "model": "made"}]})";
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
    if (!document.is_object() || !document.contains("schema")) {
      EXPECT_EQ(row.schema, "") << "no schema";
      return;
    }
    std::string file = document["schema"].get<std::string>() + ".json";
    EXPECT_TRUE(row.schema.empty() || file.starts_with("weir." + row.schema + "/")) << file;
    std::replace(file.begin(), file.end(), '/', '.');
    std::ofstream(folder_ / "document") << outcome.out;
    expect_valid_as(folder_ / "document", file);
  }

  const Folder folder_;
};

TEST_F(DocumentsOfCommands, of_every_command_are_printed_alone_and_valid) {
  for (const DocumentRow& row : rows()) {
    expect_document(row, {"--json"});
    if (row.output == DocumentRow::report) expect_document(row, {"--json", "-o", "-"});
    if (row.output == DocumentRow::document) expect_document(row, {"-o", "-"});
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
  with_document.erase("amd queues");      // needs an AMD GPU, and has tests on a fake one
  with_document.erase("amd roadmap");     // has tests of its own: it runs two workloads
  with_document.erase("probe priority");  // needs PyTorch, and has tests on a stand-in
  for (const std::string& each : with_document) EXPECT_TRUE(with_row.contains(each)) << each;
}

// What is asked to go to standard output is not kept anywhere.
TEST_F(DocumentsOfCommands, on_standard_output_leave_no_files) {
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

TEST_F(DocumentsOfCommands, of_a_profile_are_the_trace_where_that_goes_to_standard_output) {
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
