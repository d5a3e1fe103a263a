#include "lab/preempt/document.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "lab/preempt/synthetic.h"

namespace weir::preempt {
namespace {

using namespace testing;

Json some_document(bool is_complete = true) {
  Findings findings = usual_findings();
  findings.is_complete = is_complete;
  Circumstances circumstances;
  circumstances.command_line = {"weir", "preempt"};
  circumstances.device = {{"name", "cpu"}, {"backend", "cpu"}, {"model", "a <model>"}, {"driver", nullptr}};
  circumstances.environment["variables"] = Json::object();
  return preempt_document(findings, circumstances);
}

TEST(PreemptDocument, holds_every_sample) {
  const Json document = some_document();
  EXPECT_EQ(document["schema"], "weir.preempt/2");
  EXPECT_EQ(document["status"], "complete");
  EXPECT_EQ(some_document(false)["status"], "ended_early");
  const Json& point = document["mechanisms"][1]["points"][2];
  EXPECT_EQ(point["observation"]["requests"]["due_ns"].size(), 400U);
  EXPECT_EQ(document["alone"]["repeats"].size(), 3U);
  EXPECT_EQ(document["published"]["levels"].size(), 3U);
}

TEST(PreemptDocument, null_has_a_reason_beside_it) {
  const Json document = some_document();
  const Json& end = document["mechanisms"][0]["points"][0]["to_end_ns"];
  EXPECT_TRUE(end["p999"].is_null());
  EXPECT_EQ(end["too_few"], "p99.9 needs 1000 requests; there are 400");
  Findings findings = conclude(plan_of(lengths()), alone_of({}, 1), {}, {curve_of(kNone, 8, 10'000)});
  findings.curves[0].points[0].observation.lost_blocks.reset();
  const Json bare = preempt_document(findings, {})["mechanisms"][0]["points"][0];
  EXPECT_TRUE(bare["against_alone"].is_null());
  EXPECT_TRUE(bare["victim_loss"].is_null());
  for (const char* name : {"against_alone", "victim_loss", "lost_blocks"})
    EXPECT_TRUE(bare["unavailable"].contains(name)) << name;
}

TEST(PreemptDocument, what_travels_between_processes_comes_back_as_it_was) {
  Observation seen = waiting({}, 2, 5000, 30).observation;
  seen.requests[3].started_ns = kNoTime;
  seen.requests[4].ended_ns = kNoTime;
  seen.lost_blocks.reset();
  seen.repeated_blocks = 2;
  seen.clock_error_ns = 77;
  seen.preemptions = 5;
  const Observation back = observation_from(parse_json(to_text(to_json(seen)), "test"), "test");
  EXPECT_EQ(to_json(back), to_json(seen));
  EXPECT_EQ(back.requests[3].started_ns, kNoTime);
  EXPECT_FALSE(back.lost_blocks);
  ExperimentPlan plan = plan_of(lengths());
  plan.victims.push_back({VictimKind::persistent, 4, 20'000});
  plan.seed = 0xffff'ffff'ffff'fff0U;
  EXPECT_EQ(to_json(plan_from(parse_json(to_text(to_json(plan)), "test"), "test")), to_json(plan));
}

TEST(PreemptDocument, rejects_what_is_no_observation) {
  for (const char* text : {"{}", "[]", "7", R"({"kind": "waves"})", R"({"requests": 4, "interval_ns": "x"})"}) {
    const Json json = parse_json(text, "test");
    EXPECT_THROW(observation_from(json, "test"), Error) << text;
    EXPECT_THROW(plan_from(json, "test"), Error) << text;
    EXPECT_THROW(victim_from(json, "test"), Error) << text;
  }
  EXPECT_THROW(victim_from(parse_json(R"({"kind": "wave", "waves": 1, "block_ns": 5})", "test"), "test"), Error);
  Json torn = to_json(waiting({}, 2, 5000, 30).observation);
  torn["requests"]["ended_ns"].erase(4);
  EXPECT_THROW(observation_from(torn, "test"), Error);
}

// By an independent implementation of JSON Schema.
TEST(PreemptDocument, keeps_to_its_schema) {
  if (std::system("python3 -c 'import jsonschema' 2> /dev/null") != 0)
    GTEST_SKIP() << "python3-jsonschema is not installed";
  std::string folder = (std::filesystem::temp_directory_path() / "weir-preempt-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  Findings broken = conclude(plan_of(lengths()), alone_of({}, 1), {}, {curve_of(kNone, 8, 10'000)});
  broken.curves[0].points[1] = Point{};
  broken.curves[0].points[1].failure = "gone";
  Circumstances circumstances;
  circumstances.device = some_document()["device"];
  circumstances.environment["variables"] = Json::object();
  const std::filesystem::path path(folder);
  write_file(path / "check.py",
             "import json,sys,jsonschema\n"
             "s=json.load(open(sys.argv[2]))\n"
             "jsonschema.Draft7Validator.check_schema(s)\n"
             "jsonschema.validate(json.load(open(sys.argv[1])), s)\n",
             false);
  for (const Json& document : {some_document(), some_document(false), preempt_document(broken, circumstances)}) {
    write_file(path / "document.json", to_text(document), true);
    EXPECT_EQ(std::system(("python3 " + folder + "/check.py " + folder +
                           "/document.json " WEIR_SOURCE_DIR "/docs/schema/weir.preempt.2.json")
                              .c_str()),
              0);
  }
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace weir::preempt
