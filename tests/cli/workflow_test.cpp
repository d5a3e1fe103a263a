// .github/workflows/bench.yml and kernels.yml: their shell steps are run as GitHub's runner would run them, in a
// repository made for it, with `cmake` and `gh` that only pretend. What it `uses` is played by this file.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWorkflow = WEIR_SOURCE_DIR "/.github/workflows/bench.yml";
constexpr const char* kKernels = WEIR_SOURCE_DIR "/.github/workflows/kernels.yml";

void put_program(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
  fs::permissions(path, fs::perms::owner_all);
}

using Variables = std::map<std::string, std::string>;

// A runner for one job at a time.
class Runner {
 public:
  explicit Runner(Variables event, const char* workflow = kWorkflow)
      : known_(std::move(event)), workflow_(YAML::LoadFile(workflow)) {
    fs::create_directories(bin());
    fs::create_directories(home());
    // cmake -S SOURCE -B FOLDER ... and cmake --build FOLDER --target weir
    put_program(bin() / "cmake", "#!/bin/bash\nif [ \"$1\" = --build ]; then mkdir -p \"$2\" && ln -sf \"" WEIR_BINARY
                                 "\" \"$2/weir\"; fi\n");
    // Keeps what it was asked, and the comment; `earlier` is the number of the comment that is there already.
    put_program(
        bin() / "gh",
        "#!/bin/bash\necho \"$*\" >> \"$HOME/gh.log\"\n"
        "for word in \"$@\"; do case $word in body=@*) cp \"${word#body=@}\" \"$HOME/comment.md\" ;; esac; done\n"
        "if [ \"$1 $2\" = 'pr comment' ]; then cp \"$5\" \"$HOME/comment.md\"; fi\n"
        "if [ \"$1 $2\" = 'issue create' ]; then cp \"$6\" \"$HOME/comment.md\"; fi\n"
        "case $* in *--jq*) cat \"$HOME/earlier\" 2> /dev/null || true ;; esac\n");
    git({"init", "-q", "-b", "main", repository().string()});
    git({"init", "-q", "--bare", (folder_.path() / "origin.git").string()});
    git({"-C", repository().string(), "remote", "add", "origin", (folder_.path() / "origin.git").string()});
    fs::create_directories(repository() / "scripts");
    put_program(repository() / "scripts/setup.sh", "#!/bin/bash\n[ \"$1\" = build ]\n");
    for (const char* message : {"first", "second"}) {
      std::ofstream(repository() / "file") << message;
      git({"-C", repository().string(), "add", "."});
      git({"-C", repository().string(), "commit", "-q", "-m", message});
    }
  }

  fs::path repository() const { return folder_.path() / "repository"; }
  fs::path home() const { return folder_.path() / "home"; }
  fs::path bin() const { return folder_.path() / "bin"; }
  const YAML::Node& workflow() const { return workflow_; }
  std::string summary() const { return content(home() / "summary"); }

  std::string git(std::vector<std::string> arguments) {
    std::vector<std::string> command = environment({});
    command.insert(command.end(), {"git", "-c", "user.name=t", "-c", "user.email=t@localhost"});
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Outcome outcome = run_program(command);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }

  void begin(const std::string& job, Variables overrides = {}) {
    job_ = job;
    overrides_ = std::move(overrides);
    variables_.clear();
    outputs_.clear();
    path_ = bin().string() + ":/usr/local/bin:/usr/bin:/bin";
    fs::remove_all(temp());
    fs::create_directories(temp());
    fs::remove(home() / "summary");
  }

  void set_output(const std::string& name, const std::string& value) { outputs_[name] = value; }
  std::string output(const std::string& name) const {
    const auto found = outputs_.find(name);
    return found == outputs_.end() ? "" : found->second;
  }

  // Runs the step of that name; what it leaves for later steps is theirs, as with the real one.
  Outcome step(const std::string& name) {
    for (const YAML::Node& step : workflow_["jobs"][job_]["steps"])
      if (step["name"] && step["name"].as<std::string>() == name) return run(step);
    ADD_FAILURE() << "no step '" << name << "' in the job '" << job_ << "'";
    return {};
  }

  // Replaces each ${{ ... }}; an expression that this test does not know is a failure: nobody would have run it.
  std::string evaluated(const std::string& text) const {
    static const std::regex kExpression(R"(\$\{\{\s*(.*?)\s*\}\})");
    static const std::regex kOutput(R"(steps\.([a-z]+)\.outputs\.([a-z_]+))");
    std::string result;
    auto from = text.cbegin();
    for (std::sregex_iterator match(text.begin(), text.end(), kExpression), end; match != end; ++match) {
      result.append(from, (*match)[0].first);
      from = (*match)[0].second;
      const std::string expression = (*match)[1];
      std::smatch parts;
      if (std::regex_match(expression, parts, kOutput)) {
        result += output(parts[1].str() + "." + parts[2].str());
      } else if (const auto found = known_.find(expression); found != known_.end()) {
        result += found->second;
      } else {
        ADD_FAILURE() << "unknown expression: " << expression;
      }
    }
    return result.append(from, text.cend());
  }

 private:
  fs::path temp() const { return folder_.path() / "temp"; }

  std::vector<std::string> environment(const Variables& variables) const {
    std::vector<std::string> command = {"env",
                                        "-i",
                                        "HOME=" + home().string(),
                                        "PATH=" + (path_.empty() ? "/usr/local/bin:/usr/bin:/bin" : path_),
                                        "GIT_CONFIG_NOSYSTEM=1",
                                        "ASAN_OPTIONS=detect_leaks=0"};
    for (const auto& [name, value] : variables) command.push_back(name + "=" + value);
    return command;
  }

  Outcome run(const YAML::Node& step) {
    Variables variables = {{"CI", "true"},
                           {"GITHUB_ACTIONS", "true"},
                           {"RUNNER_TEMP", temp().string()},
                           {"GITHUB_STEP_SUMMARY", (home() / "summary").string()}};
    for (const char* file : {"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH"}) {
      variables[file] = (temp() / file).string();
      std::ofstream(temp() / file) << "";
    }
    for (const YAML::Node& level : {workflow_["env"], workflow_["jobs"][job_]["env"], step["env"]})
      if (level)
        for (const auto& entry : level)
          variables[entry.first.as<std::string>()] = evaluated(entry.second.as<std::string>());
    for (const auto& [name, value] : variables_) variables[name] = value;
    for (const auto& [name, value] : overrides_) variables[name] = value;
    std::ofstream(temp() / "script.sh") << step["run"].as<std::string>();
    std::vector<std::string> command = environment(variables);
    command.insert(command.end(),
                   {"bash", "--noprofile", "--norc", "-eo", "pipefail", (temp() / "script.sh").string()});
    const Outcome outcome = run_program(command, repository());
    const std::string id = step["id"] ? step["id"].as<std::string>() : "";
    read_assignments("GITHUB_OUTPUT", [&](const auto& name, const auto& value) { outputs_[id + "." + name] = value; });
    read_assignments("GITHUB_ENV", [&](const auto& name, const auto& value) { variables_[name] = value; });
    std::istringstream folders(content(temp() / "GITHUB_PATH"));
    for (std::string folder; std::getline(folders, folder);) path_ = folder + ":" + path_;
    return outcome;
  }

  template <typename Take>
  void read_assignments(const char* file, const Take& take) {
    std::istringstream lines(content(temp() / file));
    for (std::string line; std::getline(lines, line);) {
      const std::size_t equals = line.find('=');
      ASSERT_NE(equals, std::string::npos) << file << ": " << line;
      take(line.substr(0, equals), line.substr(equals + 1));
    }
  }

  Folder folder_;
  Variables known_, variables_, outputs_, overrides_;
  YAML::Node workflow_;
  std::string job_, path_;
};

const Variables kPullRequest = {{"matrix.device", "sim:h200"},
                                {"matrix.backend", "cpu"},
                                {"matrix.precision", "fp32"},
                                {"github.event.pull_request.base.sha || github.event.before", ""},
                                {"github.event.pull_request.number", "17"},
                                {"github.repository", "someone/something"},
                                {"github.token", "not-a-token"},
                                {"github.sha", "0123456789abcdef0123456789abcdef01234567"}};
// Simulated, so that equal programs are equally fast to the nanosecond.
const Variables kSmall = {{"WORKLOADS", "hetero_kernels"}, {"SCALE", "tiny"}, {"ITERATIONS", "20"}, {"ROUNDS", "2"}};

// The steps up to the comparison; in between `plant` may change what was measured.
void measure(Runner& runner, const std::function<void(const fs::path& results)>& plant = nullptr) {
  runner.begin("measure", kSmall);
  for (const char* name : {"Install what the build needs", "Build this commit and the one that it is compared with",
                           "Measure both in turns"}) {
    const Outcome outcome = runner.step(name);
    ASSERT_EQ(outcome.code, 0) << name << ": " << outcome.out << outcome.err;
  }
  if (plant) plant(runner.repository() / "results");
}

void halve_baseline(const fs::path& results) {
  for (const auto& entry : fs::directory_iterator(results / "base")) {
    Json result = read_json(entry.path());
    for (const char* list : {"latency_ns", "interval_ns"})
      for (Json& sample : result["samples"][list]) sample = sample.get<std::int64_t>() / 2;
    write_file(entry.path(), result.dump(), true);
  }
}

// What upload-artifact and download-artifact do between them.
void pass_artifacts(const Runner& runner) {
  const fs::path to = runner.repository() / "artifacts" / ("bench-" + runner.output("compare.name"));
  fs::create_directories(to);
  for (const char* folder : {"out", "results"})
    fs::copy(runner.repository() / folder, to / folder, fs::copy_options::recursive);
}

void each_text(const YAML::Node& node, const std::function<void(const std::string&)>& visit) {
  if (node.IsScalar()) visit(node.as<std::string>());
  if (node.IsSequence())
    for (const YAML::Node& item : node) each_text(item, visit);
  if (node.IsMap())
    for (const auto& entry : node) each_text(entry.second, visit);
}

class WorkflowRights : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Workflow, WorkflowRights, ::testing::Values(kWorkflow, kKernels));

TEST_P(WorkflowRights, nobody_has_more_than_they_need) {
  Runner runner(kPullRequest, GetParam());
  const YAML::Node& workflow = runner.workflow();
  EXPECT_FALSE(has(content(GetParam()), "pull_request_target"));
  EXPECT_EQ(YAML::Dump(workflow["on"]["push"]["branches"]), "[main, develop]");
  EXPECT_EQ(workflow["permissions"].size(), 1U);
  EXPECT_EQ(workflow["permissions"]["contents"].as<std::string>(), "read");
  each_text(workflow, [&](const std::string& text) { runner.evaluated(text); });
  static const std::regex kPinned("actions/[a-z-]+@v[0-9]+");
  for (const auto& job : workflow["jobs"]) {
    EXPECT_TRUE(job.second["timeout-minutes"]) << job.first;
    for (const YAML::Node& step : job.second["steps"]) {
      const auto text = [&](const char* key) { return step[key] ? step[key].as<std::string>() : std::string(); };
      EXPECT_TRUE(text("uses").empty() || std::regex_match(text("uses"), kPinned)) << text("uses");
      EXPECT_FALSE(has(text("run"), "${{")) << "shell code from an expression";
    }
  }
  EXPECT_FALSE(workflow["jobs"]["measure"]["permissions"]);
  for (const YAML::Node& step : workflow["jobs"]["measure"]["steps"])
    if (step["uses"] && has(step["uses"].as<std::string>(), "upload-artifact")) {
      EXPECT_EQ(step["with"]["retention-days"].as<int>(), 30);
    }
  for (const auto& job : workflow["jobs"]) {
    if (job.first.as<std::string>() != "comment" && job.first.as<std::string>() != "issue") continue;
    for (const YAML::Node& step : job.second["steps"]) {
      const std::string uses = step["uses"] ? step["uses"].as<std::string>() : "";
      EXPECT_FALSE(has(uses, "checkout")) << "it may write, so it runs nothing of the change";
    }
  }
}

TEST(Workflow, channels_are_compared_with_those_of_the_base) {
  Runner runner(kPullRequest);
  runner.begin("measure", {{"CHANNELS", "round_trip"}});
  for (const char* name : {"Install what the build needs", "Build this commit and the one that it is compared with"})
    ASSERT_EQ(runner.step(name).code, 0);
  const Outcome outcome = runner.step("Measure channels");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  // The same program twice; a busy machine may call it slower all the same, so the gate only warns.
  EXPECT_FALSE(runner.output("channels.code").empty());
  runner.set_output("compare.code", "0");
  runner.set_output("channels.code", "3");
  const Outcome gate = runner.step("Gate");
  EXPECT_EQ(gate.code, 0);
  EXPECT_TRUE(has(gate.out, "Channels are slower")) << gate.out;
  EXPECT_EQ(read_json(runner.repository() / "out/channels.json")["schema"], "weir.channel/2");
  EXPECT_TRUE(has(content(runner.repository() / "out/channels.xml"), "round_trip"));
  EXPECT_TRUE(has(runner.summary(), "round_trip")) << runner.summary();
}

// A Python module, so that nothing is compiled; it takes `pause` seconds.
void put_kernel(const fs::path& folder, const std::string& pause) {
  put_file(folder / "kernels/waits/waits.py", "import time\ndef run_benchmark(precision='fp32'):\n    time.sleep(" +
                                                  pause + ")\n    return {'result': 1.0, 'expected': 1.0}\n");
}

// A repository whose server has a base with the kernel, and a change of it that takes another time; measured.
void measure_kernels(Runner& runner, const std::string& base_pause, const std::string& pause) {
  const std::string repository = runner.repository().string();
  const auto commit = [&](const char* message) {
    runner.git({"-C", repository, "add", "."});
    runner.git({"-C", repository, "commit", "-q", "-m", message});
  };
  put_kernel(runner.repository(), base_pause);
  commit("a kernel");
  put_kernel(runner.repository(), pause);
  commit("a change of it");
  runner.git({"-C", repository, "push", "-q", "origin", "main"});
  runner.begin("measure", {{"ITERATIONS", "15"}});
  for (const char* name : {"Install what the build needs", "Build weir", "Fetch what it is compared with", "Measure"}) {
    const Outcome outcome = runner.step(name);
    ASSERT_EQ(outcome.code, 0) << name << ": " << outcome.out << outcome.err;
  }
  fs::create_directories(runner.repository() / "artifacts");
  fs::copy(runner.repository() / "out",
           runner.repository() / "artifacts" / ("kernels-" + runner.output("measure.name")),
           fs::copy_options::recursive);
}

TEST(KernelsWorkflow, a_regression_is_gated_commented_on_and_an_issue) {
  Runner runner(kPullRequest, kKernels);
  measure_kernels(runner, "0.002", "0.01");
  EXPECT_EQ(runner.output("measure.name"), "cpu-fp32");
  ASSERT_EQ(runner.output("measure.code"), "3") << runner.summary();
  EXPECT_EQ(runner.step("Gate").code, 3);
  EXPECT_TRUE(fs::exists(runner.repository() / "out/junit.xml"));

  runner.begin("comment");
  ASSERT_EQ(runner.step("Comment on the pull request").code, 0);
  std::string text = content(runner.home() / "comment.md");
  EXPECT_TRUE(text.starts_with("<!-- weir kernels -->\n<details><summary>cpu-fp32</summary>")) << text;
  EXPECT_TRUE(has(text, "# Regressions") && has(text, "waits/cpu/fp32")) << text;
  EXPECT_TRUE(has(text, "Leaderboard")) << text;

  runner.begin("issue");
  ASSERT_EQ(runner.step("Open or renew the issue").code, 0);
  EXPECT_TRUE(has(content(runner.home() / "gh.log"), "issue create --title Kernel benchmarks regressed"));
  text = content(runner.home() / "comment.md");
  EXPECT_TRUE(has(text, "Kernel benchmarks of 0123456789") && has(text, "waits/cpu/fp32")) << text;
  std::ofstream(runner.home() / "earlier") << "31\n";
  runner.begin("issue");
  ASSERT_EQ(runner.step("Open or renew the issue").code, 0);
  EXPECT_TRUE(
      has(content(runner.home() / "gh.log"), "api --method PATCH repos/someone/something/issues/31 -F body=@issue.md"));
}

TEST(KernelsWorkflow, without_a_regression_nothing_is_opened_and_the_history_grows) {
  Runner runner(kPullRequest, kKernels);
  measure_kernels(runner, "0.01", "0.002");
  EXPECT_TRUE(runner.output("measure.code") == "0" || runner.output("measure.code") == "4");
  EXPECT_EQ(runner.step("Gate").code, 0);
  runner.begin("issue");
  ASSERT_EQ(runner.step("Open or renew the issue").code, 0);
  EXPECT_FALSE(has(content(runner.home() / "gh.log"), "issue create"));
  // Somebody else pushed in between.
  const std::string repository = runner.repository().string();
  put_file(runner.repository() / "other", "x");
  runner.git({"-C", repository, "add", "other"});
  runner.git({"-C", repository, "commit", "-q", "-m", "meanwhile"});
  runner.git({"-C", repository, "push", "-q", "origin", "main"});
  runner.git({"-C", repository, "checkout", "-q", "HEAD^"});
  for (int i = 0; i < 2; ++i) {  // the second run finds its results there already
    runner.begin("history");
    const Outcome added = runner.step("Add to the history, in the tree");
    ASSERT_EQ(added.code, 0) << added.out << added.err;
  }
  const std::string server = (runner.home() / "../origin.git").string();
  EXPECT_TRUE(runner.git({"-C", server, "log", "--format=%s", "main"})
                  .starts_with("Kernel benchmarks of 0123456789abcdef0123456789abcdef01234567\nmeanwhile\n"));
  EXPECT_EQ(runner.git({"-C", server, "ls-tree", "-r", "--name-only", "main", "benchmarks"}),
            "benchmarks/history/cpu-fp32/0123456789abcdef0123456789abcdef01234567.json\n"
            "benchmarks/history/cpu-fp32/summary.json\n");
}

TEST(Workflow, equal_commits_pass) {
  Runner runner(kPullRequest);
  measure(runner);
  for (const char* file : {"results/base/hetero_kernels-1.json", "results/test/hetero_kernels-2.json"})
    EXPECT_TRUE(fs::exists(runner.repository() / file)) << file;
  const Outcome compared = runner.step("Compare");
  ASSERT_EQ(compared.code, 0) << compared.out << compared.err;
  EXPECT_EQ(runner.output("compare.code"), "0");
  EXPECT_EQ(runner.output("compare.verdict"), "same");
  EXPECT_EQ(runner.output("compare.slower"), "0");
  EXPECT_EQ(runner.output("compare.name"), "sim-h200-fp32");
  EXPECT_FALSE(has(compared.out, "::error"));
  EXPECT_TRUE(has(runner.summary(), "# Comparison: 1 same")) << runner.summary();
  const Outcome written = runner.step("Write the figures and the page");
  EXPECT_EQ(written.code, 0) << written.out << written.err;
  EXPECT_TRUE(content(runner.repository() / "out/metrics.prom").ends_with("# EOF\n"));
  EXPECT_TRUE(has(content(runner.repository() / "out/results.csv"), "latency_p50_seconds"));
  EXPECT_TRUE(fs::exists(runner.repository() / "out/report.html") || has(written.out, "::notice")) << written.out;
  EXPECT_EQ(runner.step("Gate").code, 0);
}

TEST(Workflow, a_regression_stops_at_the_gate_and_is_commented_on) {
  Runner runner(kPullRequest);
  measure(runner, halve_baseline);
  const Outcome compared = runner.step("Compare");
  ASSERT_EQ(compared.code, 0) << "artifacts come first: " << compared.err;
  EXPECT_EQ(runner.output("compare.code"), "3");
  EXPECT_EQ(runner.output("compare.verdict"), "slower");
  EXPECT_TRUE(has(compared.out, "::error title=weir compare%3A hetero_kernels")) << compared.out;
  EXPECT_TRUE(has(content(runner.repository() / "out/junit.xml"), "<failure type=\"slower\""));
  EXPECT_TRUE(has(runner.summary(), "**slower**")) << runner.summary();
  EXPECT_EQ(runner.step("Gate").code, 3);

  pass_artifacts(runner);
  runner.begin("comment");
  const Outcome commented = runner.step("Comment on the pull request");
  ASSERT_EQ(commented.code, 0) << commented.err;
  const std::string comment = content(runner.home() / "comment.md");
  EXPECT_TRUE(comment.starts_with("<!-- weir bench -->\n<details><summary>sim-h200-fp32: 1 slower</summary>\n\n"))
      << comment;
  EXPECT_TRUE(has(comment, "| run | metric | baseline | test | ratio |"));
  EXPECT_TRUE(has(comment, "**slower**"));
  EXPECT_TRUE(has(content(runner.home() / "gh.log"), "pr comment 17 --body-file comment.md"));

  std::ofstream(runner.home() / "earlier") << "4711\n";
  runner.begin("comment");
  ASSERT_EQ(runner.step("Comment on the pull request").code, 0);
  EXPECT_TRUE(has(content(runner.home() / "gh.log"),
                  "api --method PATCH repos/someone/something/issues/comments/4711 -F body=@comment.md"))
      << "its own comment is renewed";
}

TEST(Workflow, a_comment_that_is_too_long_has_the_headlines_only) {
  Runner runner(kPullRequest);
  for (int i = 0; i < 3; ++i) {
    const fs::path folder = runner.repository() / "artifacts" / ("bench-d" + std::to_string(i)) / "out";
    fs::create_directories(folder);
    std::ofstream(folder / "comparison.md") << "# Comparison: " << i << " same\n" << std::string(30'000, 'x') << "\n";
  }
  runner.begin("comment");
  ASSERT_EQ(runner.step("Comment on the pull request").code, 0);
  EXPECT_EQ(content(runner.home() / "comment.md"), "<!-- weir bench -->\n- d0: 0 same\n- d1: 1 same\n- d2: 2 same\n");
  fs::remove_all(runner.repository() / "artifacts");
  fs::remove(runner.home() / "gh.log");
  EXPECT_EQ(runner.step("Comment on the pull request").code, 0);
  EXPECT_FALSE(fs::exists(runner.home() / "gh.log")) << "nothing was compared, so there is nothing to say";
}

TEST(Workflow, the_gate_knows_every_exit_code) {
  Runner runner(kPullRequest);
  runner.begin("measure");
  for (const auto& [code, expected] : std::map<std::string, int>{{"0", 0}, {"3", 3}, {"4", 0}, {"2", 1}, {"", 1}}) {
    runner.set_output("compare.code", code);
    const Outcome outcome = runner.step("Gate");
    EXPECT_EQ(outcome.code, expected) << "code " << code;
    EXPECT_EQ(has(outcome.out, "::warning"), code == "4");
  }
}

TEST(Workflow, results_that_cannot_be_compared_are_no_verdict) {
  Runner runner(kPullRequest);
  measure(runner, [](const fs::path& results) {
    for (const auto& entry : fs::directory_iterator(results / "base")) std::ofstream(entry.path()) << "{";
  });
  EXPECT_EQ(runner.step("Compare").code, 2);
  EXPECT_EQ(runner.output("compare.code"), "2");
}

TEST(Workflow, a_base_that_is_not_known_is_the_parent) {
  Variables event = kPullRequest;
  event["github.event.pull_request.base.sha || github.event.before"] = std::string(40, '0');
  Runner runner(event);
  runner.begin("measure", kSmall);
  const Outcome outcome = runner.step("Build this commit and the one that it is compared with");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(runner.git({"-C", runner.repository().string(), "worktree", "list", "--porcelain"}),
                  "HEAD " + runner.git({"-C", runner.repository().string(), "rev-parse", "HEAD^"})));
}

TEST(Workflow, each_push_adds_to_the_history) {
  Runner runner(kPullRequest);
  measure(runner);
  ASSERT_EQ(runner.step("Compare").code, 0);
  pass_artifacts(runner);
  const std::string repository = runner.repository().string();
  for (int push = 1; push <= 3; ++push) {
    // The third is the second one run again: there is nothing new, and that is no failure.
    if (push == 2) {
      for (const auto& entry :
           fs::directory_iterator(runner.repository() / "artifacts/bench-sim-h200-fp32/results/test")) {
        Json result = read_json(entry.path());
        result["created"] = "2030-01-01T00:00:00Z";
        for (Json& sample : result["samples"]["latency_ns"]) sample = sample.get<std::int64_t>() + 1;
        write_file(entry.path(), result.dump(), true);
      }
    }
    runner.git({"-C", repository, "worktree", "prune"});
    runner.begin("history");
    ASSERT_EQ(runner.step("Build").code, 0);
    const Outcome added = runner.step("Add to the history, on a branch of its own");
    if (has(added.err, "SQLite")) GTEST_SKIP() << added.err;
    ASSERT_EQ(added.code, 0) << added.out << added.err;
    // The history is made of what the branch has on the server, not of what a runner left.
    runner.git({"-C", repository, "worktree", "prune"});
    runner.git({"-C", repository, "worktree", "remove", "--force", (runner.home() / "../temp/history").string()});
    runner.git({"-C", repository, "branch", "-D", "bench-history"});
  }
  runner.git({"-C", repository, "fetch", "-q", "origin", "bench-history"});
  const std::string log = runner.git({"-C", repository, "log", "--format=%s", "FETCH_HEAD"});
  EXPECT_EQ(log,
            "Bench of 0123456789abcdef0123456789abcdef01234567\nBench of 0123456789abcdef0123456789abcdef01234567\n"
            "A history of benches\n");
  EXPECT_EQ(runner.git({"-C", repository, "ls-tree", "--name-only", "FETCH_HEAD"}), "history.db\n");
  runner.git({"-C", repository, "worktree", "add", "-q", (runner.home() / "seen").string(), "FETCH_HEAD"});
  const Outcome listed = weir({"history", "list", "--db", (runner.home() / "seen/history.db").string()});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_TRUE(has(listed.out, "sim-h200-fp32")) << listed.out;
  EXPECT_TRUE(has(listed.out, "0123456")) << listed.out;
}

}  // namespace
}  // namespace weir::testing
