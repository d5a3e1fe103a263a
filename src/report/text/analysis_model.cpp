// What a device worked for: modules, phases and steps, operators by shape, and what the host launches too slowly.
#include <fmt/format.h>

#include <algorithm>

#include "base/plain_text.h"
#include "report/text/analysis_sections.h"
#include "report/text/analysis_words.h"
#include "report/text/module_tree.h"

namespace weir::analysis {
namespace {

// "mm bf16 [8, 1024], bf16 [1024, 4096]": the first shapes say more than the last ones.
std::string shaped_name(const Json& each) {
  constexpr std::size_t kLongest = 40;
  constexpr std::string_view kUsual = "aten::";
  std::string text = at(each, {"name"}).is_string() ? word(each, "name") : fmt::format("({})", word(each, "call"));
  if (at(each, {"shapes"}).is_string()) {
    text += " " + word(each, "shapes");
    if (text.size() > kLongest && text.starts_with(kUsual)) text.erase(0, kUsual.size());
  }
  return text.size() <= kLongest ? text : std::string(whole_characters(text, kLongest - 2)) + "..";
}

}  // namespace

ReportSection modules_section(const Json& device, std::size_t most) {
  ReportSection section{"Modules of the model"};
  const Json& modules = at(device, {"model", "modules"});
  if (!modules.is_object()) {
    section.remark("Not known: {}.", fields::text(device, {"unavailable", "model.modules"}));
    return section;
  }
  const double all_ns = number(device, {"model", "total_ns"}).value_or(0);
  ReportTable table{{{"module", true}, {"commands"}, {"sum"}, {"share"}, {"own"}, {"backward"}}};
  const ModuleRows found = module_rows(modules, all_ns, 3 * most);
  for (const ModuleRow& row : found.rows)
    table.rows.push_back({std::string(2 * row.depth, ' ') + row.words(), fmt::format("{:.0f}", row.commands),
                          format_duration(row.total_ns),
                          percent(all_ns > 0 ? std::optional(row.total_ns / all_ns) : std::nullopt),
                          format_duration(row.own_ns), format_duration(row.backward_ns)});
  const Json& without = at(modules, {"without"});
  table.rows.push_back(
      {"(no module)", count(without, "commands"), duration(without, "total_ns"),
       percent(all_ns > 0 ? std::optional(number(without, {"total_ns"}).value_or(0) / all_ns) : std::nullopt),
       duration(without, "total_ns"), "-"});
  if (found.left_out > 0)
    table.after = fmt::format("and {} smaller, {}, which the document has",
                              counted(static_cast<double>(found.left_out), "part"), format_duration(found.left_out_ns));
  section.tables.push_back(std::move(table));
  return section;
}

ReportSection phases_section(const Json& device, std::size_t most) {
  ReportSection section{"Phases and steps"};
  ReportTable& phases = section.table({{"phase", true}, {"commands"}, {"sum"}, {"share"}});
  for (const Json& each : at(device, {"model", "phases"}))
    phases.rows.push_back({word(each, "phase") == "unknown" ? "(none of these)" : word(each, "phase"),
                           count(each, "commands"), duration(each, "total_ns"), percent(number(each, {"share"}))});
  const Json& steps = at(device, {"model", "steps"});
  if (!steps.is_object()) return section;
  ReportTable table{{{"step", true}, {"commands"}, {"sum"}, {"forward"}, {"backward"}, {"optimizer"}, {"other"}}};
  for (const Json& each : first(at(steps, {"list"}), most))
    table.rows.push_back({word(each, "name"), count(each, "commands"), duration(each, "total_ns"),
                          duration(each, "forward_ns"), duration(each, "backward_ns"), duration(each, "optimizer_ns"),
                          duration(each, "other_ns")});
  if (const double all = number(steps, {"count"}).value_or(0); all > static_cast<double>(table.rows.size()))
    table.after = fmt::format("and {:.0f} more", all - static_cast<double>(table.rows.size()));
  section.tables.push_back(std::move(table));
  if (const Json& outside = at(steps, {"outside"}); number(outside, {"commands"}).value_or(0) > 0)
    section.remark("Outside of steps: {}, {}.", counted(outside, "commands", "command"), duration(outside, "total_ns"));
  return section;
}

ReportSection shapes_section(const Json& device, std::size_t most) {
  ReportSection section{"Operators by shape"};
  const Json& shapes = at(device, {"model", "shapes"});
  ReportTable& table = section.table({{"operator", true}, {"calls"}, {"sum"}, {"share"}, {"launching"}});
  double rest_ns = number(shapes, {"rest_ns"}).value_or(0);
  for (const Json& each : at(shapes, {"top"})) {
    if (table.rows.size() == most)
      rest_ns += number(each, {"total_ns"}).value_or(0);
    else
      table.rows.push_back({shaped_name(each), count(each, "calls"), duration(each, "total_ns"),
                            percent(number(each, {"share"})), duration(each, "launching_ns")});
  }
  const double all = number(shapes, {"count"}).value_or(0);
  if (all > static_cast<double>(table.rows.size()))
    table.after = fmt::format("and {}, {}", counted(all - static_cast<double>(table.rows.size()), "other"),
                              format_duration(rest_ns));
  const auto none = [&](const char* which, const char* why) {
    const Json& found = at(shapes, {which});
    if (number(found, {"commands"}).value_or(0) > 0)
      section.remark("{}: {}, {}.", why, counted(found, "commands", "command"), duration(found, "total_ns"));
  };
  none("outside", "Submitted outside of operators");
  none("without_call", "Without a call in the trace that submitted them");
  return section;
}

ReportSection launching_section(const Json& device, std::size_t most) {
  ReportSection section{"Launched more slowly than they run"};
  const Json& limited = at(device, {"model", "launch_limited"});
  ReportTable& table = section.table({{"operator", true}, {"calls"}, {"launching"}, {"running"}, {"device idle"}});
  for (const Json& each : first(at(limited, {"top"}), std::min<std::size_t>(most, 5)))
    table.rows.push_back({shaped_name(each), count(each, "calls"), duration(each, "launching_ns"),
                          duration(each, "total_ns"), duration(each, "late_ns")});
  const double all = number(limited, {"count"}).value_or(0);
  if (all > static_cast<double>(table.rows.size()))
    table.after = fmt::format("and {}", counted(all - static_cast<double>(table.rows.size()), "other"));
  if (number(limited, {"late_ns"}).value_or(0) > 0)
    section.remark(
        "Launching {} of work took {}, and the device was idle for {} until the host had launched them: candidates for "
        "graphs, or for fewer and larger operators.",
        duration(limited, "total_ns"), duration(limited, "launching_ns"), duration(limited, "late_ns"));
  else
    section.remark("Launching {} of work took {}, but the device never waited for it: graphs would gain nothing here.",
                   duration(limited, "total_ns"), duration(limited, "launching_ns"));
  return section;
}

ReportSection copies_section(const Json& device, std::size_t most) {
  ReportSection section{"Copies"};
  ReportTable& table = section.table({{"copy", true}, {"count"}, {"bytes"}, {"sum"}, {"without compute"}});
  for (const Json& each : first(at(device, {"copies"}), most)) {
    const auto bytes = number(each, {"bytes"});
    table.rows.push_back({word(each, "name"), count(each, "commands"),
                          bytes ? format_bytes(static_cast<std::uint64_t>(*bytes)) : "-", duration(each, "total_ns"),
                          duration(each, "alone_ns")});
  }
  return section;
}

std::string peak_words(const Json& peak) {
  // The last part of a module's path says most.
  std::string module = at(peak, {"module"}).is_string() ? word(peak, "module") : "";
  if (!module.empty()) module = "in " + module.substr(module.rfind('/') + 1);
  std::string words;
  for (const std::string& part : {at(peak, {"operator"}).is_string() ? word(peak, "operator") : "", module,
                                  at(peak, {"phase"}).is_string() ? word(peak, "phase") : "",
                                  at(peak, {"step"}).is_string() ? word(peak, "step") : ""})
    if (!part.empty()) words += (words.empty() ? "" : ", ") + part;
  return words;
}

std::string growth_sentence(const Json& steps) {
  if (!is_true(steps, {"grows"})) return {};
  return fmt::format(
      "Each step from the third on ended with more than the one before, from {} after the first to {} after the last: "
      "something keeps memory from step to step (a leak?).",
      bytes(steps, {"first_bytes"}), bytes(steps, {"last_bytes"}));
}

ReportSection memory_section(const Json& device, std::size_t most) {
  ReportSection section{"Memory that the program's allocator had"};
  const Json& memory = at(device, {"memory"});
  for (const char* which : {"allocated", "reserved"}) {
    const Json& peak = at(memory, {which});
    const std::string words = peak_words(peak);
    section.fact(which, "at most {}, first at {}{}{}", bytes(peak, {"bytes"}), duration(peak, "at_ns"),
                 words.empty() ? "" : ": ", words);
  }
  section.fact("allocations", "{}, {} together; {}", count(memory, "allocations"), bytes(memory, {"allocated_bytes"}),
               counted(memory, "frees", "time") + " freed");
  const Json& steps = at(memory, {"steps"});
  if (!steps.is_object()) return section;
  ReportTable table{{{"step", true}, {"at most"}, {"at its end"}}};
  for (const Json& each : first(at(steps, {"list"}), most))
    table.rows.push_back({word(each, "name"), bytes(each, {"peak_bytes"}), bytes(each, {"end_bytes"})});
  const double all = number(steps, {"count"}).value_or(0);
  if (all > static_cast<double>(table.rows.size()))
    table.after = fmt::format("and {:.0f} more", all - static_cast<double>(table.rows.size()));
  section.tables.push_back(std::move(table));
  if (const std::string words = growth_sentence(steps); !words.empty()) section.remark(words);
  return section;
}

}  // namespace weir::analysis
