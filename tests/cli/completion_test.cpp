// weir completion: what may follow, and the scripts in their own shells. No shell here is interactive.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

// Candidates without their descriptions.
std::vector<std::string> follow(const std::vector<std::string>& words) {
  std::vector<std::string> arguments = {"completion", "--complete", "--"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  const Outcome outcome = weir(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::vector<std::string> candidates;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) candidates.push_back(line.substr(0, line.find('\t')));
  return candidates;
}

bool offers(const std::vector<std::string>& words, const std::string& candidate) {
  const auto all = follow(words);
  return std::find(all.begin(), all.end(), candidate) != all.end();
}

struct Offer {
  std::vector<std::string> words;
  const char* candidate;
};

TEST(CompletionWords, offer_what_may_follow) {
  const Offer offers_there[] = {
      {{""}, "run"},
      {{"ru"}, "run"},
      {{"queues", ""}, "map"},
      {{"queues", "cost", "--ver"}, "--verify-all"},
      {{"run", ""}, "hetero_kernels"},
      {{"run", "moe", "--"}, "--device"},
      {{"run", "--device", ""}, "sim:h200"},
      {{"run", "--device=sim:h"}, "--device=sim:h200"},
      {{"run", "--device", "cpu", ""}, "moe"},
      {{"run", "hetero_kernels", "--param", ""}, "size="},
      {{"run", "hetero_kernels", "--param", ""}, ":nospace"},
      {{"run", "hetero_kernels", "--param", "order="}, "order=batched"},
      {{"run", "--file", "fork_join", "--param", ""}, "rows="},
      {{"run", "--file", ""}, "fork_join"},
      {{"run", "--file", ""}, ":yaml"},
      {{"run", "--scale", ""}, "tiny"},
      {{"run", "--sync-mode", "e"}, "end_only"},
      {{"run", "--placement", ""}, "critical_path"},
      {{"run", "--precision", ""}, "bf16"},
      {{"run", "--schedule", ""}, "weighted_fair"},
      {{"run", "--submit", "channel:"}, "channel:lanes"},
      {{"run", "--sim", "host.la"}, "host.launch_ns="},
      {{"run", "-o", ""}, ":files"},
      {{"sweep", "moe", "--submit", "inline,"}, "inline,graph"},
      {{"run", ""}, "P0"},
      {{"list", "--category", ""}, "latency_sensitive"},
      {{"compare", "a.json", ""}, ":files"},
      {{"compare", "--format", ""}, "markdown"},
      {{"profile", "--trace-format", ""}, "csv"},
      {{"profile", "--profiler", ""}, "cupti"},
      {{"profile", "--", ""}, ":programs"},
      {{"profile", "--", "./train", "--st"}, ":files"},
      {{"record", "--", ""}, ":programs"},
      {{"record", ""}, "dump"},
      {{"record", "-o", ""}, ":folders"},
      {{"record", "dump", ""}, ":files"},
      {{"record", "dump", "--trace-format", ""}, "csv"},
      {{"sched", "run", "--priority", ""}, "high"},
      {{"sched", "start", "--policy", ""}, "time_slice"},
      {{"analyze", "--input-format", ""}, "kineto"},
      {{"analyze", ""}, ":files"},
      {{"overlap", ""}, "tune"},
      {{"overlap", ""}, "slow_network"},
      {{"overlap", "default", "--set", "fsdp."}, "fsdp.prefetch="},
      {{"overlap", "default", "--set", "parallel.mode="}, "parallel.mode=ddp"},
      {{"compare", ""}, ":files"},
      {{"channel", ""}, "round_trip"},
      {{"channel", "--channel", ""}, "spsc"},
      {{"preempt", "--mechanisms", "none,"}, "none,priority"},
      {{"preempt", "--victims", ""}, "persistent"},
      {{"queues", "fairness", "--priorities", ""}, "mixed"},
      {{"watch", "--sort", ""}, "backlog"},
      {{"watch", "--source", ""}, "kfd"},
      {{"watch", ""}, "moe"},
      {{"bench", "--path", ""}, "softmax"},
      {{"bench", "--path", ""}, ":folders"},
      {{"bench", "--device", "cpu,"}, "cpu,opencl"},
      {{"bench", "--precision", ""}, "fp64"},
      {{"bench", "--stop", ""}, "entropy"},
      {{"amd", "capture", "--keep", ""}, "last"},
      {{"amd", "join", ""}, ":folders"},
      {{"help", ""}, "exit-codes"},
      {{"help", ""}, "sweep"},
      {{"help", "queues", ""}, "map"},
      {{"completion", ""}, "fish"},
  };
  for (const Offer& offer : offers_there)
    EXPECT_TRUE(offers(offer.words, offer.candidate)) << ::testing::PrintToString(offer.words) << " " << offer.candidate
                                                      << ": " << ::testing::PrintToString(follow(offer.words));
}

TEST(CompletionWords, do_not_offer_what_may_not) {
  const Offer offers_nowhere[] = {
      {{"run", "--quiet", "--"}, "--quiet"},            // given
      {{"queues", "map", ""}, "limits"},                // of the level above
      {{"run", "--iterations", ""}, "hetero_kernels"},  // wants a number
      {{"run", "moe", "--"}, "--complete"},             // hidden, and of another command
      {{"completion", "--"}, "--complete"},             // hidden
      {{"amd", "capture", "--"}, "--tracefs"},          // for tests
      {{"sweep", "x", "--submit", "graph,"}, "graph,graph"},
      {{"profile", "--", ""}, "--device"},
      {{"info", ""}, ":files"},
  };
  for (const Offer& offer : offers_nowhere)
    EXPECT_FALSE(offers(offer.words, offer.candidate))
        << ::testing::PrintToString(offer.words) << " " << offer.candidate;
  EXPECT_TRUE(offers({"run", "x", "--param", "a=1", "--"}, "--param")) << "comes again";
}

TEST(CompletionWords, begin_as_the_word_does) {
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"r"}, {"run", "--dev"}, {"run", "--device=s"}, {"help", "t"}})
    for (const std::string& candidate : follow(words)) EXPECT_TRUE(candidate.starts_with(words.back())) << candidate;
}

TEST(CompletionWords, odd_words_cost_nothing) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"no-such-command", ""},
                                                                 {"run", "--no-such-flag", ""},
                                                                 {"run", "--no-such-flag=", ""},
                                                                 {"--"},
                                                                 {"--", ""},
                                                                 {"run", "--file", "/no/such/file", "--param", ""},
                                                                 {"run", "\x1b[31m\n", ""},
                                                                 {"run", "{}", "[a,b]", ""},
                                                                 {"run", "--device="},
                                                                 {std::string(100000, 'x')},
                                                                 {"queues", "queues", "queues", ""},
                                                                 {"run", "--", "--", ""}})
    follow(words);
  EXPECT_EQ(weir({"completion", "--complete"}).code, 0);
}

// At each TAB a driver that takes a second to start would be felt.
TEST(CompletionWords, open_no_driver) {
  const Outcome outcome =
      run_program({"env", "LD_DEBUG=files", WEIR_BINARY, "completion", "--complete", "--", "run", "--device", ""});
  ASSERT_EQ(outcome.code, 0);
  if (!has(outcome.err, "libc.so")) GTEST_SKIP() << "the loader does not say what it opens";
  for (const char* library : {"libcuda.so", "libamdhip64", "libOpenCL", "libnvidia-ml", "libweir_mpi"})
    EXPECT_FALSE(has(outcome.err, library)) << library;
}

TEST(CompletionScripts, are_for_three_shells) {
  EXPECT_EQ(weir({"completion"}).code, 2);
  const Outcome other = weir({"completion", "fisch"});
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(has(other.err, "fish")) << other.err;
}

class Scripts : public ::testing::Test {
 protected:
  // Sources the shell's script, which is the folder's `script`, and then runs `text` with the program in PATH.
  Outcome run(const std::string& shell, const std::vector<std::string>& options, const std::string& text) {
    std::ofstream(folder_ / "script") << weir({"completion", shell}).out;
    std::ofstream(folder_ / "here.yaml") << "name: x\n";
    std::ofstream(folder_ / "here.txt") << "x\n";
    std::filesystem::create_directory(folder_.path() / "bin");
    if (!std::filesystem::exists(folder_.path() / "bin/weir"))
      std::filesystem::create_symlink(WEIR_BINARY, folder_.path() / "bin/weir");
    std::vector<std::string> command = {"env", "PATH=" + (folder_ / "bin") + ":/usr/bin:/bin",
                                        "HOME=" + folder_.path().string(), shell};
    command.insert(command.end(), options.begin(), options.end());
    command.push_back(text);
    return run_program(command, folder_.path());
  }

  Folder folder_;
};

// As bash calls it: words end at ':' and '=' too, and only what is behind the last of them is replaced.
struct BashLine {
  const char* line;
  const char* words;
  const char* reply;
};

TEST_F(Scripts, bash_completes) {
  const BashLine lines[] = {
      {"weir ru", "weir ru", "run"},
      {"weir run --device sim:h", "weir run --device sim : h", "h200"},
      {"weir run --device=sim:h", "weir run --device = sim : h", "h200"},
      {"weir run --scale=", "weir run --scale =", "tiny small full"},
      {"weir run hetero_kernels --param si", "weir run hetero_kernels --param si", "size="},
      {"weir run hetero_kernels --param order=b", "weir run hetero_kernels --param order = b", "batched"},
      {"weir run --file here.y", "weir run --file here.y", "here.yaml"},
      {"weir run --file=here.", "weir run --file = here.", "here.yaml"},
      {"weir run -o here.", "weir run -o here.", "here.txt here.yaml"},
      {"bin/weir queues co", "bin/weir queues co", "cost convoy"},
      {"~/bin/weir queues co", "\\~/bin/weir queues co", "cost convoy"},
  };
  for (const BashLine& each : lines) {
    const Outcome outcome =
        run("bash", {"--norc", "--noprofile", "-c"},
            std::string("source ./script; COMP_LINE='") + each.line + "'; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(" +
                each.words +
                "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _weir; printf '%s\\n' \"${COMPREPLY[@]}\" | sort | xargs");
    std::string sorted = each.reply;
    EXPECT_EQ(outcome.err, "") << each.line;
    std::vector<std::string> wanted, found;
    std::istringstream wanted_words(sorted), found_words(outcome.out);
    for (std::string word; wanted_words >> word;) wanted.push_back(word);
    for (std::string word; found_words >> word;) found.push_back(word);
    std::sort(wanted.begin(), wanted.end());
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, wanted) << each.line;
  }
}

TEST_F(Scripts, bash_completes_words_alone_and_in_the_middle) {
  const Outcome alone = run("bash", {"--norc", "--noprofile", "-c"},
                            "source ./script; COMP_WORDS=(weir help exit); COMP_CWORD=2; _weir; echo ${COMPREPLY[@]}");
  EXPECT_EQ(alone.out, "exit-codes\n") << alone.err;
  // The cursor stands behind "--de".
  const Outcome middle = run("bash", {"--norc", "--noprofile", "-c"},
                             "source ./script; COMP_LINE='weir run --dexyz moe'; COMP_POINT=13; "
                             "COMP_WORDS=(weir run --dexyz moe); COMP_CWORD=2; _weir; echo ${COMPREPLY[@]}");
  EXPECT_EQ(middle.out, "--device\n") << middle.err;
  EXPECT_TRUE(has(run("bash", {"--norc", "--noprofile", "-c"}, "source ./script; complete -p weir").out, "_weir"));
}

TEST_F(Scripts, zsh_completes) {
  if (run_program({"zsh", "--version"}).code != 0) GTEST_SKIP() << "zsh is not installed";
  // What zsh's own functions would be given.
  const std::string stubs =
      "compdef() { : }; compset() { : }; _files() { print -r -- files \"$@\" }; "
      "_describe() { shift 2; print -rl -- ${(P)1} }; source ./script; ";
  const Outcome commands = run("zsh", {"-f", "-c"}, stubs + "words=(weir ru) CURRENT=2 PREFIX=ru; _weir");
  EXPECT_TRUE(has(commands.out, "run:run one workload")) << commands.out << commands.err;
  const Outcome device = run("zsh", {"-f", "-c"}, stubs + "words=(weir run --device sim) CURRENT=4 PREFIX=sim; _weir");
  EXPECT_TRUE(has(device.out, "sim\\:h200:")) << device.out << device.err;
  const Outcome file = run("zsh", {"-f", "-c"}, stubs + "words=(weir run --file '') CURRENT=4 PREFIX=; _weir");
  EXPECT_TRUE(has(file.out, "files -g *.(yaml|yml)")) << file.out << file.err;
}

TEST_F(Scripts, fish_completes) {
  if (run_program({"fish", "--version"}).code != 0) GTEST_SKIP() << "fish is not installed";
  const Offer lines[] = {{{"weir ru"}, "run\trun one workload"},
                         {{"weir run --device sim:h"}, "sim:h200\t"},
                         {{"weir run --device=sim:h"}, "--device=sim:h200\t"},
                         {{"weir run --file her"}, "here.yaml"},
                         {{"weir run --file=her"}, "--file=here.yaml"},
                         {{"weir help exit"}, "exit-codes\t"}};
  for (const Offer& each : lines) {
    const Outcome outcome = run("fish", {"--no-config", "-c"}, "source ./script; complete -C '" + each.words[0] + "'");
    EXPECT_TRUE(has(outcome.out, each.candidate)) << each.words[0] << ": " << outcome.out << outcome.err;
    EXPECT_FALSE(has(outcome.out, "here.txt")) << outcome.out;
  }
}

}  // namespace
}  // namespace weir::testing
