// weir.profile/2: a traced pass next to a timed one.
#include <fmt/format.h>

#include "base/plain_text.h"
#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/queues_text.h"
#include "report/text/renewed.h"

namespace weir {
namespace {

using namespace queues_text;

std::string cost_words(const Json& document) {
  const Json& tracing = at(document, {"tracing"});
  const auto cost = number(tracing, {"cost_ns_per_command"});
  if (!cost) return reason(document, "tracing.cost_ns_per_iteration");
  return fmt::format("{:+.2f} us per command: {} traced, {} untraced per iteration (medians), {}", *cost / 1000,
                     duration(tracing, {"traced_ns", "p50"}), duration(tracing, {"timed_ns", "p50"}),
                     format_ratio(number(tracing, {"ratio"}).value_or(0)));
}

std::string commands_words(const Json& device) {
  std::string words = text(device, {"commands"});
  std::string kinds;
  for (const auto& [kind, count] : fields::members(at(device, {"kinds"})))
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", fields::text(count, {}), kind);
  if (!kinds.empty()) words += " (" + kinds + ")";
  const auto streams = static_cast<std::size_t>(number(device, {"streams"}).value_or(0));
  words += " on " + counted(streams, "stream");
  if (const auto queues = number(device, {"queues"})) {
    words += " and " + counted(static_cast<std::size_t>(*queues), "hardware queue");
  } else {
    words += "; hardware queues are not known";
  }
  if (const auto copies = number(device, {"copy_queues"}); copies && *copies > 0)
    words += fmt::format("; {} more of copy engines", *copies);
  if (const auto without = number(device, {"without_times"}); without && *without > 0)
    words += fmt::format("; {} more have no times", *without);
  return words;
}

std::string busy_words(const Json& device) {
  const auto span = number(device, {"span_ns"}), busy = number(device, {"busy_ns"});
  if (!span || !busy) return text(device, {"reason"});
  const auto share = [&](const char* key) {
    return fmt::format("{:.1f} %", *span > 0 ? 100 * number(device, {key}).value_or(0) / *span : 0.0);
  };
  return fmt::format("{} of {} (compute {}, communication {}, copies {}; two or more at once {})", share("busy_ns"),
                     format_duration(*span), share("compute_ns"), share("communication_ns"), share("copy_ns"),
                     share("overlapped_ns"));
}

// kernel (1200): accepted -> started: 61 % of the way ...
//   hop                        p50        p95        p99    share
void add_waterfall(std::string& out, const Json& device) {
  std::string printed;  // reasons are mostly the same for all classes, so they are not repeated
  for (const Json& one : at(device, {"waterfall"})) {
    out += fmt::format("\n  {} ({})\n    {:<26}{:>11}{:>11}{:>11}{:>9}\n", text(one, {"kind"}), text(one, {"commands"}),
                       "hop", "p50", "p95", "p99", "share");
    for (const Json& hop : at(one, {"hops"})) {
      const auto share = number(hop, {"share"});
      out += fmt::format("    {:<26}{:>11}{:>11}{:>11}{:>9}", text(hop, {"from"}) + " -> " + text(hop, {"to"}),
                         duration(hop, {"duration_ns", "p50"}), duration(hop, {"duration_ns", "p95"}),
                         duration(hop, {"duration_ns", "p99"}), share ? fmt::format("{:.1f} %", 100 * *share) : "-");
      if (const auto negative = number(hop, {"negative"}); negative && *negative > 0)
        out += fmt::format("  ({} backwards, left out)", *negative);
      out += '\n';
    }
    const Json& hops = at(one, {"hops"});
    const bool is_seen_later =
        !hops.empty() && at(hops.back(), {"to"}) == "seen" && !number(hops.back(), {"share"}).has_value();
    for (const char* key : {"dominating_to_end_words", "dominating_words"}) {
      const std::string words = text(one, {key});
      if (!words.empty() && words != "-") {
        out +=
            "    " + wrapped(is_seen_later ? fmt::format("{}. {}", words, why_seen_is_left_out(one)) : words, 4) + '\n';
        break;
      }
    }
    std::string missing;
    for (const Json& stage : at(one, {"missing"})) {
      const std::string words = text(stage, {"stage"}) + ": " + text(stage, {"reason"});
      missing += (missing.empty() ? "" : "; ") + words;
    }
    if (!missing.empty() && missing != printed) out += "    " + wrapped("not known: " + missing, 4) + '\n';
    printed = missing;
  }
  if (at(device, {"waterfall"}).empty()) line(out, "waterfall", text(device, {"waterfall_reason"}));
}

}  // namespace

std::string describe_profile(const Json& document) {
  std::string out;
  const bool is_program = !at(document, {"program"}).is_null();
  if (is_program) {
    std::string words;
    for (const Json& word : at(document, {"program", "command"}))
      words += (words.empty() ? "" : " ") + fields::text(word, {});
    out += fmt::format("weir profile -- {}\n\n", words);
    line(out, "program", text(document, {"program", "end"}));
    line(out, "profiler", text(document, {"program", "profiler"}));
  } else {
    out += fmt::format("weir profile {} on {} ({})\n\n", text(document, {"workload"}),
                       text(document, {"device", "name"}), text(document, {"device", "model"}));
    line(out, "traced",
         fmt::format("{} iterations of {} commands, by {}", text(document, {"tracing", "kept_iterations"}),
                     text(document, {"run", "commands_per_iteration"}), text(document, {"tracing", "source"})));
    line(out, "cost of tracing", cost_words(document));
  }
  for (const Json& device : at(document, {"devices"})) {
    out += fmt::format("\n  {}{}\n", text(device, {"device"}),
                       at(device, {"process"}).is_string() ? " of " + text(device, {"process"}) : std::string());
    line(out, "commands", commands_words(device));
    line(out, "busy", busy_words(device));
    add_waterfall(out, device);
  }
  if (at(document, {"devices"}).empty()) line(out, "timeline", reason(document, "devices"));
  for (const Json& note : at(document, {"notes"}))
    if (note.is_string()) line(out, "note", fields::text(note, {}));
  for (const Json& dropped : at(document, {"dropped"}))
    line(out, "not read", fmt::format("{}: {}", text(dropped, {"count"}), text(dropped, {"reason"})));
  warnings(out, document);
  const Json& files = at(document, {"files"});
  for (const Json& file : files) out += fmt::format("\nWritten to {}", text(file, {"path"}));
  if (!files.empty() && text(document, {"format"}) == "kineto") {
    out += fmt::format("\nOpen it in https://ui.perfetto.dev, or: weir analyze {}\n",
                       shell_word(text(files[0], {"path"})));
  } else if (!files.empty()) {
    out += '\n';
  }
  return out;
}

DocumentText text_list::profile(const Json& document) { return describe_profile(renewed_profile(document)); }

}  // namespace weir
