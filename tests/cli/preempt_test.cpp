// Drives `weir preempt` as a user would, on the cpu device and on simulated ones, with settings that end soon.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"

namespace weir::testing {
namespace {

std::vector<std::string> tiny_preempt(std::initializer_list<std::string> more) {
  std::vector<std::string> all = {"preempt",       "--iterations", "20",      "--interval", "500us",
                                  "--block-times", "50us",         "--waves", "2",          "--victims",
                                  "waves",         "--alone",      "2"};
  all.insert(all.end(), more);
  return all;
}

const Json& mechanism_in(const Json& document, const std::string& name) {
  static const Json kNull;
  for (const Json& one : document["mechanisms"])
    if (one["name"] == name) return one;
  return kNull;
}

TEST(Preempt, observes_the_cpu_device) {
  const Folder folder;
  const std::string file = folder / "preempt.json";
  const Outcome outcome =
      weir(tiny_preempt({"--device", "cpu", "--mechanisms", "none,launch_gate,cooperative_flag", "-o", file}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_narrow(outcome.out);
  EXPECT_TRUE(has(outcome.out, "Behind kernels of 2 waves, blocks of 50.0 us")) << outcome.out;
  expect_valid_as(file, "weir.preempt.2.json");
  const Json document = read_json(file);
  EXPECT_EQ(document["status"], "complete");
  EXPECT_EQ(document["mechanisms"].size(), 3u);
  for (const Json& mechanism : document["mechanisms"]) {
    ASSERT_EQ(mechanism["points"].size(), 1u) << mechanism["name"];
    const Json& point = mechanism["points"][0];
    EXPECT_EQ(point["to_end_ns"]["count"], 20) << mechanism["name"];
    EXPECT_TRUE(point["to_end_ns"]["p999"].is_null());
    EXPECT_TRUE(has(point["to_end_ns"]["too_few"].get<std::string>(), "p99.9 needs 1000 requests"));
    EXPECT_EQ(point["observation"]["lost_blocks"], 0) << mechanism["name"];
    EXPECT_EQ(point["observation"]["repeated_blocks"], 0) << mechanism["name"];
    // Open loop: nothing starts before it is due.
    const Json& requests = point["observation"]["requests"];
    for (std::size_t i = 0; i < requests["due_ns"].size(); ++i)
      EXPECT_GE(requests["ended_ns"][i].get<std::int64_t>(), requests["due_ns"][i].get<std::int64_t>());
  }
  EXPECT_EQ(document["alone"]["repeats"].size(), 2u);
}

TEST(Preempt, divides_a_device_between_two_processes) {
  const Folder folder;
  const std::string file = folder / "preempt.json";
  const Outcome outcome = weir(tiny_preempt({"--device", "cpu", "--mechanisms", "none,time_slice", "-q", "-o", file}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  const Json document = read_json(file);
  const Json& sliced = mechanism_in(document, "time_slice");
  ASSERT_TRUE(sliced["is_offered"].get<bool>()) << sliced["reason"];
  const Json& point = sliced["points"][0];
  EXPECT_EQ(point["to_end_ns"]["count"], 20);
  EXPECT_GT(point["observation"]["victim_blocks"], 0);
  EXPECT_FALSE(point["victim_loss"].is_null());
}

TEST(Preempt, shows_on_a_simulated_gpu_that_priority_does_not_preempt) {
  const Folder folder;
  const std::string file = folder / "preempt.json", picture = folder / "preempt.svg";
  const Outcome outcome =
      weir({"preempt", "--device", "sim:h200", "--victims", "waves", "--block-times", "10us..10ms", "--iterations",
            "200", "--mechanisms", "none,priority,cooperative_flag,time_slice", "-o", file, "--svg", picture});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_narrow(outcome.out);
  expect_valid_as(file, "weir.preempt.2.json");
  const Json document = read_json(file);
  EXPECT_FALSE(mechanism_in(document, "time_slice")["is_offered"].get<bool>());
  EXPECT_TRUE(has(mechanism_in(document, "time_slice")["verdict"].get<std::string>(), "is not available here"));
  const Json& none = mechanism_in(document, "none");
  const Json& priority = mechanism_in(document, "priority");
  ASSERT_TRUE(none["fit"].is_object() && priority["fit"].is_object()) << outcome.out;
  EXPECT_EQ(none["follows"], "kernels") << none["verdict"];
  EXPECT_LT(priority["fit"]["per_block"].get<double>(), none["fit"]["per_block"].get<double>());
  std::ifstream svg(picture);
  std::string begin(4, ' ');
  svg.read(begin.data(), 4);
  EXPECT_EQ(begin, "<svg");
}

TEST(Preempt, tells_in_markdown_and_by_the_ending_of_a_file) {
  const Folder folder;
  const std::string file = folder / "preempt.md";
  ASSERT_EQ(weir(tiny_preempt({"--device", "sim:toy", "--mechanisms", "none", "-o", file})).code, 0);
  std::ifstream text(file);
  std::string first;
  std::getline(text, first);
  EXPECT_TRUE(has(first, "# weir preempt on")) << first;
  const Outcome json = weir(tiny_preempt({"--device", "sim:toy", "--mechanisms", "none", "--json"}));
  ASSERT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(parse_json(json.out, "stdout")["schema"], "weir.preempt/2");
}

TEST(Preempt, the_same_seed_sees_the_same_in_virtual_time) {
  const auto observed = [](const char* seed) {
    const Outcome outcome =
        weir(tiny_preempt({"--device", "sim:h200", "--mechanisms", "none,launch_gate", "--json", "--seed", seed}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return parse_json(outcome.out, "stdout")["mechanisms"];
  };
  EXPECT_EQ(observed("7"), observed("7"));
  EXPECT_NE(observed("7"), observed("8"));
}

TEST(Preempt, leaves_a_valid_document_when_it_is_interrupted) {
  const Folder folder;
  const pid_t process = start_weir({"preempt", "--device", "cpu", "--mechanisms", "none,launch_gate", "--iterations",
                                    "20000", "--interval", "5ms", "--victims", "waves", "-o", "preempt.json"},
                                   folder.path());
  await_handler(process, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(800));  // into the first observation; any moment would do
  ::kill(process, SIGINT);
  EXPECT_EQ(wait_for(process), 130);
  const std::string file = folder / "preempt.json";
  ASSERT_TRUE(std::filesystem::exists(file));
  expect_valid_as(file, "weir.preempt.2.json");
  EXPECT_EQ(read_json(file)["status"], "ended_early");
}

TEST(Preempt, rejects_bad_input_by_the_name_of_the_flag) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--mechanisms", "prioritty"}, "Did you mean 'priority'?"},
      {{"--mechanisms", "none,,priority"}, "--mechanisms"},
      {{"--victims", "wave"}, "Did you mean 'waves'?"},
      {{"--waves", "0"}, "--waves"},
      {{"--waves", "257"}, "Use 1 to 256."},
      {{"--blocks", "x"}, "is not a whole number"},
      {{"--block-times", "5us"}, "Use 10.0 us to 10.0 ms."},
      {{"--block-times", "20ms"}, "out of range"},
      {{"--block-times", "10"}, "is not a time"},
      {{"--block-times", "1ms..10us"}, "The shorter time comes first."},
      {{"--block-times", "10us..1ms:x1"}, "is not a step"},
      {{"--block-times", "nan us"}, "is not a time"},
      {{"--block-times", "\x1b[31mus"}, "is not a time"},
      {{"--iterations", "9"}, "--iterations"},
      {{"--iterations", "-1"}, "--iterations"},
      {{"--interval", "0ms"}, "--interval"},
      {{"--interval", "1ms,2ms"}, "one time is needed"},
      {{"--in-flight", "0"}, "--in-flight"},
      {{"--in-flight", "65"}, "Use 1 to 64."},
      {{"--alone", "0"}, "--alone"},
      {{"--seed", "-4"}, "--seed"},
      {{"--intruder-time", "3ms", "--interval", "1ms"}, "shorter than --interval"},
      {{"--device", "cup"}, "Did you mean"},
      {{"--device", "null"}, "runs nothing"},
      {{"--format", "html"}, "--format"},
      {{"--child", "/nonexistent.json"}, "/nonexistent.json"},
  };
  for (const auto& [arguments, message] : cases) {
    std::vector<std::string> all = {"preempt"};
    if (arguments[0] != "--device") all.insert(all.end(), {"--device", "cpu"});
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = weir(all);
    EXPECT_EQ(outcome.code, 2) << arguments[0] << " " << arguments[1] << outcome.err;
    EXPECT_TRUE(has(outcome.err, message)) << arguments[0] << " " << arguments[1] << ": " << outcome.err;
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
  }
}

TEST(Preempt, replaces_no_file_without_force) {
  const Folder folder;
  const std::string file = folder / "mine.json";
  std::ofstream(file) << "mine";
  const Outcome refused = weir(tiny_preempt({"--device", "sim:toy", "--mechanisms", "none", "-o", file}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "--force")) << refused.err;
  EXPECT_EQ(weir(tiny_preempt({"--device", "sim:toy", "--mechanisms", "none", "--svg", file})).code, 2);
  EXPECT_EQ(std::filesystem::file_size(file), 4u);
  EXPECT_EQ(weir(tiny_preempt({"--device", "sim:toy", "--mechanisms", "none", "-o", file, "--force"})).code, 0);
  EXPECT_EQ(read_json(file)["schema"], "weir.preempt/2");
}

TEST(Preempt, a_child_rejects_what_is_no_request) {
  const Folder folder;
  const std::string file = folder / "request.json";
  for (const char* text : {"{}", "[]", R"({"task": "observe", "mechanism": "none"})",
                           R"({"task": "victim", "mechanism": "none", "plan": {}, "victim": {}})"}) {
    std::ofstream(file, std::ios::trunc) << text;
    EXPECT_EQ(weir({"preempt", "--child", file}).code, 2) << text;
  }
}

}  // namespace
}  // namespace weir::testing
