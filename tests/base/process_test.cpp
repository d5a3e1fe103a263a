// Child processes: how they end, what they say, and that nothing of them is left.
#include "base/process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

namespace weir::testing {
namespace {

ProcessOptions shell(const std::string& script) {
  ProcessOptions options;
  options.command = {"/bin/sh", "-c", script};
  return options;
}

// False once the process is gone, or dead and not yet buried.
bool lives(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.substr(name_end + 2, 1) != "Z";
}
bool ends(pid_t pid) {
  for (int i = 0; i < 500 && lives(pid); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return !lives(pid);
}

TEST(Process, tells_how_it_ended) {
  Process fine(shell("echo one; echo two >&2"));
  EXPECT_TRUE(fine.finish(60).is_success());
  EXPECT_EQ(fine.output().text(), "one\ntwo");
  EXPECT_EQ(Process(shell("exit 3")).finish(60).words(), "ended with status 3");
  EXPECT_EQ(Process(shell("kill -SEGV $$")).finish(60).words(), "was killed by signal 11 (Segmentation fault)");
}

TEST(Process, arguments_go_to_the_program_as_they_are) {
  ProcessOptions options;
  options.command = {"printf", "%s|", "a b", "$HOME", "`id`"};
  Process process(std::move(options));
  EXPECT_TRUE(process.finish(60).is_success());
  EXPECT_EQ(process.output().text(), "a b|$HOME|`id`|");
}

TEST(Process, a_program_that_is_not_there_is_told_apart) {
  ProcessOptions options;
  options.command = {"no-such-program"};
  try {
    Process process(options);
    FAIL();
  } catch (const StartError& error) {
    EXPECT_TRUE(error.is_missing);
    EXPECT_STREQ(error.what(), "cannot start no-such-program: No such file or directory");
  }
  options = shell("true");
  options.folder = "/no/such/folder";
  try {
    Process process(options);
    FAIL();
  } catch (const StartError& error) {
    EXPECT_FALSE(error.is_missing);
    EXPECT_NE(std::string(error.what()).find("/no/such/folder"), std::string::npos);
  }
}

TEST(Process, is_stopped_at_its_limit_with_its_children) {
  ProcessOptions options = shell("sleep 1000 & echo $!; wait");
  Process process(std::move(options));
  const ProcessEnd end = process.finish(0.5);
  EXPECT_EQ(end.how, ProcessEnd::How::timed_out);
  EXPECT_EQ(end.words(0.5), "took longer than 0.5 s and was stopped");
  EXPECT_TRUE(ends(std::stoi(process.output().text())));
}

TEST(Process, children_that_outlive_it_are_not_waited_for_and_do_not_stay) {
  Process process(shell("sleep 1000 & echo $!"));
  EXPECT_TRUE(process.finish(60).is_success());
  EXPECT_TRUE(ends(std::stoi(process.output().text())));
}

TEST(Process, is_stopped_when_we_are) {
  ProcessOptions options = shell("sleep 1000");
  options.is_stopped = [] { return true; };
  EXPECT_EQ(Process(std::move(options)).finish(60).how, ProcessEnd::How::stopped);
}

TEST(Process, dies_with_whoever_started_it) {
  int ends_of[2];
  ASSERT_EQ(::pipe(ends_of), 0);
  const pid_t middle = ::fork();
  if (middle == 0) {
    ProcessOptions options = shell("echo $$; sleep 1000");
    options.out = ProcessOptions::Output::read;
    options.has_input = true;
    Process process(std::move(options));
    std::string line;
    process.ask("", 60, 100, line);
    if (::write(ends_of[1], line.data(), line.size()) < 0) ::_exit(1);
    ::_exit(0);  // without any destructor, as in a crash
  }
  ::close(ends_of[1]);
  char text[32] = {};
  ASSERT_GT(::read(ends_of[0], text, sizeof text - 1), 0);
  ::close(ends_of[0]);
  ::waitpid(middle, nullptr, 0);
  EXPECT_TRUE(ends(std::stoi(text)));
}

TEST(Process, limits_hold) {
  ProcessOptions options = shell("ulimit -c; ulimit -f; ulimit -t; ulimit -v");
  options.file_bytes = 1024 * 1024;
  options.cpu_s = 50;
  options.core_bytes = 0;
  options.memory_bytes = std::uint64_t{8} << 30;
  Process process(std::move(options));
  EXPECT_TRUE(process.finish(60).is_success());
  const std::string text = process.output().text();
  EXPECT_TRUE(text.starts_with("0\n")) << text;
  EXPECT_NE(text.find("\n50\n8388608"), std::string::npos) << text;
}

TEST(Process, talks_in_lines) {
  ProcessOptions options = shell("while read line; do echo \"[$line]\"; echo \"heard $line\" >&2; done");
  options.out = ProcessOptions::Output::read;
  options.has_input = true;
  Process process(std::move(options));
  std::string line;
  for (const char* word : {"one", "two"}) {
    ASSERT_EQ(process.ask(std::string(word) + "\n", 60, 100, line), Process::Answer::line);
    EXPECT_EQ(line, "[" + std::string(word) + "]");
  }
  EXPECT_TRUE(process.finish(60).is_success());
  EXPECT_EQ(process.output().text(), "heard one\nheard two");
}

TEST(Process, what_is_no_answer_is_told_apart) {
  const auto ask = [](const std::string& script, double limit_s, std::string& line) {
    ProcessOptions options = shell(script);
    options.out = ProcessOptions::Output::read;
    options.has_input = true;
    Process process(std::move(options));
    return process.ask("hello\n", limit_s, 100, line);
  };
  std::string line;
  EXPECT_EQ(ask("read x; printf half", 60, line), Process::Answer::ended);
  EXPECT_EQ(line, "half");
  EXPECT_EQ(ask("read x; sleep 1000", 0.2, line), Process::Answer::timed_out);
  EXPECT_EQ(ask("read x; head -c 100000 /dev/zero; sleep 1000", 60, line), Process::Answer::too_long);
  EXPECT_EQ(line.size(), 100U);
  EXPECT_EQ(ask("exec 0<&-; sleep 0.1", 60, line), Process::Answer::ended);

  ProcessOptions options = shell("read x; printf 'one\\nmore\\n'; read x; sleep 1000");
  options.out = ProcessOptions::Output::read;
  options.has_input = true;
  Process process(std::move(options));
  ASSERT_EQ(process.ask("hello\n", 60, 100, line), Process::Answer::line);
  EXPECT_EQ(process.ask("hello\n", 60, 100, line), Process::Answer::unexpected);
  EXPECT_EQ(line, "more");
}

TEST(Process, large_questions_and_much_talk_do_not_block_each_other) {
  // It talks before it reads, more than pipes hold.
  ProcessOptions options = shell(
      "head -c 300000 /dev/zero >&2; cat > /dev/null & head -c 300000 /dev/zero >&2; "
      "read x; echo done");
  options.out = ProcessOptions::Output::read;
  options.has_input = true;
  Process process(std::move(options));
  std::string line;
  std::string question(200'000, 'x');
  question.push_back('\n');
  EXPECT_EQ(process.ask(question, 60, 100, line), Process::Answer::line);
  EXPECT_EQ(line, "done");
}

TEST(KeptOutput, keeps_the_beginning_and_the_end) {
  KeptOutput output(10);
  output.add("0123456789");
  for (int i = 0; i < 10000; ++i) output.add("some words\n");
  output.add("the end\033");
  const std::string text = output.text();
  EXPECT_TRUE(text.starts_with("0123456789\n[93624 bytes left out]\n")) << text.substr(0, 60);
  EXPECT_TRUE(text.ends_with("some words\nthe end?"));
  EXPECT_LT(text.size(), KeptOutput::kLastBytes + 100);
  KeptOutput whole;
  whole.add("all");
  EXPECT_EQ(whole.text(), "all");
}

}  // namespace
}  // namespace weir::testing
