// `weir profile WORKLOAD --device hip` with a profiler, on fakes that run on the host (tests/fake_hip): the queues in
// the timeline are those that the fake runtime used, and what a profiler does not deliver is empty, with the reason.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

#ifdef WEIR_FAKE_HIP_DIR
const std::string kHipFakes = WEIR_FAKE_HIP_DIR;
#else
const std::string kHipFakes;
#endif

constexpr std::int64_t kFakeClockAhead = 777'000'000'000'000;  // of the fake profiler (tests/fake_hip/rocprofiler.h)

struct ProfiledRow {
  std::string queue, kind;
  std::int64_t started = -1, ended = -1;
};

std::vector<ProfiledRow> profiled_rows(const std::string& file) {
  std::vector<ProfiledRow> rows;
  std::istringstream lines(content(file));
  std::string line;
  std::getline(lines, line);
  EXPECT_TRUE(
      line.starts_with("rank,device,stream,queue,kind,name,iteration,enqueued_ns,submitted_ns,accepted_ns,"
                       "launched_ns,started_ns,ended_ns"))
      << line;
  while (std::getline(lines, line)) {
    std::vector<std::string> fields;
    std::istringstream text(line);
    for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
    if (fields.size() < 13) continue;
    ProfiledRow row{fields[3], fields[4]};
    if (!fields[11].empty()) row.started = std::stoll(fields[11]);
    if (!fields[12].empty()) row.ended = std::stoll(fields[12]);
    rows.push_back(row);
  }
  return rows;
}

class HipProfile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kHipFakes + "/bin/rocprofv3"))
      GTEST_SKIP() << "this build has no fake rocprofiler (no HIP headers, or a sanitizer)";
  }

  // The words before `weir profile`.
  std::vector<std::string> environment(const std::vector<std::string>& settings, bool has_rocprofv3) const {
    std::vector<std::string> words = {"env", "LD_LIBRARY_PATH=" + kHipFakes + "/rocm6:" + kHipFakes + "/rocprofiler",
                                      "PATH=" + (has_rocprofv3 ? kHipFakes + "/bin:" : "") + "/usr/bin:/bin",
                                      "GPU_MAX_HW_QUEUES=4", "WEIR_FAKE_ROCPROF_KEEP=" + (folder_ / "records.json")};
    words.insert(words.end(), settings.begin(), settings.end());
    return words;
  }

  std::vector<std::string> command(const std::vector<std::string>& more, const std::string& workload) const {
    std::vector<std::string> words = {WEIR_BINARY,
                                      "profile",
                                      workload,
                                      "--device",
                                      "hip",
                                      "--scale",
                                      "tiny",
                                      "--iterations=2",
                                      "--warmup=1",
                                      "--traced-iterations=3",
                                      "--no-check",
                                      "--json",
                                      "--trace-format=csv",
                                      "-o",
                                      folder_ / "trace.csv",
                                      "--force"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  Outcome profile(const std::string& faults, const std::vector<std::string>& more,
                  const std::string& workload = "tiny_kernel_stress", bool has_rocprofv3 = true,
                  std::vector<std::string> settings = {}) const {
    settings.push_back("WEIR_FAKE_ROCPROF=" + faults);
    std::vector<std::string> words = environment(settings, has_rocprofv3);
    for (const std::string& word : command(more, workload)) words.push_back(word);
    return run_program(words, folder_.path());
  }

  static Json document_of(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto document = Json::parse_if_valid(outcome.out);
    EXPECT_TRUE(document) << outcome.out;
    return document ? *document : Json();
  }

  static std::string source(const Json& document) { return document["tracing"]["source"].get<std::string>(); }
  static int without_times(const Json& document) { return document["devices"][0]["without_times"].get<int>(); }

  // Every kernel of the trace is one that the fake ran: at that time, on that hardware queue.
  void expect_the_fakes_queues(const Json& document) const {
    const Json kept = Json::parse(content(folder_ / "records.json"));
    const Json& records = kept["rocprofiler-sdk-tool"][0]["buffer_records"]["kernel_dispatch"];
    const auto rows = profiled_rows(folder_ / "trace.csv");
    EXPECT_EQ(rows.size(), document["run"]["commands_per_iteration"].get<std::size_t>() * 3);
    std::size_t kernels = 0;
    for (const ProfiledRow& row : rows) {
      if (row.kind != "kernel") continue;
      ++kernels;
      const bool is_there = std::any_of(records.begin(), records.end(), [&](const Json& record) {
        const auto started = record["start_timestamp"].get<std::int64_t>() - kFakeClockAhead;
        const auto ended = record["end_timestamp"].get<std::int64_t>() - kFakeClockAhead;
        const auto queue = record["dispatch_info"]["queue_id"]["handle"].get<int>();
        // The clocks are related to within the time that it takes to read one.
        return row.queue == "queue " + std::to_string(queue) && std::abs(started - row.started) < 100'000 &&
               std::abs((ended - started) - (row.ended - row.started)) < 100;
      });
      EXPECT_TRUE(is_there) << row.queue << " " << row.started << " " << row.ended;
    }
    EXPECT_GT(kernels, 0U);
  }

  void expect_exact(const Json& document) const {
    EXPECT_EQ(without_times(document), 0) << source(document);
    EXPECT_TRUE(document["tracing"]["has_exact_gaps"].get<bool>());
    EXPECT_EQ(source(document).find("have no times"), std::string::npos) << source(document);
    expect_the_fakes_queues(document);
  }

  const Folder folder_;
};

TEST_F(HipProfile, rocprofv3_gives_queues_and_exact_times) {
  const Json document = document_of(profile("", {"--streams=6"}));
  EXPECT_TRUE(source(document).starts_with("records of rocprofv3")) << source(document);
  expect_exact(document);
  // Six streams on the four queues of the runtime.
  EXPECT_EQ(document["devices"][0]["queues"].get<int>(), 4);
  std::ofstream(folder_ / "document.json") << to_text(document);
  expect_valid_as(folder_ / "document.json", "weir.profile.2.json");
}

TEST_F(HipProfile, every_way_of_submitting_is_joined) {
  for (const char* const submit : {"inline", "threads:2", "channel:mpsc:2"}) {
    const Json document = document_of(profile("", {"--streams=6", "--submit", submit, "--profiler=rocprofv3"}));
    expect_exact(document);
  }
}

TEST_F(HipProfile, copies_products_and_host_functions_are_joined) {
  for (const char* const workload : {"moe", "async_dataload"}) {
    SCOPED_TRACE(workload);
    const Json document = document_of(profile("", {}, workload));
    EXPECT_TRUE(source(document).starts_with("records of rocprofv3")) << source(document);
    EXPECT_EQ(without_times(document), 0) << source(document);
  }
}

TEST_F(HipProfile, records_in_any_order_and_without_streams_are_joined) {
  for (const char* const faults : {"shuffle=1", "streams=0"})
    expect_exact(document_of(profile(faults, {"--streams=6"})));
}

TEST_F(HipProfile, a_missing_record_has_a_reason) {
  const Json document = document_of(profile("drop=9", {"--streams=6"}));
  EXPECT_TRUE(has(source(document), "have no times, because records are missing")) << source(document);
  EXPECT_GT(without_times(document), 0);
  EXPECT_GT(document["devices"][0]["commands"].get<int>(), without_times(document));
}

TEST_F(HipProfile, where_rocprofv3_fails_events_are_used_unless_it_was_asked_for) {
  for (const auto& [faults, reason] :
       {std::pair("fail=1", "the process under rocprofv3 failed: rocprofv3: error: no agents"),
        {"silent=1", "rocprofv3 wrote no trace"},
        {"calls=0", "rocprofv3 recorded no calls of the process"},
        {"cut=1", "what rocprofv3 wrote cannot be read"},
        {"clock=0",
         "records of rocprofv3 around a process of its own; commands have no times, because the clocks cannot "
         "be related"}}) {
    SCOPED_TRACE(faults);
    const Json document = document_of(profile(faults, {}));
    EXPECT_TRUE(source(document).starts_with("device events")) << source(document);
    EXPECT_FALSE(document["tracing"]["has_exact_gaps"].get<bool>());
    EXPECT_TRUE(has(document["notes"].dump(), std::string("rocprofv3 was not used: ") + reason))
        << document["notes"].dump();
    const Outcome asked = profile(faults, {"--profiler=rocprofv3"});
    EXPECT_EQ(asked.code, 1) << asked.out;
    EXPECT_TRUE(has(asked.err, reason)) << asked.err;
  }
}

TEST_F(HipProfile, profilers_are_refused_where_they_do_not_fit) {
  const auto refused = [&](const std::vector<std::string>& words, const std::string& why, bool has_rocprofv3 = true) {
    const Outcome outcome = profile("", words, "tiny_kernel_stress", has_rocprofv3);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_TRUE(has(outcome.err, why)) << outcome.err;
  };
  refused({"--profiler=nonsense"}, "--profiler nonsense: unknown profiler");
  refused({"--profiler=cupti"}, "--profiler cupti: is for NVIDIA GPUs");
  refused({"--profiler=rocprofv3"}, "--profiler rocprofv3: not found in PATH", false);
  refused({"--profiler=rocprofv3", "--submit=graph"}, "the commands of a graph have one call");
  const Outcome cpu = weir({"profile", "tiny_kernel_stress", "--device=cpu", "--profiler=rocprofv3"}, folder_.path());
  EXPECT_EQ(cpu.code, 2);
  EXPECT_TRUE(has(cpu.err, "is for AMD GPUs (hip), and this is cpu")) << cpu.err;
  // A graph has no timeline, and the reason says why.
  const Outcome graph = profile("", {"--submit=graph"});
  EXPECT_EQ(graph.code, 1);
  EXPECT_TRUE(has(graph.err, "events cannot be put around the commands of a graph")) << graph.err;
}

TEST_F(HipProfile, events_are_used_on_request_and_where_there_is_nothing_else) {
  const Json asked = document_of(profile("", {"--profiler=events"}));
  EXPECT_TRUE(source(asked).starts_with("device events")) << source(asked);
  const Json alone = document_of(profile("", {}, "tiny_kernel_stress", false));
  EXPECT_TRUE(has(source(alone), "rocprofiler-sdk was not asked for")) << source(alone);
}

TEST_F(HipProfile, an_interrupt_leaves_nothing_behind) {
  const std::string temporary = folder_ / "temporary";
  std::filesystem::create_directory(temporary);
  std::vector<std::string> words = environment({"TMPDIR=" + temporary}, true);
  for (const std::string& word : command({"--traced-iterations=100000", "--streams=6"}, "tiny_kernel_stress"))
    words.push_back(word);
  std::erase(words, "--traced-iterations=3");
  const pid_t process = start_program(words, folder_.path(), folder_ / "out", folder_ / "err");
  // The traced process itself, which rocprofv3 has become.
  const auto has_child = [&] {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      const std::string words_of = content(entry.path() / "cmdline");
      if (words_of.starts_with(WEIR_BINARY) && words_of.find(temporary) != std::string::npos) return true;
    }
    return false;
  };
  for (int i = 0; i < 60'000 && !has_child(); ++i) ::usleep(1000);
  EXPECT_TRUE(has_child());
  ::kill(process, SIGINT);
  EXPECT_EQ(wait_for(process), 130) << content(folder_ / "err");
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "trace.csv"));
  // Nobody is left who knows that folder.
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string words_of = content(entry.path() / "cmdline");
    EXPECT_EQ(words_of.find(temporary), std::string::npos) << words_of;
  }
}

TEST_F(HipProfile, the_library_in_the_process_gives_the_same) {
  const std::vector<std::string> keeps = {"WEIR_FAKE_ROCPROF_FOLDER=" + folder_.path().string()};
  for (const char* const submit : {"inline", "threads:2"}) {
    const Json document = document_of(profile("", {"--streams=6", "--submit", submit, "--profiler=rocprofiler-sdk"},
                                              "tiny_kernel_stress", false, keeps));
    EXPECT_TRUE(source(document).starts_with("activity records of rocprofiler-sdk 1.0.0")) << source(document);
    expect_exact(document);
    EXPECT_EQ(document["devices"][0]["queues"].get<int>(), 4);
  }
  for (const char* const workload : {"moe", "async_dataload"}) {
    const Json document = document_of(profile("", {"--profiler=rocprofiler-sdk"}, workload, false));
    EXPECT_EQ(without_times(document), 0) << workload << ": " << source(document);
  }
}

TEST_F(HipProfile, what_the_library_loses_has_a_reason) {
  const auto traced = [&](const std::string& faults) {
    return document_of(profile(faults, {"--streams=6", "--profiler=rocprofiler-sdk"}, "tiny_kernel_stress", false));
  };
  const Json missing = traced("drop=5");
  EXPECT_TRUE(has(source(missing), "have no times, because records are missing")) << source(missing);
  EXPECT_GT(without_times(missing), 0);
  const Json full = traced("buffer=4000,lazy=1");
  EXPECT_TRUE(has(source(full), "of them were dropped")) << source(full);
  EXPECT_GT(without_times(full), 0);
  const Json unmarked = traced("marks=0");
  EXPECT_TRUE(has(source(unmarked), "has a mark: the runtime submits from a thread of its own")) << source(unmarked);
  const Json strange = traced("short=1");
  EXPECT_TRUE(has(source(strange), "of them were dropped")) << source(strange);
}

TEST_F(HipProfile, a_library_that_cannot_be_used_is_refused_with_the_reason) {
  const auto refused = [&](const std::string& faults, const std::string& why,
                           const std::vector<std::string>& settings = {}, int code = 2) {
    const Outcome outcome = profile(faults, {"--profiler=rocprofiler-sdk"}, "tiny_kernel_stress", false, settings);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_TRUE(has(outcome.err, why)) << outcome.err;
  };
  refused("version=20000", "rocprofiler-sdk 2.0.0 has another interface than 1.x");
  refused("locked=1", "cannot be configured, perhaps because another profiler was first: status 16");
  refused("start=0", "rocprofiler-sdk 1.0.0 does not start: status 12", {}, 1);
  refused("clock=0", "its clock cannot be read", {}, 1);
  refused("", "it is too late: the GPU runtime is already in this process",
          {"LD_PRELOAD=" + kHipFakes + "/rocm6/libamdhip64.so.6"});
  refused("", "librocprofiler-sdk.so.1 (ROCm 7.0 or later) was not found", {"LD_LIBRARY_PATH=" + kHipFakes + "/rocm6"});
}

}  // namespace
}  // namespace weir::testing
