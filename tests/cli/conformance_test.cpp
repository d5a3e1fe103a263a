// Drives `weir conformance` as a user would: text, document, filters, exit codes, interruption.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"

namespace weir::testing {
namespace {

TEST(Conformance, shows_a_table_and_writes_a_document) {
  const Folder folder;
  const std::string file = folder / "conformance.json";
  const Outcome outcome = weir({"conformance", "--device", "cpu", "--device", "null", "--filter", "buffers/*",
                                "--filter", "compute_units", "-o", file});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  expect_narrow(outcome.out);
  EXPECT_TRUE(has(outcome.out, "weir conformance on cpu\n")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "  group             cases   passed   skipped   failed")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "       4  no streams on a part of the compute units: ")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "cpu passed: nothing failed in 8 cases, 4 of them skipped")) << outcome.out;
  expect_valid_as(file, "weir.conformance.2.json");
  const Json document = read_json(file);
  EXPECT_EQ(document["schema"], "weir.conformance/2");
  EXPECT_EQ(document["status"], "complete");
  ASSERT_EQ(document["devices"].size(), 2u);
  EXPECT_EQ(document["devices"][0]["device"]["name"], "cpu");
  EXPECT_EQ(document["devices"][0]["counts"]["passed"], 4);
  EXPECT_EQ(document["devices"][0]["groups"].size(), 2u);
  EXPECT_EQ(document["devices"][0]["cases"].size(), 8u);
  EXPECT_EQ(document["devices"][0]["capabilities"]["compute_units"]["is_offered"], false);
  EXPECT_EQ(document["devices"][1]["cases"][0]["outcome"], "skipped");
  EXPECT_EQ(document["devices"][1]["cases"][0]["text"], "it computes nothing that could be compared");

  const Outcome again = weir({"conformance", "--device", "null", "-o", file});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(has(again.err, "--force")) << again.err;
}

TEST(Conformance, lists_cases_without_running_them) {
  const Outcome all = weir({"conformance", "--list"});
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_TRUE(has(all.out, "gemm/gemm/f32/tf32/")) << all.out;
  const Outcome some = weir({"conformance", "--list", "--filter", "buffers/*use"});
  EXPECT_EQ(some.out, "buffers/memory use\n");
}

TEST(Conformance, examines_every_device_that_is_found) {
  const Outcome outcome = weir({"conformance", "--all", "--filter", "errors/what is lacking*"});
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  expect_narrow(outcome.out);
  for (const char* name : {"cpu passed", "sim:h200 passed", "null passed"})
    EXPECT_TRUE(has(outcome.out, name)) << outcome.out;
}

TEST(Conformance, refuses_what_makes_no_sense) {
  const Outcome filter = weir({"conformance", "--device", "cpu", "--filter", "nonsense"});
  EXPECT_EQ(filter.code, 2);
  EXPECT_TRUE(has(filter.err, "--filter nonsense: no case has such a name")) << filter.err;
  EXPECT_TRUE(has(filter.err, "--list")) << filter.err;
  const Outcome both = weir({"conformance", "--all", "--device", "cpu"});
  EXPECT_EQ(both.code, 2);
  EXPECT_TRUE(has(both.err, "--all")) << both.err;
  const Outcome device = weir({"conformance", "--device", "null:3"});
  EXPECT_EQ(device.code, 2);
  EXPECT_TRUE(has(device.err, "--device null:3")) << device.err;
}

TEST(Conformance, an_interruption_keeps_what_has_come) {
  const Folder folder;
  const pid_t process = start_weir({"conformance", "--device", "cpu", "-o", "conformance.json"}, folder.path());
  await_handler(process, SIGINT);
  kill(process, SIGINT);
  EXPECT_EQ(wait_for(process), 130);
  const std::string file = folder / "conformance.json";
  ASSERT_TRUE(std::filesystem::exists(file));
  expect_valid_as(file, "weir.conformance.2.json");
  const Json document = read_json(file);
  EXPECT_EQ(document["status"], "interrupted");
  EXPECT_GT(document["devices"][0]["counts"]["not_run"], 0);
}

}  // namespace
}  // namespace weir::testing
