// What spans add up to, and which questions a trace may answer.
#include "amd/ftrace/summary.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/amd_scene.h"
#include "support/ftrace_text.h"

namespace weir::ftrace {
namespace {

using testing::TraceForm;
using testing::TraceStyle;

Json document_of(const std::string& text) {
  KfdSummary summary;
  const auto source = bytes_of(text);
  const FtraceCounters counters = read_ftrace(*source, summary);
  return ftrace_document(summary, counters, {"t.txt", "", {"weir"}});
}

const Json& answer_of(const Json& document, std::string_view key) {
  for (const Json& one : document["answers"])
    if (one["key"] == key) return one;
  ADD_FAILURE() << key;
  return document;
}

const Json& verb_of(const Json& document, std::string_view verb) {
  for (const Json& one : document["verbs"])
    if (one["verb"] == verb) return one;
  ADD_FAILURE() << verb;
  return document;
}

testing::Scene small_scene() {
  testing::Scene scene;
  scene.gpus.push_back({});
  scene.processes.push_back({});
  for (std::uint32_t i = 0; i < 3; ++i) {
    testing::SceneQueue queue;
    queue.id = i;
    queue.ring_base = 0x7f0000000000 + i * 0x100000;
    queue.asked_ns = 5'000'000'000 + i * 10'000'000;
    queue.ioctl_ns = queue.asked_ns + 1'000'000;
    queue.ioctl_end_ns = queue.ioctl_ns + 100'000 + i * 10'000;
    scene.queues.push_back(queue);
  }
  scene.preemptions.push_back({0, 0, 6'000'000'000, 6'000'200'000, 6'000'210'000});
  return scene;
}

TEST(FtraceTally, is_exact_for_few_and_close_for_many) {
  Tally tally;
  EXPECT_TRUE(tally.document().is_null());
  for (int i = 1; i <= 101; ++i) tally.add(i * 1000);
  EXPECT_EQ(tally.quantile(0.5), 51'000);
  EXPECT_EQ(tally.document()["quantile_error"], 0.0);
  for (int i = 102; i <= 100'001; ++i) tally.add(i * 1000);
  EXPECT_EQ(tally.count(), 100'001u);
  EXPECT_EQ(tally.smallest(), 1000);
  EXPECT_EQ(tally.largest(), 100'001'000);
  for (const double level : {0.01, 0.5, 0.9, 0.99})
    EXPECT_NEAR(tally.quantile(level) / (level * 1e8), 1, 0.017) << level;
  EXPECT_GT(tally.document()["quantile_error"], 0.0);
  tally.add(INT64_MAX);
  EXPECT_EQ(tally.largest(), INT64_MAX);
}

TEST(FtraceSummary, keeps_exact_lengths_and_bounds_apart) {
  const testing::Scene scene = small_scene();
  const Json graph = document_of(ftrace_text(scene, TraceForm::function_graph));
  const Json& exact = verb_of(graph, "create");
  EXPECT_EQ(exact["calls"], 3);
  EXPECT_EQ(exact["exact_ns"]["count"], 3);
  EXPECT_EQ(exact["exact_ns"]["max"], 118'000);
  EXPECT_TRUE(exact["at_least_ns"].is_null());
  EXPECT_TRUE(exact["at_most"].is_null());
  const Json functions = document_of(ftrace_text(scene, TraceForm::function));
  const Json& bounded = verb_of(functions, "create");
  EXPECT_TRUE(bounded["exact_ns"].is_null());
  EXPECT_EQ(bounded["at_least_ns"]["count"], 3);
  EXPECT_LT(bounded["at_least_ns"]["max"], 118'000);
  EXPECT_EQ(bounded["bounded"], 3);
}

TEST(FtraceSummary, failed_creates_are_no_queues) {
  TraceStyle style;
  style.failed_creates = 2;
  const Json document = document_of(ftrace_text(small_scene(), TraceForm::kprobes, style));
  const Json& create = verb_of(document, "create");
  EXPECT_EQ(create["calls"], 5);
  EXPECT_EQ(create["failed"], 2);
  EXPECT_EQ(create["succeeded"], 3);
  EXPECT_EQ(create["exact_ns"]["count"], 3);
  ASSERT_EQ(document["mqds"]["inits_per_create"].size(), 1u);
  EXPECT_EQ(document["mqds"]["inits_per_create"][0]["calls"], 4);
  EXPECT_EQ(document["mqds"]["inits_per_create"][0]["creates"], 3);
  EXPECT_NE(answer_of(document, "how_is_a_queue_asked_for")["answer"].get<std::string>().find("2 failed"),
            std::string::npos);
}

TEST(FtraceSummary, answers_what_the_trace_supports) {
  const Json document = document_of(ftrace_text(small_scene(), TraceForm::function));
  EXPECT_NE(answer_of(document, "how_is_a_queue_asked_for")["answer"].get<std::string>().find(
                "kfd_ioctl_create_queue 3x -> pqm_create_queue 3x -> create_queue_cpsch 3x"),
            std::string::npos);
  EXPECT_EQ(answer_of(document, "how_long_does_kfd_take")["answer"].get<std::string>().find("at least: "), 0u);
  EXPECT_NE(answer_of(document, "doorbell_or_ioctl_per_launch")["answer"].get<std::string>().find("no ioctl"),
            std::string::npos);
  EXPECT_NE(answer_of(document, "where_is_the_mqd_allocated")["answer"].get<std::string>().find("expected"),
            std::string::npos);
  EXPECT_NE(
      answer_of(document, "is_a_kernel_queue_used")["answer"].get<std::string>().find("none: none of its functions"),
      std::string::npos);
  EXPECT_NE(answer_of(document, "how_long_does_preemption_take")["answer"].get<std::string>().find("at most: "),
            std::string::npos);
  EXPECT_EQ(document["runlist"]["rebuilds"], 4);
  EXPECT_EQ(document["runlist"]["basis"], "pm_send_runlist");
  EXPECT_EQ(document["doorbells"]["allocations"], 3);
  EXPECT_TRUE(document["doorbells"]["user_writes"].is_null());
  EXPECT_TRUE(document["trace"]["clock"].is_null());
}

TEST(FtraceSummary, does_not_answer_what_a_filter_left_out) {
  TraceStyle style;
  style.has_noise = false;  // only KFD's functions
  const Json narrow = document_of(ftrace_text(small_scene(), TraceForm::function, style));
  EXPECT_TRUE(answer_of(narrow, "is_a_kernel_queue_used")["answer"].is_null());
  EXPECT_NE(answer_of(narrow, "is_a_kernel_queue_used")["reason"].get<std::string>().find("filter"), std::string::npos);
  const Json inner = document_of("x-1 [000] .... 1.000001: create_queue_cpsch <-pqm_create_queue\n");
  EXPECT_TRUE(answer_of(inner, "how_is_a_queue_asked_for")["answer"].is_null());
  EXPECT_TRUE(answer_of(inner, "how_long_does_kfd_take")["answer"].is_null());
  EXPECT_TRUE(answer_of(inner, "doorbell_or_ioctl_per_launch")["answer"].is_null());
  EXPECT_TRUE(answer_of(inner, "where_is_the_mqd_allocated")["answer"].is_null());
  EXPECT_TRUE(answer_of(inner, "how_long_does_preemption_take")["answer"].is_null());
  for (const Json& one : inner["answers"]) EXPECT_TRUE(one["reason"].is_string());
  // Nothing was seen to be created; nobody says that nothing was.
  const Json none = document_of("x-1 [000] .... 1.000001: unmap_queues_cpsch <-execute_queues_cpsch\n");
  EXPECT_NE(answer_of(none, "how_is_a_queue_asked_for")["reason"].get<std::string>().find("filter"), std::string::npos);
}

TEST(FtraceSummary, lost_events_are_no_evidence_of_absence) {
  TraceStyle style;
  style.overwritten = 500;
  const Json document = document_of(ftrace_text(small_scene(), TraceForm::function, style));
  EXPECT_EQ(document["trace"]["lost"]["overwritten"], 500);
  EXPECT_TRUE(answer_of(document, "is_a_kernel_queue_used")["answer"].is_null());
  EXPECT_TRUE(answer_of(document, "doorbell_or_ioctl_per_launch")["answer"].is_null());
}

TEST(FtraceSummary, sees_kernel_queues_where_there_are_some) {
  const Json document = document_of(
      "x-1 [000] .... 1.000001: kfd_ioctl <-__x64_sys_ioctl\n"
      "x-1 [000] .... 1.000002: amdgpu_gfx_enable_kcq <-gfx_v9_0_kcq_resume\n"
      "x-1 [000] .... 1.000003: amdgpu_sched_run_job: sched_job=7, timeline=comp_1.0.0, ring_name=comp_1.0.0, "
      "num_ibs=1\n");
  EXPECT_EQ(document["kernel_queues"]["calls"], 1);
  EXPECT_EQ(document["kernel_queues"]["jobs_on_compute_rings"], 1);
  EXPECT_NE(answer_of(document, "is_a_kernel_queue_used")["answer"].get<std::string>().find("amdgpu_gfx_enable_kcq"),
            std::string::npos);
}

TEST(FtraceSummary, puts_processes_together_beyond_a_number) {
  std::string text;
  for (int i = 1; i <= 100; ++i)
    text += fmt::format("x-{0} ({0}) [000] .... {0}.000001: kfd_ioctl <-__x64_sys_ioctl\n", i);
  const Json document = document_of(text);
  ASSERT_EQ(document["processes"].size(), 65u);
  EXPECT_EQ(document["processes"][64]["is_rest"], true);
  EXPECT_EQ(document["processes"][64]["verbs"][0]["calls"], 36);
  EXPECT_EQ(verb_of(document, "ioctl")["calls"], 100);
}

}  // namespace
}  // namespace weir::ftrace
