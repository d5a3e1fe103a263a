// Prints the plan of a capture as shell commands. Mirrors what src/cli does by itself; decides nothing.
#include <fmt/format.h>

#include "amd/capture/capture_plan.h"
#include "base/plain_text.h"
#include "base/text_gate.h"

namespace weir::amd {
namespace {

using Action = TraceStep::Action;
using Stage = TraceStep::Stage;
using Undo = TraceStep::Undo;

// A variable name for a file's old contents: trace_clock -> old_trace_clock. Many files are named enable.
std::string variable(const TraceStep& step) {
  std::size_t begin = step.path.rfind('/') + 1;
  if (step.path.ends_with("/enable")) begin = step.path.rfind('/', begin - 2) + 1;
  std::string name = "old_" + step.path.substr(begin);
  for (char& c : name)
    if (c == '-' || c == '/') c = '_';
  return name;
}

std::string save_line(const TraceStep& step) {
  const std::string path = shell_word(step.path);
  switch (step.undo) {
    case Undo::word:
      // "7 (expanded: 1408)" is a buffer that has not been used yet
      return fmt::format("{}=$(sed 's/.*expanded: \\([0-9]*\\).*/\\1/' {})\n", variable(step), path);
    case Undo::choice:
      return fmt::format("{}=$(sed 's/.*\\[\\(.*\\)\\].*/\\1/' {})\n", variable(step), path);
    case Undo::list:
      return fmt::format("{}=$(grep -v '^#' {})\n", variable(step), path);
    case Undo::events:
      return fmt::format("old_events=$(grep '^amdkfd:' {}/set_event)\n",
                         shell_word(step.path.substr(0, step.path.rfind("/events/"))));
    default:
      return "";
  }
}

std::string restore_line(const TraceStep& step) {
  const std::string path = shell_word(step.path);
  switch (step.undo) {
    case Undo::word:
    case Undo::choice:
    case Undo::list:
      return fmt::format("  [ -z \"${{{0}+set}}\" ] || echo \"${0}\" > {1}\n", variable(step), path);
    case Undo::events:
      return fmt::format(
          "  [ -z \"${{old_events+set}}\" ] || {{ echo 0 > {}; for e in $old_events; do echo \"$e\" >> {}/set_event; "
          "done; }}\n",
          path, shell_word(step.path.substr(0, step.path.rfind("/events/"))));
    case Undo::remove_probe: {
      // p:weir_1/name ... -> -:weir_1/name
      const std::string& value = step.values.front();
      return fmt::format("  echo {} >> {} 2> /dev/null\n", shell_word("-" + value.substr(1, value.find(' ') - 1)),
                         path);
    }
    default:
      return "";
  }
}

std::string command_of(const TraceStep& step, const TracePlan& plan) {
  const std::string path = shell_word(step.path);
  if (step.action == Action::make_folder) return fmt::format("mkdir {}\n", path);
  const char* const arrow = step.action == Action::append ? ">>" : ">";
  // A filter that matched nothing lets every function of the kernel through.
  const std::string guard = step.path.ends_with("/current_tracer")
                                ? fmt::format("grep -qv '^####' {}/set_ftrace_filter && ", shell_word(plan.folder))
                                : "";
  if (step.values.size() == 1) return fmt::format("{}echo {} {} {}\n", guard, shell_word(step.values[0]), arrow, path);
  std::string words;
  for (const std::string& value : step.values) words += " " + shell_word(value);
  return fmt::format("{}for value in{}; do echo \"$value\" {} {} && break; done\n", guard, words, arrow, path);
}

std::string trace_lines(const TracePlan& plan) {
  std::string text;
  bool is_probing = false;
  for (const TraceStep& step : plan.steps) {
    const bool is_probe = step.stage == Stage::probes;
    if (is_probe && !is_probing)
      text += fmt::format("\nif [ \"$(cat {}/current_tracer)\" = nop ]; then\n", shell_word(plan.folder));
    if (!is_probe && is_probing) text += "fi\n";
    is_probing = is_probe;
    if (!step.why.empty()) text += fmt::format("# {}\n", step.why);
    text += save_line(step) + command_of(step, plan);
    if (step.path.ends_with("/trace_clock"))
      text += fmt::format("cat {}  # [mono], or times do not fit the log\n", shell_word(step.path));
  }
  if (is_probing) text += "fi\n";
  return text;
}

// A function, so that it runs however the script ends.
std::string untrace_lines(const TracePlan& plan) {
  std::string text = fmt::format("untrace() {{\n  echo 0 > {}/tracing_on\n", shell_word(plan.folder));
  if (plan.is_instance) {
    text += fmt::format("  # the instance goes, with its buffer and settings\n  echo nop > {0}/current_tracer\n",
                        shell_word(plan.folder));
    for (const TraceStep& step : plan.steps)
      if (step.stage == Stage::probes && step.action == Action::write)
        text += fmt::format("  echo 0 > {} 2> /dev/null\n", shell_word(step.path));
    text += fmt::format("  rmdir {}\n", shell_word(plan.folder));
  } else {
    text += "  # the settings of before, the last one first\n";
  }
  for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step) text += restore_line(*step);
  return text + "}\n";
}

}  // namespace

std::string capture_script(const CaptureRequest& request, const CapturePlan& plan) {
  const std::string folder = shell_word(request.folder);
  std::string text = "#!/bin/bash\n# What `weir amd capture` would do here; nothing was changed.\n";
  for (const CapturePart& part : plan.missing) {
    std::string line = fmt::format("# missing: {}: {}", part.name, part.reason);
    if (!part.hint.empty()) line += ". " + part.hint;
    text += for_line(line) + "\n";
  }
  text += fmt::format(
      "\n# one folder, new and for you alone: whoever made it before could lead root elsewhere\n"
      "mkdir -m 0700 {} || exit\n",
      folder);
  const bool has_snapshots = !plan.files.empty() || plan.has_sysfs;
  if (has_snapshots) {
    text += fmt::format(
        "\n# what KFD shows of its queues at one moment\nsnapshot() {{\n  mkdir -p {0}/snapshots/\"$1\"\n", folder);
    for (const SnapshotFile& file : plan.files)
      text += fmt::format("  cat {} > {}/snapshots/\"$1\"/{}\n", shell_word(file.path), folder, file.part);
    if (plan.has_sysfs) {
      text += fmt::format("  (cd {} && for file in", shell_word(request.roots.sysfs));
      for (const std::string& pattern : sysfs_patterns()) text += " \\\n      " + pattern;
      text += fmt::format(
          "; do\n    [ -f \"$file\" ] && [ ! -L \"$file\" ] || continue\n"
          "    mkdir -p {0}/snapshots/\"$1\"/sysfs/\"${{file%/*}}\"\n"
          "    head -c 65536 \"$file\" > {0}/snapshots/\"$1\"/sysfs/\"$file\"\n  done)\n",
          folder);
    }
    text += "}\n\nsnapshot before\n";
  }
  if (plan.trace)
    text += "\n# however this ends, tracing is as before\n" + untrace_lines(*plan.trace) + "trap untrace EXIT\n\n" +
            trace_lines(*plan.trace);
  std::string words;
  for (const std::string& word : request.command) words += " " + shell_word(word);
  const bool has_watcher = has_snapshots && request.max_snapshots > 0;
  // Snapshots run in the background, not the program, which would lose Ctrl-C and its standard input there.
  if (has_watcher)
    text += fmt::format(
        "\n# snapshots while the program runs\n(\n  trap exit TERM\n  for i in $(seq -f %02g 1 {}); do\n"
        "    sleep {:.3f} > /dev/null 2>&1 &\n    wait $!\n    snapshot during-$i\n  done\n) &\nwatcher=$!\n",
        request.max_snapshots, static_cast<double>(request.interval_ns) / 1e9);
  text += "\n# Ctrl-C is the program's; this goes on after it\ntrap : INT\n";
  if (request.target) {
    text += "# until the process ends, the time is over, or Ctrl-C\n";
    if (request.duration_ns > 0) text += fmt::format("timeout {:.3f} ", static_cast<double>(request.duration_ns) / 1e9);
    text += fmt::format("tail --pid={} -f /dev/null\ncode=0\n", request.first_pid);
  } else {
    text += "# ROCm's own log: calls, commands, packets, queues\n";
    for (const auto& [name, value] : plan.environment) text += fmt::format("{}={} ", name, shell_word(value));
    text += fmt::format("\\\n {}\ncode=$?\n", words);
  }
  if (plan.trace)
    text += fmt::format("\n# tracing off before the buffer is read\necho 0 > {}/tracing_on\n",
                        shell_word(plan.trace->folder));
  if (has_watcher) text += "kill $watcher 2> /dev/null\nwait $watcher\n";
  if (has_snapshots) text += "snapshot after\n";
  if (plan.trace) text += fmt::format("cat {}/trace > {}/ftrace.txt\n", shell_word(plan.trace->folder), folder);
  if (plan.has_dmesg)
    text += fmt::format("\n# what the driver said\ndmesg | grep -E 'amdgpu|kfd' > {}/dmesg.txt\n", folder);
  text += "exit $code\n";
  return text;
}

}  // namespace weir::amd
