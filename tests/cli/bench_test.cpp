// Drives `weir bench` as a user would, on packages that the test makes: good ones, and each way in which one can be
// bad.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/json.h"
#include "cli/bench_packages.h"
#include "cli/program.h"
#include "cli/queues_checks.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

// Few samples, no roofline: what is driven is the command, not the method.
std::vector<std::string> quick(std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {"bench", "--iterations",  "5",        "--budget",
                                        "1s",    "--no-roofline", "--device", "cpu"};
  for (const std::string& word : more) {
    // A flag of the test's own replaces the one above.
    const auto there = std::find(arguments.begin(), arguments.end(), word);
    if (word.starts_with("--") && there != arguments.end()) arguments.erase(there, there + 2);
    arguments.push_back(word);
  }
  return arguments;
}

Json summary_of(const Folder& folder) { return read_json(folder / "reports/summary.json"); }

const Json& entry_of(const Json& summary, const std::string& key) {
  static const Json kNone;
  for (const Json& entry : summary["cases"])
    if (entry["key"] == key) return entry;
  return kNone;
}

std::string content_of(const fs::path& file) {
  std::ifstream from(file, std::ios::binary);
  std::ostringstream text;
  text << from.rdbuf();
  return std::move(text).str();
}

constexpr const char* kOne = "precisions: [fp32]\n";

TEST(Bench, measures_a_package_and_writes_every_report) {
  const Folder folder;
  make_package(folder.path(), "doubles", "precisions: [fp32]\nproblem_size:\n  count: [1000, 2000]\n");
  const Outcome outcome = weir(quick({}), folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  expect_narrow(outcome.out);
  for (const char* section :
       {"Environment", "Performance Leaderboard", "Resource Usage", "Key Findings", "Recommendations", "Regressions"}) {
    EXPECT_TRUE(has(outcome.out, section)) << section;
    EXPECT_TRUE(has(content_of(folder / "reports/summary.md"), std::string("## ") + section)) << section;
  }
  expect_valid_as(folder / "reports/env.json", "weir.bench_environment.1.json");
  expect_valid_as(folder / "reports/kernel_manifest.json", "weir.kernel_manifest.1.json");
  expect_valid_as(folder / "reports/summary.json", "weir.bench.2.json");
  expect_valid_as(folder / "reports/kernels/doubles.json", "weir.bench_kernel.2.json");
  const Outcome report = weir({"report", "reports", "-o", "page.json"}, folder.path());
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_EQ(read_json(folder / "page.json")["refused"], Json::array()) << "all of it belongs to a report";
  const Json kernel = read_json(folder / "reports/kernels/doubles.json");
  EXPECT_EQ(kernel["kernel_name"], "doubles");
  EXPECT_EQ(kernel["success"], true);
  EXPECT_GT(kernel["timing"]["latency_ns"]["p50"], 0);
  ASSERT_EQ(kernel["cases"].size(), 2U);
  EXPECT_FALSE(entry_of(summary_of(folder), "doubles/cpu/fp32/count=1000").is_null());
  EXPECT_FALSE(entry_of(summary_of(folder), "doubles/cpu/fp32/count=2000").is_null());
}

TEST(Bench, divides_samples_over_processes) {
  const Folder folder;
  make_package(folder.path(), "doubles", kOne);
  ASSERT_EQ(weir(quick({"--iterations", "17"}), folder.path()).code, 0);
  const Json timing = entry_of(summary_of(folder), "doubles/cpu/fp32/count=1000")["timing"];
  EXPECT_EQ(timing["rounds"], Json({6, 6, 5}));
  EXPECT_EQ(timing["samples_ns"].size(), 17U);
  EXPECT_EQ(timing["iterations"], 17);
  ASSERT_EQ(weir(quick({"--iterations", "17", "--processes", "1", "--force"}), folder.path()).code, 0);
  EXPECT_EQ(entry_of(summary_of(folder), "doubles/cpu/fp32/count=1000")["timing"]["rounds"], Json({17}));
}

TEST(Bench, shows_how_far_it_is) {
  const Folder folder;
  make_package(folder.path(), "sleeps", kOne, {.run = "::usleep(700000);"});
  const Outcome outcome = weir(quick({"--json", "--budget", "20s"}), folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "weir: round 1, sleeps")) << outcome.err;
}

TEST(Bench, list_writes_nothing) {
  const Folder folder;
  make_package(folder.path(), "doubles", kOne);
  const Outcome outcome = weir({"bench", "--list"}, folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "doubles")) << outcome.out;
  expect_narrow(outcome.out);
  const Outcome json = weir({"bench", "--list", "--json"}, folder.path());
  EXPECT_EQ(parse_json(json.out, "plan")["schema"], "weir.bench_plan/1");
  EXPECT_FALSE(fs::exists(folder / "reports"));
}

TEST(Bench, without_packages_it_says_what_to_do) {
  const Folder folder;
  const Outcome outcome = weir({"bench"}, folder.path());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "no kernel package was found")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "--path PATH")) << outcome.err;
  EXPECT_FALSE(fs::exists(folder / "reports"));
}

TEST(Bench, filters_by_word_and_pattern) {
  const Folder folder;
  make_package(folder.path(), "alpha", kOne);
  make_package(folder.path(), "beta", kOne);
  ASSERT_EQ(weir(quick({"--filter", "a*a"}), folder.path()).code, 0);
  const Json summary = summary_of(folder);
  ASSERT_EQ(summary["cases"].size(), 1U);
  EXPECT_EQ(summary["cases"][0]["kernel_name"], "alpha");
  EXPECT_EQ(summary["skipped"][0]["package"], "beta");
  const Outcome none = weir(quick({"--filter", "alpa"}), folder.path());
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(has(none.err, "alpha")) << none.err;
  const Outcome half = weir(quick({"--filter", "alpha,betta"}), folder.path());
  EXPECT_EQ(half.code, 2) << "a word that takes nothing is not noticed beside one that does";
  EXPECT_TRUE(has(half.err, "--filter betta")) << half.err;
}

// Known flaw of the original: keys of bench.yaml that are read and ignored.
TEST(Bench, every_key_of_the_config_has_an_effect) {
  const Folder folder;
  make_package(folder.path(), "doubles",
               "problem_size:\n  count: 64\nprecisions: [fp64]\nbackends: [cpu]\niterations: 7\nwarmup: 4\nseed: 99\n"
               "tolerances:\n  rmse: 0.25\n  fp64: {relative_error: 0.5}\ntime_limit: 60\ncompile_flags: [-DOFFSET=1]\n"
               "skip_conditions:\n  - reason: no room\n    check: memory_gib < 0.001\n",
               {.globals = "#ifndef OFFSET\n#error \"compile_flags were ignored\"\n#endif"});
  const Outcome outcome = weir({"bench", "--no-roofline", "--budget", "1s"}, folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const Json entry = entry_of(summary_of(folder), "doubles/cpu/fp64/count=64");
  ASSERT_FALSE(entry.is_null()) << summary_of(folder).dump(1);
  EXPECT_EQ(entry["timing"]["iterations"], 7);
  EXPECT_GE(entry["timing"]["warmup_runs"], 4);
  EXPECT_EQ(entry["seed"], 99);
  EXPECT_EQ(entry["accuracy"]["tolerance"]["rmse"], 0.25);
  EXPECT_EQ(entry["accuracy"]["tolerance"]["relative_error"], 0.5);
  EXPECT_EQ(summary_of(folder)["cases"].size(), 1U);
  // Flags win.
  ASSERT_EQ(weir({"bench", "--no-roofline", "--iterations", "5", "--seed", "3", "--force"}, folder.path()).code, 0);
  const Json other = entry_of(summary_of(folder), "doubles/cpu/fp64/count=64");
  EXPECT_EQ(other["timing"]["iterations"], 5);
  EXPECT_EQ(other["seed"], 3);
}

TEST(Bench, a_key_that_nobody_knows_is_an_error_of_its_package) {
  const Folder folder;
  make_package(folder.path(), "typo", "precision: [fp32]\n");
  make_package(folder.path(), "right", kOne);
  const Outcome outcome = weir(quick({}), folder.path());
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  const Json entry = entry_of(summary_of(folder), "typo");
  EXPECT_EQ(entry["status"], "failed");
  EXPECT_TRUE(has(entry["error"]["what"].string(), "bench.yaml:1: precision")) << entry["error"].dump();
  EXPECT_EQ(entry_of(summary_of(folder), "right/cpu/fp32/count=1000")["status"], "ok");
}

TEST(Bench, broken_yaml_names_its_line) {
  const Folder folder;
  make_package(folder.path(), "broken", "precisions: [fp32\niterations: 3\n");
  EXPECT_EQ(weir(quick({}), folder.path()).code, 1);
  const Json entry = entry_of(summary_of(folder), "broken");
  EXPECT_EQ(entry["status"], "failed");
  EXPECT_TRUE(has(entry["error"]["what"].string(), "bench.yaml:")) << entry["error"].dump();
}

// Known flaw: a "cuda" result that ran on the CPU.
TEST(Bench, a_kernel_for_the_cpu_gives_no_result_of_another_name) {
  const Folder folder;
  make_package(folder.path(), "doubles", kOne);
  const Outcome outcome = weir(quick({"--device", "cpu,cuda"}), folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json summary = summary_of(folder);
  for (const Json& entry : summary["cases"]) {
    if (entry["backend"] == "cpu") {
      EXPECT_EQ(entry["status"], "ok");
      EXPECT_EQ(entry["device"]["name"].get<std::string>().substr(0, 3), "cpu");
    } else {
      EXPECT_EQ(entry["status"], "skipped");
      EXPECT_TRUE(entry["timing"].is_null());
      EXPECT_FALSE(entry["error"]["what"].get<std::string>().empty());
    }
  }
}

// Known flaw: a list of backends that filters nothing.
TEST(Bench, devices_filter) {
  const Folder folder;
  make_package(folder.path(), "doubles", kOne);
  const Outcome outcome = weir(quick({"--device", "opencl"}), folder.path());
  EXPECT_EQ(outcome.code, 1) << "nothing could run";
  EXPECT_TRUE(has(outcome.err, "nothing could run")) << outcome.err;
  const Json summary = summary_of(folder);
  ASSERT_EQ(summary["cases"].size(), 1U);
  EXPECT_EQ(summary["cases"][0]["backend"], "opencl");
  EXPECT_EQ(summary["cases"][0]["status"], "skipped");
  EXPECT_EQ(weir(quick({"--device", "opencll"}), folder.path()).code, 2);
}

// Known flaw: precision as a mere label.
TEST(Bench, precisions_are_computed_with) {
  const Folder folder;
  make_package(folder.path(), "doubles", "", {.result = "x * x", .expected = "x * x"});
  ASSERT_EQ(weir(quick({"--precision", "fp64,fp32,fp16"}), folder.path()).code, 0);
  const Json summary = summary_of(folder);
  const Json &wide = entry_of(summary, "doubles/cpu/fp64/count=1000"),
             &full = entry_of(summary, "doubles/cpu/fp32/count=1000"),
             &half = entry_of(summary, "doubles/cpu/fp16/count=1000");
  EXPECT_GT(half["accuracy"]["rmse"].get<double>(), 100 * full["accuracy"]["rmse"].get<double>());
  EXPECT_GT(full["accuracy"]["rmse"].get<double>(), 100 * wide["accuracy"]["rmse"].get<double>());
  EXPECT_DOUBLE_EQ(full["memory"]["allocated_bytes"].get<double>(),
                   2 * half["memory"]["allocated_bytes"].get<double>());
  EXPECT_DOUBLE_EQ(wide["memory"]["allocated_bytes"].get<double>(),
                   2 * full["memory"]["allocated_bytes"].get<double>());
}

TEST(Bench, a_precision_that_a_kernel_lacks_is_skipped_with_the_reason) {
  const Folder folder;
  make_package(folder.path(), "doubles", "", {.precisions = "WEIR_FP32"});
  ASSERT_EQ(weir(quick({"--precision", "fp32,bf16"}), folder.path()).code, 0);
  EXPECT_EQ(entry_of(summary_of(folder), "doubles/cpu/fp32/count=1000")["status"], "ok");
  const Json lacking = entry_of(summary_of(folder), "doubles/cpu/bf16/count=1000");
  EXPECT_EQ(lacking["status"], "skipped");
  EXPECT_TRUE(has(lacking["error"]["what"].string(), "does not have bf16")) << lacking["error"].dump();
}

// Known flaw: energy from one power sample.
TEST(Bench, energy_has_a_source_or_a_reason) {
  const Folder folder;
  make_package(folder.path(), "doubles", kOne);
  ASSERT_EQ(weir(quick({}), folder.path()).code, 0);
  const Json energy = entry_of(summary_of(folder), "doubles/cpu/fp32/count=1000")["energy"];
  ASSERT_TRUE(energy.is_object());
  if (energy["energy_j"].is_null()) {
    EXPECT_FALSE(energy["reason"].get<std::string>().empty());
  } else {
    EXPECT_FALSE(energy["source"].get<std::string>().empty());
    EXPECT_GE(energy["readings"], 10) << "one reading proves nothing";
  }
}

// Known flaw: kernels that cannot be loaded vanish, and the exit status is always 0.
TEST(Bench, what_cannot_be_built_or_opened_is_told) {
  struct Bad {
    const char* name;
    KernelSource source;
    const char* words;
  };
  const Bad kBad[] = {{"no_compile", {.globals = "this is no C++"}, "no_compile"},
                      {"no_symbol", {.symbol = "another_name"}, "weir_kernel"},
                      {"other_abi", {.abi = "999"}, "999"},
                      {"no_setup", {.setup = "return 7;"}, "7"}};
  const Folder folder;
  for (const Bad& bad : kBad) make_package(folder.path(), bad.name, kOne, bad.source);
  make_package(folder.path(), "good", kOne);
  const Outcome outcome = weir(quick({}), folder.path());
  EXPECT_EQ(outcome.code, 1);
  expect_narrow(outcome.out);
  const Json summary = summary_of(folder);
  for (const Bad& bad : kBad) {
    EXPECT_TRUE(has(outcome.out, bad.name)) << outcome.out;
    const Json document = read_json(folder / (std::string("reports/kernels/") + bad.name + ".json"));
    EXPECT_EQ(document["status"], "failed") << bad.name;
    EXPECT_EQ(document["success"], false) << bad.name;
    EXPECT_TRUE(has(document["error"]["what"].string(), bad.words)) << document["error"].dump();
  }
  EXPECT_EQ(entry_of(summary, "good/cpu/fp32/count=1000")["status"], "ok");
}

TEST(Bench, wrong_results_fail_the_run) {
  const Folder folder;
  make_package(folder.path(), "wrong", kOne, {.result = "3 * x"});
  make_package(folder.path(), "nan", kOne, {.result = "x * NAN"});
  make_package(folder.path(), "lazy", kOne, {.run = "return 0;"});  // never writes its output
  EXPECT_EQ(weir(quick({}), folder.path()).code, 1);
  for (const char* name : {"wrong", "nan", "lazy"}) {
    const Json entry = entry_of(summary_of(folder), std::string(name) + "/cpu/fp32/count=1000");
    EXPECT_EQ(entry["status"], "inaccurate") << entry.dump();
    EXPECT_EQ(entry["success"], false);
    EXPECT_FALSE(entry["error"]["what"].get<std::string>().empty());
  }
}

TEST(Bench, without_a_reference_nothing_is_claimed) {
  const Folder folder;
  make_package(folder.path(), "unchecked", kOne, {.reference = "nullptr"});
  const Outcome outcome = weir(quick({}), folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json entry = entry_of(summary_of(folder), "unchecked/cpu/fp32/count=1000");
  EXPECT_TRUE(entry["accuracy"]["rmse"].is_null());
  EXPECT_TRUE(entry["accuracy"]["is_within"].is_null());
  EXPECT_FALSE(entry["accuracy"]["reason"].get<std::string>().empty());
  EXPECT_TRUE(has(outcome.out, "Not checked")) << outcome.out;
}

TEST(Bench, a_crash_costs_one_case_and_keeps_its_samples) {
  const Folder folder;
  // Warm-up ends after 2 s, so before run 4000; then come 8000 samples.
  make_package(folder.path(), "crashes", "precisions: [fp32]\nproblem_size:\n  count: [10, 20, 30]\nwarmup: 0\n",
               {.run = "if (count == 20) ::usleep(500);\n"
                       "  if (count == 20 && runs > 4500) {\n    std::fprintf(stderr, \"about to crash\\n\");\n"
                       "    std::raise(SIGSEGV);\n  }",
                .setup = "  runs = 0;"});
  make_package(folder.path(), "good", kOne);
  const Outcome outcome = weir(quick({"--iterations", "8000", "--processes", "1", "--budget", "20s"}), folder.path());
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  const Json summary = summary_of(folder);
  const Json crashed = entry_of(summary, "crashes/cpu/fp32/count=20");
  EXPECT_EQ(crashed["status"], "crashed") << crashed.dump();
  EXPECT_EQ(crashed["error"]["signal"], "SIGSEGV");
  EXPECT_TRUE(has(crashed["error"]["output"].string(), "about to crash"));
  ASSERT_TRUE(crashed["timing"].is_object()) << "its samples are lost";
  EXPECT_GT(crashed["timing"]["iterations"], 0);
  for (const char* key : {"crashes/cpu/fp32/count=10", "crashes/cpu/fp32/count=30", "good/cpu/fp32/count=1000"})
    EXPECT_EQ(entry_of(summary, key)["status"], "ok") << key;
}

// As a GPU does after a wrong address: everything that follows in the process fails as well.
TEST(Bench, a_case_that_fails_leaves_the_next_a_process_of_its_own) {
  const Folder folder;
  make_package(folder.path(), "spoils", "precisions: [fp32]\nproblem_size:\n  count: [10, 20, 30]\n",
               {.run = "if (count == 20) is_spoilt = true;\n  if (is_spoilt) return 7;",
                .setup = "  if (is_spoilt) return 8;",
                .globals = "static bool is_spoilt = false;"});
  const Outcome outcome = weir(quick({"--processes", "1"}), folder.path());
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  const Json summary = summary_of(folder);
  EXPECT_EQ(entry_of(summary, "spoils/cpu/fp32/count=10")["status"], "ok");
  EXPECT_EQ(entry_of(summary, "spoils/cpu/fp32/count=20")["status"], "failed");
  EXPECT_EQ(entry_of(summary, "spoils/cpu/fp32/count=30")["status"], "ok");
}

TEST(Bench, a_hang_ends_with_its_time_limit) {
  const Folder folder;
  make_package(folder.path(), "hangs", "precisions: [fp32]\nproblem_size:\n  count: [10, 20]\n",
               {.run = "if (count == 10) for (;;) ::usleep(1000);"});
  make_package(folder.path(), "opens_never", kOne,
               {.globals = "__attribute__((constructor)) void hang() { for (;;) ::usleep(1000); }"});
  const Outcome outcome = weir(quick({"--time-limit", "2s"}), folder.path());
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  const Json summary = summary_of(folder);
  EXPECT_EQ(entry_of(summary, "hangs/cpu/fp32/count=10")["status"], "timed_out");
  EXPECT_EQ(entry_of(summary, "hangs/cpu/fp32/count=20")["status"], "ok");
  EXPECT_EQ(entry_of(summary, "opens_never/cpu")["status"], "timed_out") << summary["cases"].dump(1);
}

TEST(Bench, skip_conditions_are_obeyed_and_told) {
  const Folder folder;
  make_package(folder.path(), "doubles",
               "precisions: [fp32, fp16]\nskip_conditions:\n  - backend: cpu\n    reason: too slow here\n"
               "    check: precision == 'fp16' and cpu.cores >= 1\n");
  make_package(folder.path(), "never", "precisions: [fp32]\nskip_conditions:\n  - reason: not yet\n",
               {.globals = "this is no C++"});
  const Outcome outcome = weir(quick({}), folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const Json summary = summary_of(folder);
  EXPECT_EQ(entry_of(summary, "doubles/cpu/fp32/count=1000")["status"], "ok");
  const Json slow = entry_of(summary, "doubles/cpu/fp16/count=1000");
  EXPECT_EQ(slow["status"], "skipped");
  EXPECT_EQ(slow["error"]["what"], "too slow here");
  EXPECT_EQ(entry_of(summary, "never/cpu/fp32")["error"]["what"], "not yet");
}

TEST(Bench, replaces_reports_only_by_force) {
  const Folder folder;
  make_package(folder.path(), "doubles", kOne);
  ASSERT_EQ(weir(quick({}), folder.path()).code, 0);
  const std::string first = content_of(folder.path() / "reports/summary.json");
  const Outcome second = weir(quick({}), folder.path());
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_TRUE(has(second.out, "Reports are in reports-2")) << second.out;
  EXPECT_EQ(content_of(folder.path() / "reports/summary.json"), first);
  const Outcome refused = weir(quick({"-o", "reports"}), folder.path());
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "-o reports: has env.json already")) << refused.err;
  EXPECT_TRUE(has(refused.err, "--force")) << refused.err;
  EXPECT_EQ(weir(quick({"--force"}), folder.path()).code, 0);
  EXPECT_NE(content_of(folder.path() / "reports/summary.json"), first);
  EXPECT_FALSE(fs::exists(folder.path() / "reports-3"));
  put_file(folder.path() / "plain", "");
  EXPECT_EQ(weir(quick({"-o", "plain"}), folder.path()).code, 2);
}

TEST(Bench, a_full_disk_leaves_nothing_half_written) {
  const Folder folder;
  make_package(folder.path(), "doubles",
               "precisions: [fp32]\nproblem_size:\n  count: [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120]\n");
  ASSERT_EQ(weir(quick({}), folder.path()).code, 0);  // the library is built and kept
  ASSERT_GT(fs::file_size(folder.path() / "reports/summary.json"), 16'384U);
  // A limit of file sizes ends a write in its middle, as a full disk does.
  std::vector<std::string> command = {"bash", "-c", "ulimit -f 16 && exec \"$@\"", "bash", WEIR_BINARY};
  for (const std::string& word : quick({"-o", "other"})) command.push_back(word);
  const Outcome outcome = run_program(command, folder.path());
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_TRUE(has(outcome.err, "the report is not complete")) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "doubles  cpu  fp32")) << "what was measured is not shown" << outcome.out;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path() / "other")) {
    if (!entry.is_regular_file()) continue;
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
    if (entry.path().extension() == ".json") {
      EXPECT_NO_THROW(read_json(entry.path())) << entry.path();
    }
  }
  EXPECT_FALSE(fs::exists(folder.path() / "other/summary.json"));
}

TEST(Bench, an_interrupted_run_writes_what_it_has) {
  const Folder folder;
  make_package(folder.path(), "a_first", kOne);
  make_package(folder.path(), "b_slow", kOne, {.run = "::usleep(200000);"});
  make_package(folder.path(), "c_last", kOne);
  const pid_t process = start_weir(
      quick({"--iterations", "10000", "--processes", "1", "--budget", "60s", "--filter", "a_first,b_slow,c_last"}),
      folder.path());
  const fs::path kernels = folder.path() / "reports/kernels", manifest = folder.path() / "reports/kernel_manifest.json";
  for (int i = 0; i < 600 && !fs::exists(manifest); ++i) ::usleep(100'000);
  // Packages take turns in random order, so the slow one may come first: then there is nothing to wait for.
  for (int i = 0; i < 30 && !fs::exists(kernels / "a_first.json") && !fs::exists(kernels / "c_last.json"); ++i)
    ::usleep(100'000);
  ::kill(process, SIGINT);
  EXPECT_EQ(wait_for(process), 130);
  const Json summary = summary_of(folder);
  EXPECT_EQ(summary["status"], "interrupted");
  EXPECT_TRUE(has(content_of(folder.path() / "reports/summary.md"), "Interrupted"));
  std::set<std::string> names;
  for (const Json& entry : summary["cases"]) names.insert(entry["kernel_name"].get<std::string>());
  EXPECT_EQ(names, (std::set<std::string>{"a_first", "b_slow", "c_last"})) << "cases that were not reached vanish";
}

TEST(Bench, a_compilation_that_is_interrupted_leaves_nothing) {
  const Folder folder;
  make_package(folder.path(), "doubles", kOne);
  // Like a compiler that has just begun: its list of dependencies is there.
  put_file(folder / "slow",
           "#!/bin/sh\ncase \"$*\" in *-MF*) ;; *) exec c++ \"$@\" ;; esac\n"
           "while [ \"$1\" != -MF ]; do shift; done\necho a: b > \"$2\"\nsleep 1000\n");
  fs::permissions(folder / "slow", fs::perms::owner_all);
  std::vector<std::string> words = {"env", "CXX=" + folder / "slow", "XDG_CACHE_HOME=" + folder / "cache", WEIR_BINARY};
  for (const std::string& word : quick({})) words.push_back(word);
  const pid_t process = start_program(words, folder.path(), folder / "out", folder / "err");
  const auto unfinished = [&] {
    int count = 0;
    std::error_code ignored;
    for (fs::recursive_directory_iterator entry(folder / "cache", ignored), end; entry != end; entry.increment(ignored))
      count += entry->path().extension() == ".tmp";
    return count;
  };
  for (int i = 0; i < 6000 && unfinished() == 0 && !has_ended(process); ++i) ::usleep(10'000);
  EXPECT_EQ(unfinished(), 1) << content_of(folder / "err");
  ::kill(process, SIGINT);
  EXPECT_EQ(wait_for(process), 130);
  EXPECT_EQ(unfinished(), 0);
}

TEST(Bench, nothing_vanishes_where_it_is_interrupted_before_the_first_case) {
  const Folder folder;
  make_package(folder.path(), "doubles", kOne);
  const pid_t process =
      start_weir({"bench", "--device", "cpu", "--iterations", "10000", "--budget", "60s"}, folder.path());
  // What the CPU can do at best is measured behind this, for seconds.
  const fs::path manifest = folder.path() / "reports/kernel_manifest.json";
  for (int i = 0; i < 600 && !fs::exists(manifest); ++i) ::usleep(100'000);
  ::kill(process, SIGINT);
  EXPECT_EQ(wait_for(process), 130);
  ASSERT_EQ(summary_of(folder)["cases"].size(), 1U);
  EXPECT_EQ(summary_of(folder)["cases"][0]["kernel_name"], "doubles");
}

TEST(Bench, a_slowdown_against_a_git_ref_exits_3) {
  const Folder folder;
  make_package(folder.path(), "doubles", kOne);
  const auto git = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"git", "-c", "user.name=Nobody", "-c", "user.email=nobody@example.com"});
    return run_program(words, folder.path()).code;
  };
  if (git({"init", "-q", "-b", "main"}) != 0) GTEST_SKIP() << "git is not installed";
  ASSERT_EQ(weir(quick({"--iterations", "15", "--processes", "3"}), folder.path()).code, 0);
  // As if it had taken a tenth of the time then.
  Json before = summary_of(folder);
  for (Json& sample : before["cases"][0]["timing"]["samples_ns"]) sample = sample.get<double>() / 10;
  put_file(folder.path() / "reports/summary.json", before.dump(1));
  ASSERT_EQ(git({"add", "-A"}), 0);
  ASSERT_EQ(git({"commit", "-q", "-m", "reports"}), 0);
  const Outcome outcome =
      weir(quick({"--iterations", "15", "--processes", "3", "--baseline", "main", "--force"}), folder.path());
  EXPECT_EQ(outcome.code, 3) << outcome.out << outcome.err;
  expect_narrow(outcome.out);
  EXPECT_EQ(summary_of(folder)["regressions"]["cases"][0]["verdict"], "slower");
  expect_valid_as(folder / "reports/summary.json", "weir.bench.2.json");
  EXPECT_TRUE(has(content_of(folder.path() / "reports/regressions.md"), "Something regressed."));
  EXPECT_TRUE(has(content_of(folder.path() / "reports/summary.md"), "Something regressed."));
}

TEST(Bench, a_baseline_of_another_kind_costs_no_run) {
  const Folder folder;
  make_package(folder.path(), "doubles", kOne);
  for (const char* text : {"{\"schema\": \"weir.result/2\"}", "null", "{\"schema\": \"weir.bench/2\"}"}) {
    put_file(folder.path() / "other.json", text);
    const Outcome outcome = weir(quick({"--baseline", "other.json"}), folder.path());
    EXPECT_EQ(outcome.code, 2) << text;
    EXPECT_TRUE(has(outcome.err, "other.json")) << outcome.err;
    EXPECT_FALSE(fs::exists(folder / "reports")) << "measured before the baseline was looked at: " << text;
  }
}

TEST(Bench, tells_json_and_markdown) {
  const Folder folder;
  make_package(folder.path(), "doubles", kOne);
  const Outcome json = weir(quick({"--json"}), folder.path());
  EXPECT_EQ(parse_json(json.out, "summary")["schema"], "weir.bench/2");
  EXPECT_TRUE(has(weir(quick({"--format", "markdown"}), folder.path()).out, "| no. | case |"));
}

TEST(Bench, refuses_flags_by_name) {
  const Folder folder;
  make_package(folder.path(), "doubles", kOne);
  const std::pair<const char*, const char*> kBad[] = {{"--iterations", "0"},
                                                      {"--precision", "fp23"},
                                                      {"--budget", "soon"},
                                                      {"--time-limit", "-1s"},
                                                      {"--seed", "x"},
                                                      {"--latency-threshold", "lots"},
                                                      {"--latency-threshold", "5"},
                                                      {"--accuracy-threshold", "-1"},
                                                      {"--processes", "0"},
                                                      {"--path", "nowhere"},
                                                      {"--threads", "0"},
                                                      {"--device", "cuda:1,hip:0"},
                                                      {"--device", "cpu:x"},
                                                      {"--stop", "never"}};
  for (const auto& [flag, value] : kBad) {
    const Outcome outcome = weir({"bench", flag, value}, folder.path());
    EXPECT_EQ(outcome.code, 2) << flag;
    EXPECT_TRUE(has(outcome.err, flag)) << outcome.err;
    EXPECT_FALSE(fs::exists(folder / "reports")) << flag;
  }
}

}  // namespace
}  // namespace weir::testing
