#include "lab/fleet/judge/cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "lab/fleet/judge/words.h"

namespace weir::fleet {
namespace {

constexpr std::size_t kMostCauses = 3;
constexpr std::size_t kMinNeighbours = 3;
constexpr double kCommonFact = 0.6;  // of the peers hold a value: others differ from it

enum class Toward : std::uint8_t { less, more };

// A state that explains figures of a concern where it is less, or more, than the peers' by so much.
struct StateCause {
  std::string_view figure;
  Concern concern;
  Toward toward;
  double share, least;  // both must be reached
};
constexpr std::array kStates{StateCause{"clock", Concern::speed, Toward::less, 0.015, 10},
                             StateCause{"memory_clock", Concern::speed, Toward::less, 0.015, 10},
                             StateCause{"max_clock", Concern::speed, Toward::less, 0.015, 10},
                             StateCause{"power_limit", Concern::speed, Toward::less, 0.02, 5},
                             StateCause{"other_processes", Concern::speed, Toward::more, 0, 1},
                             StateCause{"temperature", Concern::speed, Toward::more, 0.1, 8},
                             StateCause{"pcie_generation", Concern::copies, Toward::less, 0, 1},
                             StateCause{"pcie_width", Concern::copies, Toward::less, 0, 1},
                             StateCause{"pcie_replays", Concern::copies, Toward::more, 1, 100},
                             StateCause{"other_processes", Concern::copies, Toward::more, 0, 1},
                             StateCause{"nvlink_links", Concern::links, Toward::less, 0, 1},
                             StateCause{"nvlink_errors", Concern::links, Toward::more, 1, 100},
                             StateCause{"pcie_generation", Concern::links, Toward::less, 0, 1},
                             StateCause{"pcie_width", Concern::links, Toward::less, 0, 1},
                             StateCause{"other_processes", Concern::links, Toward::more, 0, 1},
                             StateCause{"clock", Concern::launch, Toward::less, 0.1, 10},
                             StateCause{"other_processes", Concern::launch, Toward::more, 0, 1}};

// Whether a setting of this name can change figures of the concern. What is not known to be about one thing, a version
// for example, may change all of them.
bool can_explain(std::string_view fact, Concern concern) {
  const auto has = [&](std::string_view part) { return fact.find(part) != std::string_view::npos; };
  if (fact == "weir" || has("hostname") || has("created")) return false;
  if (has("governor") || has("persistence") || has("CUDA_DEVICE_MAX") || has("GPU_MAX_HW_QUEUES") || has("LAUNCH"))
    return concern == Concern::launch;
  if (has("NCCL") || has("RCCL") || has("nvlink") || has("fabric")) return concern == Concern::links;
  if (has("numa") || has("huge") || has("iommu") || has("kernel")) return concern != Concern::speed;
  if (has("ecc") || has("power") || has("clock")) return concern == Concern::speed;
  return true;
}

std::string state_text(const FigureKind& kind, double mine, double theirs) {
  const std::string unit = kind.unit == "count" || kind.unit == "lanes" ? "" : " " + std::string(kind.unit);
  std::string words(kind.words);
  if (const auto at = words.find(" under load"); at != std::string::npos) words.erase(at);
  return fmt::format("{} {}{} where they have {}", words, grouped(mine), unit, grouped(theirs));
}

}  // namespace

Causes::Causes(const JudgeTable& table, const std::vector<FactColumn>& facts, const FleetReport& report)
    : table_(table), report_(report), members_(report.groups.size()) {
  for (const FactColumn& fact : facts)
    if (fact.differs() && !fact.is_identity() && fact.name != "power_limit" && fact.name != "max_clock")
      facts_.push_back(&fact);
  for (std::size_t row = 0; row < table.rows.size(); ++row) members_[table.rows[row].group].push_back(row);
  for (const std::vector<std::size_t>& members : members_) {
    auto& of_group = holders_.emplace_back(facts_.size());
    for (const std::size_t row : members)
      for (std::size_t fact = 0; fact < facts_.size(); ++fact)
        if (facts_[fact]->held[row] != FactColumn::kNothing) ++of_group[fact][facts_[fact]->held[row]];
  }
}

double Causes::typical(const SlowUnit& unit, std::size_t kind) const {
  for (const PeerFigure& figure : report_.groups[table_.rows[unit.rows[0]].group].figures)
    if (figure.name == figure_kinds()[kind].name && figure.count > unit.rows.size())
      return figure.p50.value_or(std::nan(""));
  return std::nan("");
}

std::string Causes::of_throttling(const SlowUnit& unit) const {
  std::map<std::string, std::size_t> reasons;
  for (const std::size_t row : unit.rows)
    for (const std::string& reason : table_.rows[row].device->throttle) ++reasons[reason];
  std::string text;
  for (const auto& [reason, count] : reasons) {
    if (2 * count < unit.rows.size()) continue;
    // A reason that most peers have as well explains nothing.
    std::size_t others = 0;
    const std::vector<std::size_t>& members = members_[table_.rows[unit.rows[0]].group];
    for (const std::size_t row : members) {
      const std::vector<std::string>& theirs = table_.rows[row].device->throttle;
      others += std::find(theirs.begin(), theirs.end(), reason) != theirs.end();
    }
    if (2 * (others - count) >= members.size() - unit.rows.size()) continue;
    text += (text.empty() ? "throttled: " : ", ") + plain_fact(reason);
  }
  return text;
}

std::string Causes::of_fact(const SlowUnit& unit, std::size_t fact_at) const {
  const FactColumn& fact = *facts_[fact_at];
  const std::size_t group = table_.rows[unit.rows[0]].group, mine = fact.held[unit.rows[0]];
  if (mine == FactColumn::kNothing) return {};
  for (const std::size_t row : unit.rows)
    if (fact.held[row] != mine) return {};
  std::size_t most = mine, count = 0, all = 0;
  for (const auto& [value, holders] : holders_[group][fact_at]) {
    const std::size_t others = holders - (value == mine ? unit.rows.size() : 0);
    all += others;
    if (others > count) std::tie(most, count) = std::pair(value, others);
  }
  if (most == mine || static_cast<double>(count) < kCommonFact * static_cast<double>(all)) return {};
  // Where others have the same and are not slow, it is not the cause.
  std::vector<double> same, other;
  for (const std::size_t row : members_[group])
    if (!std::binary_search(unit.rows.begin(), unit.rows.end(), row))
      (fact.held[row] == mine ? same : other).push_back(table_.badness[unit.kind][row]);
  if (!same.empty() && !(median_known(same) - median_known(other) > report_.options.threshold / 2)) return {};
  return fmt::format("{} {} where {} of {} have {}", plain_fact(fact.name), plain_fact(fact.values[mine]),
                     grouped(static_cast<double>(count)), grouped(static_cast<double>(all)),
                     plain_fact(fact.values[most]));
}

// Those who share a node or a switch with it, where they are slower than the others, too, if not so much; and other
// programs on them, where the host's threads and copies suffer.
std::string Causes::of_neighbours(const SlowUnit& unit) const {
  if (unit.level == SlowUnit::Level::place) return {};
  const DeviceRow& self = table_.rows[unit.rows[0]];
  const std::vector<double>& badness = table_.badness[unit.kind];
  const std::vector<std::size_t>& members = members_[self.group];
  double programs = 0;
  for (const std::size_t row : members)
    if (const double count = table_.values[kind_index("other_processes")][row];
        table_.rows[row].node_at == self.node_at && !std::binary_search(unit.rows.begin(), unit.rows.end(), row))
      programs += count > 0 ? count : 0;
  if (programs > 0 && unit.concern != Concern::speed)
    return fmt::format("{} other process{} on its neighbours in the node", grouped(programs),
                       programs == 1 ? "" : "es");
  // The larger ones first.
  std::vector<std::pair<std::string, std::string>> shared(self.node->place.begin(), self.node->place.end());
  if (unit.level == SlowUnit::Level::device) shared.emplace_back("node", self.node->name);
  for (const auto& [kind, name] : shared) {
    std::vector<double> near, far;
    for (const std::size_t row : members) {
      const DeviceRow& other = table_.rows[row];
      if (std::isnan(badness[row]) || std::binary_search(unit.rows.begin(), unit.rows.end(), row)) continue;
      const auto at = other.node->place.find(kind);
      const bool is_near =
          kind == "node" ? other.node_at == self.node_at : at != other.node->place.end() && at->second == name;
      (is_near ? near : far).push_back(badness[row]);
    }
    if (near.size() < kMinNeighbours || far.size() < kMinNeighbours) continue;
    const double by = median_known(near) - median_known(far);
    if (by > report_.options.threshold / 2)
      return fmt::format("its neighbours on {}{} are {:.1f} % slower than the others as well",
                         kind == "node" ? "" : kind + " ", plain_fact(name), 100 * (1 - std::exp(-by)));
  }
  return {};
}

std::string Causes::of(const SlowUnit& unit) const {
  std::vector<std::string> causes;
  for (const StateCause& state : kStates) {
    if (state.concern != unit.concern) continue;
    const std::size_t kind = kind_index(state.figure);
    // A memory clock explains memory, not arithmetic.
    if (state.figure == "memory_clock" && figure_kinds()[unit.kind].name != "memory") continue;
    std::vector<double> values;
    for (const std::size_t row : unit.rows) values.push_back(table_.values[kind][row]);
    const double mine = median_known(std::move(values)), theirs = typical(unit, kind);
    const double by = state.toward == Toward::less ? theirs - mine : mine - theirs;
    if (!(by >= state.least) || !(by >= state.share * std::fabs(theirs))) continue;
    causes.push_back(state.figure == "other_processes"
                         ? fmt::format("{} other process{} on it", grouped(mine), mine == 1 ? "" : "es")
                         : state_text(figure_kinds()[kind], mine, theirs));
  }
  if (unit.concern == Concern::speed)
    if (std::string text = of_throttling(unit); !text.empty())
      causes.insert(causes.begin() + (causes.empty() ? 0 : 1), std::move(text));
  for (std::size_t fact = 0; fact < facts_.size() && causes.size() < kMostCauses; ++fact)
    if (can_explain(facts_[fact]->name, unit.concern))
      if (std::string text = of_fact(unit, fact); !text.empty()) causes.push_back(std::move(text));
  if (causes.size() < kMostCauses)
    if (std::string text = of_neighbours(unit); !text.empty()) causes.push_back(std::move(text));
  std::string text;
  for (std::size_t i = 0; i < std::min(causes.size(), kMostCauses); ++i) text += (i == 0 ? "" : ", ") + causes[i];
  return text;
}

}  // namespace weir::fleet
