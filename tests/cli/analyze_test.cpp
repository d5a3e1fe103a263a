// Drives `weir analyze` as users do: exports of simulated runs and hand-written Kineto files in, reports, pictures,
// exports and exit codes out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "support/text.h"
#include "weir_build.h"

namespace weir::testing {
namespace {

Json json_of(const std::string& path) { return Json::parse(content(path)); }

// A trace of a simulated device: no timing of this machine is in it.
void profile(const Folder& folder, const std::string& name, const std::vector<std::string>& what) {
  std::vector<std::string> words = {"profile", "-q", "--iterations", "3", "--warmup", "1", "-o", name};
  words.insert(words.end(), what.begin(), what.end());
  const Outcome outcome = weir(words, folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
}

void profile_moe(const Folder& folder, const std::string& name) {
  profile(folder, name, {"moe", "--device", "sim:h200", "--scale", "tiny"});
}

Json analysed(const Folder& folder, const std::string& name) {
  const Outcome outcome = weir({"analyze", name, "--json"}, folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return Json::parse(outcome.out);
}

// `iterations` steps of one kernel each, as PyTorch writes them; a kernel lasts duration(i) us.
template <class Duration>
std::string kineto(int rank, int iterations, Duration duration, const std::string& kernel = "axpy") {
  std::string events;
  double now = 1000;
  for (int i = 0; i < iterations; ++i) {
    const double lasts = duration(i);
    events +=
        fmt::format(R"({{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{}","pid":9,"tid":9,"ts":{},"dur":{}}},
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":{},"dur":2,"args":{{"correlation":{}}}}},
{{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":7,"ts":{},"dur":{},
"args":{{"device":0,"stream":7,"correlation":{}}}}},
)",
                    i, now, lasts + 20, now + 1, i + 1, kernel, now + 5, lasts, i + 1);
    now += lasts + 25;
  }
  events.resize(events.size() - 2);
  return fmt::format(R"({{"schemaVersion":1,"distributedInfo":{{"rank":{}}},"traceEvents":[
{}]}})",
                     rank, events);
}

void write_into(const Folder& folder, const std::string& name, const std::string& text) {
  std::ofstream(folder / name) << text;
}

TEST(Analyze, tells_a_trace_as_text_markdown_and_json) {
  const Folder folder;
  ASSERT_NO_FATAL_FAILURE(profile_moe(folder, "t.json"));
  const Outcome text = weir({"analyze", "t.json"}, folder.path());
  EXPECT_EQ(text.code, 0) << text.err;
  weir::expect_narrow(text.out);
  // The most important thing comes first.
  EXPECT_LT(text.out.find("What stands out"), text.out.find("Where the time went"));
  for (const char* title : {"Where the time went", "Streams and hardware queues", "False serialisation",
                            "Host and device", "Waterfall", "Critical path", "Top kernels", "Idle gaps"})
    EXPECT_TRUE(has(text.out, title)) << title;
  for (const char* wrong : {" 1 calls", " 1 commands", " 1 gaps", "null", "nan"})
    EXPECT_FALSE(has(text.out, wrong)) << wrong;
  const Outcome markdown = weir({"analyze", "t.json", "--format", "markdown"}, folder.path());
  EXPECT_TRUE(has(markdown.out, "## What stands out"));
  EXPECT_TRUE(has(markdown.out, "| --- |"));
  const Outcome json = weir({"analyze", "t.json", "--json", "-o", "a.json"}, folder.path());
  EXPECT_TRUE(has(json.out, "Written to a.json"));
  EXPECT_EQ(json_of(folder / "a.json")["schema"], "weir.analysis/2");
  expect_valid_as(folder / "a.json", "weir.analysis.2.json");
}

TEST(Analyze, says_for_which_operators_the_device_worked) {
  const Folder folder;
  std::string text = kineto(0, 3, [](int) { return 10.0; }, "gemm");
  text.insert(text.find("[") + 1, R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":9,"ts":1000,"dur":10},)");
  text.insert(text.find("[") + 1,
              R"({"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":9,"tid":9,"ts":1005,"args":{
                 "Total Allocated":3145728,"Total Reserved":4194304,"Bytes":1048576,"Device Id":0}},)");
  write_into(folder, "t.json", text);
  const Outcome said = weir({"analyze", "t.json", "--operators"}, folder.path());
  EXPECT_TRUE(has(said.out, "at most 3.00 MiB, first at ")) << said.out;
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_TRUE(has(said.out, "aten::mm")) << said.out;
  EXPECT_TRUE(has(said.out, "Submitted outside of operators: 2 commands, 20.0 us.")) << said.out;
  EXPECT_TRUE(has(said.out, "matrix")) << said.out;
  ASSERT_EQ(weir({"analyze", "t.json", "--operators", "--json", "-o", "a.json"}, folder.path()).code, 0);
  expect_valid_as(folder / "a.json", "weir.analysis.2.json");
  const Json operators = json_of(folder / "a.json")["devices"][0]["model"]["shapes"];
  EXPECT_EQ(operators["top"][0]["name"], "aten::mm");
  EXPECT_EQ(operators["top"][0]["total_ns"], 10'000);
  EXPECT_TRUE(analysed(folder, "t.json")["devices"][0]["model"].is_null()) << "only where somebody asks";
}

// Two steps of a model: a module with a product, its backward pass on another thread, an optimizer, and a wait. The
// product lasts `product_us` on `kernel`.
std::string training(int product_us, const std::string& kernel) {
  std::string events;
  const auto range = [&](const char* category, const std::string& name, int thread, int from, int to,
                         const std::string& arguments = "") {
    events += fmt::format(
        R"({{"ph":"X","cat":"{}","name":"{}","pid":9,"tid":{},"ts":{},"dur":{},"args":{{{}}}}},
)",
        category, name, thread, from, to - from, arguments);
  };
  int correlation = 0;
  const auto work = [&](const std::string& name, int thread, int at, int device_at, int for_us) {
    ++correlation;
    range("cuda_runtime", "cudaLaunchKernel", thread, at, at + 2, fmt::format(R"("correlation":{})", correlation));
    events += fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":7,"ts":{},"dur":{},"args":{{"device":0,"stream":7,"correlation":{}}}}},
)",
        name, device_at, for_us, correlation);
  };
  for (int step = 0; step < 2; ++step) {
    const int at = 2000 * step;
    range("user_annotation", fmt::format("ProfilerStep#{}", step), 9, at, at + 1900);
    range("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 9, at + 10, at + 90);
    range("python_function", "train.py(45): step", 9, at + 95, at + 1890);
    range("python_function", "nn.Module: Net_0", 9, at + 100, at + 300);
    range("python_function", "nn.Module: Linear_0", 9, at + 110, at + 200);
    range("cpu_op", "aten::mm", 9, at + 120, at + 150,
          fmt::format(
              R"("Sequence number":{},"Fwd thread id":0,"Input type":["float","float"],"Input Dims":[[8,4],[4,2]])",
              step));
    work(kernel, 9, at + 125, at + 130, product_us);
    range("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 10, at + 600, at + 650,
          fmt::format(R"("Sequence number":{},"Fwd thread id":1)", step));
    work("gemm_back", 10, at + 610, at + 620, 50);
    range("user_annotation", "Optimizer.step#SGD.step", 9, at + 700, at + 750);
    range("cpu_op", "aten::add_", 9, at + 705, at + 745);
    work("add", 9, at + 710, at + 720, 1);
    range("cuda_runtime", "cudaDeviceSynchronize", 9, at + 800, at + 820, R"("correlation":99)");
  }
  events.resize(events.size() - 2);
  return R"({"schemaVersion":1,"distributedInfo":{"rank":0},"traceEvents":[)" + events + "]}";
}

TEST(Analyze, speaks_the_words_of_the_model) {
  const Folder folder;
  write_into(folder, "t.json", training(100, "gemm"));
  const Outcome said = weir({"analyze", "t.json", "--operators"}, folder.path());
  EXPECT_EQ(said.code, 0) << said.err;
  weir::expect_narrow(said.out);
  for (const char* part :
       {"Modules of the model", "  Linear_0", "(no module)", "Phases and steps", "optimizer", "ProfilerStep#1",
        "aten::mm f32 [8, 4], f32 [4, 2]", "Launched more slowly than they run", "train.py(45): step", "data loading"})
    EXPECT_TRUE(has(said.out, part)) << part << "\n" << said.out;
  ASSERT_EQ(weir({"analyze", "t.json", "--operators", "--json", "-o", "a.json"}, folder.path()).code, 0);
  expect_valid_as(folder / "a.json", "weir.analysis.2.json");
  const Json device = json_of(folder / "a.json")["devices"][0];
  const Json& model = device["model"];
  EXPECT_EQ(model["total_ns"], 302'000);
  EXPECT_EQ(model["modules"]["list"][0]["name"], "Net_0");
  EXPECT_EQ(model["modules"]["list"][1]["name"], "Linear_0");
  EXPECT_EQ(model["modules"]["list"][1]["parent"], 0);
  EXPECT_EQ(model["modules"]["list"][1]["own_ns"], 300'000);
  EXPECT_EQ(model["modules"]["list"][1]["backward_ns"], 100'000);
  EXPECT_EQ(model["modules"]["without"]["total_ns"], 2'000);
  EXPECT_EQ(model["phases"][0]["total_ns"], 200'000);
  EXPECT_EQ(model["phases"][2]["total_ns"], 2'000);
  EXPECT_EQ(model["steps"]["list"][1]["total_ns"], 151'000);
  EXPECT_EQ(model["steps"]["list"][1]["optimizer_ns"], 1'000);
  EXPECT_EQ(model["launch_limited"]["top"][0]["name"], "aten::add_") << "2 us of launching, 1 us of running";
  EXPECT_EQ(device["host_blocked"]["synchronize"]["sites"][0]["line"], "train.py(45): step");
  EXPECT_EQ(device["data_loading"]["waits"], 2);
  EXPECT_EQ(device["data_loading"]["idle_ns"], 80'000) << "the first wait was before the device's first command";
}

TEST(Analyze, compares_operators_of_two_traces) {
  const Folder folder;
  write_into(folder, "a.json", training(100, "gemm"));
  write_into(folder, "b.json", training(160, "gemm_v2"));
  const Outcome said = weir({"compare", "a.json", "b.json", "--operators"}, folder.path());
  EXPECT_TRUE(has(said.out, "Operators by shape, per step")) << said.out << said.err;
  EXPECT_TRUE(has(said.out, "+60.0 us  aten::mm f32 [8, 4], f32 [4, 2]")) << said.out;
  EXPECT_TRUE(has(said.out, "runs in other kernels")) << said.out;
  weir({"compare", "a.json", "b.json", "--operators", "--json", "-o", "c.json"}, folder.path());
  expect_valid_as(folder / "c.json", "weir.trace_comparison.2.json");
  const Json operators = json_of(folder / "c.json")["operators"];
  EXPECT_EQ(operators["difference_ns"], 0);
  EXPECT_EQ(operators["rest_ns"], -60'000) << "a step takes as long, with less idle time";
  weir({"compare", "a.json", "b.json", "--json", "-o", "d.json"}, folder.path());
  expect_valid_as(folder / "d.json", "weir.trace_comparison.2.json");
  EXPECT_TRUE(json_of(folder / "d.json")["operators"].is_null());
  EXPECT_TRUE(has(json_of(folder / "d.json")["operators_reason"].get<std::string>(), "--operators"));
}

// One kernel, seconds of loading, then 100 kernels that keep the device busy for 90 %.
std::string trace_with_start_up(int seconds) {
  std::string events;
  for (int i = 0; i <= 100; ++i)
    events += fmt::format(
        R"({}{{"ph":"X","cat":"kernel","name":"axpy","pid":0,"tid":7,"ts":{},"dur":90,"args":{{"device":0,"stream":7}}}})",
        i == 0 ? "" : ",\n", i == 0 ? 0 : 1'000'000 * seconds + 100 * i);
  return fmt::format(R"({{"schemaVersion":1,"traceEvents":[{}]}})", events);
}

// Programs that only start more slowly are as fast.
TEST(Analyze, holds_operators_against_the_peaks_of_their_device) {
  const Folder folder;
  std::string text = kineto(0, 3, [](int) { return 10.0; }, "gemm");
  text.insert(text.find("[") + 1, R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":9,"ts":1000,"dur":10},)");
  write_into(folder, "t.json", text);
  const Outcome json = weir({"analyze", "t.json", "--operators", "--json", "-o", "a.json"}, folder.path());
  ASSERT_EQ(json.code, 0) << json.err;
  expect_valid_as(folder / "a.json", "weir.analysis.2.json");
  const Json found = json_of(folder / "a.json")["devices"][0]["efficiency"];
  ASSERT_TRUE(found.is_object());
  EXPECT_EQ(found["count"], 1);
  EXPECT_EQ(found["top"][0]["name"], "aten::mm");
  EXPECT_EQ(found["top"][0]["calls"], 1);
  EXPECT_TRUE(found["top"][0]["share"].is_null());
  EXPECT_TRUE(found["peaks"].is_null());
  EXPECT_TRUE(found["peaks_reason"].is_string());
  EXPECT_TRUE(has(found["unknown"][0]["reason"].get<std::string>(), "record_shapes"));
  const Outcome shown = weir({"analyze", "t.json", "--operators"}, folder.path());
  EXPECT_TRUE(has(shown.out, "Efficiency of operators")) << shown.out;
  weir::expect_narrow(shown.out);
  const Json without = analysed(folder, "t.json")["devices"][0];
  EXPECT_TRUE(without["efficiency"].is_null());
  EXPECT_TRUE(has(without["unavailable"]["efficiency"].get<std::string>(), "--operators"));

  write_into(folder, "peaks.json", R"({"schema": "weir.bench/2", "ceilings": {"cuda": {"device": "cuda:0",
    "bytes_per_s": {"value": 4e12, "how": "copies"}, "flop_per_s": {"fp16": {"value": 7e14, "how": "gemm"},
    "fp32": {"value": null, "how": "not measured"}}}}})");
  const Outcome measured =
      weir({"analyze", "t.json", "--operators", "--peaks", "peaks.json", "--json", "-o", "m.json"}, folder.path());
  ASSERT_EQ(measured.code, 0) << measured.err;
  expect_valid_as(folder / "m.json", "weir.analysis.2.json");
  const Json peaks = json_of(folder / "m.json")["devices"][0]["efficiency"]["peaks"];
  EXPECT_EQ(peaks["bytes_per_s"], 4e12);
  EXPECT_EQ(peaks["matrix_flop_per_s"], Json::parse(R"({"f16": 7e14})"));
  EXPECT_TRUE(has(peaks["source"].get<std::string>(), "peaks.json"));
  const Outcome wrong = weir({"analyze", "t.json", "--operators", "--peaks", "a.json"}, folder.path());
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(has(wrong.err, "no measured ceilings")) << wrong.err;
}

TEST(Analyze, writes_a_database) {
#if WEIR_HAVE_SQLITE
  const Folder folder;
  ASSERT_NO_FATAL_FAILURE(profile_moe(folder, "t.json"));
  const Outcome first = weir({"analyze", "t.json", "--sqlite", "t.db"}, folder.path());
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(has(first.out + first.err, "t.db"));
  EXPECT_EQ(content(folder / "t.db").substr(0, 15), "SQLite format 3");
  const Outcome again = weir({"analyze", "t.json", "--sqlite", "t.db"}, folder.path());
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(has(again.err, "--force")) << again.err;
  EXPECT_EQ(weir({"analyze", "t.json", "--sqlite", "t.db", "--force"}, folder.path()).code, 0);
#else
  GTEST_SKIP() << "built without SQLite";
#endif
}

TEST(Analyze, start_up_is_no_part_of_a_comparison) {
  const Folder folder;
  write_into(folder, "a.json", trace_with_start_up(3));
  write_into(folder, "b.json", trace_with_start_up(9));
  const auto span_ratio = [](const Json& totals) {
    for (const Json& total : totals)
      if (total["quantity"] == "span") return total["test"].get<double>() / total["baseline"].get<double>();
    return 0.0;
  };
  for (const auto& [window, ratio] : std::initializer_list<std::pair<const char*, double>>{
           {"steady", 1}, {"all", 9.01 / 3.01}, {"..2s", 1}, {"3s..4s", 0}}) {
    const Outcome compared = weir({"compare", "a.json", "b.json", "--window", window, "--json"}, folder.path());
    const Outcome reported =
        weir({"report", "b.json", "--baseline", "a.json", "--window", window, "--json"}, folder.path());
    if (ratio == 0) {
      EXPECT_EQ(compared.code, 2) << "the other trace has nothing there: " << compared.out;
      continue;
    }
    write_into(folder, "document", compared.out);
    expect_valid_as(folder / "document", "weir.trace_comparison.2.json");
    const Json document = json_of(folder / "document");
    EXPECT_NEAR(span_ratio(document["totals"]), ratio, 0.01) << window;
    const bool is_whole = std::string(window) == "all";
    EXPECT_EQ(document["notes"].size(), is_whole ? 1U : 2U) << document["notes"];
    const Json page = Json::parse(reported.out);
    EXPECT_NEAR(span_ratio(page["comparisons"][0]["totals"]), ratio, 0.01) << window;
  }
  const Outcome text = weir({"compare", "a.json", "b.json"}, folder.path());
  EXPECT_TRUE(has(text.out, "without the programs' start-up, which took 3.00 s in a.json and 9.00 s in")) << text.out;
  EXPECT_EQ(weir({"report", "a.json", "--window", "1", "--json"}, folder.path()).code, 2);
  // A pause that only one of them has may be what made it slower.
  write_into(folder, "c.json", trace_with_start_up(0));
  const Outcome one = weir({"compare", "c.json", "a.json", "--json"}, folder.path());
  const Json whole = Json::parse(one.out);
  EXPECT_GT(span_ratio(whole["totals"]), 100);
  EXPECT_TRUE(has(whole["notes"].dump(), "a.json seems to begin with a start-up and c.json does not"))
      << whole["notes"];
}

TEST(Analyze, leaves_out_the_start_up_and_says_so) {
  const Folder folder;
  write_into(folder, "t.json", trace_with_start_up(3));
  const Outcome text = weir({"analyze", "t.json"}, folder.path());
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(has(text.out, "Analysed: 3.00 s to 3.01 s of the trace, 100 commands")) << text.out;
  EXPECT_TRUE(has(text.out, "Start-up took 3.00 s (99.7 % of the trace)")) << text.out;
  EXPECT_TRUE(has(text.out, "9.99 ms, first start to last end")) << text.out;

  const auto window = [&](const char* part) {
    const std::string path = fmt::format("part {}.json", part);
    EXPECT_EQ(weir({"analyze", "t.json", "--window", part, "--json", "-o", path}, folder.path()).code, 0);
    expect_valid_as(folder / path, "weir.analysis.2.json");
    return json_of(folder / path);
  };
  const Json steady = window("steady");
  EXPECT_EQ(steady["window"]["reason"], "start-up");
  EXPECT_EQ(steady["window"]["begin_ns"], 3'000'100'000);
  const Json all = window("all");
  EXPECT_TRUE(all["window"].is_null());
  EXPECT_EQ(all["devices"][0]["commands"], 101);
  const Json part = window("3.001s..3.002s");
  EXPECT_EQ(part["window"]["reason"], "asked for");
  EXPECT_EQ(part["devices"][0]["commands"], 10);
  EXPECT_EQ(window("..1s")["devices"][0]["commands"], 1);

  for (const auto& [value, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"1", "Write 1.5s..3s, steady or all."},
           {"2s..1s", "it ends before it begins"},
           {"1..2", "the unit is missing"},
           {"1s..2s", "The trace's commands are from 0 to 3.01 s."}}) {
    const Outcome outcome = weir({"analyze", "t.json", "--window", value}, folder.path());
    EXPECT_EQ(outcome.code, 2) << value;
    EXPECT_TRUE(has(outcome.err, message)) << outcome.err;
  }
}

TEST(Analyze, profiles_are_valid_documents) {
  const Folder folder;
  const Outcome outcome =
      weir({"profile", "moe", "--device", "sim:h200", "--scale", "tiny", "--iterations", "3", "-o", "t.json", "--json"},
           folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  write_into(folder, "p.json", outcome.out);
  expect_valid_as(folder / "p.json", "weir.profile.2.json");
}

TEST(Analyze, lists_are_as_long_as_wanted) {
  const Folder folder;
  ASSERT_NO_FATAL_FAILURE(profile_moe(folder, "t.json"));
  const std::string brief = weir({"analyze", "t.json"}, folder.path()).out;
  EXPECT_GT(weir({"analyze", "t.json", "--full"}, folder.path()).out.size(), brief.size());
  const Json one = Json::parse(weir({"analyze", "t.json", "--top", "1", "--json"}, folder.path()).out);
  EXPECT_EQ(one["devices"][0]["top"]["top"].size(), 1u);
  EXPECT_GT(analysed(folder, "t.json")["devices"][0]["top"]["top"].size(), 1u);
  EXPECT_EQ(weir({"analyze", "t.json", "--top", "0"}, folder.path()).code, 2);
}

TEST(Analyze, an_export_says_the_same_again) {
  const Folder folder;
  ASSERT_NO_FATAL_FAILURE(profile_moe(folder, "t.json"));
  const Outcome outcome =
      weir({"analyze", "t.json", "--export", "u.json", "--svg", "t.svg", "--csv", "t.csv"}, folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json first = analysed(folder, "t.json"), second = analysed(folder, "u.json");
  EXPECT_EQ(first["commands"], second["commands"]);
  EXPECT_EQ(first["dependencies"], second["dependencies"]);
  EXPECT_FALSE(first["dependencies"].is_null());
  EXPECT_EQ(first["source"], "virtual time of the simulated device");
  EXPECT_EQ(second["source"], first["source"]);
  for (const char* key :
       {"label", "times", "kinds", "iterations", "concurrency", "lanes", "queue_map", "false_serialisation",
        "queue_switch", "launch_bound", "host_blocked", "overlap", "exposed_causes", "waterfall", "top", "gaps"})
    EXPECT_EQ(first["devices"][0][key], second["devices"][0][key]) << key;
  EXPECT_GT(first["devices"][0]["host_blocked"]["launches"], 0);
  EXPECT_TRUE(content(folder / "t.svg").starts_with("<svg"));
  const std::string csv = content(folder / "t.csv");
  EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')),
            first["commands"].get<std::size_t>() + 1);
}

// Issued stream by stream, each stream's later commands stand in front of the next stream's, on shared queues.
TEST(Analyze, finds_false_serialisation_where_queues_are_shared) {
  const Folder folder;
  const auto run = [&](const std::string& queues) {
    const std::string name = "q" + queues + ".json";
    profile(
        folder, name,
        {"--file", WEIR_SOURCE_DIR "/config/depth_first.yaml", "--device", "sim:h200", "--sim", "queues=" + queues});
    return analysed(folder, name)["devices"][0];
  };
  const Json shared = run("8"), own = run("32");
  ASSERT_TRUE(shared["false_serialisation"].is_object());
  EXPECT_TRUE(shared["false_serialisation"]["are_dependencies_known"].get<bool>());
  EXPECT_GT(shared["false_serialisation"]["behind"], 0);
  const double lost = shared["false_serialisation"]["wall_ns"].get<double>(),
               longer = shared["times"]["span_ns"].get<double>() - own["times"]["span_ns"].get<double>();
  EXPECT_GT(longer, 0);
  EXPECT_GT(lost, 0.8 * longer);
  EXPECT_LE(lost, shared["times"]["span_ns"].get<double>());
  EXPECT_EQ(own["false_serialisation"]["behind"], 0);
  EXPECT_EQ(own["false_serialisation"]["pairs"], 0);
  EXPECT_EQ(own["false_serialisation"]["wall_ns"], 0);
  EXPECT_TRUE(has(weir({"analyze", "q8.json"}, folder.path()).out, "on a shared hardware queue"));
  EXPECT_TRUE(has(weir({"analyze", "q32.json"}, folder.path()).out, "no two streams share a hardware queue"));
}

// A gather of 100 us beside 40 us of compute, and a kernel that waits for it; in words, figures and advice.
TEST(Analyze, says_why_communication_was_exposed) {
  const Folder folder;
  const auto command = [](const char* name, int stream, int from, int lasts, int correlation) {
    return fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":{},"ts":{},"dur":{},
"args":{{"device":0,"stream":{},"queue":{},"correlation":{}}}}},
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":{},"dur":1,"args":{{"correlation":{}}}}},
)",
        name, stream, from, lasts, stream, stream, correlation, 10 * correlation, correlation);
  };
  const std::string text =
      R"({"schemaVersion":1,"traceEvents":[)" + command("gemm", 7, 23, 40, 1) +
      command("ncclDevKernel_AllGather", 8, 23, 100, 2) + command("relu", 7, 124, 50, 5) +
      R"({"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":7,"ts":123,"dur":0,"args":
{"cuda_sync_kind":"Stream Wait Event","stream":7,"correlation":4,"device":0,"wait_on_stream":8,
"wait_on_cuda_event_record_corr_id":3}},
{"ph":"X","cat":"cuda_runtime","name":"cudaEventRecord","pid":9,"tid":9,"ts":30,"dur":1,"args":{"correlation":3}},
{"ph":"X","cat":"cuda_runtime","name":"cudaStreamWaitEvent","pid":9,"tid":9,"ts":40,"dur":1,
"args":{"correlation":4}}]})";
  write_into(folder, "t.json", text);
  const Json device = analysed(folder, "t.json")["devices"][0];
  EXPECT_EQ(device["overlap"]["communication_ns"], 100'000);
  EXPECT_EQ(device["overlap"]["exposed_ns"], 60'000);
  EXPECT_EQ(device["overlap"]["hidden_ns"], 40'000);
  EXPECT_EQ(device["overlap"]["efficiency"], 0.4);
  EXPECT_EQ(device["overlap"]["collective_ns"], Json::parse(R"({"all_gather": 100000})"));
  const Json& found = device["exposed_causes"];
  EXPECT_EQ(found["exposed_ns"], device["times"]["exposed_communication_ns"]);
  EXPECT_TRUE(found["are_dependencies_known"].get<bool>());
  // The gather was submitted 10 us after the first command and would have ended so much earlier.
  ASSERT_EQ(found["causes"].size(), 2u) << found.dump(2);
  EXPECT_EQ(found["causes"][0]["cause"], "dependency");
  EXPECT_EQ(found["causes"][0]["total_ns"], 50'000);
  EXPECT_EQ(found["causes"][1]["cause"], "launch_bound");
  EXPECT_EQ(found["causes"][1]["total_ns"], 10'000);
  EXPECT_EQ(found["causes"][0]["worst"][0]["blocked"], "relu");
  EXPECT_EQ(found["causes"][0]["worst"][0]["collective"], "ncclDevKernel_AllGather");
  ASSERT_EQ(weir({"analyze", "t.json", "--json", "-o", "a.json"}, folder.path()).code, 0);
  expect_valid_as(folder / "a.json", "weir.analysis.2.json");
  const std::string printed = weir({"analyze", "t.json"}, folder.path()).out;
  weir::expect_narrow(printed);
  EXPECT_TRUE(has(printed, "40.0 us (40.0 %) of it, while something else ran")) << printed;
  EXPECT_TRUE(has(printed, "60.0 us (60.0 %) of it, while nothing else ran")) << printed;
  EXPECT_TRUE(has(printed, "Exposed communication: why nothing else ran")) << printed;
  EXPECT_TRUE(has(weir({"analyze", "t.json", "--format", "markdown"}, folder.path()).out, "| dependency | 50.0 us |"));
  // Without communication there is nothing to say, and a reason.
  write_into(folder, "none.json", kineto(0, 5, [](int) { return 10; }));
  const Json none = analysed(folder, "none.json")["devices"][0];
  EXPECT_TRUE(none["overlap"].is_null() && none["exposed_causes"].is_null());
  EXPECT_EQ(none["unavailable"]["exposed_causes"], "no communication");
}

TEST(Analyze, compares_two_traces_of_one_rank) {
  const Folder folder;
  const auto wobble = [](int i) { return 100 + i % 7; };
  write_into(folder, "a.json", kineto(0, 40, wobble));
  write_into(folder, "slow.json", kineto(0, 40, [&](int i) { return 2 * wobble(i); }));
  write_into(folder, "wild.json", kineto(0, 40, [](int i) { return i % 2 == 0 ? 60 : 160 + i; }));
  EXPECT_EQ(weir({"analyze", "a.json", "a.json"}, folder.path()).code, 0);
  const Outcome slower = weir({"analyze", "a.json", "slow.json"}, folder.path());
  EXPECT_EQ(slower.code, 3);
  EXPECT_TRUE(has(slower.out, "slower")) << slower.out;
  weir::expect_narrow(slower.out);
  EXPECT_EQ(weir({"analyze", "slow.json", "a.json"}, folder.path()).code, 0);
  const Outcome wild = weir({"analyze", "a.json", "wild.json"}, folder.path());
  const Outcome strict = weir({"analyze", "a.json", "wild.json", "--strict"}, folder.path());
  EXPECT_EQ(wild.code, 0) << wild.out;
  EXPECT_EQ(strict.code, 4) << strict.out;
  EXPECT_EQ(weir({"analyze", "a.json", "slow.json", "--json", "-o", "c.json"}, folder.path()).code, 3);
  EXPECT_EQ(json_of(folder / "c.json")["exit_code"], 3);
  expect_valid_as(folder / "c.json", "weir.trace_comparison.2.json");
  EXPECT_TRUE(has(weir({"analyze", "a.json", "slow.json", "--format", "markdown"}, folder.path()).out, "**slower**"));
  // A report says the same, and first.
  ASSERT_EQ(weir({"report", "slow.json", "--baseline", "a.json", "-o", "page.json"}, folder.path()).code, 0);
  const Json page = json_of(folder / "page.json");
  EXPECT_EQ(page["comparisons"][0]["title"], "slow.json against a.json");
  EXPECT_EQ(page["verdict"]["tone"], "bad");
  EXPECT_EQ(page["verdict"]["findings"][0]["anchor"], page["comparisons"][0]["id"]);
}

TEST(Analyze, names_the_commands_for_a_result) {
  const Folder folder;
  put_file(folder.path() / "r.json", "{\n \"schema\": \"weir.result/2\", \"created\": \"now\"}");
  const Outcome outcome = weir({"analyze", "r.json"}, folder.path());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "r.json: is a document of weir (weir.result/2) and not a trace")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "`weir report FILE`")) << outcome.err;
}

TEST(Analyze, puts_ranks_together) {
  const Folder folder;
  const auto lasts = [](int) { return 50; };
  write_into(folder, "r0.json", kineto(0, 20, lasts, "ncclDevKernel_AllReduce_Sum_f32"));
  write_into(folder, "r1.json", kineto(1, 20, lasts, "ncclDevKernel_AllReduce_Sum_f32"));
  const Outcome outcome = weir({"analyze", "r0.json", "r1.json", "--json", "-o", "r.json"}, folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json ranks = json_of(folder / "r.json");
  EXPECT_EQ(ranks["devices"].size(), 2u);
  EXPECT_EQ(ranks["ranks"]["matched"], 20);
  expect_valid_as(folder / "r.json", "weir.analysis.2.json");
  // What files say of themselves can be overruled, both ways.
  EXPECT_TRUE(has(weir({"analyze", "r0.json", "r1.json", "--compare"}, folder.path()).out, "against baseline"));
  const Outcome forced = weir({"analyze", "r0.json", "r0.json", "--ranks", "--json"}, folder.path());
  ASSERT_EQ(forced.code, 0) << forced.err;
  EXPECT_EQ(Json::parse(forced.out)["devices"].size(), 2u);
  // One export per rank.
  EXPECT_EQ(weir({"analyze", "r0.json", "r1.json", "--export", "x.json"}, folder.path()).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "x.rank0.json") && std::filesystem::exists(folder / "x.rank1.json"));
}

TEST(Analyze, unpacks_files_and_archives) {
  if (run_program({"tar", "--version"}).code != 0 || run_program({"gzip", "--version"}).code != 0)
    GTEST_SKIP() << "tar and gzip are not installed";
  const Folder folder;
  write_into(folder, "t.json", kineto(0, 5, [](int) { return 10; }));
  ASSERT_EQ(run_program({"tar", "-czf", "t.tar.gz", "t.json"}, folder.path()).code, 0);
  ASSERT_EQ(run_program({"gzip", "-k", "t.json"}, folder.path()).code, 0);
  const Json times = analysed(folder, "t.json")["devices"][0]["times"];
  EXPECT_EQ(times["busy_ns"], 50'000);
  EXPECT_EQ(analysed(folder, "t.json.gz")["devices"][0]["times"], times);
  EXPECT_EQ(analysed(folder, "t.tar.gz")["devices"][0]["times"], times);
}

TEST(Analyze, says_what_is_wrong_with_its_input) {
  const Folder folder;
  write_into(folder, "t.json", kineto(0, 5, [](int) { return 10; }));
  write_into(folder, "text", "not a trace");
  write_into(folder, "empty", "");
  write_into(folder, "no_gpu.json", R"({"schemaVersion":1,"traceEvents":[]})");
  std::filesystem::create_directory(folder / "dir");
  const auto expect = [&](const std::vector<std::string>& arguments, const std::string& words) {
    std::vector<std::string> all = {"analyze"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = weir(all, folder.path());
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_TRUE(has(outcome.err, words)) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  };
  expect({"text"}, "not a recognised trace");
  expect({"empty"}, "is empty");
  expect({"dir"}, "dir: there is no trace directly in this folder");
  expect({"missing.json"}, "cannot be read");
  expect({"t.json", "--input-format", "nsys"}, WEIR_HAVE_SQLITE ? "is not an SQLite database" : "built without SQLite");
  expect({"t.json", "--input-format", "nope"}, "unknown trace format");
  expect({"t.json", "-o", "text"}, "already exists");
  expect({"t.json", "--svg", "text"}, "already exists");
  expect({"t.json", "--export", "text"}, "already exists");
  expect({"t.json", "--csv", "text"}, "already exists");
  EXPECT_EQ(content(folder / "text"), "not a trace");
  EXPECT_EQ(weir({"analyze", "t.json", "-o", "text", "--force"}, folder.path()).code, 0);
  EXPECT_TRUE(has(content(folder / "text"), "What stands out"));
  expect({"t.json", "--collective", ""}, "--collective: the pattern is empty");
  expect({"t.json", "--memory", "lots"}, "not a size");
  expect({"t.json", "--compare"}, "compare: test is required");
  expect({"t.json", "t.json", "--threshold", "700%"}, "out of range");
  expect({"t.json", "t.json", "--threshold", "1"}, "Write --threshold 1%.");
  expect({"t.json", "t.json", "--svg", "x.svg"}, "are for one timeline");
  const Outcome nothing = weir({"analyze", "no_gpu.json"}, folder.path());
  EXPECT_EQ(nothing.code, 0);
  EXPECT_TRUE(has(nothing.out, "no GPU commands"));
  EXPECT_FALSE(has(nothing.out, "What stands out"));
}

TEST(Analyze, refuses_what_does_not_fit_into_memory) {
  const Folder folder;
  write_into(folder, "large.json", kineto(0, 20'000, [](int) { return 10; }));
  const Outcome outcome = weir({"analyze", "large.json", "--memory", "1M"}, folder.path());
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_TRUE(has(outcome.err, "memory")) << outcome.err;
  EXPECT_EQ(weir({"analyze", "large.json", "--memory", "1G", "-q"}, folder.path()).code, 0);
}

}  // namespace
}  // namespace weir::testing
