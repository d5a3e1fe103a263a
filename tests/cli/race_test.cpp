// `weir race` as a user meets it: a program with a race, one without, a replay, a workload, and what it refuses.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

TEST(RaceCli, finds_names_writes_and_replays) {
  Folder folder;
  const std::string document = folder / "race.json", picture = folder / "race.svg";
  const Outcome found = weir({"race", "-o", document, "--svg", picture, "--", WEIR_FAKE_RACY_PROGRAM, "missing_wait"});
  EXPECT_EQ(found.code, 3) << found.err;
  for (const char* words : {"1 race", "produce", "consume", "stream 8 must wait for stream 7", "--replay"})
    EXPECT_NE(found.out.find(words), std::string::npos) << words << "\n" << found.out;
  const Json json = read_json(document);
  expect_valid_as(document, "weir.race.1.json");
  EXPECT_EQ(json["races"][0]["second"]["label"], Json("consume"));
  EXPECT_NE(content(picture).find("missing wait"), std::string::npos);

  const Outcome again = weir({"race", "--replay", document, "--verify", "--", WEIR_FAKE_RACY_PROGRAM, "missing_wait"});
  EXPECT_EQ(again.code, 3) << again.err;
  EXPECT_NE(again.out.find("10 of 10 runs"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("0 of 10 runs"), std::string::npos) << again.out;

  const std::string page = folder / "page.html";
  const Outcome report = weir({"report", document, "-o", page, "--quiet"});
  EXPECT_EQ(report.code, 0) << report.err;
}

TEST(RaceCli, program_without_a_race_is_clean) {
  const Outcome clean = weir({"race", "--json", "--seeds", "4", "--", WEIR_FAKE_RACY_PROGRAM, "clean"});
  EXPECT_EQ(clean.code, 0) << clean.err;
  const Json json = parse_json(clean.out, "standard output");
  EXPECT_EQ(json["answer"], Json("clean"));
  EXPECT_TRUE(json["races"].empty());
}

TEST(RaceCli, refusals_say_what_to_type) {
  const Outcome nothing = weir({"race"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_NE(nothing.err.find("weir race -- python3 train.py"), std::string::npos) << nothing.err;
  EXPECT_EQ(weir({"race", "--verify", "--", "true"}).code, 2);
  EXPECT_EQ(weir({"race", "--delay", "1s", "--", "true"}).code, 2);
  EXPECT_EQ(weir({"race", "--number", "x", "--", "true"}).code, 2);
  EXPECT_EQ(weir({"race", "--", "no-such-program"}).code, 2);
  const Outcome unseen = weir({"race", "--", "true"});
  EXPECT_EQ(unseen.code, 1);
  EXPECT_NE(unseen.err.find("no CUDA driver"), std::string::npos) << unseen.err;
  const Outcome varying = weir({"race", "--", WEIR_FAKE_RACY_PROGRAM, "unsteady"});
  EXPECT_EQ(varying.code, 2);
  EXPECT_NE(varying.out.find("CUBLAS_WORKSPACE_CONFIG"), std::string::npos) << varying.out;
}

TEST(RaceCli, workload_with_waits_taken_away) {
  const Outcome intact = weir({"race", "moe", "--device", "sim"});
  EXPECT_EQ(intact.code, 0) << intact.out << intact.err;
  const Outcome missing = weir({"race", "moe", "--device", "sim", "--inject-missing-wait", "2", "--json"});
  EXPECT_EQ(missing.code, 3) << missing.out << missing.err;
  const Json json = parse_json(missing.out, "standard output");
  EXPECT_EQ(json["step"]["found"], Json(2));
  Folder folder;
  put_file(folder / "step.json", missing.out);
  expect_valid_as(folder / "step.json", "weir.race.1.json");
}

}  // namespace
}  // namespace weir::testing
