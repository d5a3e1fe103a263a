// Files that are no traces, traces of something else, and hostile ones.
#include "amd/ftrace/read.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace weir::ftrace {
namespace {

struct Nothing : KfdSink {};

FtraceCounters read(const std::string& text) {
  Nothing sink;
  const auto source = bytes_of(text);
  return read_ftrace(*source, sink, {"t.txt", {}});
}

// "WHAT | HINT" of the rejection.
std::string rejection(const std::string& text, bool wants_kfd = false) {
  try {
    const FtraceCounters counters = read(text);
    if (wants_kfd) require_kfd(counters, "t.txt");
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    return std::string(error.what()) + " | " + error.hint;
  }
  return "";
}

TEST(FtraceRead, rejects_an_empty_file) { EXPECT_NE(rejection("").find("t.txt: empty"), std::string::npos); }

TEST(FtraceRead, says_how_to_make_text_of_a_binary_trace) {
  const std::string binary = std::string("\x17\x08\x44tracing6\0\0\0", 13) + std::string(100, '\1');
  EXPECT_NE(rejection(binary).find("trace-cmd report FILE > text"), std::string::npos);
  EXPECT_NE(rejection("PERFILE2" + std::string(100, '\0')).find("perf script"), std::string::npos);
  EXPECT_NE(rejection(std::string("ab\0cd", 5)).find("binary"), std::string::npos);
}

TEST(FtraceRead, rejects_text_that_is_no_trace) {
  EXPECT_NE(rejection("Hello\nWorld\n").find("no line of a kernel trace"), std::string::npos);
}

TEST(FtraceRead, rejects_a_trace_without_events) {
  EXPECT_NE(rejection("# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:8\n").find("without any event"),
            std::string::npos);
}

TEST(FtraceRead, says_what_to_trace_where_nothing_is_of_kfd) {
  const std::string words = rejection("x-1 [000] .... 1.000001: sys_close <-do_syscall_64\n", true);
  EXPECT_NE(words.find("1 events, none of KFD"), std::string::npos);
  EXPECT_NE(words.find(":mod:amdgpu"), std::string::npos);
  EXPECT_NE(words.find("events/amdkfd"), std::string::npos);
}

TEST(FtraceRead, names_functions_of_a_kernel_that_it_does_not_know) {
  const std::string words = rejection(
      "x-1 [000] .... 1.000001: kfd_userq_create <-a\nx-1 [000] .... 1.000002: kfd_userq_create <-a\n"
      "x-1 [000] .... 1.000003: kfd_userq_map <-a\n",
      true);
  EXPECT_NE(words.find("kfd_userq_create, kfd_userq_map"), std::string::npos);
  EXPECT_NE(words.find("newer than this reader"), std::string::npos);
}

TEST(FtraceRead, counts_what_it_could_not_read_by_reason_and_first_line) {
  const FtraceCounters counters =
      read("# tracer: function\nx-1 [000] .... 1.000001: kfd_ioctl <-a\nhello\nworld\nx-1 [000] .... 1.000001: 12\n" +
           std::string(200'000, 'z') + "\nx-1 [000] .... 1.000002: kfd_ioctl <-a\n");
  EXPECT_EQ(counters.functions, 2u);
  EXPECT_EQ(counters.lines, 7u);
  ASSERT_EQ(counters.unread.size(), 3u);
  EXPECT_EQ(counters.unread[0].count, 2u);
  EXPECT_EQ(counters.unread[0].first_line, 3u);
  EXPECT_EQ(counters.unread[1].first_line, 5u);
  EXPECT_EQ(counters.unread[2].reason, "a line longer than any tracer writes");
  EXPECT_EQ(counters.unread[2].first_line, 6u);
}

TEST(FtraceRead, reads_lines_across_its_blocks) {
  std::string text;
  const int count = 60'000;  // many blocks
  for (int i = 0; i < count; ++i)
    text += fmt::format("x-{} [000] .... {}.000001: kfd_ioctl <-__x64_sys_ioctl\n", i % 9 + 1, i);
  const FtraceCounters counters = read(text);
  EXPECT_EQ(counters.functions, static_cast<std::uint64_t>(count));
  EXPECT_EQ(counters.calls.kfd_ioctl, static_cast<std::uint64_t>(count));
  EXPECT_TRUE(counters.unread.empty());
}

TEST(FtraceRead, takes_the_last_line_without_its_end) {
  EXPECT_EQ(read("x-1 [000] .... 1.000001: kfd_ioctl <-a\nx-1 [000] .... 1.000002: kfd_ioctl <-a").functions, 2u);
  EXPECT_EQ(read("x-1 [000] .... 1.000001: kfd_ioctl <-a\r\nx-1 [000] .... 1.000002: kfd_ioctl <-a\r\n").functions, 2u);
}

TEST(FtraceRead, counts_overwritten_entries) {
  const FtraceCounters counters = read(
      "# tracer: function\n#\n# entries-in-buffer/entries-written: 140080/250280   #P:4\n"
      "x-1 [000] .... 1.000001: kfd_ioctl <-a\n");
  EXPECT_EQ(counters.tracer, "function");
  EXPECT_EQ(counters.buffer_entries, 140080u);
  EXPECT_EQ(counters.written_entries, 250280u);
}

TEST(FtraceRead, stays_bounded_with_endless_threads_names_and_depth) {
  std::string text;
  for (int i = 1; i < 20'000; ++i) {
    text += fmt::format("x-{} [000] .... 1.000001: kfd_ioctl <-__x64_sys_ioctl\n", i);
    text += fmt::format("x-7 [000] .... 1.000002: kfd_name_{} <-kfd_name_{}\n", i, i - 1);
    text += fmt::format("x-7 [000] .... 1.000003: kfd_ioctl_kind_{} <-kfd_ioctl\n", i);
  }
  for (int i = 0; i < 20'000; ++i) text += fmt::format(" 5)               |{:>{}}f{} [amdgpu]() {{\n", "", i % 3000, i);
  const FtraceCounters counters = read(text);
  EXPECT_LE(counters.calls.ioctls.size(), 40u);
  EXPECT_LE(counters.calls.unknown_kfd.size(), 8u);
  EXPECT_EQ(counters.calls.unknown_kfd_calls, 19'999u);
}

TEST(FtraceRead, can_be_stopped) {
  std::string text;
  for (int i = 0; i < 70'000; ++i) text += "x-1 [000] .... 1.000001: a <-b\n";
  Nothing sink;
  const auto source = bytes_of(text);
  struct Stopped {};
  EXPECT_THROW(read_ftrace(*source, sink, {"t", [] { throw Stopped{}; }}), Stopped);
}

}  // namespace
}  // namespace weir::ftrace
