// weir sched status: the daemon's clients, who is waiting for whom, and what each has used.
#include "cli/document_output.h"
#include "cli/list.h"
#include "cli/sched_flags.h"
#include "report/text/documents.h"
#include "submit/sched/ask.h"

namespace weir::cli {
namespace {

struct SchedStatusFlags {
  SocketFlag socket;
  DocumentOutput document_output;

  void add_to(CommandSyntax syntax) {
    socket.add_to(syntax);
    document_output.add_to(syntax);
  }
};

int execute_sched_status(const SchedStatusFlags& flags) {
  flags.document_output.check_output();
  const Json status = scheduler::ask_status(flags.socket.path());
  flags.document_output.print(status, sched_status_report(status));
  return 0;
}

}  // namespace

CliCommand sched_status() {
  return command("status", "show clients, who is waiting, and what each has used", execute_sched_status);
}

}  // namespace weir::cli
