// weir list: the workloads; with -v, everything that is known without running one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/console.h"
#include "base/error.h"
#include "base/json.h"
#include "base/named_values.h"
#include "base/options.h"
#include "base/schemas.h"
#include "cli/list.h"
#include "cli/ready_files.h"
#include "report/text/sections.h"
#include "step/workload/workload.h"
#include "step/workload/yaml.h"

namespace weir::cli {
namespace {

struct ListWorkloadsFlags {
  std::string category;
  std::string file;
  bool is_verbose = false;
  bool is_json = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("--category NAME", category, "only this category");
    syntax.add("--file PATH", file, "the workload of this YAML file instead");
    syntax.add("-v,--verbose", is_verbose, "with parameters and what each shows");
    syntax.add("--json", is_json, "everything, for programs");
  }
};

// 1e9 as 1000000000, 0.5 as 0.5
std::string bound(double value) {
  return value == static_cast<double>(static_cast<std::int64_t>(value))
             ? fmt::format("{}", static_cast<std::int64_t>(value))
             : fmt::format("{}", value);
}

std::string_view meaning_of(Scaling scaling) {
  switch (scaling) {
    case Scaling::divided:
      return "the same work is divided among the streams";
    case Scaling::requests:
      return "requests are spread over the streams";
    default:
      return "work grows with the stream count";
  }
}

// One line per parameter with its defaults under their scales, then its description.
void print_params(const Workload& workload) {
  if (workload.params.empty()) return;
  std::size_t name_width = 10;
  std::array<std::size_t, 3> widths = {4, 5, 4};
  for (const ParamSpec& param : workload.params) {
    name_width = std::max(name_width, param.name.size());
    for (std::size_t i = 0; i < 3 && param.choices.empty(); ++i)
      widths[i] = std::max(widths[i], to_string(param.defaults[i]).size());
  }
  print_out("  {:<{}}  {:>{}}  {:>{}}  {:>{}}   {}\n", "--param", name_width, "tiny", widths[0], "small", widths[1],
            "full", widths[2], "range");
  for (const ParamSpec& param : workload.params) {
    if (!param.choices.empty()) {
      print_out("  {:<{}}  {}\n", param.name, name_width,
                wrapped(fmt::format("{} (of {})", to_string(param.defaults[0]), fmt::join(param.choices, ", ")),
                        name_width + 4));
    } else {
      print_out("  {:<{}}  {:>{}}  {:>{}}  {:>{}}   {} to {}\n", param.name, name_width, to_string(param.defaults[0]),
                widths[0], to_string(param.defaults[1]), widths[1], to_string(param.defaults[2]), widths[2],
                bound(param.lowest), bound(param.highest));
    }
    if (!param.help.empty()) print_out("      {}\n", wrapped(param.help, 6));
  }
}

void print_details(const Workload& workload) {
  print_out("{}  (P{}, {})\n  {}\n", workload.name, workload.priority, workload.category, wrapped(workload.summary, 2));
  const auto line = [](std::string_view name, const std::string& text) {
    print_out("  {:<10}  {}\n", name, wrapped(text, 14));
  };
  line("shows", workload.shows);
  line("streams", fmt::format("{} to {}, {} recommended", workload.streams.min, workload.streams.max,
                              workload.streams.recommended));
  line("unit", fmt::format("{}; {}", workload.unit, meaning_of(workload.scaling)));
  if (workload.roles.size() > 1) {
    std::string roles = fmt::format("{}", fmt::join(workload.roles, ", "));
    if (workload.convoy_role)
      roles += fmt::format("; convoy effect on {}", workload.roles[static_cast<std::size_t>(*workload.convoy_role)]);
    line("roles", roles);
  }
  print_params(workload);
  print_out("\n");
}

void print_brief(std::span<const Workload* const> chosen) {
  // Categories in order of first appearance; workloads in the order of the list.
  std::vector<std::string> categories;
  for (const Workload* workload : chosen)
    if (std::find(categories.begin(), categories.end(), workload->category) == categories.end())
      categories.push_back(workload->category);
  std::size_t name_width = 8, unit_width = 4;
  for (const Workload* workload : chosen) {
    name_width = std::max(name_width, workload->name.size());
    unit_width = std::max(unit_width, workload->unit.size());
  }
  print_out("{:<{}}  class  streams  unit\n", "workload", name_width + 2);
  for (const std::string& category : categories) {
    print_out("\n{}\n", category);
    for (const Workload* workload : chosen) {
      if (workload->category != category) continue;
      const std::string head =
          fmt::format("  {:<{}}  P{:<4}  {:<7}  {:<{}}  ", workload->name, name_width, workload->priority,
                      fmt::format("{}-{}", workload->streams.min, workload->streams.max), workload->unit, unit_width);
      // The summary goes on the next line where the name leaves no room for it.
      if (head.size() + 24 <= kReportColumns) {
        print_out("{}{}\n", head, wrapped(workload->summary, head.size()));
      } else {
        print_out("{}\n      {}\n", head, wrapped(workload->summary, 6));
      }
    }
  }
  print_out("\n`weir list -v` shows what each must show, and its parameters.\n");
}

Json workload_json(const Workload& workload) {
  Json json = Json::object();
  json["name"] = workload.name;
  json["summary"] = workload.summary;
  json["category"] = workload.category;
  json["class"] = fmt::format("P{}", workload.priority);
  json["unit"] = workload.unit;
  json["scaling"] = name_of(workload.scaling);
  json["shows"] = workload.shows;
  json["streams"] = {
      {"min", workload.streams.min}, {"recommended", workload.streams.recommended}, {"max", workload.streams.max}};
  json["roles"] = workload.roles;
  json["parameters"] = Json::object();
  for (const ParamSpec& param : workload.params) {
    Json& entry = json["parameters"][param.name];
    entry["help"] = param.help;
    for (const Scale scale : {Scale::tiny, Scale::small, Scale::full})
      std::visit([&](const auto& held) { entry["defaults"][std::string(name_of(scale))] = held; },
                 param.defaults[static_cast<std::size_t>(scale)]);
    if (param.choices.empty()) {
      entry["min"] = param.lowest;
      entry["max"] = param.highest;
    } else {
      entry["choices"] = param.choices;
    }
  }
  return json;
}

int execute_list_workloads(const ListWorkloadsFlags& flags) {
  std::vector<Workload> loaded;
  if (!flags.file.empty()) loaded.push_back(load_workload(config_file(flags.file)));
  const std::span<const Workload> all = flags.file.empty() ? workloads() : std::span<const Workload>(loaded);
  std::set<std::string> categories;
  for (const Workload& workload : all) categories.insert(workload.category);
  if (!flags.category.empty() && !categories.contains(flags.category)) {
    const std::vector<std::string> names(categories.begin(), categories.end());
    reject(fmt::format("--category {}: unknown category", flags.category), suggestion(flags.category, names));
  }
  std::vector<const Workload*> chosen;
  for (const Workload& workload : all)
    if (flags.category.empty() || workload.category == flags.category) chosen.push_back(&workload);
  if (flags.is_json) {
    write_json(to_text({{"schema", schemas::list},
                        {"workloads", json_list(chosen, [](const Workload* one) { return workload_json(*one); })}}));
  } else if (flags.is_verbose) {
    for (const Workload* workload : chosen) print_details(*workload);
  } else {
    print_brief(chosen);
  }
  return 0;
}

}  // namespace

CliCommand list_workloads() { return command("list", "show the workloads", execute_list_workloads); }

}  // namespace weir::cli
