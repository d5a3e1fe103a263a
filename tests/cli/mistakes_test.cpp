// Mistakes as users make them: every answer says what is wrong, where, and what to type instead.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

struct Mistake {
  std::vector<std::string> words;
  int code;
  std::vector<std::string> answer;  // parts of the message; the last one names what to type
};

// In a folder that holds result.json, other.json (of another workload), sweep.json, trace.json, queues.json,
// future.json, cut.json, empty.json, text.txt, bad.yaml, unknown_key.yaml, folder/.
const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> kMistakes = {
      // Misspelt and missing words.
      {{"swep", "moe"}, 2, {"unknown command 'swep'", "Did you mean 'sweep'?"}},
      {{"sched", "stauts"}, 2, {"sched: unknown command 'stauts'", "Did you mean 'status'?"}},
      {{"queues", "mpa"}, 2, {"queues: unknown command 'mpa'", "Did you mean 'map'?"}},
      {{"queues"}, 2, {"queues: a command is required", "weir queues map"}},
      {{"run"}, 2, {"a workload is required", "`weir list`"}},
      {{"profile"}, 2, {"a workload or a program is required", "weir profile -- python3 train.py"}},
      {{"analyze"}, 2, {"analyze: files is required", "For example: weir analyze "}},
      {{"compare", "result.json"}, 2, {"compare: test is required", "weir compare before.json after.json"}},
      {{"report"}, 2, {"nothing to report on", "Name results, sweeps, traces"}},
      {{"try"}, 2, {"a program is required", "weir try --env NCCL_ALGO=Ring,Tree -- ./train.sh"}},
      {{"run", "moe", "--itertions", "5"}, 2, {"run: unknown flag '--itertions'", "Did you mean '--iterations'?"}},
      {{"run", "moe", "--itertions=5"}, 2, {"Did you mean '--iterations'?"}},
      {{"queues", "map", "--stream", "4"}, 2, {"queues map: unknown flag '--stream'", "Did you mean '--streams'?"}},
      {{"preempt", "--long", "500"}, 2, {"preempt: unknown flag '--long'", "`weir preempt --help`"}},
      {{"run", "moe", "--streams"}, 2, {"run: --streams: its value is missing", "`weir run --help`"}},
      {{"run", "moe", "--streams", "4", "--streams", "8"}, 2, {"given more than once", "Give --streams once."}},
      {{"run", "moe", "hetero_kernels"}, 2, {"run: one argument too many: 'hetero_kernels'", "weir run "}},
      {{"help", "troublshooting"}, 2, {"unknown command or topic", "Did you mean 'troubleshooting'?"}},
      {{"completion", "tcsh"}, 2, {"completion tcsh: unknown shell", "bash, zsh, fish"}},
      // Names: workloads, devices, ways to submit, parameters.
      {{"run", "moee"}, 2, {"there is no workload 'moee'", "Did you mean 'moe'?"}},
      {{"run", "P9"}, 2, {"there is no class 'P9'", "Use P0, P1, P2, P3 or all"}},
      {{"list", "--category", "latency"}, 2, {"--category latency", "Did you mean 'latency_sensitive'?"}},
      {{"run", "moe", "--device", "gpu"}, 2, {"--device gpu: there is no such device", "cuda:0", "hip:0", "auto"}},
      {{"channel", "--device", "gpu"}, 2, {"--device gpu: there is no such device", "cuda:0"}},
      {{"bench", "--device", "gpu"}, 2, {"--device gpu: unknown device", "Use cuda:0, hip:0 or opencl:0"}},
      {{"run", "moe", "--device", "amd"}, 2, {"--device amd: there is no such device", "Write --device hip:0"}},
      {{"run", "moe", "--device", "nvidia"}, 2, {"--device nvidia", "Write --device cuda:0"}},
      {{"run", "moe", "--device", "sim:h100"}, 2, {"--device sim:h100: there is no such profile", "'sim:h200'"}},
      {{"run", "moe", "--device", "cpu:7"}, 2, {"'cpu:7' does not exist", "use 'cpu'"}},
      {{"run", "moe", "--submit", "thread"}, 2, {"--submit thread", "Did you mean 'threads'?"}},
      {{"run", "moe", "--submit", "channel:mspc"}, 2, {"there is no channel 'mspc'", "Did you mean 'mpsc'?"}},
      {{"run", "moe", "--schedule", "prio"}, 2, {"--schedule prio", "Did you mean 'priority'?"}},
      {{"sched", "start", "--policy", "prio"}, 2, {"--policy prio", "Did you mean 'priority'?"}},
      {{"run", "moe", "--param", "sice=4"}, 2, {"--param sice=4: the workload has no parameter 'sice'", "batch"}},
      {{"run", "moe", "--param", "batch"}, 2, {"--param batch: not an assignment", "--param name=value"}},
      {{"run", "moe", "--device", "sim:h200", "--sim", "quees=2"}, 2, {"--sim quees=2", "Did you mean 'queues'?"}},
      {{"run", "moe", "--device", "cpu", "--sim", "queues=2"}, 2, {"is not simulated", "--device sim:h200"}},
      {{"bench", "--precision", "fp12"}, 2, {"--precision fp12", "Did you mean 'fp32'?"}},
      {{"watch", "--source", "amd"}, 2, {"--source amd: unknown source", "auto, kfd, device"}},
      {{"channel", "spsc"}, 2, {"unknown group 'spsc'", "weir channel --list"}},
      {{"overlap", "default", "--set", "run.scal=tiny"}, 2, {"unknown key 'run.scal'", "Did you mean 'run.scale'?"}},
      {{"conformance", "--filter", "nosuch", "--device", "cpu"}, 2, {"--filter nosuch", "`weir conformance --list`"}},
      // Counts, ranges and units.
      {{"run", "moe", "--iterations", "0"}, 2, {"--iterations 0: out of range", "Use 1 to "}},
      {{"run", "moe", "--iterations", "-3"}, 2, {"--iterations -3: out of range", "Use 1 to "}},
      {{"run", "moe", "--streams", "999"}, 2, {"--streams 999: 999 is out of range", "Use 1 to 128."}},
      {{"run", "moe", "--streams", "1,2"}, 2, {"--streams 1,2: one count is needed here", "`weir sweep`"}},
      {{"sweep", "moe", "--streams", "8..4"}, 2, {"--streams 8..4: 8 comes after 4", "1..8"}},
      {{"run", "moe", "--ranks", "0"}, 2, {"--ranks 0: not a number of ranks", "Use 1 to 4096."}},
      {{"analyze", "trace.json", "--top", "0"}, 2, {"--top 0: not a number from 1 to 1000"}},
      {{"calibrate", "moe", "--processes", "2"}, 2, {"--processes 2: not a number from 5 to 1000"}},
      {{"sched", "start", "--slice", "5"}, 2, {"--slice 5: the unit is missing", "Write --slice 5ms."}},
      {{"queues", "convoy", "--device", "cpu", "--large-time", "500"}, 2, {"unit is missing", "--large-time 500ms"}},
      {{"overlap", "tune", "default", "--budget", "soon"}, 2, {"--budget soon: not a time", "30s, 5m or 1h"}},
      {{"compare", "result.json", "result.json", "--threshold", "5"}, 2, {"percent sign", "Write --threshold 5%."}},
      {{"analyze", "trace.json", "--window", "5"}, 2, {"--window 5: not a part of a trace", "Write 1.5s..3s"}},
      {{"analyze", "trace.json", "--window", "5s..2s"}, 2, {"it ends before it begins", "Write 1.5s..3s."}},
      // Files: missing, of the wrong kind, empty, truncated, of another version.
      {{"analyze", "reslut.json"}, 2, {"reslut.json: cannot be read", "Did you mean 'result.json'?"}},
      {{"compare", "result.json", "no/such.json"}, 2, {"no/such.json: cannot be read", "Check the path"}},
      {{"report", "missing.json", "--json"}, 2, {"missing.json: no such file or folder", "`weir run`"}},
      {{"analyze", "folder"}, 2, {"folder: there is no trace directly in this folder", "Name the folder that the traces lie in"}},
      {{"report", "folder", "--json"}, 2, {"folder: the folder is empty", "`weir run -o`"}},
      {{"analyze", "result.json"}, 2, {"(weir.result/2) and not a trace", "`weir report FILE`", "`weir compare A B`"}},
      {{"analyze", "queues.json"}, 2, {"(weir.queues/2) and not a trace", "`weir report FILE`"}},
      {{"analyze", "text.txt"}, 2, {"text.txt: not a recognised trace", "`weir analyze --help`"}},
      {{"analyze", "empty.json"}, 2, {"empty.json: is empty", "Run it again."}},
      {{"compare", "result.json", "cut.json"}, 2, {"cut.json: the JSON ends too early", "-o FILE --force"}},
      {{"compare", "result.json", "text.txt"}, 2, {"text.txt: not valid JSON at line 1", "-o result.json"}},
      {{"compare", "result.json", "future.json"}, 2, {"written by a newer Weir", "`weir run WORKLOAD -o FILE`"}},
      {{"compare", "result.json", "trace.json"}, 2, {"trace.json: is a trace", "`weir report A B`"}},
      {{"compare", "result.json", "other.json"}, 2, {"no result has a partner", "the same workload", "weir run"}},
      {{"compare", "queues.json", "queues.json"}, 2, {"'weir.queues/2', which is not a result", "`weir report FILE`"}},
      {{"history", "add", "trace.json"}, 2, {"trace.json: found a trace", "`weir analyze FILE`"}},
      {{"export", "trace.json"}, 2, {"trace.json: found no schema", "`weir analyze FILE --json`"}},
      {{"report", "result.json", "--baseline", "trace.json", "--json"},
       2,
       {"no trace to compare", "report TRACE --baseline"}},
      {{"run", "--file", "result.json"}, 2, {"(weir.result/2) and not a file of settings", "`weir report FILE`"}},
      {{"overlap", "result.json"}, 2, {"(weir.result/2) and not a file of settings", "`weir report FILE`"}},
      {{"run", "fork_join.yaml"}, 2, {"fork_join.yaml: is a file", "Write --file fork_join.yaml."}},
      {{"sweep", "result.json"}, 2, {"result.json: is a file", "`weir report FILE`"}},
      {{"run", "--file", "bad.yaml"}, 2, {"bad.yaml:2: not YAML", "Indent by spaces."}},
      {{"run", "--file", "unknown_key.yaml"}, 2, {"unknown_key.yaml:2", "'strems'", "Did you mean 'streams'?"}},
      {{"overlap", "nosuch"}, 2, {"nosuch: cannot be read", "config/default.yaml"}},
      {{"bench", "--path", "folder"}, 2, {"no kernel package was found in --path folder", "--path PATH"}},
      {{"bench", "--path", "missing"}, 2, {"--path missing: is not a folder", "Name a package"}},
      {{"channel", "--baseline", "result.json"}, 2, {"--save-baseline", "compare BASELINE TEST"}},
      {{"channel", "--baseline", "monday"}, 2, {"does not exist", "weir channel --save-baseline monday"}},
      {{"history", "list", "--db", "none.db"}, 2, {"none.db: no such history", "`weir history add RESULTS...`"}},
      // Outputs.
      {{"run", "moe", "--device", "sim:h200", "-o", "result.json"}, 2, {"result.json: already exists", "--force"}},
      {{"run", "moe", "--device", "sim:h200", "-o", "nowhere/r.json"},
       2,
       {"nowhere does not exist", "mkdir -p nowhere"}},
      {{"run", "moe", "--device", "sim:h200", "-o", "folder"}, 2, {"folder: is a folder", "Name a file in it."}},
      {{"run", "moe", "--device", "sim:h200", "-o", "/proc/r.json"}, 2, {"/proc/r.json: cannot"}},
      {{"report", "result.json", "-o", "x.pdf"}, 2, {"-o x.pdf", "report.html"}},
      {{"analyze", "trace.json", "--format", "json"}, 2, {"--format json: unknown format", "Write --json."}},
      {{"analyze", "trace.json", "--format", "markdwon"}, 2, {"--format markdwon", "Did you mean 'markdown'?"}},
      {{"analyze", "trace.json", "--input-format", "kinetoo"}, 2, {"--input-format kinetoo", "'kineto'"}},
      {{"profile", "moe", "--trace-format", "perfetto"}, 2, {"--trace-format perfetto", "kineto, csv"}},
      // Flags that exclude each other, or do not go with the rest.
      {{"help", "--man", "--markdown"}, 2, {"--man", "--markdown", "Leave one of them out."}},
      {{"run", "moe", "--resume"}, 2, {"--resume: one run has nothing to continue", "`weir run P0`"}},
      {{"run", "moe", "--file", "bad.yaml"}, 2, {"the workload 'moe' is named as well", "Give one of them."}},
      {{"run", "moe", "--until", "5%"}, 2, {"--until 5%: --processes 1", "--processes 5..20"}},
      {{"profile", "moe", "--device", "null"}, 2, {"it runs nothing", "`weir run --device null`"}},
      {{"queues", "map", "--device", "null"}, 2, {"it runs nothing", "Use --device cpu, sim or a GPU."}},
      // Programs.
      {{"profile", "./train.py"}, 2, {"./train.py: is not the name of a workload", "weir profile -- python3 ./train"}},
      {{"profile", "python", "train.py"}, 2, {"train.py", "weir profile -- ./program arguments"}},
      {{"profile", "--", "./no_such"}, 2, {"./no_such: no such program", "Give a path"}},
      {{"try", "--", "./no_such"}, 2, {"./no_such: no such program", "Give a path"}},
      {{"sched", "run"}, 2, {"a program is required after --", "weir sched run --priority high -- ./program"}},
      {{"record"}, 2, {"a program is required after --", "weir record -- python3 train.py"}},
      {{"record", "python3", "train.py"}, 2, {"python3: a program goes after --", "weir record -- python3 train.py"}},
      {{"record", "dmp", "4711"}, 2, {"record: unknown command 'dmp'", "Did you mean 'dump'?"}},
      {{"record", "-o", "folder", "--", "./no_such"}, 2, {"./no_such: no such program", "Give a path"}},
      {{"record", "--memory", "64", "--", "true"}, 2, {"--memory 64: the unit is missing", "--memory 64M"}},
      {{"record", "--slow-step", "0.5", "--", "true"}, 2, {"--slow-step 0.5: out of range"}},
      {{"record", "--on-hang", "kill", "--", "true"}, 2, {"nothing looks for hangs", "--hang-timeout 60s"}},
      {{"record", "--on-hang", "stop", "--", "true"}, 2, {"--on-hang stop: unknown on-hang", "continue, kill"}},
      {{"record", "dump"}, 2, {"record dump: recordings is required"}},
      {{"record", "dump", "nosuch.weirrec"}, 2, {"no such process, file or folder", "`weir record list`"}},
      {{"record", "dump", "text.txt", "--trace-format", "xml"}, 2, {"--trace-format xml", "kineto, csv"}},
      {{"record", "hang", "folder"}, 2, {"folder: holds no recording", "`weir record list`"}},
      {{"amd", "capture", "--", "./no_such"}, 2, {"./no_such: no such program", "Give a path"}},
      // No daemon, no AMD GPU.
      {{"sched", "status", "--socket", "none.sock"}, 2, {"no daemon listens", "`weir sched start`"}},
      {{"sched", "run", "--socket", "none.sock", "--", "true"}, 2, {"no daemon listens", "`weir sched start`"}},
      {{"sched", "stop", "--socket", "folder"}, 2, {"is not a socket", "--socket PATH"}},
      {{"amd", "hqd", "--live", "--debugfs", "folder"}, 1, {"folder/kfd/hqds", "mount -t debugfs"}},
      {{"amd", "hqd"}, 2, {"no file to read", "--live"}},
      {{"amd", "log", "trace.json"}, 2, {"no line of it is a line of ROCm's runtime log", "`weir amd capture`"}},
      {{"amd", "ftrace", "text.txt"}, 2, {"no line of a kernel trace", "trace-cmd report FILE"}},
      {{"amd", "join", "folder"}, 2, {"folder: has no manifest.json", "weir amd capture -- ./program"}},
  };
  return kMistakes;
}

void fill(const Folder& folder) {
  const auto make = [&](std::vector<std::string> words) {
    for (const char* word : {"--device", "sim:h200", "-q"}) words.emplace_back(word);
    ASSERT_EQ(weir(words, folder.path()).code, 0) << words[0];
  };
  make({"run", "moe", "--scale", "tiny", "--iterations", "3", "-o", "result.json"});
  make({"run", "hetero_kernels", "--scale", "tiny", "--iterations", "3", "-o", "other.json"});
  make({"profile", "moe", "--scale", "tiny", "--iterations", "3", "-o", "trace.json"});
  make({"queues", "map", "-o", "queues.json"});
  const std::string result = to_text(read_json(folder / "result.json"));
  std::string future = result;
  future.replace(future.find("weir.result/2"), 13, "weir.result/9");
  std::ofstream(folder / "future.json") << future;
  std::ofstream(folder / "cut.json") << result.substr(0, 300);
  std::ofstream(folder / "empty.json");
  std::ofstream(folder / "text.txt") << "hello\n";
  std::ofstream(folder / "bad.yaml") << "run: [1, 2\n";
  std::ofstream(folder / "unknown_key.yaml") << "name: x\nstrems: 4\n";
  std::filesystem::create_directory(folder / "folder");
}

void expect_answer(const Mistake& mistake, const std::filesystem::path& folder) {
  std::string line = "weir";
  for (const std::string& word : mistake.words) line += " " + word;
  SCOPED_TRACE(line);
  const Outcome outcome = weir(mistake.words, folder);
  EXPECT_EQ(outcome.code, mistake.code) << outcome.out << outcome.err;
  // Lines are broken anywhere: a part may have a line break in it.
  std::string message;
  for (const std::string& text : lines_of(outcome.err))
    message += (message.empty() ? "" : " ") + text.substr(std::min(text.find_first_not_of(' '), text.size()));
  for (const std::string& part : mistake.answer)
    EXPECT_TRUE(has(message, part)) << part << " is not in\n" << outcome.err;
  EXPECT_FALSE(has(message, "internal error")) << outcome.err;
}

TEST(Mistakes, AreAnsweredWithWhatToType) {
  const Folder folder;
  fill(folder);
  EXPECT_GE(mistakes().size(), 60U);
  for (const Mistake& mistake : mistakes()) expect_answer(mistake, folder.path());
}

TEST(Mistakes, OfADeviceThatIsNotHere) {
  const Json info = parse_json(weir({"info", "--json"}).out, "info");
  for (const Json& device : info["devices"])
    if (device["name"].get<std::string>().starts_with("cuda:")) GTEST_SKIP() << "there is an NVIDIA GPU";
  const Folder folder;
  expect_answer({{"run", "moe", "--device", "cuda"}, 2, {"--device cuda:0", "docker run --gpus all", "sim:h200"}},
                folder.path());
  // A program that uses no GPU: its own exit code, and why there is no timeline.
  expect_answer({{"profile", "--", "false"}, 1, {"exit code 1", "nothing was captured"}}, folder.path());
  expect_answer({{"profile", "--", "true"}, 1, {"exit code 0", "nothing was captured"}}, folder.path());
}

}  // namespace
}  // namespace weir::testing
