// weir record off: switches the recording of a program off while it runs.
#include "cli/list.h"
#include "cli/record_flags.h"

namespace weir::cli {
namespace {

int execute_record_off(RecordingFlags flags) { return switch_recordings(flags, true); }

}  // namespace

CliCommand record_off() {
  return command("off", "switch the recording of a program off while it runs", execute_record_off);
}

}  // namespace weir::cli
