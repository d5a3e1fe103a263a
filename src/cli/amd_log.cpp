// weir amd log: what the runtime's log contains about queues, streams and kernels.

#include "amd/log/log_document.h"
#include "base/error.h"
#include "base/json.h"
#include "base/options.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

struct AmdLogFlags : DocumentOutput {
  std::vector<std::string> files;
  std::string top = "10", threads = "0";
  bool is_full = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("files FILE", files, "logs of ROCm's runtime, of any size, .gz too").required();
    syntax.add("--full", is_full, "long lists as well");
    syntax.add("--top N", top, "names per list of the document");
    syntax.add("--threads N", threads, "threads that read a file; 0: as many as help");
    DocumentOutput::add_to(syntax);
    syntax.footer("Exit code: 0 fine, 2 bad input.");
  }
};

int execute_amd_log(const AmdLogFlags& flags) {
  flags.check_output();
  amd::LogDocumentOptions options;
  options.top = static_cast<std::size_t>(number_within("--top", flags.top, 1, 1000));
  amd::LogOptions reading;
  reading.threads = static_cast<unsigned>(number_within("--threads", flags.threads, 0, 64));
  reading.stop = &catch_interrupts();
  std::vector<amd::SummarisedLog> logs;
  ProgressLine line(flags.is_quiet);
  for (const std::string& file : flags.files) {
    line.show("reading", static_cast<int>(logs.size()), static_cast<int>(flags.files.size()));
    amd::SummarisedLog log;
    log.file = file;
    log.reading = amd::read_log(file, log.summary, reading);
    logs.push_back(std::move(log));
    if (reading.stop->load(std::memory_order_relaxed)) {
      line.clear();
      return kExitInterrupted;
    }
  }
  line.clear();
  const Json document = amd::log_document(logs, options);
  flags.print(document, amd_log_report(document, flags.is_full));
  return 0;
}

}  // namespace

CliCommand amd_log() {
  return command("log", "the runtime's log (AMD_LOG_LEVEL): queues, streams, kernels, backlog, errors",
                 execute_amd_log);
}

}  // namespace weir::cli
