// weir.advice/1: what would make a traced program faster, what to do first, and what a proof has measured.
#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

std::string gain_words(const Json& prediction) {
  const double gain = number(prediction, {"gain"}).value_or(0);
  if (std::abs(gain) < 0.0005) return "none";
  return fmt::format("{:+.1f} %", -100 * gain);
}

std::string range_words(const Json& prediction) {
  return duration(prediction, {"low_ns"}) + " .. " + duration(prediction, {"high_ns"});
}

std::string title_words(const Json& prediction) {
  constexpr std::string_view kFaster = " twice as fast";
  const std::string title = text(prediction, {"title"});
  if (string(prediction, {"kind"}) != "kernel" || !title.ends_with(kFaster)) return title;
  return short_kernel_name(title.substr(0, title.size() - kFaster.size()), 30) + std::string(kFaster);
}

// What to do, best first; or that there is nothing.
void open_with_advice(const Json& document, TextReport& report) {
  const Json& predictions = list(document, {"predictions"});
  std::size_t rank = 0;
  for (const Json& index : list(document, {"advised"})) {
    const std::size_t at = index.is_number_unsigned() ? index.get<std::size_t>() : predictions.size();
    if (at >= predictions.size()) continue;
    const Json& one = predictions[at];
    const std::string title = title_words(one);
    report.open("{}. {}{}: {} a step instead of {} ({}). To do: {}.", ++rank,
                static_cast<char>(std::toupper(static_cast<unsigned char>(title[0]))), title.substr(1),
                duration(one, {"step_ns"}), duration(document, {"step_ns"}), gain_words(one), text(one, {"setting"}));
  }
  if (rank == 0) report.open("Leave it: nothing here that can be done gains 2 % of a step.");
}

// Changes that make no difference are named below the table; numbers of queues are always in it.
constexpr double kNoDifference = 0.005;

void add_predictions(TextReport& report, const char* name, const char* column, const Json& document, bool can_be_done) {
  ReportTable table{{{column, true}, {"step"}, {"between"}, {"change"}}};
  std::vector<std::string> same;
  for (const Json& one : list(document, {"predictions"})) {
    if ((string(one, {"effort"}) != "none") != can_be_done) continue;
    if (string(one, {"kind"}) != "queues" && std::abs(number(one, {"gain"}).value_or(0)) < kNoDifference)
      same.push_back(title_words(one));
    else
      table.rows.push_back({title_words(one), duration(one, {"step_ns"}), range_words(one), gain_words(one)});
  }
  if (table.rows.empty() && same.empty()) return;
  ReportSection& section = report.section(name);
  if (!table.rows.empty()) section.tables.push_back(std::move(table));
  if (!same.empty()) section.remark(fmt::format("No difference: {}.", fmt::join(same, "; ")));
}

void add_proof(const Json& document, TextReport& report) {
  const Json& proof = at(document, {"proof"});
  if (!proof.is_object()) return;
  ReportSection& section = report.section("Proof");
  section.fact("tried", "{}, {} trials", text(proof, {"setting"}), text(proof, {"trials"}));
  section.fact("predicted", "{:+.1f} %", -100 * number(proof, {"predicted_gain"}).value_or(0));
  const auto measured = number(proof, {"measured_gain"});
  const auto range = interval(proof, {"interval"});
  section.fact(
      "measured",
      measured
          ? fmt::format("{:+.1f} %", -100 * *measured) +
                (range ? fmt::format(" (95 %: {:+.1f} .. {:+.1f} %)", -100 * range->second, -100 * range->first) : "")
          : "-");
  if (const Json& record = at(proof, {"record"}); record.is_object())
    section.fact("so far",
                 "{} of {} predictions in this history agree with what was measured; half of them within {:.1f} points",
                 count(record, {"right"}), count(record, {"proven"}),
                 100 * number(record, {"half_within"}).value_or(0));
  if (const std::string reason = string(proof, {"reason"}); !reason.empty()) section.remark(reason);
}

}  // namespace

DocumentText text_list::advice(const Json& document) {
  TextReport report;
  const Json& trace = at(document, {"trace"});
  report.title = fmt::format("weir advise: {} commands, {} host calls, {}", count(trace, {"commands"}),
                             count(trace, {"host_calls"}),
                             number(trace, {"steps"}).value_or(0) > 1
                                 ? fmt::format("{} steps of {}", count(trace, {"steps"}), duration(trace, {"step_ns"}))
                                 : duration(trace, {"span_ns"}) + " without marked steps");
  if (const std::string reason = string(document, {"reason"}); !reason.empty()) {
    report.open("No advice: {}.", reason);
    return report;
  }
  open_with_advice(document, report);
  add_proof(document, report);
  add_predictions(report, "What can be done", "what if", document, true);
  add_predictions(report, "What the limits are", "if it were possible", document, false);
  for (const Json& one : list(document, {"unanswered"}))
    report.sections.back().remark(fmt::format("Not predicted: {}: {}.", text(one, {"title"}), text(one, {"reason"})));
  for (const Json& title : list(document, {"stuck"}))
    report.sections.back().remark(fmt::format("Not predicted: {}: ranks would wait for each other.", text(title, {})));
  ReportSection& basis = report.section("What this rests on");
  basis.fact("replay", "{} for a step of {} ({:+.2f} %)", duration(document, {"replay", "step_ns"}),
             duration(trace, {"step_ns"}), 100 * number(document, {"replay", "error"}).value_or(0));
  if (number(document, {"replay", "late_commands"}).value_or(0) > 0)
    basis.fact("not explained", "{} commands start late, by {} in all", count(document, {"replay", "late_commands"}),
               duration(document, {"replay", "late_ns"}));
  if (number(document, {"replay", "inferred_waits"}).value_or(0) > 0)
    basis.fact("guessed", "{} waits, by their times alone", count(document, {"replay", "inferred_waits"}));
  basis.fact("queues then", count(trace, {"queues"}));
  const Json& untraced = at(document, {"untraced"});
  if (untraced.is_object())
    basis.fact("without profiler", "{} a step: {:.2f} of the host's time in the trace", duration(untraced, {"step_ns"}),
               number(untraced, {"host_factor"}).value_or(1));
  else
    basis.remark(
        "All of this is about the program under its profiler, which makes the host slower. --untraced 3.2ms says how "
        "long a step takes without it.");
  if (!is_true(trace, {"are_waits_known"}))
    basis.remark(
        "The trace does not record which stream waited for which. PyTorch records it with "
        "_ExperimentalConfig(enable_cuda_sync_events=True).");
  return report;
}

}  // namespace weir
