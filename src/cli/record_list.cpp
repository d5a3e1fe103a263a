// weir record list: which programs are recorded now, and which recordings are kept.
#include <fmt/format.h>

#include <filesystem>

#include "base/console.h"
#include "base/text_gate.h"
#include "base/units.h"
#include "cli/list.h"
#include "cli/record_flags.h"
#include "report/text/sections.h"
#include "run/record_live.h"

namespace weir::cli {
namespace {

struct RecordListFlags {
  void add_to(CommandSyntax) {}
};

std::string state_words(const RecordFile& file, const RecordedState& state) {
  switch (state.state()) {
    case record::State::refused:
      return "refused";
    case record::State::ended:
      return "ended";
    case record::State::starting:
    case record::State::running:
      break;
  }
  if (file.is_replaced) return "executed another program";
  if (!is_alive(state.header)) return "died";
  return state.header.is_off != 0 ? "off" : "recording";
}

std::string seconds_kept(const LiveRecording& recording, const record::Header& header) {
  const std::int64_t oldest_ns = recording.oldest_ns(header);
  const std::int64_t newest_ns = header.ended_ns > 0 ? header.ended_ns : header.beat_ns;
  if (oldest_ns <= 0 || newest_ns < oldest_ns) return "-";
  return format_duration(newest_ns - oldest_ns);
}

int execute_record_list(RecordListFlags) {
  const std::vector<RecordFile> files = all_recordings(own_record_roots());
  if (files.empty()) {
    print_out("Nothing is recorded. To begin: weir record -- PROGRAM\n");
    return 0;
  }
  ReportTable table{{{"pid"}, {"program", true}, {"state", true}, {"keeps"}, {"calls"}, {"commands"}, {"size"}}};
  std::vector<std::string> remarks;
  for (const RecordFile& file : files) {
    const LiveRecording recording(file.path);
    std::string reason;
    const auto state = recording.read(reason);
    if (!state) {
      remarks.push_back(fmt::format("{}: {}", file.path.string(), reason));
      continue;
    }
    if (const std::string message = recording.text(state->header, state->header.message); !message.empty())
      remarks.push_back(fmt::format("Process {}: {}.", file.pid, for_line(message)));
    const std::vector<std::string> words = recording.command(state->header);
    const std::string program = words.empty() ? "-" : std::filesystem::path(words[0]).filename().string();
    table.rows.push_back({std::to_string(file.pid), for_line(program), state_words(file, *state),
                          seconds_kept(recording, state->header), std::to_string(state->calls()),
                          std::to_string(state->commands()), format_bytes(state->file_bytes)});
  }
  TextReport report;
  report.title = "Recorded programs";
  const std::string heading = counted(table.rows.size(), "recording");
  report.add_unless_empty(heading, std::move(table), remarks);
  report.open("A trace of the last seconds: weir record dump PID -o trace.json");
  print_out("{}", report_text(report));
  return 0;
}

}  // namespace

CliCommand record_list() {
  return command("list", "which programs are recorded, and what is kept", execute_record_list);
}

}  // namespace weir::cli
