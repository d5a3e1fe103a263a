// Every command that shows names from files, in every format, with files that are hostile in their names and in all of
// their strings. Whatever is printed or written is judged by the rules of its sink, alone and under GitHub's runner.
// A new command or format is one row of kOutputs.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <weir_build.h>

#include <filesystem>

#include "amd/compare/case_texts.h"
#include "base/json.h"
#include "cli/program.h"
#include "support/ftrace_text.h"
#include "support/kfd_text.h"
#include "support/result_documents.h"
#include "support/sink_rules.h"
#include "support/text.h"

namespace weir::testing {
namespace {

// Appended to the names of all files.
const std::string kHostileName = "\x1b[31m\n::set-output a::b\n##[c]\xe2\x80\xae\xff|`<b>=.json";

// A trace as PyTorch writes it, with a hostile name for every kernel, stream and device.
Json hostile_trace(int scale) {
  Json events = Json::array();
  int i = 0;
  for (int round = 0; round < 3; ++round)
    for (const std::string& text : hostile_texts()) {
      const double now = 1000 + 50.0 * ++i;
      events.push_back(
          {{"ph", "X"}, {"cat", "user_annotation"}, {"name", text}, {"pid", 9}, {"tid", 9}, {"ts", now}, {"dur", 45}});
      events.push_back({{"ph", "X"},
                        {"cat", "cuda_runtime"},
                        {"name", text},
                        {"pid", 9},
                        {"tid", 9},
                        {"ts", now + 1},
                        {"dur", 2},
                        {"args", {{"correlation", i}}}});
      events.push_back({{"ph", "X"},
                        {"cat", i % 4 == 0 ? "gpu_memcpy" : "kernel"},
                        {"name", text},
                        {"pid", 0},
                        {"tid", i % 5},
                        {"ts", now + 5},
                        {"dur", 10 * scale},
                        {"args", {{"device", 0}, {"stream", i % 5}, {"correlation", i}}}});
    }
  for (int lane = 0; lane < 5; ++lane)
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", 0},
                      {"tid", lane},
                      {"args", {{"name", hostile_texts()[static_cast<std::size_t>(lane)]}}}});
  return {{"schemaVersion", 1},
          {"deviceProperties", Json::array({{{"id", 0}, {"name", "GPU" + kHostileName.substr(0, 20)}}})},
          {"traceEvents", events}};
}

// A log of ROCm's runtime; its lines end where a text has a line break.
std::string hostile_log(int pid) {
  LogText log(pid);
  log.queue(0x7f8edc1a8000, 0x7f8acd200000);
  for (int round = 0; round < 40; ++round)
    for (const std::string& text : hostile_texts()) log.launch(0x7f8edc1a8000, 0x7f8acd200000, text).wait(100);
  return log.text();
}

struct Output {
  std::vector<std::string> words;  // "@NAME" is the hostile file of that name; "" is where `file` goes
  SinkRule rule;
  bool is_file = false;  // the rule is for a file that is written; otherwise for what is printed
  int code = 0;
};

const Output kOutputs[] = {
    {{"analyze", "@trace"}, terminal_rule},
    {{"analyze", "@trace", "--full"}, terminal_rule},
    {{"analyze", "@trace", "--format", "markdown", "--full"}, markdown_rule},
    {{"analyze", "@trace", "--json"}, json_rule},
    {{"analyze", "@trace", "--csv", ""}, csv_rule, true},
    {{"analyze", "@trace", "--svg", ""}, xml_rule, true},
    {{"compare", "@trace", "@slower"}, terminal_rule},
    {{"compare", "@trace", "@slower", "--format", "markdown"}, markdown_rule},
    {{"compare", "@trace", "@slower", "--json"}, json_rule},
    {{"analyze", "@trace", "@slower", "--ranks"}, terminal_rule},
    {{"compare", "@result", "@other"}, terminal_rule},
    {{"compare", "@result", "@other", "--format", "markdown"}, markdown_rule},
    {{"compare", "@result", "@other", "--json"}, json_rule},
    {{"compare", "@result", "@other", "--junit", ""}, xml_rule, true},
    {{"compare", "@result", "@other", "--github"}, terminal_rule},
    {{"export", "@result", "@bench", "@overlap", "@preempt", "--format", "csv"}, csv_rule},
    {{"export", "@result", "@bench", "--format", "csv", "--samples"}, csv_rule},
    {{"export", "@result", "@bench", "@overlap", "@preempt"}, openmetrics_rule},
    {{"export", "@result", "--format", "csv", "-o", ""}, csv_rule, true},
#if WEIR_HAVE_HTML
    {{"report", "@result", "@bench", "@overlap", "@preempt", "@trace", "-o", ""}, terminal_rule},
    {{"report", "@result", "@bench", "@overlap", "@preempt", "@trace", "-q", "-o", ""}, html_rule, true},
#endif
    {{"amd", "log", "@log"}, terminal_rule},
    {{"amd", "log", "@log", "--format", "markdown", "--full"}, markdown_rule},
    {{"amd", "log", "@log", "--json"}, json_rule},
    {{"amd", "compare", "@log", "@log2"}, terminal_rule},
    {{"amd", "compare", "@log", "@log2", "--format", "markdown"}, markdown_rule},
    {{"amd", "ftrace", "@ftrace"}, terminal_rule},
    {{"amd", "ftrace", "@ftrace", "--format", "markdown", "--full"}, markdown_rule},
    {{"amd", "hqd", "@hqds"}, terminal_rule},
    {{"amd", "hqd", "@hqds", "--format", "markdown", "--full"}, markdown_rule},
    {{"run", "--file", "@yaml", "--device", "sim:h200", "--dry-run"}, terminal_rule},
    {{"run", "--file", "@yaml", "--device", "sim:h200", "--dry-run", "--dot", "-"}, dot_rule},
    {{"profile", "--file", "@yaml", "--device", "sim:h200", "--iterations", "2", "--trace-format", "csv", "-o", ""},
     csv_rule,
     true},
    // What is wrong with input is told with the input's own words.
    {{"analyze", "@nothing"}, terminal_rule, false, 2},
    {{"analyze", "@bench"}, terminal_rule, false, 2},
    {{"compare", "@trace", "@result"}, terminal_rule, false, 2},
    {{"run", "@nothing"}, terminal_rule, false, 2},
    {{"run", "moe", "--param", "@nothing"}, terminal_rule, false, 2},
    {{"run", "moe", "--scale", "@nothing"}, terminal_rule, false, 2},
    {{"@nothing"}, terminal_rule, false, 2},
    {{"run", "moe", "--no-such-flag=@"}, terminal_rule, false, 2},
};

#if WEIR_HAVE_SQLITE
const Output kHistoryOutputs[] = {
    {{"history", "list"}, terminal_rule},
    {{"history", "list", "--format", "markdown"}, markdown_rule},
    {{"history", "show", "1"}, terminal_rule},
    {{"history", "show", "1", "--format", "markdown"}, markdown_rule},
    {{"history", "show", "1", "--json"}, json_rule},
    {{"history", "trend", "@workload"}, terminal_rule},
    {{"history", "trend", "@workload", "--format", "markdown"}, markdown_rule},
    {{"history", "export"}, csv_rule},
    {{"history", "export", "-o", ""}, csv_rule, true},
};
#endif

class HostileTextOutput : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / (name + kHostileName); }

  void judge(const Output& output, const std::string& github) {
    const std::string file = folder_ / "written";
    std::filesystem::remove(file);
    std::vector<std::string> command = {"env", github, WEIR_BINARY};
    std::string row;
    for (const std::string& word : output.words) {
      row += word + " ";
      command.push_back(word.empty()            ? file
                        : word == "@workload"   ? workload_
                        : word.starts_with("@") ? path(word.substr(1))
                        : word.ends_with("=@")  ? word + kHostileName
                                                : word);
    }
    SCOPED_TRACE(row + github);
    const Outcome outcome = run_program(command, folder_.path());
    EXPECT_EQ(outcome.code, output.code) << outcome.out << outcome.err;
    const std::string judged = output.is_file ? content(file) : outcome.out;
    EXPECT_TRUE(output.code != 0 || !judged.empty()) << outcome.err;
    EXPECT_EQ(output.rule(judged), "") << judged.substr(0, 2'000);
    EXPECT_EQ(terminal_rule(outcome.err), "") << outcome.err;
    EXPECT_EQ(output.is_file ? terminal_rule(outcome.out) : "", "") << outcome.out;
    if (github.ends_with("true")) {
      EXPECT_EQ(runner_rule(outcome.out), "") << outcome.out.substr(0, 2'000);
      EXPECT_EQ(runner_rule(outcome.err), "") << outcome.err;
    }
  }
  void judge(std::span<const Output> outputs) {
    for (const Output& output : outputs) {
      judge(output, "GITHUB_ACTIONS=");
      if (!output.is_file) judge(output, "GITHUB_ACTIONS=true");
    }
  }
  Json result(double ns) const {
    Json result = poisoned(result_document(), 3);
    for (const char* list : {"latency_ns", "interval_ns"}) {
      result["samples"][list] = Json::array();
      for (int i = 0; i < 30; ++i) result["samples"][list].push_back(static_cast<std::int64_t>(ns + 1000 * (i % 7)));
    }
    return result;
  }

  Folder folder_;
  std::string workload_;
};

TEST_F(HostileTextOutput, every_command_is_safe_in_every_format) {
  put_file(path("trace"), file_text(hostile_trace(1)));
  put_file(path("slower"), file_text(hostile_trace(2)));
  put_file(path("result"), to_text(result(1e6)));
  put_file(path("other"), to_text(result(1.01e6)));
  put_file(path("bench"), to_text(poisoned(bench_document())));
  put_file(path("overlap"), to_text(poisoned(overlap_document())));
  put_file(path("preempt"), to_text(poisoned(preempt_document())));
  put_file(path("log"), hostile_log(100));
  put_file(path("log2"), hostile_log(200));
  put_file(path("ftrace"), ftrace_text(random_scene(1, Gfx::gfx9), TraceForm::kprobes));
  put_file(path("hqds"), hqds_text(random_scene(4, Gfx::gfx9_4_3)));
  put_file(path("yaml"), content(WEIR_SOURCE_DIR "/config/fork_join.yaml"));
  judge(kOutputs);
}

TEST_F(HostileTextOutput, variables_are_shown_safely) {
  for (const char* github : {"GITHUB_ACTIONS=", "GITHUB_ACTIONS=true"})
    for (const std::string& text : hostile_texts()) {
      const std::string value = text.substr(0, text.find('\0'));
      const Outcome outcome = run_program(
          {"env", github, "CUDA_DEVICE_MAX_CONNECTIONS=" + value, "GPU_MAX_HW_QUEUES=" + value, WEIR_BINARY, "info"});
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_EQ(terminal_rule(outcome.out), "") << outcome.out;
      EXPECT_EQ(std::string(github).ends_with("true") ? runner_rule(outcome.out) : "", "") << outcome.out;
    }
}

TEST_F(HostileTextOutput, histories_are_safe_in_every_format) {
#if !WEIR_HAVE_SQLITE
  GTEST_SKIP() << "built without SQLite";
#else
  for (int day = 1; day <= 9; ++day) {
    Json made = result(day < 5 ? 1e6 : 1.2e6);
    made["created"] = fmt::format("2026-03-{:02}T12:00:00Z", day);
    workload_ = made["workload"]["name"].get<std::string>();
    put_file(path("day"), to_text(made));
    const Outcome added =
        weir({"history", "add", path("day"), "--tag", hostile_texts()[static_cast<std::size_t>(day)]}, folder_.path());
    ASSERT_EQ(added.code, 0) << added.err;
    EXPECT_EQ(terminal_rule(added.out), "") << added.out;
  }
  judge(kHistoryOutputs);
#endif
}

}  // namespace
}  // namespace weir::testing
