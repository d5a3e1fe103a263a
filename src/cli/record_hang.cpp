// weir record hang: why recorded programs do not go on, at any time, also from files that were gathered from several
// machines.
#include "run/record_hang.h"

#include <fmt/format.h>

#include "base/console.h"
#include "base/error.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/record_flags.h"

namespace weir::cli {
namespace {

struct RecordHangFlags {
  RecordingFlags recordings;
  std::string timeout = "10s";

  void add_to(CommandSyntax syntax) {
    recordings.add_to(syntax);
    syntax.add("--hang-timeout DURATION", timeout, "what has lasted longer counts as stuck");
    syntax.footer(
        "Exit code: 0 the programs go on, or the answer is printed, 1 no recording can be read, 2 bad input.");
  }
};

int execute_record_hang(RecordHangFlags flags) {
  const auto timeout_ns = static_cast<std::int64_t>(seconds_of("--hang-timeout", flags.timeout) * 1e9);
  const GatheredHang gathered = gather_hang(flags.recordings.files());
  for (const std::string& note : gathered.notes) print_err("weir: {}\n", note);
  if (gathered.processes.empty()) fail("none of the recordings can be read");
  const RecordedHang hang = diagnose_recordings(gathered.processes, gathered.now_ns, timeout_ns);
  print_out("{}{}", hang.text, hang.text.ends_with('\n') ? "" : "\n");
  return 0;
}

}  // namespace

CliCommand record_hang() { return command("hang", "why do recorded programs not go on?", execute_record_hang); }

}  // namespace weir::cli
