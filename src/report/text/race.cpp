// weir.race/1: which commands nothing orders, what shows it, what is missing, and the two streams side by side.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr std::size_t kMostShown = 10, kMostStackLines = 12;

// "kernel scale (1.417, stream 7)"
std::string command_words(const Json& command) {
  std::string where = string(command, {"command"}).empty() ? "" : text(command, {"command"});
  if (!string(command, {"stream"}).empty()) where += (where.empty() ? "" : ", ") + text(command, {"stream"});
  const std::string label = short_kernel_name(text(command, {"label"}), 48), kind = text(command, {"kind"});
  return fmt::format("{}{}{}", kind == label ? "" : kind + " ", label, where.empty() ? "" : " (" + where + ")");
}

std::string verb_pair(const std::string& meeting, bool is_first) {
  if (meeting == "read_after_write") return is_first ? "writes" : "reads";
  if (meeting == "write_after_read") return is_first ? "reads" : "writes";
  if (meeting == "write_after_write") return "writes";
  return "uses";
}

std::string memory_words(const Json& race) {
  const auto size = number(race, {"bytes"});
  if (!size) return "memory";
  return fmt::format("{}{} at {}", is_true(race, {"is_exact"}) ? "" : "up to ", bytes(race, {"bytes"}),
                     text(race, {"address"}));
}

std::string what_races(const Json& race) {
  const Json &first = at(race, {"first"}), &second = at(race, {"second"});
  const std::string meeting = string(race, {"hazard"});
  if (!first.is_object())
    return fmt::format("The output depends on when {} runs, and no wait that was tried makes it right again.",
                       at(race, {"delayed"}).is_object() ? command_words(at(race, {"delayed"})) : "a command");
  if (is_true(race, {"is_host"})) {
    if (meeting == "host_reads")
      return fmt::format("{} writes {}; the host reads it. Nothing orders them.", command_words(first),
                         memory_words(race));
    if (meeting == "host_writes")
      return fmt::format("{} reads {}; the host overwrites it. Nothing orders them.", command_words(first),
                         memory_words(race));
    return fmt::format("The host goes on before {} has ended, and what follows depends on it.", command_words(first));
  }
  if (!is_true(race, {"is_suspect"}))
    return fmt::format("{} must end before {} begins. Nothing orders them; what they share was not seen.",
                       command_words(first), command_words(second));
  return fmt::format("{} {} {}; {} {} it. Nothing orders them.", command_words(first), verb_pair(meeting, true),
                     memory_words(race), command_words(second), verb_pair(meeting, false));
}

std::string delay_words(const Json& race) {
  const Json& delays = list(race, {"delays"});
  if (delays.empty()) return "-";
  const std::string time = duration(number(delays[0], {"delay_ns"}));
  if (delays.size() == 1)
    return fmt::format("A delay of {} before {} changes the output: {}.", time, text(delays[0], {"command"}),
                       text(race, {"change"}));
  return fmt::format("{} delays ({} before {} ...) together change the output: {}.", delays.size(), time,
                     text(delays[0], {"command"}), text(race, {"change"}));
}

std::string count_words(const Json& counts) {
  if (!counts.is_object()) return "not tried";
  return fmt::format("the output changed in {} of {} runs", count(counts, {"changes"}), count(counts, {"runs"}));
}

// Both streams as columns, one row for each command, in the order of the calls.
ReportTable lanes_table(const Json& race) {
  const Json& lanes = list(race, {"lanes"});
  ReportTable table;
  const std::size_t count = std::min<std::size_t>(lanes.size(), 3);
  table.columns.push_back({"", true});
  for (std::size_t i = 0; i < count; ++i) table.columns.push_back({text(lanes[i], {"stream"}), true});
  std::vector<std::pair<double, std::vector<std::string>>> rows;
  const std::string first = string(race, {"first", "command"}), second = string(race, {"second", "command"});
  for (std::size_t i = 0; i < count; ++i)
    for (const Json& command : fields::first(list(lanes[i], {"commands"}), 20)) {
      std::vector<std::string> cells(count + 1);
      const std::string name = string(command, {"command"});
      cells[0] = name == first ? "A" : name == second ? "B" : "";
      cells[i + 1] = fmt::format("{} {}", text(command, {"command"}), short_kernel_name(text(command, {"label"}), 24));
      rows.emplace_back(number(command, {"order"}).value_or(0), std::move(cells));
    }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [order, cells] : rows) table.rows.push_back(std::move(cells));
  if (count > 1) table.after = "In the order of the calls. B must wait for A, and does not.";
  return table;
}

// The frames of Python, which stand behind the native ones: File "train.py", line 16 in step. They come first, because
// that is where a wait can be put; then the native ones that have a name.
void add_stack(const Json& race, const char* key, const char* title, ReportSection& section) {
  const Json& stack = list(race, {key});
  if (stack.empty()) return;
  std::vector<std::string> python, named, others;
  for (const Json& frame : stack) {
    const std::string words = text(frame, {});
    if (words.starts_with("Stack (") || words.starts_with("Thread ")) continue;
    (words.starts_with("File ") ? python : words.starts_with("[") ? others : named).push_back(words);
  }
  // Without any name an address is better than nothing.
  if (python.empty() && named.empty()) named = std::move(others);
  python.insert(python.end(), named.begin(), named.end());
  ReportTable table{{{title, true}}};
  for (std::size_t i = 0; i < std::min(python.size(), kMostStackLines); ++i) table.rows.push_back({python[i]});
  if (const std::size_t left = stack.size() - table.rows.size(); left > 0)
    table.after = fmt::format("and {} more in the document", left);
  section.add_unless_empty(std::move(table));
}

void add_race(const Json& race, std::size_t number_of_race, TextReport& report) {
  ReportSection& words = report.section(fmt::format("Race {}", number_of_race));
  words.remark(what_races(race));
  words.remark(delay_words(race));
  if (!string(race, {"missing"}).empty()) words.remark("Missing: {}.", text(race, {"missing"}));
  ReportSection& section = report.section(fmt::format("Race {}: what shows it", number_of_race));
  section.fact("with the delay", count_words(at(race, {"with_delay"})));
  section.fact("and with the wait", count_words(at(race, {"with_wait"})));
  for (const Json& wait : fields::first(list(race, {"waits"}), kMostShown))
    section.fact("wait put in", at(wait, {"second"}).is_null()
                                    ? fmt::format("the host, for {}", text(wait, {"first"}))
                                    : fmt::format("{}, for {}", text(wait, {"second"}), text(wait, {"first"})));
  if (number(race, {"repeats"}).value_or(1) > 1) section.fact("places like it", "{}", count(race, {"repeats"}));
  section.add_unless_empty(lanes_table(race));
  add_stack(race, "first_stack", "where A is called", section);
  add_stack(race, "second_stack", "where B is called", section);
}

void open_race(const Json& document, TextReport& report) {
  const std::string answer = string(document, {"answer"});
  const Json& runs = list(document, {"runs"});
  const std::size_t races = list(document, {"races"}).size();
  const bool has_changed =
      std::any_of(runs.begin(), runs.end(), [](const Json& run) { return !string(run, {"change"}).empty(); });
  if (answer == "found")
    report.open("{}: the output depends on the order of commands that nothing orders.", counted(races, "race"));
  else if (answer == "clean")
    report.open("No race was found: the output was the same in all runs.");
  else if (answer == "varying")
    report.open("The output differs from one plain run to the next, so delays cannot be judged by it.");
  else
    report.open("{}", races > 0 || has_changed
                          ? "The output changed, and no wait that was tried makes it right again. The program "
                            "may choose by time what it computes (torch.backends.cudnn.benchmark), or commands "
                            "share memory in a way that cannot be seen."
                          : "No race was found, but not all runs ended.");
  std::string seen;  // in the observed run; a replay has none
  if (const auto commands = number(document, {"commands"}))
    seen = fmt::format(", {} in {}, {}", counted(*commands, "command"),
                       counted(number(document, {"streams"}).value_or(0), "stream"),
                       counted(number(document, {"suspect_count"}).value_or(0), "suspect pair"));
  report.open("{}{}. Why it ended: {}.", counted(runs.size(), "run"), seen, text(document, {"reason"}));
  if (answer == "varying") {
    report.open("It varies: {}.", joined(list(document, {"varying"}), "; "));
    report.open(
        "Make the program deterministic: set its seeds, CUBLAS_WORKSPACE_CONFIG=:4096:8 and "
        "torch.use_deterministic_algorithms(True); leave out lines that may differ with --ignore PATTERN; or judge a "
        "number with --number PATTERN --tolerance 1e-3.");
  }
}

ReportTable suspects_table(const Json& document) {
  ReportTable table{{{"first", true}, {"second", true}, {"bytes"}, {"exact"}, {"places"}}};
  const Json& suspects = list(document, {"suspects"});
  for (const Json& suspect : fields::first(suspects, kMostShown))
    table.rows.push_back({command_words(at(suspect, {"first"})),
                          is_true(suspect, {"is_host"}) ? "the host" : command_words(at(suspect, {"second"})),
                          bytes(suspect, {"bytes"}), is_true(suspect, {"is_exact"}) ? "yes" : "no",
                          count(suspect, {"repeats"})});
  if (const double all = number(document, {"suspect_count"}).value_or(0); all > static_cast<double>(kMostShown))
    table.after = fmt::format("The first of {:.0f}.", all);
  return table;
}

TextReport step_report(const Json& step) {
  TextReport report;
  report.title = "weir race";
  const Json& missing = list(step, {"missing"});
  report.open("{} on {}, {}: {} in its plan, {} that nothing orders as it is.", text(step, {"workload"}),
              text(step, {"device"}), counted(number(step, {"streams"}).value_or(0), "stream"),
              counted(number(step, {"waits"}).value_or(0), "wait"),
              counted(number(step, {"intact_pairs"}).value_or(0), "pair"));
  if (missing.empty()) return report;
  report.open("{} taken away, one at a time: {} found by the plan{}.", counted(missing.size(), "wait"),
              count(step, {"found"}),
              at(step, {"shown"}).is_number() ? fmt::format(", {} shown by a run", count(step, {"shown"})) : "");
  ReportTable table{{{"wait"}, {"writes or reads first", true}, {"then", true}, {"buffer", true}, {"shown", true}}};
  for (const Json& wait : missing) {
    const Json& pairs = list(wait, {"pairs"});
    if (pairs.empty()) {
      table.rows.push_back({count(wait, {"wait"}), "not found", "-", "-", "-"});
      continue;
    }
    const Json& pair = pairs[0];
    const auto side = [&](const char* name, const char* command, const char* stream) {
      return fmt::format("{} (command {}, stream {})", text(pair, {name}), count(pair, {command}),
                         count(pair, {stream}));
    };
    table.rows.push_back({count(wait, {"wait"}), side("first", "first_command", "first_stream"),
                          side("second", "second_command", "second_stream"), text(pair, {"buffer"}),
                          at(pair, {"is_shown"}).is_null() ? "-"
                          : is_true(pair, {"is_shown"})    ? "yes"
                                                           : "no"});
  }
  report.add_unless_empty("Missing waits", std::move(table));
  return report;
}

}  // namespace

TextReport race_report(const Json& document) {
  if (const Json& step = at(document, {"step"}); step.is_object()) return step_report(step);
  TextReport report;
  report.title = "weir race";
  open_race(document, report);
  std::size_t number_of_race = 0;
  for (const Json& race : fields::first(list(document, {"races"}), kMostShown))
    add_race(race, ++number_of_race, report);
  const bool is_found = !list(document, {"races"}).empty();
  report.add_unless_empty("Suspects", suspects_table(document),
                          {is_found ? "Pairs that may touch the same memory while nothing orders them."
                                    : "Pairs that may touch the same memory while nothing orders them. None was "
                                      "shown to matter."});
  ReportSection& cost = report.section("Cost");
  cost.fact("a plain run", duration(at(document, {"cost", "plain_ns"})));
  cost.fact("observed", duration(at(document, {"cost", "observed_ns"})));
  cost.fact("with delays", duration(at(document, {"cost", "delayed_ns"})));
  if (const Json& judged = list(document, {"judged"}); !judged.empty()) cost.fact("judged by", joined(judged));
  for (const Json& warning : fields::first(list(document, {"warnings"}), kMostShown))
    cost.remark("{}", text(warning, {}));
  for (const Json& note : fields::first(list(document, {"notes"}), kMostShown))
    cost.remark("The library in the program: {}", text(note, {}));
  return report;
}

DocumentText text_list::race(const Json& document) { return race_report(document); }

}  // namespace weir
