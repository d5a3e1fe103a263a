// weir amd log: what the runtime's log says of queues, streams and kernels.
#include <fmt/format.h>

#include "amd/log/log_document.h"
#include "base/error.h"
#include "base/json.h"
#include "base/options.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/telling.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

struct Flags : Telling {
  std::vector<std::string> files;
  std::string top = "10", threads = "0";
  bool is_full = false;
};

std::size_t count_of(const char* flag, const std::string& text, std::int64_t lowest, std::int64_t highest) {
  const auto value = parse_integer(text);
  if (!value || *value < lowest || *value > highest)
    reject(fmt::format("{} {}: not a number from {} to {}", flag, text, lowest, highest));
  return static_cast<std::size_t>(*value);
}

int execute(const Flags& flags) {
  flags.check_output();
  amd::LogDocumentOptions options;
  options.top = count_of("--top", flags.top, 1, 1000);
  amd::LogOptions reading;
  reading.threads = static_cast<unsigned>(count_of("--threads", flags.threads, 0, 64));
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
  flags.tell(document, amd_log_report(document, flags.is_full));
  return 0;
}

}  // namespace

CliCommand amd_log() {
  return {"log", "the runtime's log (AMD_LOG_LEVEL): queues, streams, kernels, backlog, errors",
          [](CommandSyntax syntax) -> std::function<int()> {
            const auto flags = std::make_shared<Flags>();
            syntax.add("files", flags->files, "logs of ROCm's runtime, of any size, .gz too").required().takes("FILE");
            syntax.add("--full", flags->is_full, "long lists as well");
            syntax.add("--top", flags->top, "names in lists of the document");
            syntax.add("--threads", flags->threads, "that read a file; 0: as many as pay");
            flags->add_to(syntax);
            syntax.footer("Exit code: 0 fine, 2 bad input.");
            return [flags] { return execute(*flags); };
          }};
}

}  // namespace weir::cli
