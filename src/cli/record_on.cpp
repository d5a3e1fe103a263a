// weir record on: switches the recording of a program on while it runs.
#include "cli/list.h"
#include "cli/record_flags.h"

namespace weir::cli {
namespace {

int execute_record_on(RecordingFlags flags) { return switch_recordings(flags, false); }

}  // namespace

CliCommand record_on() {
  return command("on", "switch the recording of a program on while it runs", execute_record_on);
}

}  // namespace weir::cli
