// weir try as a user types it: forms, exit codes, messages, the document, Ctrl-C and kill.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "base/json.h"
#include "base/process.h"
#include "cli/program.h"

namespace weir::testing {
namespace {

using Arguments = std::vector<std::string>;

std::string script_in(const Folder& folder, const std::string& name, const std::string& text) {
  const std::string file = folder / name;
  std::ofstream(file) << "#!/bin/sh\n" << text << "\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file;
}

Json trials_in(const Folder& folder, const std::string& name = "out") {
  return read_json(folder / (name + "/trials.json"));
}

TEST(Try, names_the_variable_that_makes_a_program_fail) {
  const Folder folder;
  script_in(folder, "train", "[ \"$ALGO\" != Tree ] || exit 3");
  const Outcome outcome = weir({"try", "--env", "QUEUES=2,4", "--env", "ALGO=Ring,Tree", "--failures-only", "--trials",
                                "10", "-o", "out", "--", "./train", "--flag"},
                               folder.path());
  EXPECT_EQ(outcome.code, 3) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("ALGO=Tree makes it fail"), std::string::npos) << outcome.out;
  EXPECT_EQ(trials_in(folder)["plan"]["commands"][0].size(), 2U);
  expect_valid_as(folder / "out/trials.json", "weir.trials.2.json");
}

TEST(Try, compares_two_commands_by_a_number_in_their_output) {
  const Folder folder;
  script_in(folder, "a", "n=$(cat n$1 2>/dev/null || echo 0); echo $((n + 1)) > n$1; echo \"rate: $(($1 + n % 5))\"");
  const Arguments flags = {"try", "--metric", "rate: ([0-9.]+)", "--higher-is-better", "--trials", "12", "-o"};
  Arguments slower = flags;
  slower.insert(slower.end(), {"slower", "./a 1000", "./a '800'"});
  EXPECT_EQ(weir(slower, folder.path()).code, 3);
  EXPECT_EQ(trials_in(folder, "slower")["settings"][1]["verdict"].get<std::string>(), "slower");
  Arguments faster = flags;
  faster.insert(faster.end(), {"faster", "./a 1000", "./a 1200"});
  const Outcome outcome = weir(faster, folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(trials_in(folder, "faster")["settings"][1]["verdict"].get<std::string>(), "faster");
  expect_valid_as(folder / "faster/trials.json", "weir.trials.2.json");
}

TEST(Try, unclear_is_4_with_strict_only) {
  const Folder folder;
  script_in(folder, "a", "echo v $1");
  // Two trials a side prove nothing.
  const Arguments flags = {"try",     "--metric", "v ([0-9]+)", "--trials", "2",
                           "./a 100", "./a 150",  "--strict",   "-o",       "x"};
  EXPECT_EQ(weir(flags, folder.path()).code, 4);
  EXPECT_EQ(weir({flags.begin(), flags.begin() + 7}, folder.path()).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "results/try/trials.json"));
}

// Two seconds after the start there is a line on standard error, also where that is no terminal.
TEST(Try, shows_how_far_it_is) {
  const Folder folder;
  const Outcome outcome = weir({"try", "--trials", "2", "--json", "--", "sleep", "2.5"}, folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("weir: trials, 1 of 2\n"), std::string::npos) << outcome.err;
  const Outcome quiet = weir({"try", "--trials", "1", "--json", "-q", "--", "sleep", "2.5"}, folder.path());
  EXPECT_EQ(quiet.err, "");
}

TEST(Try, rejects_what_cannot_work_before_a_trial) {
  const Folder folder;
  const std::vector<std::pair<Arguments, const char*>> wrong = {
      {{"try"}, "a program is required"},
      {{"try", "--"}, "a program is required"},
      {{"try", "true | false"}, "no shell"},
      {{"try", "--env", "X", "--", "true"}, "NAME=VALUE"},
      {{"try", "--env", "X=1", "--env", "X=2", "--", "true"}, "given twice"},
      {{"try", "--metric", "x", "--", "true"}, "one group"},
      {{"try", "--trials", "0", "--", "true"}, "--trials 0"},
      {{"try", "--timeout", "soon", "--", "true"}, "--timeout soon"},
      {{"try", "--higher-is-better", "--", "true"}, "no --metric"},
      {{"try", "stray", "--", "true"}, "before -- is not expected"},
      {{"try", "--", "./missing"}, "no such program"},
  };
  for (const auto& [arguments, message] : wrong) {
    const Outcome outcome = weir(arguments, folder.path());
    EXPECT_EQ(outcome.code, 2) << arguments.back() << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "results"));
}

TEST(Try, a_folder_with_trials_is_not_overwritten) {
  const Folder folder;
  const Arguments once = {"try", "--trials", "1", "-o", "out", "--", "true"};
  EXPECT_EQ(weir(once, folder.path()).code, 0);
  const Outcome again = weir(once, folder.path());
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("--resume"), std::string::npos);
  Arguments forced = once;
  forced.insert(forced.begin() + 1, "--force");
  EXPECT_EQ(weir(forced, folder.path()).code, 0);
}

TEST(Try, a_kill_ends_also_what_a_trial_has_started) {
  const Folder folder;
  const pid_t process = start_weir(
      {"try", "-o", "out", "--", "sh", "-c", "sleep 1000 & echo $! > " + folder / "new" + "; mv new sleeper; wait"},
      folder.path());
  for (int i = 0; i < 6000 && !std::filesystem::exists(folder / "sleeper"); ++i) ::usleep(10'000);
  pid_t sleeper = 0;
  std::ifstream(folder / "sleeper") >> sleeper;
  ASSERT_GT(sleeper, 0);
  ::kill(process, SIGKILL);
  EXPECT_EQ(wait_for(process), 128 + SIGKILL);
  const auto runs = [&] {
    const auto facts = facts_of(sleeper);
    return facts && !facts->is_ended();
  };
  for (int i = 0; i < 6000 && runs(); ++i) ::usleep(10'000);
  EXPECT_FALSE(runs());
  ::kill(sleeper, SIGKILL);
}

// Ctrl-C ends the trial that runs; a kill leaves what was saved; both are continued without repeating a trial.
TEST(Try, goes_on_after_an_interrupt_and_after_a_kill) {
  const Folder folder;
  // The fourth trial waits for a signal, and so does the seventh.
  script_in(folder, "a",
            "echo . >> log; n=$(wc -l < log); echo v 10; case $n in 4|7) touch waits$n; exec sleep 1000;; esac");
  const Arguments flags = {"try",        "--env", "X=1,2,3", "--trials", "4",  "--metric",
                           "v ([0-9]+)", "-o",    "out",     "--",       "./a"};
  Arguments resumed = flags;
  resumed.insert(resumed.begin() + 1, "--resume");
  const auto wait_and_send = [&](pid_t process, const std::string& file, int number) {
    for (int i = 0; i < 6000 && !std::filesystem::exists(folder / file); ++i) ::usleep(10'000);
    ::kill(process, number);
    return wait_for(process);
  };
  EXPECT_EQ(wait_and_send(start_weir(flags, folder.path()), "waits4", SIGINT), 130);
  EXPECT_EQ(trials_in(folder)["trials"].size(), 3U);
  EXPECT_EQ(trials_in(folder)["status"].get<std::string>(), "interrupted");
  EXPECT_EQ(wait_and_send(start_weir(resumed, folder.path()), "waits7", SIGKILL), 128 + SIGKILL);
  EXPECT_EQ(trials_in(folder)["trials"].size(), 5U);
  const Outcome outcome = weir(resumed, folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("Continuing after 5 trials"), std::string::npos) << outcome.out;
  const Json document = trials_in(folder);
  EXPECT_EQ(document["status"].get<std::string>(), "complete");
  std::ifstream log(folder / "log");
  // Two trials were cut off; all others ran once.
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(log), {}, '\n'),
            static_cast<long>(document["trials"].size()) + 2);
  const Outcome other = weir({"try", "--resume", "-o", "out", "--", "true"}, folder.path());
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("something else"), std::string::npos);
}

TEST(Try, is_shown_by_report) {
  const Folder folder;
  weir({"try", "--trials", "1", "-o", "out", "--", "true"}, folder.path());
  EXPECT_EQ(weir({"report", "out/trials.json", "-o", "page.json"}, folder.path()).code, 0);
}

}  // namespace
}  // namespace weir::testing
