// weir compare --queues through the binary: reports, bad input, and the two cases of the study on the simulated device.
#include <gtest/gtest.h>

#include <filesystem>

#include "amd/compare/case_texts.h"
#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "support/text.h"

namespace weir::testing {
namespace {

constexpr std::uint64_t kSwq = 0x7f8edc1a8000, kHwq = 0x7f8acd200000;

std::string log_of(int pid, std::uint64_t gap_us, const std::string& kernel = "gemm") {
  LogText log(pid);
  log.queue(kSwq, kHwq);
  for (int i = 0; i < 1000; ++i)
    log.launch(kSwq, kHwq, kernel).wait(gap_us + static_cast<std::uint64_t>(i * 7 % 5) * gap_us / 10);
  return log.text();
}

class AmdCompare : public ::testing::Test {
 protected:
  void SetUp() override {
    put_file(folder_ / "a.log", log_of(100, 100));
    put_file(folder_ / "b.log", log_of(200, 300));
  }
  Folder folder_;
};

TEST_F(AmdCompare, tells_two_logs_apart) {
  const Outcome outcome = weir({"compare", "--queues", folder_ / "a.log", folder_ / "b.log"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(weir({"compare", folder_ / "a.log", folder_ / "b.log"}).out, outcome.out);
  expect_narrow(outcome.out);
  for (const char* part : {"launch rate", "A more", "different processes", "cannot say", "no preemption was measured",
                           "equal mean nothing", "expected 2-3 queues"})
    EXPECT_TRUE(has(outcome.out, part)) << part << "\n" << outcome.out;
}

TEST_F(AmdCompare, writes_documents_that_fit_their_schema) {
  const std::string file = folder_ / "c.json";
  ASSERT_EQ(weir({"compare", "--queues", folder_ / "a.log", folder_ / "b.log", "--json", "-o", file}).code, 0);
  const Json document = read_json(file);
  EXPECT_EQ(document["schema"], "weir.amd_compare/1");
  EXPECT_EQ(document["a"]["launches"], 1000);
  EXPECT_EQ(weir({"compare", "--queues", folder_ / "a.log", folder_ / "b.log", "-o", file}).code, 2) << "it exists";
  EXPECT_EQ(weir({"compare", "--queues", folder_ / "a.log", folder_ / "b.log", "-o", file, "--force", "-q"}).out, "");
  ASSERT_EQ(weir({"compare", "--queues", folder_ / "a.log", folder_ / "b.log", "--json", "-o", file, "--force"}).code,
            0);
  expect_valid_as(file, "weir.amd_compare.1.json");
}

TEST_F(AmdCompare, nothing_differs_between_a_file_and_itself) {
  const Outcome outcome = weir({"compare", "--queues", folder_ / "a.log", folder_ / "a.log", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = parse_json(outcome.out, "out");
  EXPECT_EQ(document["queues"]["relation"], "same_input");
  for (const Json& row : document["quantities"])
    EXPECT_TRUE(row["claim"] == "ambiguous" || row["claim"] == "not_comparable") << row.dump();
}

TEST_F(AmdCompare, takes_the_report_of_a_log) {
  const std::string report = folder_ / "b.json";
  ASSERT_EQ(weir({"amd", "log", folder_ / "b.log", "--json", "-o", report}).code, 0);
  const Outcome outcome = weir({"compare", "--queues", folder_ / "a.log", report, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = parse_json(outcome.out, "out");
  EXPECT_EQ(document["b"]["source"], "log_report");
  EXPECT_EQ(document["b"]["launches"], 1000);
}

TEST_F(AmdCompare, rejects_what_is_no_case_and_names_it) {
  put_file(folder_ / "empty", "");
  put_file(folder_ / "binary", std::string("\x7f"
                                           "ELF\0\0\1\2\3\0\0\0\0",
                                           13));
  put_file(folder_ / "words", "nothing of the kind\n");
  put_file(folder_ / "result.json", "{\"schema\": \"weir.result/2\", \"status\": \"complete\"}\n");
  std::filesystem::create_directory(folder_ / "folder");
  for (const char* name : {"missing", "empty", "binary", "words", "result.json", "folder"}) {
    const Outcome outcome = weir({"compare", "--queues", folder_ / "a.log", folder_ / name});
    EXPECT_EQ(outcome.code, 2) << name << outcome.out;
    EXPECT_TRUE(has(outcome.err, name)) << outcome.err;
    EXPECT_EQ(outcome.out, "") << name;
  }
  EXPECT_EQ(weir({"compare", "--queues", folder_ / "a.log"}).code, 2);
  EXPECT_EQ(weir({"compare", "--queues", folder_ / "a.log", folder_ / "b.log", "--format", "xml"}).code, 2);
}

TEST_F(AmdCompare, names_of_kernels_do_not_reach_the_terminal_as_they_are) {
  put_file(folder_ / "c.log", log_of(300, 100, "evil\x1b]0;title\x07name"));
  for (const char* how : {"--format=text", "--format=markdown", "--json"}) {
    const Outcome outcome = weir({"compare", "--queues", folder_ / "a.log", folder_ / "c.log", how});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos) << how;
    EXPECT_EQ(outcome.out.find('\x07'), std::string::npos) << how;
  }
}

// The whole of the study, without a GPU.
TEST_F(AmdCompare, the_two_cases_on_the_simulated_device) {
  for (const auto& [workload, file] : {std::pair("case_a_cnn", "a.json"), std::pair("case_b_transformer", "b.json")}) {
    const Outcome outcome =
        weir({"profile", workload, "--device", "sim:mi300x", "--scale", "full", "-o", folder_ / file});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  const Outcome outcome = weir({"compare", "--queues", folder_ / "a.json", folder_ / "b.json", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = parse_json(outcome.out, "out");
  EXPECT_EQ(document["a"]["source"], "timeline");
  EXPECT_GT(document["a"]["copies"].get<int>(), 0);
  EXPECT_EQ(document["b"]["copies"], 0);
  for (const Json& row : document["expected"]) EXPECT_EQ(row["outcome"], "as_expected") << row.dump();
  EXPECT_TRUE(document["verdict"]["is_premise_assumed"].get<bool>());
  for (const Json& row : document["quantities"])
    if (row["quantity"] == "copy_rate") {
      EXPECT_EQ(row["claim"], "a_more");
    }
}

TEST(Cases, run_and_are_checked_on_the_cpu) {
  for (const char* workload : {"case_a_cnn", "case_b_transformer"}) {
    const Outcome outcome = weir({"run", workload, "--device", "cpu", "--scale", "tiny", "--iterations", "3"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(has(outcome.out, "passed")) << outcome.out;
  }
}

}  // namespace
}  // namespace weir::testing
