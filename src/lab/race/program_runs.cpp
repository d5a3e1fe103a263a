#include "lab/race/program_runs.h"

#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/plain_text.h"
#include "base/private_folder.h"
#include "base/stop.h"
#include "lab/race/read_log.h"
#include "trace/race_format.h"

namespace weir::race {
namespace {

namespace fs = std::filesystem;
namespace format = race_format;

constexpr double kGraceS = 2;  // between asking a program to end and killing it
constexpr std::uint64_t kLargestLog = std::uint64_t{1} << 30, kLargestText = std::uint64_t{16} << 20;
constexpr std::size_t kMostNotes = 1'000, kMostFrames = 64, kMostStacks = 100;

std::string contents(const fs::path& file, std::size_t most) { return start_of_file(file, most); }

template <class Each>
void for_each_line(std::string_view text, Each each) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    each(line);
  }
}

}  // namespace

std::map<CommandName, std::vector<std::string>> stacks_in(std::string_view text) {
  std::map<CommandName, std::vector<std::string>> stacks;
  std::vector<std::string>* open = nullptr;
  for_each_line(text, [&](std::string_view line) {
    if (line.starts_with("command ")) {
      const auto name = read_command_name(line.substr(8));
      open = name && stacks.size() < kMostStacks && !stacks.contains(*name) ? &stacks[*name] : nullptr;
    } else if (trimmed(line).empty()) {
      open = nullptr;
    } else if (open != nullptr && open->size() < kMostFrames) {
      open->push_back(without_controls(trimmed(line).substr(0, 400), '?'));
    }
  });
  return stacks;
}

ProgramRun run_program(const ProgramRequest& request, const RunPlan& plan, double limit_s,
                       const std::atomic<bool>& stop) {
  const PrivateFolder folder;
  write_file(folder.path() / format::kPlanFile, text(plan), false);
  ProcessOptions options;
  options.command = request.command;
  options.variables = request.variables;
  options.variables.emplace_back(format::kFolderVariable, folder.path().string());
  options.out = ProcessOptions::Output::read;
  options.first_bytes = 16 * 1024;
  options.grace_s = kGraceS;

  ProgramRun run;
  OutputReader reader(request.rules);
  const OutputFiles files(request.rules.files);
  const std::int64_t begun_ns = now_ns();
  {
    Process process(std::move(options));
    bool is_late = false;
    while (process.listen(50)) {
      reader.add(process.unread());
      process.unread().clear();
      is_late = static_cast<double>(now_ns() - begun_ns) > limit_s * 1e9;
      if (is_late || stop.load()) break;
    }
    reader.add(process.unread());
    run.duration_ns = now_ns() - begun_ns;
    run.end = process.finish(0);  // asks the whole group to end, and kills it where it does not
    if (is_late) run.end.how = ProcessEnd::How::timed_out;
    run.errors = process.output().text();
  }
  if (stop.load()) throw Interrupted{};
  reader.finish(run.outputs);
  files.finish(run.outputs);
  if (request.rules.has_status) run.outputs.values["exit status"] = words_for(run.end);
  add_checkpoints(contents(folder.path() / format::kDigestsFile, kLargestText), run.outputs);
  std::error_code ignored;
  run.has_commands = fs::exists(folder.path() / format::kClaimFile, ignored);
  for_each_line(contents(folder.path() / format::kNotesFile, kLargestText), [&](std::string_view line) {
    // What was done as planned needs no words.
    if (run.notes.size() < kMostNotes && !trimmed(line).empty() && !line.ends_with(": done"))
      run.notes.push_back(without_controls(trimmed(line).substr(0, 300), '?'));
  });
  if (plan.observes) {
    const fs::path log = folder.path() / format::kLogFile;
    if (fs::exists(log, ignored)) run.log = read_log(contents(log, kLargestLog), log.string());
  }
  if (!plan.stacks.empty()) run.stacks = stacks_in(contents(folder.path() / format::kStacksFile, kLargestText));
  return run;
}

}  // namespace weir::race
