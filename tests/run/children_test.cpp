// Child processes: what they see, how they fail, and that none outlives its time, its parent or an interrupt.
// A shell stands in for the program: "-c SCRIPT --quiet -o FILE" gives it the document's name as $2.
#include "run/children.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "support/programs.h"
#include "support/text.h"

namespace weir {
namespace {

ChildRequest script(const std::string& text) {
  ChildRequest request;
  request.program = "sh";
  request.arguments = {"-c", text};
  return request;
}

std::atomic<bool> is_interrupted{false};

ChildOutcome run(const ChildRequest& request) { return run_child(request, is_interrupted); }
std::optional<Json> document_of(const ChildRequest& request) { return child_document(request, is_interrupted); }

// Whether the process is gone, or only waits to be reaped by whoever has it now.
bool is_gone(pid_t process) {
  const std::string line = content("/proc/" + std::to_string(process) + "/stat");
  const std::size_t name_end = line.rfind(')');
  return name_end == std::string::npos || line.compare(name_end + 2, 1, "Z") == 0;
}

// A process that was killed is gone a moment later.
bool goes_away(pid_t process) {
  for (int i = 0; i < 10'000 && !is_gone(process); ++i) ::usleep(1000);
  return is_gone(process);
}

TEST(Children, OneThatFailedMayHaveADocument) {
  const ChildOutcome outcome =
      run(script(R"(echo '{"status": "failed"}' > "$2"; echo 'weir: the output is wrong' >&2; exit 1)"));
  EXPECT_EQ(outcome.end, ChildEnd::failed);
  EXPECT_EQ(outcome.message, "the output is wrong");
  EXPECT_EQ(outcome.document["status"], "failed");
  EXPECT_TRUE(run(script("echo 'weir: no' >&2; exit 1")).document.is_null());
  EXPECT_TRUE(run(script(R"(echo '{' > "$2"; echo 'weir: no' >&2; exit 1)")).document.is_null());
}

TEST(Children, AFolderIsKept) {
  ChildRequest request = script(R"(mkdir "$2"; echo '{"x": 1}' > "$2/summary.json")");
  const std::filesystem::path above =
      std::filesystem::temp_directory_path() / ("weir_children_" + std::to_string(::getpid()));
  std::filesystem::create_directory(above);
  request.folder = above / "folder";
  request.document = "summary.json";
  const ChildOutcome outcome = run(request);
  EXPECT_EQ(outcome.end, ChildEnd::done) << outcome.message;
  EXPECT_EQ(outcome.document["x"], 1);
  EXPECT_TRUE(std::filesystem::exists(above / "folder/summary.json"));
  std::filesystem::remove_all(above);
}

TEST(Children, SeeTheirVariablesOnTopOfOurs) {
  ::setenv("WEIR_TEST_KEPT", "kept", 1);
  ::setenv("WEIR_TEST_REPLACED", "old", 1);
  ::setenv("WEIR_TEST_REPLACED_NOT", "longer", 1);
  ChildRequest request = script(
      R"(printf '{"kept":"%s","replaced":"%s","longer":"%s"}' "$WEIR_TEST_KEPT" "$WEIR_TEST_REPLACED" "$WEIR_TEST_REPLACED_NOT" > "$2")");
  request.variables = {{"WEIR_TEST_REPLACED", "new value; rm -rf $HOME"}};
  const ChildOutcome outcome = run(request);
  ASSERT_EQ(outcome.end, ChildEnd::done) << outcome.message;
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.document["kept"], "kept");
  EXPECT_EQ(outcome.document["replaced"], "new value; rm -rf $HOME");
  EXPECT_EQ(outcome.document["longer"], "longer");
  EXPECT_STREQ(std::getenv("WEIR_TEST_REPLACED"), "old");
}

TEST(Children, LeaveNoFolderAndNobodyElseSeesIt) {
  const ChildOutcome outcome = run(script(R"sh(folder=$(dirname "$2"); mode=$(stat -c %a "$folder")
                       printf '{"folder":"%s","mode":"%s"}' "$folder" "$mode" > "$2")sh"));
  ASSERT_EQ(outcome.end, ChildEnd::done) << outcome.message;
  EXPECT_EQ(outcome.document["mode"], "700");
  EXPECT_FALSE(std::filesystem::exists(outcome.document["folder"].get<std::string>()));
}

TEST(Children, FailWithTheirOwnMessage) {
  const ChildOutcome outcome =
      run(script("printf 'a driver says something\\nweir: --streams 0: out of range\\n      Use 1 to\\n      "
                 "128.\\n' >&2; exit 2"));
  EXPECT_EQ(outcome.end, ChildEnd::failed);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.message, "--streams 0: out of range");
  EXPECT_EQ(outcome.hint, "Use 1 to 128.");

  EXPECT_EQ(run(script("echo 'some library gave up' >&2; exit 1")).message, "some library gave up");
  EXPECT_EQ(run(script("exit 9")).message, "it ended with status 9");
  EXPECT_EQ(run(script("kill -9 $$")).message, "it was ended by signal 9");
  EXPECT_EQ(run(script("true")).end, ChildEnd::failed) << "there is no document";
  EXPECT_EQ(run(script("echo '{' > \"$2\"")).end, ChildEnd::failed) << "half a document";
  ChildRequest absent;
  absent.program = "/there/is/no/such/program";
  EXPECT_EQ(run(absent).code, kNotExecuted);
}

TEST(Children, KeepTheFaultOfTheirParent) {
  const auto fault_of = [](const char* text) {
    try {
      document_of(script(text));
    } catch (const Error& error) {
      return error.fault;
    }
    return Fault{};
  };
  EXPECT_EQ(fault_of("echo 'weir: bad' >&2; exit 2"), Fault::input);
  EXPECT_EQ(fault_of("echo 'weir: broken' >&2; exit 1"), Fault::run);
  EXPECT_EQ(*document_of(script("echo 7 > \"$2\"")), 7);
}

TEST(Children, MaySayMoreThanAPipeHolds) {
  const ChildOutcome outcome =
      run(script("i=0; while [ $i -lt 4000 ]; do echo 'a line that nobody wants to read again' >&2; i=$((i+1)); "
                 "done; echo 'weir: the end' >&2; exit 1"));
  EXPECT_EQ(outcome.message, "the end");
}

TEST(Children, AreEndedWithAllTheyStartedWhenTheirTimeIsUp) {
  const testing::Folder folder;
  // Both refuse to be asked.
  ChildRequest request = script("trap '' TERM; (trap '' TERM; echo $$ > " + folder / "child" +
                                "; exec sleep 1000) & echo $! > " + folder / "grandchild" + "; wait; sleep 1000");
  request.limit_ns = 300'000'000;
  const ChildOutcome outcome = run(request);
  EXPECT_EQ(outcome.end, ChildEnd::timed_out);
  EXPECT_NE(outcome.message.find("300 ms"), std::string::npos) << outcome.message;
  const pid_t grandchild = std::atoi(content(folder / "grandchild").c_str());
  ASSERT_GT(grandchild, 0);
  EXPECT_TRUE(goes_away(grandchild));
}

// In a process of its own, because an interrupt is remembered.
TEST(Children, AreEndedWhenWeAreInterrupted) {
  const testing::Folder folder;
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    std::signal(SIGINT, [](int) { is_interrupted.store(true, std::memory_order_relaxed); });
    const ChildOutcome outcome = run(script("echo $$ > " + folder / "child" + "; exec sleep 1000"));
    ::_exit(outcome.end == ChildEnd::interrupted ? 42 : 1);
  }
  testing::await_handler(parent, SIGINT, true);
  while (content(folder / "child").empty()) ::usleep(1000);
  ::kill(parent, SIGINT);
  EXPECT_EQ(testing::wait_for(parent), 42);
  EXPECT_TRUE(goes_away(std::atoi(content(folder / "child").c_str())));
}

TEST(Children, DieWithTheirParent) {
  const testing::Folder folder;
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    ::setenv("TMPDIR", folder.path().c_str(), 1);  // nobody is left to remove the child's folder
    run(script("echo $$ > " + folder / "child" + "; exec sleep 1000"));
    ::_exit(1);
  }
  while (content(folder / "child").empty()) ::usleep(1000);
  ::kill(parent, SIGKILL);
  EXPECT_EQ(testing::wait_for(parent), 128 + SIGKILL);
  EXPECT_TRUE(goes_away(std::atoi(content(folder / "child").c_str())));
}

TEST(Children, QueueSettingsAreWhatTheDeviceReads) {
  DeviceInfo info;
  info.queue_variable = "CUDA_DEVICE_MAX_CONNECTIONS";
  info.max_hardware_queues = 32;
  ChildRequest request;
  queue_setting(info).apply(16, request);
  EXPECT_EQ(request.variables, (Variables{{"CUDA_DEVICE_MAX_CONNECTIONS", "16"}}));
  EXPECT_TRUE(request.arguments.empty());
  EXPECT_EQ(queue_setting(info).text(16), "CUDA_DEVICE_MAX_CONNECTIONS=16");
  info.queue_variable = "";
  request = {};
  queue_setting(info).apply(3, request);
  EXPECT_EQ(request.arguments, (std::vector<std::string>{"--hw-queues", "3"}));
  EXPECT_TRUE(request.variables.empty());
  info.max_hardware_queues = 0;
  EXPECT_THROW(queue_setting(info), Error);
}

}  // namespace
}  // namespace weir
