#include "report/text/module_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/text/fields.h"

namespace weir::analysis {
namespace {

constexpr std::size_t kTop = SIZE_MAX;
constexpr std::size_t kDeepest = 12;
constexpr double kSmallest = 0.005;  // share of a row that is shown

struct ModuleClass {
  ModuleRow row;
  std::vector<std::size_t> members;  // places in the document's list
};

// "Linear_12" -> "Linear"
std::string class_of(const std::string& name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  return end != std::string::npos && end + 1 < name.size() && name[end] == '_' && end > 0 ? name.substr(0, end) : name;
}

class ModuleTree {
 public:
  ModuleTree(const Json& modules, double all_ns, std::size_t most)
      : list_(fields::list(modules, {"list"})), all_ns_(all_ns), most_(most) {
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const auto parent = fields::number(list_[i], {"parent"});
      parts_[parent && *parent >= 0 && *parent < static_cast<double>(i) ? static_cast<std::size_t>(*parent) : kTop]
          .push_back(i);
    }
  }

  ModuleRows rows() {
    add_parts({kTop}, std::nullopt, 0);
    return std::move(found_);
  }

 private:
  double amount(std::size_t place, const char* key) const {
    return std::max(0.0, fields::number(list_[place], {key}).value_or(0));
  }

  void add_parts(const std::vector<std::size_t>& parents, std::optional<std::size_t> parent, std::size_t depth) {
    std::vector<ModuleClass> classes;
    std::map<std::string, std::size_t> places;
    for (const std::size_t whole : parents)
      for (const std::size_t part : parts_[whole]) {
        const std::string own_name = fields::string(list_[part], {"name"}, "without a name");
        const std::string name = class_of(own_name);
        const auto [place, is_new] = places.try_emplace(name, classes.size());
        if (is_new) classes.emplace_back();
        ModuleClass& all = classes[place->second];
        all.members.push_back(part);
        all.row.name = is_new ? own_name : name;
        all.row.total_ns += amount(part, "total_ns");
        all.row.own_ns += amount(part, "own_ns");
        all.row.backward_ns += amount(part, "backward_ns");
        all.row.commands += amount(part, "commands");
      }
    std::stable_sort(classes.begin(), classes.end(),
                     [](const ModuleClass& a, const ModuleClass& b) { return a.row.total_ns > b.row.total_ns; });
    for (ModuleClass& each : classes) {
      if (found_.rows.size() == most_ || each.row.total_ns < kSmallest * all_ns_ || depth == kDeepest) {
        ++found_.left_out;
        found_.left_out_ns += each.row.total_ns;
        continue;
      }
      each.row.modules = each.members.size();
      each.row.parent = parent;
      each.row.depth = depth;
      found_.rows.push_back(std::move(each.row));
      add_parts(each.members, found_.rows.size() - 1, depth + 1);
    }
  }

  const Json& list_;
  double all_ns_;
  std::size_t most_;
  ModuleRows found_;
  std::map<std::size_t, std::vector<std::size_t>> parts_;  // by parent
};

}  // namespace

std::string ModuleRow::words() const { return modules < 2 ? name : fmt::format("{} x{}", name, modules); }

ModuleRows module_rows(const Json& modules, double all_ns, std::size_t most) {
  return ModuleTree(modules, all_ns, most).rows();
}

}  // namespace weir::analysis
