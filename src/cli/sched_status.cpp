// weir sched status: who has a seat at the daemon, who waits for whom, and what each has used.
#include "cli/list.h"
#include "cli/sched_flags.h"
#include "cli/telling.h"
#include "report/text/documents.h"
#include "submit/sched/ask.h"

namespace weir::cli {
namespace {

struct Flags {
  SocketFlag socket;
  Telling telling;

  void add_to(CommandSyntax syntax) {
    socket.add_to(syntax);
    telling.add_to(syntax);
  }
};

int execute(const Flags& flags) {
  flags.telling.check_output();
  const Json status = scheduler::ask_status(flags.socket.path());
  flags.telling.tell(status, sched_status_report(status));
  return 0;
}

}  // namespace

CliCommand sched_status() {
  return command("status", "who has a seat, who waits for whom, what each has used", execute);
}

}  // namespace weir::cli
