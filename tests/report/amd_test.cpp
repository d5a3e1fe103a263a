// Texts of `weir amd` from scenes: they fit a terminal and say what the reader must not overlook.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "amd/ftrace/summary.h"
#include "amd/join/join_load.h"
#include "report/text/documents.h"
#include "support/amd_capture.h"
#include "support/amd_scene.h"
#include "support/ftrace_text.h"

namespace weir {
namespace {

using testing::CaptureFolder;
using testing::CaptureShape;
using testing::Gfx;
using testing::random_scene;
using testing::TraceForm;

// `except`: lines that hold this may be longer, as the names of files may be.
void expect_80_columns(const std::string& text, const std::string& except = {}) {
  std::size_t from = 0;
  for (std::size_t to = text.find('\n'); to != text.npos; from = to + 1, to = text.find('\n', from)) {
    const std::string line = text.substr(from, to - from);
    if (except.empty() || line.find(except) == line.npos) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
}

Json ftrace_document_of(const std::string& text) {
  ftrace::KfdSummary summary;
  const auto source = bytes_of(text);
  const ftrace::FtraceCounters counters = read_ftrace(*source, summary);
  return ftrace_document(summary, counters, {"t.txt", "", {"weir"}});
}

Json join_document_of(const std::filesystem::path& folder) {
  const amd::LoadedCapture capture = amd::load_capture(amd::files_of_capture(folder), nullptr);
  amd::JoinAbout about = capture.about;
  about.folder = "capture";
  return join_document(capture.input, join_queues(capture.input), about);
}

TEST(FtraceReport, fits_a_terminal_in_every_form) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    for (const TraceForm form : {TraceForm::function, TraceForm::function_graph, TraceForm::events, TraceForm::kprobes,
                                 TraceForm::trace_printk}) {
      const Json document = ftrace_document_of(ftrace_text(random_scene(seed, Gfx::gfx9_4_3), form));
      for (const bool is_full : {false, true}) {
        const std::string text = report_text(ftrace_report(document, is_full));
        expect_80_columns(text);
        EXPECT_NE(text.find("Answers"), std::string::npos);
      }
      EXPECT_NE(report_markdown(ftrace_report(document, true)).find("## Answers"), std::string::npos);
    }
  }
}

TEST(FtraceReport, survives_any_document) {
  for (const char* text :
       {"{}", "[]", "null", R"({"verbs":[1],"processes":[{}],"creates":[{"gpu_id":-1}],"answers":[2]})"})
    EXPECT_FALSE(report_text(ftrace_report(Json::parse(text), true)).empty());
}

TEST(JoinReport, fits_a_terminal) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CaptureFolder folder;
    write_capture(random_scene(seed, Gfx::gfx9_4_3), folder.path());
    expect_80_columns(report_text(amd_join_report(join_document_of(folder.path()), true)), folder.path().string());
  }
}

TEST(JoinReport, warns_of_a_clock_that_is_not_what_it_is_said_to_be) {
  CaptureFolder folder;
  CaptureShape shape;
  shape.trace_offset_ns = 382'463'000;
  write_capture(random_scene(2, Gfx::gfx9_4_3), folder.path(), shape);
  EXPECT_NE(report_text(amd_join_report(join_document_of(folder.path()), false)).find("Warning: "), std::string::npos);
}

}  // namespace
}  // namespace weir
