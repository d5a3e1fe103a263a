// Drives `weir profile`: workloads on devices that are always there, and programs under a fake driver and a fake CUPTI.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"
#include "trace/import/import.h"
#include "trace/import/list.h"

namespace weir::testing {
namespace {

std::vector<std::string> tiny_profile(const std::string& device, std::initializer_list<std::string> more) {
  std::vector<std::string> words = {"profile", "moe",          "--device", device,     "--scale",
                                    "tiny",    "--iterations", "5",        "--warmup", "1"};
  words.insert(words.end(), more);
  return words;
}

// What HolisticTraceAnalysis and TraceLens expect of a Kineto trace, by an independent reader of JSON.
constexpr const char* kInvariants = R"(
import json, math, sys
trace = json.load(open(sys.argv[1]), parse_constant=lambda word: sys.exit('has ' + word))
events = trace['traceEvents']
assert trace['schemaVersion'] == 1
assert isinstance(trace['distributedInfo']['rank'], int) and trace['distributedInfo']['world_size'] >= 1
assert trace['deviceProperties'] and all(isinstance(d['id'], int) and d['name'] for d in trace['deviceProperties'])
devices = {d['id'] for d in trace['deviceProperties']}
launches = {}
for e in events:
    assert e['ph'] in 'XMsf', e
    assert isinstance(e['pid'], int) and isinstance(e['tid'], int), e
    if e['ph'] == 'M': continue
    assert math.isfinite(e['ts']), e
    if e['ph'] == 'X': assert e['dur'] >= 0 and math.isfinite(e['dur']) and e['name'] and e['cat'], e
    if e.get('cat') == 'cuda_runtime':
        assert e['args']['correlation'] not in launches, e
        launches[e['args']['correlation']] = e
flows = {}
commands = 0
last = {}
slices = {}
for e in events:
    ns = lambda us: round(us * 1000)
    if e['ph'] == 'X': slices.setdefault((e['pid'], e['tid']), []).append((ns(e['ts']), ns(e['ts'] + e['dur'])))
    if e['ph'] in 'sf':
        flows.setdefault((e['cat'], e['id']), []).append(e['ph'])
        # Perfetto ties it to a slice that it has met by then.
        lane = slices[(e['pid'], e['tid'])]
        assert any(begin <= ns(e['ts']) <= end for begin, end in (lane[-64:] if e['ph'] == 'f' else lane)), e
    if e.get('cat') == 'ac2g': assert e['id'] in launches, e  # TraceLens joins by it
    if e.get('cat') == 'hardware_queue':
        assert not {'stream', 'correlation'} & set(e['args']), e  # or it is counted as a second kernel
    if e.get('cat') in ('kernel', 'gpu_memcpy', 'gpu_memset'):
        commands += 1
        assert e['pid'] in devices and e['args']['device'] == e['pid'] and e['args']['stream'] == e['tid'], e
        call = launches[e['args']['correlation']]
        assert call['ts'] <= e['ts'] + 1e-3, (call, e)
        lane = (e['pid'], e['tid'])
        assert e['ts'] >= last.get(lane, -math.inf) - 1e-3, e  # in order, and no overlap within a stream
        last[lane] = e['ts'] + e['dur']
    if e.get('cat') == 'cuda_sync':
        for key in ('cuda_sync_kind', 'stream', 'wait_on_stream', 'wait_on_cuda_event_record_corr_id', 'correlation'):
            assert key in e['args'], e
        assert launches[e['args']['wait_on_cuda_event_record_corr_id']]['name'] == 'cudaEventRecord'
        assert launches[e['args']['correlation']]['name'] == 'cudaStreamWaitEvent'
assert all(sorted(ends) == ['f', 's'] for ends in flows.values())
assert any(e['name'].startswith('ProfilerStep#') for e in events)
print(commands, sum(e.get('cat') == 'hardware_queue' for e in events), sum(e.get('cat') == 'cuda_sync' for e in events))
)";

TEST(Profile, writes_a_trace_that_kineto_tools_can_read) {
  if (run_program({"python3", "-c", ""}).code != 0) GTEST_SKIP() << "python3 is not installed";
  for (const char* device : {"sim:h200", "cpu"}) {
    const Folder folder;
    const Outcome made =
        weir(tiny_profile(device, {"--streams", "4", "--traced-iterations", "3", "-o", folder / "t.json"}));
    ASSERT_EQ(made.code, 0) << made.err;
    const Outcome read = run_program({"python3", "-c", kInvariants, folder / "t.json"});
    ASSERT_EQ(read.code, 0) << device << ": " << read.err;
    int commands = 0, queued = 0, waits = 0;
    std::istringstream(read.out) >> commands >> queued >> waits;
    EXPECT_GT(commands, 0);
    EXPECT_EQ(commands % 3, 0);
    EXPECT_EQ(queued, commands);
    EXPECT_GT(waits, 0);
  }
}

TEST(Profile, reports_cost_waterfall_and_file) {
  const Folder folder;
  const Outcome made = weir(tiny_profile("sim:h200", {}), folder.path());
  ASSERT_EQ(made.code, 0) << made.err;
  for (const char* part :
       {"cost of tracing", "submitted -> accepted", "accepted -> launched", "started -> ended", "ended -> seen", "p99",
        "Written to moe.trace.json", "ui.perfetto.dev", "weir analyze moe.trace.json"})
    EXPECT_TRUE(has(made.out, part)) << part << "\n" << made.out;
  EXPECT_EQ(weir(tiny_profile("sim:h200", {"--force", "--quiet"}), folder.path()).code, 0);
  const Outcome json = weir(tiny_profile("sim:h200", {"--force", "--json"}), folder.path());
  const Json document = parse_json(json.out, "profile");
  EXPECT_EQ(document["schema"], "weir.profile/2");
  EXPECT_EQ(document["tracing"]["ratio"], 1.0);
  EXPECT_EQ(document["files"][0]["path"], "moe.trace.json");
}

TEST(Profile, csv_has_a_row_per_command) {
  const Folder folder;
  const Outcome made =
      weir(tiny_profile("sim:h200", {"--trace-format", "csv", "--traced-iterations", "2", "-o", folder / "t.csv"}));
  ASSERT_EQ(made.code, 0) << made.err;
  std::istringstream lines(content(folder / "t.csv"));
  std::string line;
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("rank,device,stream,queue,kind,name,iteration,enqueued_ns")) << line;
  int rows = 0;
  while (std::getline(lines, line)) ++rows;
  EXPECT_GT(rows, 0);
  EXPECT_EQ(rows % 2, 0);
}

TEST(Profile, comes_back_through_the_importer) {
  const Folder folder;
  ASSERT_EQ(weir(tiny_profile("sim:h200", {"--traced-iterations", "2", "-o", folder / "t.json", "-q"})).code, 0);
  const auto traces = import_traces({folder / "t.json"}, {});
  ASSERT_EQ(traces.size(), 1u);
  const Timeline& timeline = traces[0].timeline;
  const Json trace = read_json(folder / "t.json");
  std::size_t commands = 0, waits = 0;
  for (const Json& event : trace["traceEvents"]) {
    commands += event["cat"] == "kernel" || event["cat"] == "gpu_memcpy" ? 1 : 0;
    waits += event["cat"] == "cuda_sync" ? 1 : 0;
  }
  EXPECT_EQ(timeline.spans.size(), commands);
  EXPECT_EQ(timeline.dependencies.size(), waits);
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST(Profile, rejects_what_it_cannot_do) {
  const Folder folder;
  const auto code = [&](const std::vector<std::string>& words, const std::string& part) {
    const Outcome outcome = weir(words, folder.path());
    EXPECT_TRUE(has(outcome.err, part)) << outcome.err;
    return outcome.code;
  };
  EXPECT_EQ(code({"profile"}, "a workload or a program is required"), 2);
  EXPECT_EQ(code({"profile", "moe", "--device", "null"}, "runs nothing"), 2);
  EXPECT_EQ(code({"profile", "moe", "--device", "cpu", "--trace-format", "xml"}, "--trace-format xml"), 2);
  EXPECT_EQ(code({"profile", "moe", "--device", "cpu", "--streams", "4,8"}, "one count"), 2);
  EXPECT_EQ(code({"profile", "moe", "--device", "cpu", "--traced-iterations", "0"}, "--traced-iterations 0"), 2);
  EXPECT_EQ(code({"profile", "moe", "other"}, "after --"), 2);
  EXPECT_EQ(code({"profile", "--"}, "a program is required"), 2);
  EXPECT_EQ(code({"profile", "moe", "--", "true"}, "is named after -- as well"), 2);
  EXPECT_EQ(code({"profile", "--", "./not-there"}, "no such program"), 2);
  EXPECT_EQ(code({"profile", "moe", "--device", "cpu", "--no-trace"}, "--no-trace"), 2);
  EXPECT_EQ(code({"profile", "moe", "--device", "cpu", "--profiler", "cupti"}, "is for NVIDIA GPUs"), 2);
  EXPECT_EQ(code({"profile", "--streams", "4", "--", "true"}, "--streams 4"), 2);
  const Folder other;
  std::ofstream(other / "script") << "#!/not/there\n";
  std::filesystem::permissions(other / "script", std::filesystem::perms::owner_all);
  EXPECT_EQ(code({"profile", "--profiler", "cupti", "--", other / "script"}, "interpreter"), 2);
  EXPECT_EQ(code({"profile", "--profiler", "gprof", "--", "true"}, "--profiler gprof"), 2);
  EXPECT_EQ(code({"profile", "--capture-limit", "0M", "--", "true"}, "--capture-limit 0M"), 2);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Profile, ctrl_c_writes_what_was_traced) {
  const Folder folder;
  const pid_t process = start_weir(
      {"profile", "moe", "--device", "cpu", "--scale", "tiny", "--iterations", "10000000", "-o", folder / "t.json"},
      folder.path());
  await_handler(process, SIGINT);
  ::kill(process, SIGINT);
  EXPECT_EQ(wait_for(process), 130);
  EXPECT_FALSE(read_json(folder / "t.json")["traceEvents"].empty());
}

#ifdef WEIR_FAKE_PROGRAM

class ProfileProgram : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("WEIR_CUPTI_LIBRARY", WEIR_FAKE_CUPTI, 1); }
  void TearDown() override {
    ::unsetenv("WEIR_CUPTI_LIBRARY");
    ::unsetenv("FAKE_CUPTI_REFUSES");
  }
  Outcome profile(std::initializer_list<std::string> program, std::initializer_list<std::string> flags = {}) {
    std::vector<std::string> words = {"profile", "--profiler", "cupti", "-o", trace()};
    words.insert(words.end(), flags);
    words.insert(words.end(), {"--", WEIR_FAKE_PROGRAM});
    words.insert(words.end(), program);
    return weir(words, folder_.path());
  }
  std::string trace() const { return folder_ / "t.json"; }
  const Folder& folder() const { return folder_; }

 private:
  Folder folder_;
};

TEST_F(ProfileProgram, captures_commands_calls_waits_and_queues) {
  const Outcome made = profile({"say", "hello --json", "run", "5"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.out, "hello --json\n");  // standard output is the program's
  for (const char* part :
       {"exit code 0", "12 (10 kernel, 1 copy, 1 memset)", "on 2 streams and 2", "1 more of copy engines", "Fake GPU"})
    EXPECT_TRUE(has(made.err, part)) << part << "\n" << made.err;
  const Json json = read_json(trace());
  std::map<std::string, int> calls;
  std::set<std::int64_t> correlations;
  int kernels = 0;
  for (const Json& event : json["traceEvents"]) {
    if (event["cat"] == "cuda_runtime") {
      ++calls[event["name"].string()];
      EXPECT_TRUE(correlations.insert(event["args"]["correlation"].get<std::int64_t>()).second);
    }
    if (event["cat"] != "kernel") continue;
    ++kernels;
    EXPECT_EQ(event["name"], "do_things(float*, int)");
    EXPECT_EQ(event["args"]["queue"], event["args"]["stream"].get<int>() + 10);
  }
  EXPECT_EQ(kernels, 10);
  // The driver's calls, not the runtime's around them, and no allocation.
  EXPECT_EQ(calls, (std::map<std::string, int>{{"cuLaunchKernel", 10},
                                               {"cuMemcpyHtoDAsync", 1},
                                               {"cuMemsetD8Async", 1},
                                               {"cuEventRecord", 1},
                                               {"cuStreamWaitEvent", 1},
                                               {"cuCtxSynchronize", 1}}));
  const auto traces = import_traces({trace()}, {});
  EXPECT_EQ(traces[0].timeline.spans.size(), 12u);
  EXPECT_EQ(traces[0].timeline.dependencies.size(), 1u);
}

TEST_F(ProfileProgram, kernels_of_a_graph_share_its_launch) {
  ::setenv("FAKE_CUPTI_GRAPH", "1", 1);
  const Outcome made = profile({"run", "2"});
  ::unsetenv("FAKE_CUPTI_GRAPH");
  ASSERT_EQ(made.code, 0) << made.err;
  std::set<std::int64_t> launches;
  int nodes = 0;
  const Json json = read_json(trace());
  for (const Json& event : json["traceEvents"]) {
    if (event["cat"] == "cuda_runtime" && event["name"] == "cuGraphLaunch")
      launches.insert(event["args"]["correlation"].get<std::int64_t>());
    if (event["cat"] != "kernel" || event["name"] != "in_loop()") continue;
    ++nodes;
    EXPECT_TRUE(launches.contains(event["args"]["correlation"].get<std::int64_t>())) << event;
  }
  EXPECT_EQ(nodes, 3);
  EXPECT_EQ(launches.size(), 1u);
}

TEST_F(ProfileProgram, whole_graphs_are_one_command_each_on_request) {
  ::setenv("FAKE_CUPTI_GRAPH", "1", 1);
  const Outcome made = profile({"run", "2"}, {"--graphs", "whole"});
  ::unsetenv("FAKE_CUPTI_GRAPH");
  ASSERT_EQ(made.code, 0) << made.err;
  int graphs = 0;
  const Json json = read_json(trace());
  for (const Json& event : json["traceEvents"]) {
    if (event["cat"] != "kernel") continue;
    EXPECT_NE(event["name"], "in_loop()");
    if (event["name"] == "CUDA graph") ++graphs;
  }
  EXPECT_EQ(graphs, 1);
}

TEST_F(ProfileProgram, a_trace_of_many_commands_is_packed_unless_named) {
  const Outcome made =
      weir({"profile", "--profiler", "cupti", "--", WEIR_FAKE_PROGRAM, "run", "100000"}, folder().path());
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string path = folder() / "fake_cuda_program.trace.json.gz";
  ASSERT_TRUE(std::filesystem::exists(path)) << made.err;
  EXPECT_EQ(import_traces({path}, {})[0].timeline.spans.size(), 200'002u);
  // A second one leaves it alone.
  EXPECT_EQ(weir({"profile", "--profiler", "cupti", "--", WEIR_FAKE_PROGRAM, "run", "3"}, folder().path()).code, 0);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(folder() / "fake_cuda_program-2.trace.json"));
}

TEST_F(ProfileProgram, a_quiet_program_that_is_killed_loses_a_second_at_most) {
  const Outcome killed = profile({"run", "3", "sleep", "2500", "killed"});
  EXPECT_EQ(killed.code, 128 + SIGKILL);
  EXPECT_TRUE(has(killed.err, "8 (6 kernel")) << killed.err;
}

TEST_F(ProfileProgram, what_a_program_executes_in_its_place_gets_a_file_of_its_own) {
  const Outcome made = profile({"run", "3", "sleep", "2000", "executes"}, {"--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  const Json document = parse_json(made.out, "profile");
  ASSERT_EQ(document["files"].size(), 2u);
  EXPECT_NE(document["files"][0]["path"], document["files"][1]["path"]);
}

TEST_F(ProfileProgram, does_not_wait_for_what_goes_on_in_the_background) {
  const Outcome made = profile({"run", "3", "daemon"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(has(made.err, "8 (6 kernel")) << made.err;
}

TEST_F(ProfileProgram, standard_input_is_the_programs) {
  const Outcome made =
      run_program({"sh", "-c", "echo words | \"$0\" profile --profiler cupti -o \"$1\" -- \"$2\" read run 1",
                   WEIR_BINARY, trace(), WEIR_FAKE_PROGRAM});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.out, "read words\n");
}

TEST_F(ProfileProgram, what_was_ignored_stays_ignored) {
  const Outcome made =
      run_program({"sh", "-c", "trap '' HUP; \"$0\" profile --profiler cupti -o \"$1\" -- \"$2\" hangup run 1",
                   WEIR_BINARY, trace(), WEIR_FAKE_PROGRAM});
  EXPECT_EQ(made.out, "ignored\n") << made.err;
}

TEST_F(ProfileProgram, a_limit_on_files_ends_the_capture_and_not_the_program) {
  const Outcome made = run_program(
      {"sh", "-c",
       "ulimit -f 1000; \"$0\" profile --profiler cupti --trace-format csv -o \"$1.gz\" -- \"$2\" run 50000 say done",
       WEIR_BINARY, trace(), WEIR_FAKE_PROGRAM});
  EXPECT_TRUE(has(made.out, "done")) << made.err;
  EXPECT_TRUE(has(made.err, "exit code 0")) << made.err;
  EXPECT_TRUE(has(made.err, "size limit")) << made.err;
}

TEST_F(ProfileProgram, another_profiler_that_is_left_out_is_named) {
  ::setenv("CUDA_INJECTION64_PATH", "/opt/other.so", 1);
  const Outcome made = profile({"run", "1"});
  ::unsetenv("CUDA_INJECTION64_PATH");
  EXPECT_EQ(made.code, 0);
  EXPECT_TRUE(has(made.err, "/opt/other.so")) << made.err;
}

TEST_F(ProfileProgram, a_trace_that_cannot_be_written_does_not_cost_the_capture) {
  const std::string name = folder() / "late";
  std::filesystem::create_directory(name);
  const Outcome made = weir({"profile", "--profiler", "cupti", "-o", name + "/t.json", "--", "sh", "-c",
                             "\"$0\" run 3; rmdir \"$1\"", WEIR_FAKE_PROGRAM, name});
  EXPECT_EQ(made.code, 2) << made.err;
  const std::size_t end = made.err.find(".weircap");
  ASSERT_NE(end, std::string::npos) << made.err;
  const std::size_t begin = made.err.find_last_of(" \n", end) + 1;
  const std::string path = made.err.substr(begin, end - begin) + ".weircap";
  ASSERT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_EQ(import_traces({path}, {})[0].timeline.spans.size(), 8u);
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
}

TEST_F(ProfileProgram, many_buffers_lose_nothing) {
  const Outcome made = profile({"run", "50000"}, {"--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  const Json document = parse_json(made.out, "profile");
  EXPECT_EQ(document["devices"][0]["kinds"]["kernel"], 100'000);
  EXPECT_TRUE(document["dropped"].empty()) << document["dropped"].dump();
}

TEST_F(ProfileProgram, a_limit_is_kept_and_what_is_lost_is_told) {
  const Outcome made = profile({"run", "50000"}, {"--json", "--capture-limit", "1M"});
  ASSERT_EQ(made.code, 0) << made.err;
  const Json document = parse_json(made.out, "profile");
  EXPECT_LT(document["devices"][0]["kinds"]["kernel"].get<int>(), 100'000);
  ASSERT_FALSE(document["dropped"].empty());
  EXPECT_TRUE(has(document["dropped"].dump(), "limit")) << document["dropped"].dump();
}

TEST_F(ProfileProgram, latency_timestamps_are_asked_for) {
  ASSERT_EQ(profile({"run", "2"}, {"--latency-timestamps"}).code, 0);
  const Json json = read_json(trace());
  int kernels = 0;
  for (const Json& event : json["traceEvents"]) {
    if (event["cat"] != "kernel") continue;
    ++kernels;
    EXPECT_LE(event["args"]["submitted"].get<double>(), event["args"]["accepted"].get<double>());
    EXPECT_LE(event["args"]["accepted"].get<double>(), event["args"]["launched"].get<double>());
    EXPECT_LE(event["args"]["launched"].get<double>(), event["ts"].get<double>());
  }
  EXPECT_EQ(kernels, 4);
}

TEST_F(ProfileProgram, forks_do_not_write_and_other_programs_get_files_of_their_own) {
  const Outcome forked = profile({"run", "3", "fork"});
  ASSERT_EQ(forked.code, 0) << forked.err;
  EXPECT_TRUE(has(forked.err, "8 (6 kernel")) << forked.err;
  const Outcome again = profile({"run", "3", "again"}, {"--force"});
  ASSERT_EQ(again.code, 0) << again.err;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder().path()))
    files += entry.path().filename().string().starts_with("t.process") ? 1 : 0;
  EXPECT_EQ(files, 2);
}

TEST_F(ProfileProgram, the_programs_end_is_ours) {
  const Outcome failed = profile({"run", "3", "exit", "7"});
  EXPECT_EQ(failed.code, 7);
  EXPECT_TRUE(has(failed.err, "exit code 7")) << failed.err;
  EXPECT_TRUE(std::filesystem::exists(trace()));
  std::filesystem::remove(trace());
  const Outcome killed = profile({"run", "50000", "killed"});
  EXPECT_EQ(killed.code, 128 + SIGKILL);
  // What had been written by then is there.
  EXPECT_TRUE(has(killed.err, "was killed")) << killed.err;
  EXPECT_TRUE(std::filesystem::exists(trace()));
}

TEST_F(ProfileProgram, refusals_are_told_and_the_program_runs_on) {
  ::setenv("FAKE_CUPTI_REFUSES", "39", 1);
  const Outcome refused = profile({"run", "3", "say", "done"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.out, "done\n");
  EXPECT_TRUE(has(refused.err, "MULTIPLE_SUBSCRIBERS")) << refused.err;
  ::unsetenv("FAKE_CUPTI_REFUSES");
  ::setenv("WEIR_CUPTI_LIBRARY", "/not/there.so", 1);
  const Outcome missing = profile({"run", "3", "say", "done"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.out, "done\n");
  EXPECT_TRUE(has(missing.err, "CUPTI was not found")) << missing.err;
  const Outcome without = profile({"say", "no cuda"});
  EXPECT_EQ(without.code, 1);
  EXPECT_TRUE(has(without.err, "nothing was captured")) << without.err;
}

TEST_F(ProfileProgram, signals_go_on_to_the_program) {
  const std::string out = folder() / "out";
  const pid_t process = start_program({WEIR_BINARY, "profile", "--profiler", "cupti", "-o", trace(), "--",
                                       WEIR_FAKE_PROGRAM, "run", "2", "wait", "exit", "5"},
                                      folder().path(), out, folder() / "err");
  for (int i = 0; i < 60'000 && !has(content(out), "ready"); ++i) ::usleep(1000);
  ::kill(process, SIGTERM);
  EXPECT_EQ(wait_for(process), 5);
  EXPECT_TRUE(has(content(out), "got it"));
}

#endif

TEST(ProfileRocprof, runs_rocprofv3_by_its_words_and_says_where_there_is_none) {
  const Folder folder;
  // Other tests may run in this process, and want the tools that they had.
  struct Path {
    std::string kept = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
    ~Path() { ::setenv("PATH", kept.c_str(), 1); }
  } const path;
  ::setenv("PATH", (folder.path().string() + ":" + "/usr/bin:/bin").c_str(), 1);
  const Outcome absent = weir({"profile", "--profiler", "rocprofv3", "--", "true"}, folder.path());
  EXPECT_EQ(absent.code, 2);
  EXPECT_TRUE(has(absent.err, "--profiler rocprofv3: not found in PATH")) << absent.err;
  // Writes down how it was called, leaves no trace, and runs the program.
  {
    std::ofstream script(folder / "rocprofv3");
    script << "#!/bin/sh\nprintf '%s\\n' \"$@\" > " << (folder / "words")
           << "\nwhile [ \"$1\" != -- ]; do shift; done; shift\nexec \"$@\"\n";
  }
  std::filesystem::permissions(folder / "rocprofv3", std::filesystem::perms::owner_all);
  const Outcome ran = weir(
      {"profile", "--profiler", "rocprofv3", "--", "sh", "-c", "echo \"$1\"; exit 4", "x", "a b;c"}, folder.path());
  EXPECT_EQ(ran.code, 4) << ran.err;
  EXPECT_EQ(ran.out, "a b;c\n");
  EXPECT_TRUE(has(ran.err, "rocprofv3 wrote no trace")) << ran.err;
  const std::string words = content(folder / "words");
  EXPECT_TRUE(
      words.starts_with("--kernel-trace\n--hip-runtime-trace\n--memory-copy-trace\n--output-format\njson\n-d\n"))
      << words;
  // And one that writes what rocprofv3 writes, into a folder of the host's name.
  {
    std::ofstream script(folder / "rocprofv3");
    script << "#!/bin/sh\nwhile [ \"$1\" != -d ]; do shift; done; mkdir \"$2/host\"; cp " << (folder / "made.json")
           << " \"$2/host/4711_results.json\"\n";
    std::ofstream(folder / "made.json") << R"({"rocprofiler-sdk-tool":[{"buffer_records":{"kernel_dispatch":[
      {"size":1,"kind":11,"operation":2,"thread_id":9,"correlation_id":{"internal":1,"external":0},
       "start_timestamp":100,"end_timestamp":150,"dispatch_info":{"agent_id":{"handle":13},"queue_id":{"handle":2},
       "kernel_id":1},"stream_id":{"handle":3}}]}}]})";
  }
  const Outcome made =
      weir({"profile", "--profiler", "rocprofv3", "-o", folder / "amd.json", "--", "true"}, folder.path());
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(has(made.err, "1 (1 kernel) on 1 stream")) << made.err;
  EXPECT_EQ(import_traces({folder / "amd.json"}, {})[0].timeline.spans.size(), 1u);
}

}  // namespace
}  // namespace weir::testing
