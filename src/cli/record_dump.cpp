// weir record dump: the last seconds of recorded programs as traces, while they run or after their death.
#include "run/record_dump.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "cli/default_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/record_flags.h"
#include "run/record_live.h"

namespace weir::cli {
namespace {

struct RecordDumpFlags {
  RecordingFlags recordings;
  std::string output, seconds = "30", format = "kineto";
  bool is_forced = false;

  void add_to(CommandSyntax syntax) {
    recordings.add_to(syntax);
    syntax.add("--output,-o PATH", output,
               "the trace (default: record.trace.json); of several processes trace.process4711.json ...; .gz packs it");
    syntax.add("--seconds N", seconds, "how much of the end");
    syntax.add("--trace-format NAME", format, "kineto (Chrome JSON, for Perfetto) or csv");
    syntax.add("--force,-f", is_forced, "replace existing files");
  }
};

// "process4711", or "process4711.1" for a program that it executed.
std::string word_of(const RecordFile& file) {
  const std::string stem = file.path.stem();
  return "process" + (file.pid == 0 ? stem : stem.substr(0, stem.find_first_not_of("0123456789.")));
}

// One word for each, which tells apart recordings of one process id: in the folder of another session, or in no
// session.
std::vector<std::string> words_of(const std::vector<RecordFile>& files) {
  std::vector<std::string> words;
  for (const RecordFile& file : files) words.push_back(files.size() == 1 ? "" : word_of(file));
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    if (std::count(words.begin(), words.end(), word) == 1) continue;
    int number = 0;
    for (std::size_t j = i; j < words.size(); ++j)
      if (words[j] == word) words[j] += fmt::format("-{}", ++number);
  }
  return words;
}

int execute_record_dump(RecordDumpFlags flags) {
  const std::vector<std::string> formats = {"kineto", "csv"};
  if (flags.format != formats[0] && flags.format != formats[1])
    reject(fmt::format("--trace-format {}: traces cannot be written in this format", flags.format),
           suggestion(flags.format, formats));
  const double seconds = real_number("--seconds", flags.seconds, 0.001, 7 * 86400, "out of range");
  const std::vector<RecordFile> files = flags.recordings.files();
  ProfileOutput output{flags.format, flags.output, flags.is_forced};
  output.is_default = output.path.empty();
  if (flags.output == "-") reject("-o -: a recording may hold several processes", "Name a file: -o trace.json.");
  if (output.is_default)
    output.path =
        default_output("record", flags.format == "csv" ? ".trace.csv" : ".trace.json", earlier_output(flags.is_forced));
  const std::vector<std::string> words = words_of(files);
  for (const std::string& word : words) output.check(word);
  output.progress = [&stop = catch_interrupts()] {
    if (stop.load(std::memory_order_relaxed)) throw Interrupted{};
  };
  std::size_t written = 0;
  try {
    for (std::size_t i = 0; i < files.size(); ++i) {
      const RecordFile& file = files[i];
      const auto dump = dump_recording(file, static_cast<std::int64_t>(seconds * 1e9), output, words[i]);
      if (dump) {
        ++written;
        print_out("{}\n", dump->words());
        continue;
      }
      const LiveRecording recording(file.path);
      std::string reason;
      const auto state = recording.read(reason);
      const std::string message = state ? recording.text(state->header, state->header.message) : "";
      print_err("weir: {}: nothing was recorded of process {}{}{}\n", file.path.string(), file.pid,
                message.empty() ? "" : ": ", message);
      if (state && state->header.is_off != 0) print_err("It is off: weir record on {}\n", file.pid);
    }
  } catch (const Interrupted&) {
    return kExitInterrupted;
  }
  return written > 0 ? 0 : 1;
}

}  // namespace

CliCommand record_dump() {
  return command("dump", "write the last seconds of recorded programs as traces", execute_record_dump);
}

}  // namespace weir::cli
