#include "amd/capture/capture_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace weir::amd {
namespace {

using Action = TraceStep::Action;
using Stage = TraceStep::Stage;
using Undo = TraceStep::Undo;

constexpr int kMaxCpus = 8192;
constexpr std::size_t kMaxAtOnce = 2048;  // bytes of filters in one write; the kernel accepts at most a page

std::string refused(const std::string& path, int error) { return fmt::format("{}: {}", path, std::strerror(error)); }

std::string first_word(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\n"), text.size());
  return std::string(text.substr(begin, std::min(text.find_first_of(" \t\n", begin), text.size()) - begin));
}

// The value that restores a setting. "7 (expanded: 1408)" is an unused buffer: it gets 1408 KiB at its first use, but
// only 7 if 7 is written.
std::string setting_of(std::string_view text) {
  constexpr std::string_view kExpanded = "(expanded: ";
  const std::size_t at = text.find(kExpanded);
  if (at == std::string_view::npos) return first_word(text);
  const std::string_view rest = text.substr(at + kExpanded.size());
  return std::string(rest.substr(0, std::min(rest.find(')'), rest.size())));
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string folder_of_events(const std::string& path) { return path.substr(0, path.rfind("/events/")); }

}  // namespace

std::string chosen_word(std::string_view text) {
  const std::size_t open = text.find('['), close = text.find(']');
  if (open != std::string_view::npos && close != std::string_view::npos && close > open)
    return std::string(text.substr(open + 1, close - open - 1));
  const std::string word = first_word(text);
  return lines_of(text).size() == 1 && lines_of(text)[0] == word ? word : "";
}

// Saves the contents of a file before it is changed.
int TraceSession::save(const TraceStep& step) {
  Change change{step.undo, step.action, step.path, {}};
  std::string text;
  const std::string path = step.undo == Undo::events ? folder_of_events(step.path) + "/set_event" : step.path;
  if (step.undo != Undo::nothing && step.undo != Undo::remove_probe)
    if (const int error = files_.read(path, text); error != 0) return error;
  switch (step.undo) {
    case Undo::word:
      change.before = setting_of(text);
      // Buffers of different sizes read as X, which cannot be restored.
      if (change.before.empty() || change.before == "X") return EINVAL;
      break;
    case Undo::choice:
      change.before = chosen_word(text);
      if (change.before.empty()) return EINVAL;
      break;
    case Undo::list:
      change.before = text;
      break;
    case Undo::events:
      for (const std::string& line : lines_of(text))
        if (line.starts_with("amdkfd:")) change.before += line + "\n";
      break;
    case Undo::nothing:
    case Undo::remove_probe:
      break;
  }
  // Recorded before the change itself, so that one that fails half-way is undone as well.
  changes_.push_back(std::move(change));
  return 0;
}

int TraceSession::perform(const TraceStep& step, std::string& taken) {
  if (step.action == Action::make_folder) {
    const int error = files_.make_folder(step.path);
    if (error == 0) changes_.push_back({Undo::nothing, Action::make_folder, step.path, {}});
    return error;
  }
  const bool is_kept = step.undo != Undo::nothing && step.undo != Undo::remove_probe;
  if (is_kept)
    if (const int error = save(step); error != 0) return error;
  int error = EINVAL;
  for (const std::string& value : step.values) {
    error = files_.write(step.path, value, step.action == Action::append);
    if (error != 0) continue;
    taken = value;
    break;
  }
  if (error == 0 && step.undo == Undo::remove_probe)
    // p:weir_1/name ... -> -:weir_1/name
    changes_.push_back({Undo::remove_probe, Action::append, step.path, "-" + taken.substr(1, taken.find(' ') - 1)});
  if (error == 0 && step.stage == Stage::probes && step.action == Action::write && !is_kept)
    changes_.push_back({Undo::word, Action::write, step.path, "0"});  // a probe in use cannot be removed
  return error;
}

// Checks the kernel's reaction.
void TraceSession::check(const TraceStep& step, const std::string& taken) {
  std::string text;
  if (step.path.ends_with("/trace_clock")) {
    if (files_.read(step.path, text) == 0) clock_ = chosen_word(text);
    if (clock_ != "mono")
      notes_.push_back(fmt::format("the trace clock is {}, not mono: times have to be aligned with the log's",
                                   clock_.empty() ? "not known" : clock_));
  } else if (step.path.ends_with("/set_ftrace_filter")) {
    // #### all functions enabled ####
    if (files_.read(step.path, text) != 0 || text.find_first_not_of(" \n") == std::string::npos ||
        text.find("all functions enabled") != std::string::npos) {
      is_tracer_refused_ = true;
      refusal_ = fmt::format("{}: the filter took no function", step.path);
    }
  } else if (step.path.ends_with("/buffer_size_kb") && taken != step.values.front()) {
    notes_.push_back(
        fmt::format("the buffer has {} KiB per CPU: there was no memory for {}", taken, step.values.front()));
  } else if (step.path.ends_with("/current_tracer") && taken != step.values.front()) {
    notes_.push_back(fmt::format("tracer {}: {} was refused here (older kernels have it in the top instance only)",
                                 taken, step.values.front()));
  }
}

bool TraceSession::give_up(std::string problem, std::string hint) {
  problem_ = std::move(problem);
  hint_ = std::move(hint);
  close();
  return false;
}

bool TraceSession::arm() {
  constexpr const char* kRights =
      "Tracing needs root and a kernel that is not locked down (cat /sys/kernel/security/lockdown).";
  for (const TraceStep& step : plan_.steps) {
    if (step.stage == Stage::tracer && is_tracer_refused_) continue;
    if (step.stage == Stage::probes && !is_tracer_refused_) continue;
    if (step.stage == Stage::probes && step.action == Action::write && probes_ == 0) continue;
    if (step.stage == Stage::start && tracer_.empty() && probes_ == 0 && !has_events_)
      return give_up(refusal_.empty() ? "there is nothing to trace: no amdgpu functions, no amdkfd events"
                                      : refusal_ + (probe_refusal_.empty() ? "" : "; " + probe_refusal_),
                     kRights);
    std::string taken;
    const int error = perform(step, taken);
    if (error == 0) {
      check(step, taken);
      if (step.path.ends_with("/current_tracer")) tracer_ = taken;
      if (step.stage == Stage::probes && step.action == Action::append && taken.starts_with("p:")) ++probes_;
      if (step.stage == Stage::events) has_events_ = true;
      continue;
    }
    const std::string why = refused(step.path, error);
    switch (step.stage) {
      case Stage::prepare:
      case Stage::start:
        if (step.is_required)
          return give_up(why, step.action == Action::make_folder && error == EEXIST
                                  ? fmt::format("Left behind by an earlier capture? Then: rmdir {}", step.path)
                                  : kRights);
        notes_.push_back(why);
        if (step.path.ends_with("/trace_clock")) {
          std::string text;
          if (files_.read(step.path, text) == 0) clock_ = chosen_word(text);
        }
        break;
      case Stage::tracer:
        if (step.is_required) {
          is_tracer_refused_ = true;
          refusal_ = why;
        }
        break;
      case Stage::probes:
        ++refused_probes_;
        if (probe_refusal_.empty()) probe_refusal_ = why;
        if (step.is_required) probes_ = 0;  // defined, but their events would not be recorded
        break;
      case Stage::events:
        notes_.push_back(why);
        break;
    }
  }
  method_ = tracer_;
  if (probes_ > 0) method_ = fmt::format("{} probes", probes_);
  if (has_events_) method_ += method_.empty() ? "events" : " and events";
  if (is_tracer_refused_)
    notes_.push_back(fmt::format(
        "functions are not traced ({}): {}", refusal_,
        probes_ > 0 ? std::string("probes at KFD's calls instead") : "probes are not available either; events alone"));
  is_armed_ = true;
  return true;
}

void TraceSession::stop() {
  if (!is_armed_) return;
  is_armed_ = false;
  if (const int error = files_.write(plan_.folder + "/tracing_on", "0", false); error != 0)
    notes_.push_back(refused(plan_.folder + "/tracing_on", error));
  // overrun: 12        entries that newer ones replaced
  // dropped events: 0  entries that found the buffer full
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    std::string text;
    if (files_.read(fmt::format("{}/per_cpu/cpu{}/stats", plan_.folder, cpu), text) != 0) break;
    for (const std::string& line : lines_of(text)) {
      if (!line.starts_with("overrun: ") && !line.starts_with("dropped events: ")) continue;
      const std::size_t digits = line.find(": ") + 2;
      std::uint64_t count = 0;
      std::from_chars(line.data() + digits, line.data() + line.size(), count);
      lost_events_ += count;
    }
  }
}

int TraceSession::restore_list(const Change& change) {
  int worst = 0;
  std::string part;
  // The first write replaces Weir's filter: an empty one in between would let every function of the kernel through.
  bool is_first = true;
  const auto flush = [&] {
    if (part.empty() && !is_first) return;
    if (const int error = files_.write(change.path, part, !is_first); error != 0) worst = error;
    is_first = false;
    part.clear();
  };
  for (const std::string& line : lines_of(change.before)) {
    if (line.starts_with("#")) continue;  // #### all functions enabled ####
    // "schedule (1)": a count after the name if something else is attached to the function
    const std::string name = first_word(line);
    // "schedule:traceoff:unlimited": a command, which clearing the filter does not remove
    if (name.find(':', 1) != std::string::npos && name[0] != ':') continue;
    if (part.size() + name.size() + 1 > kMaxAtOnce) flush();
    part += name + "\n";
  }
  flush();
  return worst;
}

void TraceSession::restore(const Change& change) {
  int error = 0;
  if (change.action == Action::make_folder) {
    files_.write(change.path + "/tracing_on", "0", false);
    files_.write(change.path + "/current_tracer", "nop", false);
    error = files_.remove_folder(change.path);
    if (error != 0) left_behind_.push_back(fmt::format("{} (rmdir: {})", change.path, std::strerror(error)));
    return;
  }
  switch (change.undo) {
    case Undo::nothing:
      break;
    case Undo::word:
    case Undo::choice:
      error = files_.write(change.path, change.before, false);
      break;
    case Undo::remove_probe:
      error = files_.write(change.path, change.before, true);
      break;
    case Undo::list:
      error = restore_list(change);
      break;
    case Undo::events: {
      error = files_.write(change.path, "0", false);
      for (const std::string& line : lines_of(change.before)) {
        const int one = files_.write(folder_of_events(change.path) + "/set_event", line, true);
        if (one != 0) error = one;
      }
      break;
    }
  }
  // If the file still has its old value, it was never changed, so nothing is left behind.
  if (std::string now; error != 0 && (change.undo == Undo::word || change.undo == Undo::choice) &&
                       files_.read(change.path, now) == 0 &&
                       (change.undo == Undo::word ? setting_of(now) : chosen_word(now)) == change.before)
    return;
  if (error != 0)
    left_behind_.push_back(fmt::format("{} ({}; it was: {})", change.path, std::strerror(error),
                                       first_word(change.before).empty() ? "empty" : first_word(change.before)));
}

void TraceSession::close() {
  is_armed_ = false;
  while (!changes_.empty()) {
    const Change change = std::move(changes_.back());
    changes_.pop_back();
    restore(change);
  }
}

}  // namespace weir::amd
