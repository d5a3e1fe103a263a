#include "lab/fleet/judge/slow.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "lab/fleet/judge/groups.h"
#include "lab/fleet/judge/series.h"
#include "lab/fleet/judge/spread.h"

namespace weir::fleet {
namespace {

using Level = SlowUnit::Level;

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();
constexpr double kMostDevices = 0.75;          // of a node or a place must share its effect
constexpr std::size_t kMostToPredict = 64;     // more are no node, and would take long
constexpr std::size_t kMinToPredict = 4;       // devices of a node
constexpr std::size_t kEnoughToPredict = 200;  // devices in all: fewer do not say how much nodes have in common
constexpr double kClippedAt = 2.5;             // scales
constexpr std::size_t kMinPlaces = 3, kMinPlaceNodes = 2;

// One p-value from several of which each may be small by itself (Simes 1986); sorts them.
double simes(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  double least = 1;
  for (std::size_t i = 0; i < values.size(); ++i)
    least = std::min(least, values[i] * static_cast<double>(values.size()) / static_cast<double>(i + 1));
  return least;
}

// The part of the significance that each level may spend; links spend the rest.
double share_of_level(Level level) { return level == Level::place ? 0.05 : level == Level::node ? 0.15 : 0.7; }

// A unit on one level as one series sees it.
struct Candidate {
  std::size_t series = 0, unit = 0;
  double by = 0, p = 1;
  std::size_t others = 0;
};

// A unit by its group, its number among those of its level there, and what of it is slow.
using UnitKey = std::tuple<std::size_t, std::size_t, Concern>;

struct Evidence {
  double p = 1;                    // the smallest, of single figures and of several together
  std::vector<Candidate> singles;  // of single figures, clear or not
};

// The devices of a group that share a node or a place, by their numbers in the group.
struct Unit {
  std::string place;
  std::vector<std::size_t> members;
};

class SlowSearch {
 public:
  SlowSearch(const JudgeTable& table, FleetReport& report)
      : table_(table), report_(report), members_(report.groups.size()) {
    for (std::size_t row = 0; row < table.rows.size(); ++row) members_[table.rows[row].group].push_back(row);
    for (std::size_t group = 0; group < members_.size(); ++group)
      add_series(table, members_[group], report.options.threshold, report.groups[group], group, series_);
  }

  std::vector<SlowUnit> run() {
    std::vector<SlowUnit> found;
    for (const Level level : {Level::place, Level::node, Level::device}) {
      std::vector<SlowUnit> of_level = search(level);
      found.insert(found.end(), std::make_move_iterator(of_level.begin()), std::make_move_iterator(of_level.end()));
    }
    return found;
  }

 private:
  std::vector<Unit> units_of(std::size_t group, Level level) const {
    const std::vector<std::size_t>& members = members_[group];
    std::vector<Unit> units;
    if (level == Level::place) {
      std::map<std::string, Unit> places;
      for (std::size_t i = 0; i < members.size(); ++i)
        for (const auto& [kind, name] : table_.rows[members[i]].node->place) {
          const std::string place = kind + " " + name;
          places[place].place = place;
          places[place].members.push_back(i);
        }
      for (auto& [name, unit] : places) units.push_back(std::move(unit));
      return units;
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      const bool is_same =
          level == Level::node && i > 0 && table_.rows[members[i]].node_at == table_.rows[members[i - 1]].node_at;
      if (!is_same) units.emplace_back();
      units.back().members.push_back(i);
    }
    return units;
  }

  // The median of the members; of a place that of its nodes' medians.
  double middle_of(const Series& series, const Unit& unit, Level level) const {
    if (level == Level::device) return series.badness[unit.members[0]];
    std::vector<double> values;
    if (level == Level::node && unit.members.size() < 2) return kNotKnown;
    for (std::size_t i = 0; i < unit.members.size();) {
      std::vector<double> of_node;
      const std::size_t node = node_at(series.group, unit.members[i]);
      for (; i < unit.members.size() && node_at(series.group, unit.members[i]) == node; ++i)
        of_node.push_back(series.badness[unit.members[i]]);
      if (level == Level::node) return median_known(std::move(of_node));
      if (const double middle = median_known(std::move(of_node)); !std::isnan(middle)) values.push_back(middle);
    }
    return values.size() < kMinPlaceNodes ? kNotKnown : median_known(std::move(values));
  }

  std::size_t node_at(std::size_t group, std::size_t member) const {
    return table_.rows[members_[group][member]].node_at;
  }

  bool is_judged(std::size_t group, const Unit& unit) const {
    return std::any_of(unit.members.begin(), unit.members.end(),
                       [&](std::size_t member) { return table_.rows[members_[group][member]].is_judged; });
  }

  // Whether enough members share the effect: otherwise those that have it are named alone.
  bool is_shared(const Series& series, const Unit& unit) const {
    std::size_t known = 0, slow = 0;
    for (const std::size_t member : unit.members) {
      known += !std::isnan(series.badness[member]);
      slow += series.badness[member] > series.threshold / 2;
    }
    return static_cast<double>(slow) >= kMostDevices * static_cast<double>(known);
  }

  // Each unit of the level in one series, against the others of its kind.
  void add_candidates(std::size_t at, const std::vector<Unit>& units, Level level, std::vector<Candidate>& all) const {
    const Series& series = series_[at];
    // Places of different kinds (switch, rack) are not peers.
    std::map<std::string, std::vector<std::size_t>> peers;
    for (std::size_t unit = 0; unit < units.size(); ++unit)
      peers[units[unit].place.substr(0, units[unit].place.find(' '))].push_back(unit);
    for (const auto& [kind, list] : peers) {
      if (level == Level::place && list.size() < kMinPlaces) continue;
      std::vector<double> values, noise;
      for (const std::size_t unit : list) {
        values.push_back(middle_of(series, units[unit], level));
        noise.push_back(level == Level::device ? series.noise[units[unit].members[0]] : 0);
      }
      if (level == Level::device) take_out_common(series, values);
      const Deviations found = deviations(values, noise, prior_spread(series.concern));
      for (std::size_t i = 0; i < list.size(); ++i)
        if (!std::isnan(found.each[i].p) && found.spread.count > 1 && is_judged(series.group, units[list[i]]))
          all.push_back(
              {at, list[i], middle_of(series, units[list[i]], level), found.each[i].p, found.spread.count - 1});
    }
  }

  // Where devices of a node have much in common, a device is seen better against the others of its node: takes out as
  // much of their median as it predicts of a device's value.
  void take_out_common(const Series& series, std::vector<double>& values) const {
    std::vector<double> common(values.size(), kNotKnown);
    for (std::size_t from = 0, to = 0; from < values.size(); from = to) {
      for (to = from; to < values.size() && node_at(series.group, to) == node_at(series.group, from); ++to) {
      }
      if (to - from < kMinToPredict || to - from > kMostToPredict) continue;
      for (std::size_t i = from; i < to; ++i) {
        std::vector<double> others;
        for (std::size_t other = from; other < to; ++other)
          if (other != i) others.push_back(values[other]);
        common[i] = median_known(std::move(others));
      }
    }
    const double limit = kClippedAt * deviations(values, {}, prior_spread(series.concern)).spread.robust;
    double product = 0, square = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(common[i]) || std::isnan(values[i])) continue;
      const double by = std::clamp(common[i], -limit, limit);
      product += by * std::clamp(values[i], -limit, limit);
      square += by * by;
      ++count;
    }
    if (count < kEnoughToPredict || !(square > 0)) return;
    const double share = std::clamp(product / square, 0.0, 1.0);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!std::isnan(common[i])) values[i] -= share * std::clamp(common[i], -limit, limit);
  }

  std::vector<SlowUnit> search(Level level) {
    std::vector<std::vector<Unit>> units;
    for (std::size_t group = 0; group < members_.size(); ++group) units.push_back(units_of(group, level));
    std::vector<Candidate> all;
    for (std::size_t at = 0; at < series_.size(); ++at) add_candidates(at, units[series_[at].group], level, all);
    // One p-value for each unit and concern, so that a slow device does not count several times.
    std::map<UnitKey, std::vector<double>> of_units;
    for (const Candidate& each : all) {
      const Series& series = series_[each.series];
      const bool counts =
          each.by > series.threshold && (level == Level::device || is_shared(series, units[series.group][each.unit]));
      of_units[{series.group, each.unit, series.concern}].push_back(counts ? each.p : 1);
    }
    std::vector<double> p_values;
    for (auto& [key, values] : of_units) p_values.push_back(simes(values));
    const double limit = passing_p(p_values, report_.options.significance * share_of_level(level));
    std::map<UnitKey, Evidence> passing;
    std::size_t next = 0;
    for (const auto& [key, values] : of_units)
      if (const double p = p_values[next++]; p <= limit && p < 1) passing[key].p = p;
    if (passing.empty()) return {};
    for (const Candidate& each : all) {
      const Series& series = series_[each.series];
      if (!series.is_single()) continue;
      if (const auto at = passing.find({series.group, each.unit, series.concern}); at != passing.end())
        at->second.singles.push_back(each);
    }
    std::vector<SlowUnit> found;
    const double tests = static_cast<double>(p_values.size()) / share_of_level(level);
    for (const auto& [key, evidence] : passing) {
      if (evidence.singles.empty()) continue;
      const auto& [group, unit, concern] = key;
      found.push_back(slow_unit(group, units[group][unit], level, concern, evidence));
      found.back().p = std::min(1.0, evidence.p * tests);
    }
    if (level == Level::device) return found;
    for (const auto& [key, evidence] : passing) take_out(units[std::get<0>(key)][std::get<1>(key)], key, level);
    return found;
  }

  // What a place or a node explains is no longer a device's.
  void take_out(const Unit& unit, const UnitKey& key, Level level) {
    for (Series& series : series_) {
      if (series.group != std::get<0>(key) || series.concern != std::get<2>(key)) continue;
      const double middle = middle_of(series, unit, level);
      if (!(middle > 0)) continue;
      for (const std::size_t member : unit.members)
        if (series.badness[member] > middle / 2) series.badness[member] -= middle;
    }
  }

  SlowUnit slow_unit(std::size_t group, const Unit& unit, Level level, Concern concern,
                     const Evidence& evidence) const {
    SlowUnit slow;
    slow.level = level;
    slow.place = unit.place;
    slow.concern = concern;
    for (const std::size_t member : unit.members) slow.rows.push_back(members_[group][member]);
    // Shown by the figure that is clearest by itself.
    const Candidate& lead =
        *std::min_element(evidence.singles.begin(), evidence.singles.end(),
                          [](const auto& a, const auto& b) { return a.p != b.p ? a.p < b.p : a.by > b.by; });
    slow.kind = series_[lead.series].kind;
    for (const std::size_t member : unit.members)
      slow.sharing += series_[lead.series].badness[member] > series_[lead.series].threshold / 2;
    slow.peers = lead.others;
    slow.value = value_of(slow.rows, slow.kind);
    slow.typical = typical_of(group, slow.kind);
    slow.effect = slow.value / slow.typical - 1;
    for (const Candidate& each : evidence.singles) {
      const Series& series = series_[each.series];
      if (&each == &lead || each.by < series.threshold / 2 || each.p > 0.05) continue;
      slow.also.emplace_back(series.kind, value_of(slow.rows, series.kind) / typical_of(group, series.kind) - 1);
    }
    return slow;
  }

  double value_of(const std::vector<std::size_t>& rows, std::size_t kind) const {
    std::vector<double> values;
    for (const std::size_t row : rows) values.push_back(table_.values[kind][row]);
    return median_known(std::move(values));
  }

  double typical_of(std::size_t group, std::size_t kind) const {
    for (const PeerFigure& figure : report_.groups[group].figures)
      if (figure.name == figure_kinds()[kind].name) return figure.p50.value_or(kNotKnown);
    return kNotKnown;
  }

  const JudgeTable& table_;
  FleetReport& report_;
  std::vector<std::vector<std::size_t>> members_;  // by group: rows
  std::vector<Series> series_;
};

}  // namespace

std::vector<SlowUnit> slow_units(const JudgeTable& table, FleetReport& report) {
  return SlowSearch(table, report).run();
}

}  // namespace weir::fleet
