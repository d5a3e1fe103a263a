// What a device worked for: modules, phases and steps, operators by shape, and what the host launches too slowly.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/plain_text.h"
#include "report/text/analysis_sections.h"
#include "report/text/analysis_words.h"

namespace weir::analysis {
namespace {

// Modules of one class below one parent: "DecoderLayer x28".
struct ModuleClass {
  std::string name;
  std::vector<std::size_t> members;  // places in the document's list
  double total_ns = 0, own_ns = 0, backward_ns = 0, commands = 0;
};

// "Linear_12" -> "Linear"
std::string class_of(const std::string& name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  return end != std::string::npos && end + 1 < name.size() && name[end] == '_' && end > 0 ? name.substr(0, end) : name;
}

class ModuleTree {
 public:
  ModuleTree(const Json& modules, double all_ns, std::size_t most)
      : list_(at(modules, {"list"})), all_ns_(all_ns), most_(most) {
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const auto parent = number(list_[i], {"parent"});
      parts_[parent && *parent >= 0 && *parent < static_cast<double>(i) ? static_cast<std::size_t>(*parent) : kTop]
          .push_back(i);
    }
  }

  // Returns how many classes are not shown.
  std::size_t add_to(ReportTable& table) {
    add_parts({kTop}, 0, table);
    return left_out_;
  }

 private:
  static constexpr std::size_t kTop = SIZE_MAX;
  static constexpr std::size_t kDeepest = 12;
  static constexpr double kSmallest = 0.005;  // share of a class that is shown

  void add_parts(const std::vector<std::size_t>& parents, std::size_t depth, ReportTable& table) {
    std::vector<ModuleClass> classes;
    std::map<std::string, std::size_t> places;
    for (const std::size_t parent : parents)
      for (const std::size_t part : parts_[parent]) {
        const std::string name = class_of(word(list_[part], "name"));
        const auto [place, is_new] = places.try_emplace(name, classes.size());
        if (is_new) classes.push_back({.name = name, .members = {}});
        ModuleClass& all = classes[place->second];
        all.members.push_back(part);
        all.total_ns += number(list_[part], {"total_ns"}).value_or(0);
        all.own_ns += number(list_[part], {"own_ns"}).value_or(0);
        all.backward_ns += number(list_[part], {"backward_ns"}).value_or(0);
        all.commands += number(list_[part], {"commands"}).value_or(0);
      }
    std::stable_sort(classes.begin(), classes.end(),
                     [](const ModuleClass& a, const ModuleClass& b) { return a.total_ns > b.total_ns; });
    for (const ModuleClass& each : classes) {
      if (table.rows.size() == most_ || each.total_ns < kSmallest * all_ns_ || depth == kDeepest) {
        ++left_out_;
        continue;
      }
      const bool is_one = each.members.size() == 1;
      table.rows.push_back({std::string(2 * depth, ' ') + (is_one ? word(list_[each.members[0]], "name") : each.name) +
                                (is_one ? "" : fmt::format(" x{}", each.members.size())),
                            fmt::format("{:.0f}", each.commands), format_duration(each.total_ns),
                            percent(all_ns_ > 0 ? std::optional(each.total_ns / all_ns_) : std::nullopt),
                            format_duration(each.own_ns), format_duration(each.backward_ns)});
      add_parts(each.members, depth + 1, table);
    }
  }

  const Json& list_;
  double all_ns_;
  std::size_t most_, left_out_ = 0;
  std::map<std::size_t, std::vector<std::size_t>> parts_;  // by parent
};

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
  const std::size_t left_out = ModuleTree(modules, all_ns, 3 * most).add_to(table);
  const Json& without = at(modules, {"without"});
  table.rows.push_back(
      {"(no module)", count(without, "commands"), duration(without, "total_ns"),
       percent(all_ns > 0 ? std::optional(number(without, {"total_ns"}).value_or(0) / all_ns) : std::nullopt),
       duration(without, "total_ns"), "-"});
  if (left_out > 0)
    table.after = fmt::format("and {} smaller, which the document has", counted(static_cast<double>(left_out), "part"));
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

}  // namespace weir::analysis
