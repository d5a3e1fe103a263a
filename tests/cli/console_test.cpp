// What is left of the program where its streams, its memory, its threads or its files are refused: the exit code that
// the command would have had, and one clear message.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "base/json.h"
#include "cli/program.h"

namespace weir::testing {
namespace {

const std::vector<std::string> kTinyRun = {"run",  "hetero_kernels", "--device", "cpu",      "--scale",
                                           "tiny", "--iterations",   "2",        "--warmup", "0"};

// The same in a fraction of the time: nothing is computed.
const std::vector<std::string> kNullRun = {"run", "hetero_kernels", "--device", "null", "--scale", "tiny"};

// Runs it as "$@" within a line of bash.
Outcome within(const std::string& line, const std::vector<std::string>& arguments,
               const std::filesystem::path& folder = ".") {
  std::vector<std::string> command = {"bash", "-c", line, "bash", WEIR_BINARY};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_program(command, folder);
}

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

constexpr const char* kBug = "This is a bug in weir";
bool is_bug(const Outcome& outcome) { return outcome.err.find(kBug) != std::string::npos; }

TEST(Streams, AnUnwritableErrorStreamKeepsTheExitCode) {
  const Folder folder;
  const std::pair<std::vector<std::string>, int> commands[] = {
      {{"--version"}, 0},
      {{"list"}, 0},
      {{"nonsense"}, 2},
      {{"run", "no_such_workload"}, 2},
      {{"run", "--nonsense"}, 2},
      {{"run", "hetero_kernels", "--device", "null", "--param", "size=-1"}, 2},
      {{"compare", "no_such_file.json", "neither.json"}, 2},
      {with(kNullRun, {"--quiet"}), 0},
  };
  for (const auto& [arguments, code] : commands)
    for (const std::string redirection : {"2>/dev/full", "2>&-", "</dev/null 2>&-", "<&- 2>&-"})
      EXPECT_EQ(within("exec \"$@\" " + redirection, arguments, folder.path()).code, code)
          << arguments[0] << " " << redirection;
}

// Every combination of closed descriptors. Standard output counts where something is printed.
TEST(Streams, ClosedDescriptorsAreNobodysFiles) {
  const Folder folder;
  int count = 0;
  for (const std::string in : {"", " <&-"})
    for (const std::string out : {" >/dev/null", " >&-"})
      for (const std::string err : {"", " 2>&-"}) {
        const std::string file = folder / ("result" + std::to_string(count++) + ".json");
        const std::string line = "exec \"$@\"" + in + out + err;
        const bool is_closed = out == " >&-";
        const Outcome quiet = within(line, with(kNullRun, {"--quiet", "-o", file}));
        EXPECT_EQ(quiet.code, 0) << line << quiet.err;
        EXPECT_EQ(read_json(file)["status"], "complete") << line;
        const Outcome loud = within(line, with(kNullRun, {"--force", "-o", file}));
        EXPECT_EQ(loud.code, is_closed ? 1 : 0) << line << loud.err;
        EXPECT_EQ(read_json(file)["status"], "complete")
            << line;  // saved before it was printed, and nothing else in it
        EXPECT_EQ(within(line, {"nonsense"}).code, 2) << line;
        if (is_closed && err.empty()) {
          EXPECT_NE(loud.err.find("cannot write to standard output: "), std::string::npos) << loud.err;
        }
      }
}

TEST(Streams, AFullDiskIsAnErrorWithItsReason) {
  const std::vector<std::string> commands[] = {{"--version"},          {"--help"},        {},       {"list"},
                                               {"help", "--markdown"}, {"help", "--man"}, {"info"}, kNullRun};
  for (const std::vector<std::string>& arguments : commands) {
    const Outcome outcome = within("exec \"$@\" >/dev/full", arguments);
    EXPECT_EQ(outcome.code, 1) << (arguments.empty() ? "" : arguments[0]) << outcome.err;
    EXPECT_EQ(outcome.err, "weir: cannot write to standard output: No space left on device\n");
  }
  // What the command found is worth more than that.
  EXPECT_EQ(within("exec \"$@\" >/dev/full", {"nonsense"}).code, 2);
}

// Whether the shell left SIGPIPE alone or a service manager ignores it.
TEST(Streams, AReaderWhoHasGoneEndsItQuietly) {
  for (const std::string before : {"", "trap '' PIPE; "}) {
    const Outcome outcome = within(before + "{ \"$@\"; echo $? >&2; } | true", {"help", "--markdown"});
    EXPECT_EQ(outcome.err, "141\n") << before;
    // It may be measuring: what it measures is saved first.
    const Folder folder;
    const Outcome run = within(before + "{ \"$@\"; echo $? >&2; } | true", with(kNullRun, {"-o", folder / "r.json"}));
    EXPECT_TRUE(run.err == "141\n" || run.err == "0\n") << run.err;  // 0: it printed before `true` ended
    EXPECT_EQ(read_json(folder / "r.json")["status"], "complete");
  }
}

// Other processes make shared terminals and pipes non-blocking: output waits for the reader all the same.
TEST(Streams, ANonBlockingPipeLosesNothing) {
  const std::string whole = weir({"help", "--markdown"}).out;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  ASSERT_GT(static_cast<int>(whole.size()), ::fcntl(ends[1], F_SETPIPE_SZ, 4096));
  const pid_t process = ::fork();
  if (process == 0) {
    ::dup2(ends[1], STDOUT_FILENO);  // the same open pipe: one that is opened anew would block
    ::execl(WEIR_BINARY, WEIR_BINARY, "help", "--markdown", nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string read;
  char part[1000];
  for (ssize_t count = 0; (count = ::read(ends[0], part, sizeof part)) > 0;)
    read.append(part, static_cast<std::size_t>(count));
  ::close(ends[0]);
  EXPECT_EQ(wait_for(process), 0);
  EXPECT_EQ(read, whole);
}

// A limit on the size of files is an error of the write, not the end of the program; programs of users keep theirs.
TEST(Streams, AFileSizeLimitIsAWriteError) {
  const Folder folder;
  const Outcome outcome = within("ulimit -f 1; exec \"$@\" >" + folder / "out", {"help", "--markdown"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "weir: cannot write to standard output: File too large\n");
}

TEST(Streams, TextsAreAsWideAsANarrowTerminal) {
  for (const std::string columns : {"40", "60", "80"}) {
    const Outcome outcome = within("COLUMNS=" + columns + " exec \"$@\"", kNullRun);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::size_t longest = 0;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
    EXPECT_LE(longest, std::stoul(columns)) << outcome.out;
    EXPECT_GT(longest, std::stoul(columns) / 2) << outcome.out;
  }
  const std::string usual = within("unset COLUMNS; exec \"$@\"", {"list", "-v"}).out;
  for (const std::string odd : {"0", "-1", "x", "200", ""})
    EXPECT_EQ(within("COLUMNS=" + odd + " exec \"$@\"", {"list", "-v"}).out, usual) << odd;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need address space and threads

// Ends what hangs; a busy machine takes a fraction of it.
constexpr const char* kPatience = "timeout -s KILL 120";

TEST(Limits, SixtyMegabytesAndOneProcessAreEnoughToStart) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--version"}, {"--help"}, {"list"}, {"help", "run"}}) {
    const Outcome outcome = within("ulimit -v 60000; exec \"$@\"", arguments);
    EXPECT_EQ(outcome.code, 0) << arguments[0] << outcome.err;
    EXPECT_EQ(outcome.out, weir(arguments).out);
  }
  // Root has no limit on processes, so it becomes somebody else, who may have to be able to read the program.
  const std::string who = ::geteuid() == 0 ? "setpriv --reuid=64321 --clear-groups " : "";
  if (!who.empty() && within("exec " + who + "\"$@\"", {"--version"}).code != 0)
    GTEST_SKIP() << "nobody else can run " << WEIR_BINARY;
  const Outcome alone = within("ulimit -u 1; exec " + who + "\"$@\"", {"--version"});
  EXPECT_EQ(alone.code, 0) << alone.err;
}

// It starts no thread and maps no library that --version does not need.
TEST(Limits, NothingIsLoadedBeforeItIsNeeded) {
  const Outcome needed = within("LD_TRACE_LOADED_OBJECTS=1 exec \"$@\"", {"--version"});
  EXPECT_NE(needed.out.find("libc.so"), std::string::npos) << needed.out;
  for (const char* const library : {"blas", "gfortran", "libmpi", "OpenCL", "libcuda", "amdhip"})
    EXPECT_EQ(needed.out.find(library), std::string::npos) << needed.out;
}

// Whatever there is room for: it works, or says what is missing. It never hangs, crashes, or calls it a bug.
TEST(Limits, LittleAddressSpaceIsAnErrorOrEnough) {
  const std::vector<std::string> commands[] = {kTinyRun, {"list"}, with(kTinyRun, {"--submit", "threads:2"})};
  for (const std::vector<std::string>& arguments : commands)
    for (const std::string kilobytes : {"70000", "100000", "140000", "200000"}) {
      const Outcome outcome = within("ulimit -v " + kilobytes + "; exec " + kPatience + " \"$@\"", arguments);
      EXPECT_TRUE(outcome.code == 0 || outcome.code == 1) << arguments[0] << " " << kilobytes << ": " << outcome.code;
      EXPECT_FALSE(is_bug(outcome)) << outcome.err;
      if (outcome.code == 1) {
        EXPECT_TRUE(outcome.err.starts_with("weir: ")) << outcome.err;
        EXPECT_NE(outcome.err.find("ulimit -v"), std::string::npos) << outcome.err;
      }
    }
}

TEST(Limits, FewThreadsAreAnErrorOrEnough) {
  const std::string who = ::geteuid() == 0 ? "setpriv --reuid=64321 --clear-groups " : "";
  if (!who.empty() && within("exec " + who + "\"$@\"", {"--version"}).code != 0)
    GTEST_SKIP() << "nobody else can run " << WEIR_BINARY;
  const Folder folder;
  for (const std::string processes : {"1", "2", "4"}) {
    const Outcome outcome = within("ulimit -u " + processes + "; exec " + who + "\"$@\"", with(kTinyRun, {"--quiet"}));
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 1) << processes << ": " << outcome.code << outcome.err;
    EXPECT_FALSE(is_bug(outcome)) << outcome.err;
    if (outcome.code == 1) {
      EXPECT_NE(outcome.err.find("thread"), std::string::npos) << outcome.err;
      EXPECT_NE(outcome.err.find("ulimit -u"), std::string::npos) << outcome.err;
    }
  }
}

// All kinds of commands under all limits, as a table of exit codes.
TEST(Limits, EveryCommandUnderEveryLimit) {
  if (std::getenv("WEIR_LONG_TESTS") == nullptr) GTEST_SKIP() << "minutes: set WEIR_LONG_TESTS=1";
  const Folder folder;
  const std::string sim = "--device=sim:h200", result = folder / "a.json", trace = folder / "trace.json";
  ASSERT_EQ(weir({"run", "hetero_kernels", sim, "--scale", "tiny", "-o", result}).code, 0);
  ASSERT_EQ(weir({"profile", "hetero_kernels", sim, "--scale", "tiny", "-o", trace}).code, 0);
  const std::vector<std::string> commands[] = {
      {"--version"},
      {"list", "-v"},
      {"info"},
      kTinyRun,
      {"run", "hetero_kernels", sim, "--scale", "tiny"},
      {"sweep", "hetero_kernels", "--streams", "1,2", sim, "--scale", "tiny", "--force", "-o", folder / "sweep.json"},
      {"profile", "hetero_kernels", "--device", "cpu", "--scale", "tiny", "--force", "-o", folder / "profile.json"},
      {"analyze", trace},
      {"export", result},
      {"report", result, "--force", "-o", folder / "report.html"},
      {"history", "add", result, "--db", folder / "history.db"},
      {"queues", "map", sim},
      {"channel", "--list"},
      {"nonsense"}};
  const std::pair<std::string, std::string> limits[] = {{"none", ""},
                                                        {"-v 60000", "ulimit -v 60000; "},
                                                        {"-v 120000", "ulimit -v 120000; "},
                                                        {"-v 200000", "ulimit -v 200000; "},
                                                        {"-n 8", "ulimit -n 8; "},
                                                        {"-n 16", "ulimit -n 16; "},
                                                        {">/dev/full", ">/dev/full"},
                                                        {"2>/dev/full", "2>/dev/full"},
                                                        {"<&- >&- 2>&-", "<&- >&- 2>&-"}};
  for (const auto& arguments : commands) {
    std::string row = arguments[0] + ":";
    const int usual = weir(arguments, folder.path()).code;
    for (const auto& [name, words] : limits) {
      const bool is_limit = words.starts_with("ulimit");
      const Outcome outcome =
          within((is_limit ? words : "") + "exec " + kPatience + " \"$@\" " + (is_limit ? "" : words), arguments,
                 folder.path());
      row += " " + name + " " + std::to_string(outcome.code) + ";";
      const bool may_fail = is_limit || words.find('>') == 0 || words.find(" >") != std::string::npos;
      EXPECT_TRUE(outcome.code == usual || (may_fail && outcome.code == 1)) << row << outcome.err;
      EXPECT_FALSE(is_bug(outcome)) << row << outcome.err;
    }
    std::cout << row << "\n";
  }
}
#endif

TEST(Limits, FewDescriptorsAreEnough) {
  const Folder folder;
  const std::string file = folder / "result.json";
  const Outcome run = within("ulimit -n 16; exec \"$@\"", with(kTinyRun, {"-o", file}));
  EXPECT_EQ(run.code, 0) << run.err;
  const Outcome compared = within("ulimit -n 16; exec \"$@\"", {"compare", file, file});
  EXPECT_EQ(compared.code, 0) << compared.err;
  for (const std::string descriptors : {"9", "10", "12"}) {
    const Outcome outcome = within("ulimit -n " + descriptors + "; exec \"$@\"", with(kTinyRun, {"--quiet"}));
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 1) << descriptors << ": " << outcome.code;
    EXPECT_FALSE(is_bug(outcome)) << outcome.err;
  }
}

}  // namespace
}  // namespace weir::testing
