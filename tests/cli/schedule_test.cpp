// --schedule and --in-flight from the command line to the result, the table and the comparison.
#include <gtest/gtest.h>

#include <set>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

std::vector<std::string> tiny_scheduled(const char* command, const std::vector<std::string>& more) {
  std::vector<std::string> words = {command, "hetero_kernels", "--device", "cpu",          "--scale",
                                    "tiny",  "--streams",      "4",        "--iterations", "5"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Schedule, flags_name_the_way_in_full) {
  const Folder folder;
  int number = 0;
  const auto submit_of = [&](std::vector<std::string> flags) {
    const std::string file = folder / (std::to_string(++number) + ".json");
    flags.insert(flags.end(), {"--no-trace", "-o", file});
    const Outcome outcome = weir(tiny_scheduled("run", flags));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(has(outcome.out, "submit scheduled:")) << outcome.out;
    EXPECT_TRUE(has(outcome.out, "per command with waiting")) << outcome.out;
    return outcome.code == 0 ? read_json(file)["submit"].get<std::string>() : "";
  };
  EXPECT_EQ(submit_of({"--schedule", "priority"}), "scheduled:priority:2");
  EXPECT_EQ(submit_of({"--schedule", "weighted_fair", "--in-flight", "4"}), "scheduled:weighted_fair:4");
  EXPECT_EQ(submit_of({"--schedule", "fifo", "--submit", "inline"}), "scheduled:fifo:2");
  EXPECT_EQ(submit_of({"--submit", "scheduled:time_slice:3"}), "scheduled:time_slice:3");
}

TEST(Schedule, says_what_is_wrong) {
  struct Refused {
    std::vector<std::string> flags;
    const char* said;
  };
  for (const Refused& refused : {
           Refused{{"--schedule", "priorty"}, "priority"},
           Refused{{"--schedule", "fifo,priority"}, "there is no such policy"},
           Refused{{"--schedule", "priority", "--in-flight", "0"}, "--in-flight 0"},
           Refused{{"--schedule", "priority", "--in-flight", "many"}, "--in-flight many"},
           Refused{{"--in-flight", "4"}, "nothing is scheduled"},
           Refused{{"--schedule", "priority", "--submit", "graph"}, "a graph is one launch"},
           Refused{{"--schedule", "priority", "--submit", "threads:2"}, "without asking each other"},
           Refused{{"--schedule", "priority", "--submit", "channel"}, "an order of its own"},
           Refused{{"--schedule", "priority", "--submit", "scheduled:fifo"}, "names its policy already"},
           Refused{{"--submit", "scheduled"}, "a policy is needed"},
       }) {
    std::string typed;
    for (const std::string& flag : refused.flags) typed += flag + " ";
    for (const char* command : {"run", "profile"}) {
      const Folder folder;
      const Outcome outcome = weir(tiny_scheduled(command, refused.flags), folder.path());
      EXPECT_EQ(outcome.code, 2) << typed << outcome.out;
      EXPECT_TRUE(has(outcome.err, refused.said)) << typed << "\n" << outcome.err;
    }
  }
  const Outcome many =
      weir({"run", "tiny_kernel_stress", "--device", "null", "--streams", "128", "--schedule", "fifo"});
  EXPECT_EQ(many.code, 2);
  EXPECT_TRUE(has(many.err, "64 streams at most")) << many.err;
}

TEST(Schedule, sweeps_keep_policies_apart_and_resume) {
  const Folder folder;
  const std::string file = folder / "s.json";
  std::vector<std::string> words = {
      "sweep",     "hetero_kernels", "--device", "cpu", "--scale", "tiny",       "--streams",
      "2,4",       "--iterations",   "3",        "-o",  file,      "--schedule", "fifo,priority",
      "--no-trace"};
  const Outcome outcome = weir(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::set<std::string> curves;
  const Json sweep = read_json(file);
  for (const auto& [name, curve] : sweep["scaling"].items()) curves.insert(name);
  EXPECT_EQ(curves, (std::set<std::string>{"scheduled:fifo:2", "scheduled:priority:2"}));
  words.push_back("--resume");
  EXPECT_TRUE(has(weir(words).out, "kept"));
}

TEST(Schedule, scheduled_and_unscheduled_runs_are_never_compared) {
  const Folder folder;
  ASSERT_EQ(weir(tiny_scheduled("run", {"--no-trace", "-o", folder / "inline.json"})).code, 0);
  for (const char* in_flight : {"1", "2"})
    ASSERT_EQ(weir(tiny_scheduled("run", {"--schedule", "priority", "--in-flight", in_flight, "--no-trace", "-o",
                                          folder / (std::string(in_flight) + ".json")}))
                  .code,
              0);
  EXPECT_EQ(weir({"compare", folder / "2.json", folder / "2.json"}).code, 0);
  for (const char* other : {"inline.json", "1.json"}) {
    const Outcome outcome = weir({"compare", folder / other, folder / "2.json"});
    EXPECT_NE(outcome.code, 0);
    EXPECT_TRUE(has(outcome.out + outcome.err, "scheduled:priority:2")) << outcome.out << outcome.err;
  }
}

TEST(Schedule, profiles_show_how_long_commands_were_held_back) {
  const Folder folder;
  const Outcome made = weir(tiny_scheduled("profile", {"--schedule", "priority", "-o", folder / "t.json"}));
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(has(made.out, "enqueued -> submitted")) << made.out;
}

TEST(Schedule, a_class_of_workloads_can_be_scheduled) {
  const Folder folder;
  const Outcome outcome = weir({"run", "P0", "--device", "sim:h200", "--scale", "tiny", "--iterations", "2",
                                "--no-trace", "--schedule", "weighted_fair", "-o", folder / "all"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "scheduled:weighted_fair:2")) << outcome.out;
}

}  // namespace
}  // namespace weir::testing
