// weir amd ftrace as users see it.
#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "support/ftrace_text.h"

namespace weir::testing {
namespace {

std::string written(const Folder& folder, const std::string& name, const std::string& text) {
  std::ofstream(folder / name, std::ios::binary) << text;
  return folder / name;
}

const char* const kForms[] = {"function", "function_graph", "events", "kprobes", "trace_printk"};

TEST(AmdFtrace, reads_every_form_and_fits_a_terminal) {
  const Folder folder;
  const Scene scene = random_scene(5, Gfx::gfx9_4_3);
  for (int form = 0; form < 5; ++form) {
    const std::string file = written(folder, kForms[form], ftrace_text(scene, static_cast<TraceForm>(form)));
    const Outcome outcome = weir({"amd", "ftrace", file}, folder.path());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(has(outcome.out, "What KFD did")) << outcome.out;
    EXPECT_TRUE(has(outcome.out, "create")) << outcome.out;
    std::size_t heading = outcome.out.find('\n');
    expect_narrow(outcome.out.substr(heading));
  }
}

TEST(AmdFtrace, writes_documents_that_fit_the_schema) {
  const Folder folder;
  for (int form = 0; form < 5; ++form) {
    const Scene scene = random_scene(static_cast<std::uint64_t>(form), static_cast<Gfx>(form));
    TraceStyle style;
    style.has_tgid = form % 2 == 0;
    style.failed_creates = form;
    style.lost_every = form == 0 ? 50 : 0;
    const std::string file = written(folder, kForms[form], ftrace_text(scene, static_cast<TraceForm>(form), style));
    const std::string json = folder / (std::string(kForms[form]) + ".json");
    const Outcome outcome = weir({"amd", "ftrace", file, "--json", "-o", json, "--trace-clock", "mono"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(has(outcome.out, "Written to"));
    const Json document = read_json(json);
    EXPECT_EQ(document["schema"], "weir.amd_ftrace/2");
    EXPECT_EQ(document["trace"]["clock"], "mono");
    expect_valid_as(json, "weir.amd_ftrace.2.json");
    EXPECT_EQ(weir({"amd", "ftrace", file, "-o", json}).code, 2);
    EXPECT_EQ(weir({"amd", "ftrace", file, "-o", json, "--force", "--quiet"}).out, "");
  }
}

TEST(AmdFtrace, tells_markdown) {
  const Folder folder;
  const std::string file = written(folder, "t.txt", ftrace_text(random_scene(1, Gfx::gfx9), TraceForm::kprobes));
  const Outcome outcome = weir({"amd", "ftrace", file, "--format", "markdown", "--full"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(has(outcome.out, "## Answers"));
}

TEST(AmdFtrace, rejects_what_is_no_trace_of_kfd_and_says_what_to_do) {
  const Folder folder;
  const auto rejected = [&](const std::string& text, const std::string& words) {
    const Outcome outcome = weir({"amd", "ftrace", written(folder, "bad", text)});
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_TRUE(has(outcome.err, words)) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  };
  rejected("", "empty");
  rejected(std::string("\x17\x08\x44tracing6\0\0\0\0", 14), "trace-cmd report FILE > text");
  rejected(std::string("\0\1\2\3", 4), "binary");
  rejected("hello\n", "no line of a kernel trace");
  rejected("# tracer: nop\n#\n", "without any event");
  rejected("x-1 [000] .... 1.000001: sys_close <-do_syscall_64\n", ":mod:amdgpu");
  rejected("x-1 [000] .... 1.000001: kfd_userq_new <-do_syscall_64\n", "newer than this reader");
  EXPECT_EQ(weir({"amd", "ftrace", folder / "missing"}).code, 2);
  EXPECT_EQ(weir({"amd", "ftrace", folder.path().string()}).code, 2);
  const std::string good = written(folder, "good", ftrace_text(random_scene(1, Gfx::gfx9), TraceForm::function));
  const Outcome clock = weir({"amd", "ftrace", good, "--trace-clock", "sundial"});
  EXPECT_EQ(clock.code, 2);
  EXPECT_TRUE(has(clock.err, "--trace-clock sundial"));
}

TEST(AmdFtrace, never_sends_escapes_of_a_file_to_the_terminal) {
  const Folder folder;
  const std::string text =
      "a\x1b[31m-1 [000] .... 1.000001: kfd_ioctl <-__x64_sys_ioctl\n"
      "# tracer: \x1b[2Jfunction\n"
      "x-1 [000] .... 1.000001: kfd_ioctl_\x1b[2J <-kfd_ioctl\n";
  const Outcome outcome = weir({"amd", "ftrace", written(folder, "t.txt", text)});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(has(outcome.out, "\x1b"));
}

}  // namespace
}  // namespace weir::testing
