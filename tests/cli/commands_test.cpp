// Drives the built binary: every command, as a new user would type it.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "kernel/random.h"
#include "support/text.h"
#include "weir_build.h"

namespace weir::testing {
namespace {

std::vector<std::string> tiny_run(const std::string& workload, std::initializer_list<std::string> more = {}) {
  std::vector<std::string> arguments = {"run",  workload,       "--device", "cpu",      "--scale",
                                        "tiny", "--iterations", "5",        "--warmup", "1"};
  arguments.insert(arguments.end(), more);
  return arguments;
}

TEST(Help, TheProgramAloneShowsIt) {
  const Outcome alone = weir({});
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(alone.out, weir({"--help"}).out);
}

TEST(Help, ListsCommandsByWhatTheyAreFor) {
  const std::string help = weir({}).out;
  std::size_t at = 0;
  for (const char* part :
       {"Your program:\n  profile ", "\n  analyze ", "\n  watch ", "This machine:\n  run ", "\n  sweep ", "\n  bench ",
        "Verdicts:\n  compare ", "\n  export ", "Share and operate:\n  sched ", "AMD internals:\n  amd ",
        "Set-up:\n  info ", "\n  completion "}) {
    const std::size_t found = help.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << " is missing or too early in\n" << help;
    at = found;
  }
  EXPECT_FALSE(has(help, "run-priority")) << help;
}

TEST(Document, IsAllThatStandardOutputHolds) {
  const Folder folder;
  const std::vector<std::string> tiny = {"--device", "sim:h200", "--scale", "tiny", "--iterations", "3"};
  const auto document = [&](std::vector<std::string> words, bool is_tiny) {
    if (is_tiny) words.insert(words.end(), tiny.begin(), tiny.end());
    const Outcome outcome = weir(words, folder.path());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return parse_json(outcome.out, words[0]);
  };
  for (const std::vector<std::string>& last : {std::vector<std::string>{"--json"}, {"-o", "-"}, {"--output=-"}}) {
    std::vector<std::string> run = {"run", "moe"}, sweep = {"sweep", "moe", "--streams", "4,8"};
    std::vector<std::string> map = {"queues", "map", "--device", "sim:h200"};
    for (auto* words : {&run, &sweep, &map}) words->insert(words->end(), last.begin(), last.end());
    EXPECT_EQ(document(run, true)["schema"], "weir.result/2");
    EXPECT_EQ(document(sweep, true)["schema"], "weir.sweep/1");
    EXPECT_EQ(document(map, false)["schema"], "weir.queues/2");
  }
  const Json info = document({"info", "--json"}, false);
  put_file(folder / "info.json", to_text(info));
  expect_valid_as(folder / "info.json", "weir.info.1.json");
  EXPECT_TRUE(std::any_of(info["devices"].begin(), info["devices"].end(), [](const Json& device) {
    return device["name"] == "cpu";
  })) << info.dump(2);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "-"));
}

TEST(Document, IsReadFromStandardInput) {
  const Folder folder;
  const std::string line =
      "set -e -o pipefail; run() { \"$0\" run moe --device sim:h200 --scale tiny --iterations 5 --json; }; "
      "run > a.json; run | \"$0\" compare a.json - ; run | \"$0\" export - --format csv -o -; "
      "run | \"$0\" report - --json | grep -c weir.report/2; "
      "\"$0\" profile moe --device sim:h200 --scale tiny --iterations 3 -o t.json -q; "
      "\"$0\" profile moe --device sim:h200 --scale tiny --iterations 3 -o - -q | \"$0\" compare t.json - --json | "
      "grep -c weir.trace_comparison/2; "
      "\"$0\" analyze - --json < t.json | grep -c weir.analysis/2";
  const Outcome outcome = run_program({"bash", "-c", "cd \"$1\"; " + line, WEIR_BINARY, folder.path().string()});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(has(outcome.out, "same")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "workload,")) << outcome.out;
}

TEST(Run, ArgumentsMayFollowRepeatableFlags) {
  const Folder folder;
  const std::vector<std::string> lines[] = {
      {"run", "--param", "size=64", "hetero_kernels", "--device", "sim:h200", "--scale", "tiny"},
      {"run", "--device", "sim:h200", "--sim", "queues=2", "--param", "size=64", "--param", "ratio=2",
       "hetero_kernels"},
      {"overlap", "--device", "sim:h200", "--set", "run.scale=tiny", "default"}};
  for (const auto& line : lines) {
    const Outcome outcome = weir(line, folder.path());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
}

TEST(List, ShowsWorkloadsAndDetails) {
  const Outcome brief = weir({"list"});
  EXPECT_EQ(brief.code, 0);
  for (const char* name : {"hetero_kernels", "tiny_kernel_stress", "large_gemm_only"})
    EXPECT_TRUE(has(brief.out, name)) << name;
  EXPECT_LE(widest_line(brief.out), 80u);
  const Outcome full = weir({"list", "-v", "--category", "latency_sensitive"});
  EXPECT_TRUE(has(full.out, "recommended"));
  EXPECT_TRUE(has(full.out, "--param"));
  EXPECT_TRUE(has(full.out, "1 to 65536")) << full.out;
  EXPECT_TRUE(has(full.out, "alternating, batched, random"));
  EXPECT_LE(widest_line(full.out), 80u);
  const Json json = parse_json(weir({"list", "--json"}).out, "list");
  const Folder folder;
  put_file(folder / "list.json", to_text(json));
  expect_valid_as(folder / "list.json", "weir.list.1.json");
  EXPECT_EQ(json["workloads"][0]["parameters"]["size"]["defaults"]["full"], 4096);
  const Outcome none = weir({"list", "--category", "latency"});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(has(none.err, "latency_sensitive")) << none.err;
}

TEST(Info, NamesDevicesAndWhatIsMissing) {
  const Outcome outcome = weir({"info"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* part : {"cpu", "null", "cuda", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA device code"})
    EXPECT_TRUE(has(outcome.out, part)) << part;
}

// Of a list of commands.
bool is_heading(const std::string& line) {
  return line == "Commands:" || line == "Your program:" || line == "This machine:" || line == "Verdicts:" ||
         line == "Share and operate:" || line == "AMD internals:" || line == "Set-up:";
}

// Looks at the help of a command and of all that are listed there; returns how many.
int check_help(std::vector<std::string> command) {
  const std::string name = command.empty() ? "weir" : command.back();
  command.push_back("--help");
  const Outcome outcome = weir(command);
  command.pop_back();
  EXPECT_EQ(outcome.code, 0) << name;
  EXPECT_TRUE(has(outcome.out, name)) << outcome.out;
  EXPECT_LE(widest_line(outcome.out), 80u) << outcome.out;
  EXPECT_EQ(has(outcome.out, " TEXT"), command == std::vector<std::string>{"report"}) << "say what it takes: " << outcome.out;
  int looked_at = 1;
  std::istringstream lines(outcome.out);
  bool lists_commands = false;
  for (std::string line; std::getline(lines, line);) {
    lists_commands = is_heading(line) || (lists_commands && !line.empty());
    //   run                         run a workload
    if (!lists_commands || line.size() < 3 || !line.starts_with("  ") || line[2] == ' ') continue;
    command.push_back(line.substr(2, line.find(' ', 2) - 2));
    looked_at += check_help(command);
    command.pop_back();
  }
  return looked_at;
}

TEST(Help, EveryCommandHasHelpOf80ColumnsAndTheProgramAVersion) {
  EXPECT_GE(check_help({}), 30);
  EXPECT_TRUE(has(weir({"--version"}).out, "weir 0."));
}

TEST(Run, PrintsAtMost80ColumnsAndWritesAValidResult) {
  const Folder folder;
  for (const char* workload : {"hetero_kernels", "tiny_kernel_stress", "large_gemm_only"}) {
    for (const char* submit : {"inline", "threads:2", "graph", "channel", "channel:lanes:2x2"}) {
      const std::string file = folder / (std::string(workload) + submit + ".json");
      const Outcome outcome = weir(tiny_run(workload, {"--submit", submit, "--output", file}));
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_LE(widest_line(outcome.out.substr(0, outcome.out.find("Written"))), 80u) << outcome.out;
      EXPECT_TRUE(has(outcome.out, "passed")) << outcome.out;
      EXPECT_TRUE(outcome.err.empty()) << outcome.err;
      expect_valid_as(file, "weir.result.2.json");
    }
  }
}

TEST(Run, OtherSyncModesAndDevicesAreValidToo) {
  const Folder folder;
  int number = 0;
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--sync-mode", "end_only"},
                                             {"--sync-mode", "none"},
                                             {"--device", "null"},
                                             {"--no-check", "--no-trace"},
                                             {"--hw-queues", "2"},
                                             {"--precision", "bf16"},
                                             {"--placement", "serial"},
                                             {"--param", "elements=100", "--param", "operations=2"}}) {
    const std::string file = folder / (std::to_string(number++) + ".json");
    std::vector<std::string> arguments = {"run", "tiny_kernel_stress", "--scale", "tiny",     "--iterations",
                                          "4",   "--streams",          "4",       "--output", file};
    if (more[0] != "--device") arguments.insert(arguments.end(), {"--device", "cpu"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = weir(arguments);
    ASSERT_EQ(outcome.code, 0) << more[0] << outcome.err;
    expect_valid_as(file, "weir.result.2.json");
  }
  const Json skipped = read_json(folder / "3.json");
  EXPECT_EQ(skipped["check"]["status"], "skipped");
  EXPECT_EQ(skipped["check"]["reason"], "--no-check");
}

TEST(Run, QuietPrintsNothing) {
  const Outcome outcome = weir(tiny_run("tiny_kernel_stress", {"--quiet"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out + outcome.err, "");
}

TEST(Run, DrawsTheStepAndDescribesItWithoutRunning) {
  const Folder folder;
  const std::string file = folder / "step.dot";
  const Outcome dry = weir({"run", "hetero_kernels", "--device", "cpu", "--scale", "tiny", "--dry-run", "--dot", file});
  ASSERT_EQ(dry.code, 0) << dry.err;
  EXPECT_TRUE(has(dry.out, "not run"));
  EXPECT_LE(widest_line(dry.out.substr(0, dry.out.find("Drawn"))), 80u) << dry.out;
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_TRUE(has(text.str(), "digraph")) << text.str();
  EXPECT_EQ(weir({"run", "hetero_kernels", "--device", "cpu", "--dry-run", "--dot", file}).code, 2);
  EXPECT_EQ(weir({"run", "hetero_kernels", "--device", "cpu", "--dry-run", "-o", folder / "x.json"}).code, 2);
  const Outcome piped = weir(tiny_run("tiny_kernel_stress", {"--dot", "-"}));
  EXPECT_EQ(piped.code, 0);
  EXPECT_TRUE(piped.out.starts_with("digraph") && piped.out.ends_with("}\n"));
}

TEST(File, ExamplesRunSweepAndCompare) {
  const Folder folder;
  for (const std::string name : {"pipeline", "fork_join"}) {
    const std::string file = WEIR_SOURCE_DIR "/config/" + name + ".yaml";
    const std::vector<std::string> more = {"--file", file,           "--device", "cpu",    "--scale",
                                           "tiny",   "--iterations", "5",        "--force"};
    for (const char* submit : {"inline", "threads:2", "graph", "channel:mpsc"}) {
      std::vector<std::string> run = {"run", "--submit", submit, "-o", folder / (name + ".json")};
      run.insert(run.end(), more.begin(), more.end());
      const Outcome outcome = weir(run);
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_TRUE(has(outcome.out, "passed")) << outcome.out;
    }
    expect_valid_as(folder / (name + ".json"), "weir.result.2.json");
    const Json result = read_json(folder / (name + ".json"));
    EXPECT_EQ(result["workload"]["name"], name);
    EXPECT_EQ(result["workload"]["file"], file);
    EXPECT_TRUE(has(result["workload"]["text"].get<std::string>(), "name: " + name));
    EXPECT_EQ(result["parameters"]["definition"].get<std::string>().size(), 16u);
    const std::string swept = folder / (name + "_sweep.json");
    std::vector<std::string> sweep = {"sweep", "--streams", "4,8", "-o", swept};
    sweep.insert(sweep.end(), more.begin(), more.end());
    ASSERT_EQ(weir(sweep).code, 0);
    expect_valid_as(swept, "weir.sweep.1.json");
    const Outcome compared = weir({"compare", swept, swept});
    EXPECT_EQ(compared.code, 0) << compared.err;
  }
  EXPECT_TRUE(has(weir({"list", "-v", "--file", WEIR_SOURCE_DIR "/config/pipeline.yaml"}).out, "batches"));
}

TEST(Run, SameSeedSameData) {
  const Folder folder;
  for (const char* name : {"a", "b"}) weir(tiny_run("large_gemm_only", {"-o", folder / name}));
  EXPECT_EQ(read_json(folder / "a")["check"]["worst_relative_error"],
            read_json(folder / "b")["check"]["worst_relative_error"]);
}

struct BadInput {
  const char* name;
  std::vector<std::string> arguments;
  std::string message;
};

class BadRun : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadRun, ExitsTwoAndSaysWhatToDo) {
  const Folder folder;
  std::vector<std::string> arguments = GetParam().arguments;
  const Outcome outcome = weir(arguments, folder.path());
  EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
  EXPECT_TRUE(has(outcome.err, GetParam().message)) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "something was written";
}

INSTANTIATE_TEST_SUITE_P(
    Cli, BadRun,
    ::testing::Values(
        BadInput{"unknown_workload", {"run", "hetero_kernel"}, "Did you mean 'hetero_kernels'?"},
        BadInput{"no_workload", {"run"}, "--file my.yaml"},
        BadInput{"name_and_file", {"run", "hetero_kernels", "--file", "x.yaml"}, "--file x.yaml"},
        BadInput{"file_absent", {"run", "--file", "absent.yaml"}, "absent.yaml: cannot be read"},
        BadInput{"file_minimum",
                 {"run", "--file", WEIR_SOURCE_DIR "/config/pipeline.yaml", "--device", "cpu", "--streams", "2"},
                 "Use 3 to 32"},
        BadInput{"file_indivisible",
                 {"run", "--file", WEIR_SOURCE_DIR "/config/fork_join.yaml", "--device", "cpu", "--param", "rows=1001"},
                 "--param rows=1000, --param rows=1008"},
        BadInput{"file_too_large",
                 {"run", "--file", WEIR_SOURCE_DIR "/config/fork_join.yaml", "--device", "cpu", "--param",
                  "rows=1048576", "--param", "width=16384"},
                 "GiB"},
        BadInput{"unknown_command", {"runn", "hetero_kernels"}, "Did you mean 'run'?"},
        BadInput{"zero_streams", {"run", "hetero_kernels", "--device", "cpu", "--streams", "0"}, "--streams 0"},
        BadInput{"streams_not_a_number",
                 {"run", "hetero_kernels", "--device", "cpu", "--streams", "many"},
                 "--streams many"},
        BadInput{"too_many_streams", {"run", "hetero_kernels", "--device", "cpu", "--streams", "129"}, "1 to 128"},
        BadInput{"several_streams", {"run", "hetero_kernels", "--device", "cpu", "--streams", "2,4"}, "weir sweep"},
        BadInput{"unknown_parameter", {"run", "hetero_kernels", "--device", "cpu", "--param", "sice=4"}, "'size'"},
        BadInput{"wrong_type", {"run", "hetero_kernels", "--device", "cpu", "--param", "size=big"}, "whole number"},
        BadInput{"parameter_out_of_range",
                 {"run", "hetero_kernels", "--device", "cpu", "--param", "size=0"},
                 "out of range"},
        BadInput{
            "no_assignment", {"run", "hetero_kernels", "--device", "cpu", "--param", "size"}, "--param name=value"},
        BadInput{"unknown_device", {"run", "hetero_kernels", "--device", "gpu"}, "--device gpu"},
        BadInput{"absent_device", {"run", "hetero_kernels", "--device", "cuda:37"}, "cuda:37"},
        BadInput{"bad_index", {"run", "hetero_kernels", "--device", "cpu:x"}, "cpu:x"},
        BadInput{
            "unknown_precision", {"run", "hetero_kernels", "--device", "cpu", "--precision", "fp7"}, "--precision fp7"},
        BadInput{
            "unknown_sync", {"run", "hetero_kernels", "--device", "cpu", "--sync-mode", "per_itera"}, "per_iteration"},
        BadInput{"unknown_submit", {"run", "hetero_kernels", "--device", "cpu", "--submit", "thread"}, "threads"},
        BadInput{"unknown_placement", {"run", "hetero_kernels", "--device", "cpu", "--placement", "serail"}, "serial"},
        BadInput{
            "unknown_scale", {"run", "hetero_kernels", "--device", "cpu", "--scale", "large"}, "tiny, small or full"},
        BadInput{
            "zero_iterations", {"run", "hetero_kernels", "--device", "cpu", "--iterations", "0"}, "--iterations 0"},
        BadInput{"negative_warmup", {"run", "hetero_kernels", "--device", "cpu", "--warmup", "-1"}, "--warmup"},
        BadInput{"too_large",
                 {"run", "large_gemm_only", "--device", "cpu", "--param", "size=65536", "--streams", "64"},
                 "GiB"},
        BadInput{"output_folder_absent",
                 {"run", "hetero_kernels", "--device", "cpu", "-o", "absent/x.json"},
                 "does not exist"},
        BadInput{"no_hang_timeout",
                 {"run", "hetero_kernels", "--device", "cpu", "--hang-timeout", "0s"},
                 "--hang-timeout 0s: not a time"},
        BadInput{"bad_hang_timeout",
                 {"sweep", "hetero_kernels", "--device", "cpu", "--streams", "2", "--hang-timeout", "soon"},
                 "--hang-timeout soon"},
        BadInput{"zero_queues", {"run", "hetero_kernels", "--device", "cpu", "--hw-queues", "0"}, "--hw-queues 0"},
        BadInput{"settings_of_no_simulation",
                 {"run", "hetero_kernels", "--device", "cpu", "--sim", "queues=2"},
                 "--sim queues=..."},
        BadInput{"sweep_range", {"sweep", "hetero_kernels", "--device", "cpu", "--streams", "129,200"}, "1 to 128"},
        BadInput{"unknown_class", {"run", "P7"}, "P7"},
        BadInput{
            "compare_bare_threshold", {"compare", "no.json", "no.json", "--threshold", "5"}, "Write --threshold 5%."},
        BadInput{"compare_absent", {"compare", "no.json", "no.json"}, "no.json"}),
    [](const ::testing::TestParamInfo<BadInput>& parameter) { return parameter.param.name; });

TEST(Run, NeverOverwritesWithoutForce) {
  const Folder folder;
  const std::string file = folder / "kept.json";
  std::ofstream(file) << "precious";
  const Outcome refused = weir(tiny_run("tiny_kernel_stress", {"-o", file}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "--force")) << refused.err;
  std::string text;
  std::getline(std::ifstream(file), text);
  EXPECT_EQ(text, "precious");
  EXPECT_EQ(weir(tiny_run("tiny_kernel_stress", {"-o", file, "--force"})).code, 0);
  EXPECT_EQ(read_json(file)["schema"], "weir.result/2");
}

TEST(Run, ReadOnlyFolderIsRefusedBeforeAnythingRuns) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  const Folder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_EQ(weir(tiny_run("tiny_kernel_stress", {"-o", folder / "x.json"})).code, 2);
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
}

TEST(RunPriority, WritesOneFilePerWorkload) {
  const Folder folder;
  const Outcome outcome = weir({"run", "P0", "--device", "cpu", "--scale", "tiny", "--iterations", "3", "--streams",
                                "1,2,4", "-o", folder / "results"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"hetero_kernels", "tiny_kernel_stress", "large_gemm_only"}) {
    const std::string file = folder / ("results/" + std::string(name) + ".json");
    expect_valid_as(file, "weir.sweep.1.json");
    EXPECT_EQ(read_json(file)["results"].size(), 3u);
  }
  EXPECT_EQ(weir({"run", "P0", "--device", "cpu", "-o", folder / "results"}).code, 2);
}

// The lines that `weir run P0` suggests, as they can be pasted into a shell.
std::vector<std::string> suggestions(const std::string& out) {
  std::vector<std::string> commands;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  " WEIR_BINARY " ")) commands.push_back(line);
  return commands;
}

TEST(RunPriority, EndsWithAReportAndCommandsThatWork) {
  const Folder folder;
  const Outcome outcome =
      weir({"run", "P0", "--device", "cpu", "--scale", "tiny", "--iterations", "3", "--streams", "1,2", "-o", "out"},
           folder.path());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::filesystem::exists(folder / "out/report.html"), WEIR_HAVE_HTML != 0);
  EXPECT_TRUE(has(outcome.out, WEIR_HAVE_HTML ? "The report is in out/report.html" : "No report.html was written"));
  // What it says is what the report of the same files, in the same order, says.
  ASSERT_EQ(weir({"report", "out/hetero_kernels.json", "out/tiny_kernel_stress.json", "out/large_gemm_only.json", "-o",
                  "r.json", "-q"},
                 folder.path())
                .code,
            0);
  const Json findings = read_json(folder / "r.json")["verdict"]["findings"];
  for (std::size_t i = 0; i < std::min<std::size_t>(3, findings.size()); ++i)
    EXPECT_TRUE(has(outcome.out, findings[i]["text"].get<std::string>().substr(0, 30))) << findings[i];

  const std::vector<std::string> next = suggestions(outcome.out);
  EXPECT_EQ(next.size(), 3u) << outcome.out;
  for (const std::string& command : next) {
    const Outcome tried = run_program({"sh", "-c", command}, folder.path());
    EXPECT_EQ(tried.code, 0) << command << "\n" << tried.err;
  }
}

TEST(RunPriority, CtrlCKeepsWhatThereIs) {
  const Folder folder;
  const std::string file = folder / "out/hetero_kernels.json";
  // The first point is over at once and saved; the others take long enough for a signal to come in the middle.
  const pid_t child = start_weir({"run", "P0", "--device", "cpu", "--scale", "tiny", "--iterations", "500", "--streams",
                                  "1,64", "--no-trace", "-o", "out"},
                                 folder.path());
  for (int i = 0; i < 60'000 && !std::filesystem::exists(file); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::kill(child, SIGINT);
  EXPECT_EQ(wait_for(child), 130);
  EXPECT_GE(read_json(file)["results"].size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(folder / "out/large_gemm_only.json"));
  EXPECT_EQ(std::filesystem::exists(folder / "out/report.html"), WEIR_HAVE_HTML != 0);
}

// The first point is over at once and saved; the others take long enough for a signal to come in the middle.
std::vector<std::string> sweep_arguments(const std::string& file) {
  return {"sweep", "tiny_kernel_stress", "--device", "cpu",        "--scale",  "tiny", "--iterations",
          "500",   "--streams",          "1,64,128", "--no-trace", "--output", file};
}

pid_t start_sweep_and_wait_for_its_first_point(const std::string& file, const std::filesystem::path& folder) {
  const pid_t child = start_weir(sweep_arguments(file), folder);
  for (int i = 0; i < 60'000 && !std::filesystem::exists(file); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return child;
}

TEST(Sweep, SurvivesAKillAndRepeatsNothing) {
  const Folder folder;
  const std::string file = folder / "sweep.json";
  const pid_t child = start_sweep_and_wait_for_its_first_point(file, folder.path());
  ::kill(child, SIGKILL);
  EXPECT_EQ(wait_for(child), 128 + SIGKILL);
  ASSERT_TRUE(std::filesystem::exists(file));
  const Json before = read_json(file);  // never half written
  EXPECT_EQ(before["status"], "interrupted");
  ASSERT_LT(before["results"].size(), 3u);

  std::vector<std::string> again = sweep_arguments(file);
  EXPECT_EQ(weir(again).code, 2) << "without --resume the file is in the way";
  again.emplace_back("--resume");
  const Outcome outcome = weir(again);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "kept"));
  const Json after = read_json(file);
  EXPECT_EQ(after["status"], "complete");
  ASSERT_EQ(after["results"].size(), 3u);
  for (std::size_t i = 0; i < before["results"].size(); ++i) EXPECT_EQ(after["results"][i], before["results"][i]);
  expect_valid_as(file, "weir.sweep.1.json");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_TRUE(entry.path() == file || entry.path().extension() == ".tmp") << entry.path();
}

TEST(Sweep, ResumesFromHostileFilesWithoutFallingOver) {
  const Folder folder;
  const std::string file = folder / "sweep.json";
  const std::vector<std::string> arguments = {
      "sweep", "tiny_kernel_stress", "--device", "cpu",        "--scale", "tiny", "--iterations",
      "2",     "--streams",          "1,2",      "--no-trace", "-o",      file,   "--resume"};
  ASSERT_EQ(weir(arguments).code, 0);
  const Json whole = read_json(file);
  const Json others[] = {nullptr, 7, "text", Json::array({1}), Json::object()};
  for (const char* key :
       {"status", "submit", "streams", "metrics", "workload", "device", "check", "warnings", "samples"}) {
    for (const Json& other : others) {
      Json changed = whole;
      changed["results"][0][key] = other;
      write_file(file, changed.dump(), true);
      const Outcome outcome = weir(arguments);
      EXPECT_EQ(outcome.code, 0) << key << " " << other << outcome.err;
      EXPECT_GE(read_json(file)["results"].size(), 2u) << key << " " << other;
    }
  }
  for (const char* key : {"value", "unit", "interval"}) {
    for (const Json& other : others) {
      Json changed = whole;
      changed["results"][0]["metrics"]["throughput"][key] = other;
      write_file(file, changed.dump(), true);
      EXPECT_EQ(weir(arguments).code, 0) << key << " " << other;
    }
  }
  for (const char* key : {"schema", "settings", "results"}) {
    for (const Json& other : others) {
      Json changed = whole;
      changed[key] = other;
      write_file(file, changed.dump(), true);
      const int code = weir(arguments).code;
      EXPECT_TRUE(code == 2 || (code == 0 && other.is_array())) << key << " " << other << " " << code;
    }
  }
}

TEST(Sweep, LeavesOutCountsThatDoNotFitAndSaysSo) {
  const Folder folder;
  const Outcome outcome =
      weir({"sweep", "--file", WEIR_SOURCE_DIR "/config/pipeline.yaml", "--device", "cpu", "--scale", "tiny",
            "--iterations", "2", "--streams", "1,3,4", "--no-trace", "-o", folder / "s.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "leaving out 1")) << outcome.err;
  EXPECT_EQ(read_json(folder / "s.json")["results"].size(), 2u);
}

TEST(Sweep, BeginsWithOneStream) {
  for (const char* workload : {"hetero_kernels", "fsdp_tp"}) {
    const Folder folder;
    const Outcome outcome = weir({"sweep", workload, "--device", "cpu", "--scale", "tiny", "--iterations", "2",
                                  "--streams", "1,2,4,8,16", "--no-trace", "-o", folder / "s.json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(read_json(folder / "s.json")["results"].size(), 5u) << workload;
  }
}

TEST(Run, OddBytesInTheEnvironmentCostNoResult) {
  const Folder folder;
  const Outcome outcome =
      run_program({"env", "CUDA_ODD=\xff\xfe", WEIR_BINARY, "run", "tiny_kernel_stress", "--device", "cpu", "--scale",
                   "tiny", "--iterations", "2", "--no-trace", "-o", folder / "r.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(read_json(folder / "r.json")["environment"]["variables"].contains("CUDA_ODD"));
}

TEST(Run, ThroughputAndItsIntervalMakeSenseInEveryMode) {
  const Folder folder;
  for (const char* mode : {"per_iteration", "end_only", "none"}) {
    for (const char* iterations : {"1", "50"}) {
      const std::string file = folder / (std::string(mode) + iterations);
      ASSERT_EQ(weir({"run", "hetero_kernels", "--device", "cpu", "--scale", "tiny", "--streams", "8", "--iterations",
                      iterations, "--sync-mode", mode, "--no-trace", "-o", file})
                    .code,
                0);
      const Json result = read_json(file);
      const Json& throughput = result["metrics"]["throughput"];
      ASSERT_TRUE(throughput.is_object()) << mode << iterations;
      // All work over a window that holds all of it cannot beat the sum of the device's own times by much; an interval
      // that is negative or upside down is nonsense.
      if (throughput["interval"].is_array()) {
        EXPECT_GT(throughput["interval"][0].get<double>(), 0) << mode;
        EXPECT_LE(throughput["interval"][0].get<double>(), throughput["value"].get<double>()) << mode;
        EXPECT_GE(throughput["interval"][1].get<double>(), throughput["value"].get<double>()) << mode;
      }
      double window = 0;
      for (const Json& interval : result["samples"]["interval_ns"]) window += interval.get<double>();
      const double counted = result["work_per_iteration"].get<double>() * std::stod(iterations);
      EXPECT_LE(throughput["value"].get<double>(), counted / (window * 1e-9) * 1.001) << mode;
    }
  }
}

TEST(Output, AFullDiskIsAnError) {
  const Outcome outcome = run_program({"sh", "-c", std::string(WEIR_BINARY) + " list > /dev/full"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(has(outcome.err, "standard output")) << outcome.err;
}

TEST(Sweep, CtrlCSavesWhatThereIs) {
  const Folder folder;
  const std::string file = folder / "sweep.json";
  const pid_t child = start_sweep_and_wait_for_its_first_point(file, folder.path());
  ::kill(child, SIGINT);
  EXPECT_EQ(wait_for(child), 130);
  const Json sweep = read_json(file);
  EXPECT_EQ(sweep["status"], "interrupted");
  EXPECT_GE(sweep["results"].size(), 1u);
}

TEST(Run, CtrlCSavesWhatThereIs) {
  const Folder folder;
  const std::string file = folder / "run.json";
  const pid_t child = start_weir(
      {"run", "large_gemm_only", "--device", "cpu", "--iterations", "1000000", "--output", file}, folder.path());
  await_handler(child, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::kill(child, SIGINT);
  EXPECT_EQ(wait_for(child), 130);
  const Json result = read_json(file);
  EXPECT_EQ(result["status"], "interrupted");
  EXPECT_GE(result["samples"]["latency_ns"].size(), 1u);
  EXPECT_LT(result["samples"]["latency_ns"].size(), 1000000u);
  expect_valid_as(file, "weir.result.2.json");
}

}  // namespace
}  // namespace weir::testing
