// --github and --junit of `weir compare` and its kin, as a step of a workflow would use them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/json.h"
#include "cli/program.h"
#include "support/result_documents.h"
#include "support/text.h"

namespace weir::testing {
namespace {

// A result of 30 samples around `ns`.
Json result_of(double ns, const std::string& workload = "moe") {
  Json result = result_document();
  result["workload"]["name"] = workload;
  for (const char* list : {"latency_ns", "interval_ns"}) {
    result["samples"][list] = Json::array();
    for (int i = 0; i < 30; ++i)
      result["samples"][list].push_back(static_cast<std::int64_t>(ns * (1 + 0.001 * (i * 7 % 10))));
  }
  result["work_per_iteration"] = 1;
  return result;
}

class CompareGitHub : public ::testing::Test {
 protected:
  void put(const std::string& name, const Json& json) { write_file(folder_ / name, to_text(json), true); }
  Outcome compare(std::vector<std::string> more, std::vector<std::string> variables = {}) {
    std::vector<std::string> command = {"env", "-u", "GITHUB_ACTIONS"};
    command.insert(command.end(), variables.begin(), variables.end());
    command.insert(command.end(), {WEIR_BINARY, "compare", folder_ / "a.json", folder_ / "b.json"});
    command.insert(command.end(), more.begin(), more.end());
    return run_program(command, folder_.path());
  }
  std::vector<std::string> step() {
    return {"GITHUB_STEP_SUMMARY=" + (folder_ / "summary"), "GITHUB_OUTPUT=" + (folder_ / "output")};
  }
  Folder folder_;
};

TEST_F(CompareGitHub, a_regression_is_annotated_summed_up_and_put_out) {
  put("a.json", result_of(1e6));
  put("b.json", result_of(1.5e6));
  std::ofstream(folder_ / "summary") << "written by a step before\n";
  std::ofstream(folder_ / "output") << "mine=1\n";
  const Outcome outcome = compare({"--github", "--junit", folder_ / "junit.xml"}, step());
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "\n::error title=weir compare%3A moe%2C 8 streams%2C inline is slower::latency "))
      << outcome.out;
  const std::string summary = content(folder_ / "summary");
  EXPECT_TRUE(summary.starts_with("written by a step before\n# Comparison: 1 slower\n")) << summary;
  EXPECT_TRUE(content(folder_ / "output").starts_with("mine=1\nverdict=slower\nexit_code=3\nfailed=0\nslower=1\n"));
  EXPECT_TRUE(has(content(folder_ / "junit.xml"), "tests=\"1\" failures=\"1\""));
  EXPECT_EQ(compare({"--junit", folder_ / "junit.xml"}).code, 2) << "it exists";
  EXPECT_EQ(compare({"--junit", folder_ / "junit.xml", "--force"}).code, 3);
}

TEST_F(CompareGitHub, without_the_variables_only_annotations_are_printed) {
  put("a.json", result_of(1e6));
  put("b.json", result_of(1e6));
  const Outcome outcome = compare({"--github"}, {"-u", "GITHUB_STEP_SUMMARY", "-u", "GITHUB_OUTPUT"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(has(outcome.out, "::")) << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

TEST_F(CompareGitHub, a_full_summary_is_left_as_it_is) {
  put("a.json", result_of(1e6));
  put("b.json", result_of(1.5e6));
  std::ofstream(folder_ / "summary") << std::string(1'048'500, 'x');
  const Outcome outcome = compare({"--github"}, step());
  EXPECT_EQ(outcome.code, 3) << "the verdict stands";
  EXPECT_TRUE(has(outcome.err, "no room")) << outcome.err;
  EXPECT_EQ(content(folder_ / "summary").size(), 1'048'500U);
  const Outcome absent = compare({"--github"}, {"GITHUB_STEP_SUMMARY=" + (folder_ / "no/such/folder")});
  EXPECT_EQ(absent.code, 3);
  EXPECT_TRUE(has(absent.err, "GITHUB_STEP_SUMMARY")) << absent.err;
}

TEST_F(CompareGitHub, hostile_names_are_printed_and_obeyed_by_nobody) {
  const std::string name = "x\n::set-env name=PATH::/evil\r##[add-path]/evil \x1b[31m <script>";
  put("a.json", result_of(1e6, name));
  put("b.json", result_of(1.5e6, name));
  for (const char* format : {"text", "markdown"}) {
    const Outcome outcome =
        compare({"--github", "--format", format, "--junit", folder_ / "junit.xml", "--force"}, step());
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_FALSE(has(outcome.out, "##[")) << outcome.out;
    EXPECT_FALSE(has(outcome.out, "\x1b")) << outcome.out;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);)
      EXPECT_TRUE(!has(line, "set-env") || line.starts_with("::error title=weir compare%3A x %3A%3Aset-env") ||
                  line.find_first_not_of(" \t") != line.find("::"))
          << line;
  }
  EXPECT_FALSE(has(content(folder_ / "junit.xml"), "<script>"));
  EXPECT_FALSE(has(content(folder_ / "output"), "evil"));
}

TEST_F(CompareGitHub, messages_of_errors_hold_no_command_either) {
  // Long enough that the hint is broken before the second word.
  const std::string name = fmt::format("{:x>70} ::add-mask::secret ##[add-path]/evil", "");
  put("a.json", result_of(1e6));
  put("b.json", result_of(1e6, name));
  const Outcome outcome = compare({}, {"GITHUB_ACTIONS=true"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "\n      |::add-mask::secret # #[add-path]")) << outcome.err;
}

TEST_F(CompareGitHub, annotations_are_not_put_into_a_document) {
  put("a.json", result_of(1e6));
  put("b.json", result_of(1.5e6));
  const Outcome outcome = compare({"--github", "--json"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "--output")) << outcome.err;
  EXPECT_EQ(compare({"--github", "--json", "--output", folder_ / "c.json"}).code, 3);
  EXPECT_EQ(read_json(folder_ / "c.json")["exit_code"], 3);
}

TEST_F(CompareGitHub, points_without_a_partner_are_skipped_and_failed_ones_are_errors) {
  Json a = {{"schema", "weir.sweep/1"},
            {"workload", "moe"},
            {"results", Json::array({result_of(1e6), result_of(1e6, "other")})}};
  Json failed = result_of(1e6);
  failed["status"] = "failed";
  failed["failure"] = "the device vanished";
  put("a.json", a);
  put("b.json", failed);
  const Outcome outcome = compare({"--github", "--junit", folder_ / "junit.xml"}, step());
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_TRUE(
      has(outcome.out,
          "::error title=weir compare%3A moe%2C 8 streams%2C inline failed::test: the run failed: the device vanished"))
      << outcome.out;
  EXPECT_TRUE(has(outcome.out, "::warning title=weir compare%3A 1 not compared::")) << outcome.out;
  EXPECT_TRUE(has(content(folder_ / "junit.xml"), "tests=\"2\" failures=\"0\" errors=\"1\" skipped=\"1\""));
  EXPECT_TRUE(has(content(folder_ / "output"), "verdict=failed\n"));
}

}  // namespace
}  // namespace weir::testing
