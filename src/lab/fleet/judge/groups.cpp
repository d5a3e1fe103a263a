#include "lab/fleet/judge/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "lab/fleet/judge/spread.h"
#include "lab/fleet/judge/words.h"

namespace weir::fleet {
namespace {

constexpr std::size_t kOwnDevices = 16, kOwnNodes = 3;  // fewer devices with a setting are compared with all others
constexpr double kOwnShare = 0.05;                      // of the model's devices
constexpr std::size_t kMostSplits = 4;                  // of one model
constexpr double kClearly = 5;                          // standard errors between groups

// Settings that change speed by themselves. Others split a model only where devices that have them are seen to differ.
constexpr std::array kSplitting{"mig",          "mig_mode",           "ecc",
                                "ecc_mode",     "application_clocks", "locked_clocks",
                                "compute_mode", "power_limit",        "CUDA_DEVICE_MAX_CONNECTIONS"};

bool splits_always(const FactColumn& fact) {
  return std::find(kSplitting.begin(), kSplitting.end(), fact.name) != kSplitting.end();
}

using RowList = std::vector<std::size_t>;

std::size_t nodes_in(const JudgeTable& table, const RowList& rows) {
  std::size_t count = 0, last = FactColumn::kNothing;
  for (const std::size_t row : rows) {
    count += table.rows[row].node_at != last;
    last = table.rows[row].node_at;
  }
  return count;
}

// The rows of each value that enough devices hold; the first are the most.
std::vector<std::pair<std::size_t, RowList>> parts_by(const JudgeTable& table, const FactColumn& fact,
                                                      const RowList& rows) {
  std::map<std::size_t, RowList> by_value;
  for (const std::size_t row : rows)
    if (fact.held[row] != FactColumn::kNothing) by_value[fact.held[row]].push_back(row);
  std::vector<std::pair<std::size_t, RowList>> parts;
  for (auto& [value, held] : by_value)
    if (held.size() >= kOwnDevices &&
        static_cast<double>(held.size()) >= kOwnShare * static_cast<double>(rows.size()) &&
        nodes_in(table, held) >= kOwnNodes)
      parts.emplace_back(value, std::move(held));
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return parts;
}

// How clearly the rows of one part differ from the others' in the figure where they do so most.
struct Apart {
  double clarity = 0, by = 0;  // standard errors; logarithm, positive where `rows` are worse
  std::size_t kind = 0;
};

Apart apart(const JudgeTable& table, const RowList& rows, const RowList& others) {
  Apart most;
  for (std::size_t kind = 0; kind < figure_kinds().size(); ++kind) {
    if (figure_kinds()[kind].goal == Goal::none) continue;
    std::vector<double> of_rows, of_others;
    // The natural spread is that of nodes' medians: devices of a node may have much in common.
    const auto fill = [&](const RowList& from, std::vector<double>& to) {
      for (std::size_t i = 0; i < from.size();) {
        const std::size_t node = table.rows[from[i]].node_at;
        std::vector<double> of_node;
        for (; i < from.size() && table.rows[from[i]].node_at == node; ++i)
          of_node.push_back(table.badness[kind][from[i]]);
        if (const double middle = median_known(of_node); !std::isnan(middle)) to.push_back(middle);
      }
    };
    fill(rows, of_rows);
    fill(others, of_others);
    if (of_rows.size() < kOwnNodes || of_others.size() < kOwnNodes) continue;
    const double of_row = median_known(of_rows), of_other = median_known(of_others);
    const auto scatter = [](std::vector<double> values, double middle) {
      for (double& value : values) value = std::fabs(value - middle);
      return std::max(1e-3, 1.4826 * median_known(values));
    };
    const double first = scatter(of_rows, of_row), second = scatter(of_others, of_other);
    const double error = std::sqrt(std::numbers::pi / 2 *
                                   (first * first / static_cast<double>(of_rows.size()) +
                                    second * second / static_cast<double>(of_others.size())));
    const double clarity = std::fabs(of_row - of_other) / error;
    if (std::fabs(of_row - of_other) > std::fabs(most.by) && clarity > kClearly)
      most = {clarity, of_row - of_other, kind};
  }
  return most;
}

void add_difference_of_groups(const JudgeTable& table, const FactColumn& fact, std::size_t value, const RowList& rows,
                              const RowList& others, const Apart& found, FleetReport& report) {
  const FigureKind& kind = figure_kinds()[found.kind];
  std::vector<double> mine, theirs;
  for (const std::size_t row : rows) mine.push_back(table.values[found.kind][row]);
  for (const std::size_t row : others) theirs.push_back(table.values[found.kind][row]);
  std::vector<std::string> nodes;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (i == 0 || table.rows[rows[i]].node_at != table.rows[rows[i - 1]].node_at)
      nodes.push_back(table.rows[rows[i]].node->name);
  Finding finding;
  finding.kind = FindingKind::different;
  finding.is_unfit = false;
  finding.figure = kind.name;
  finding.value = median_known(mine);
  finding.typical = median_known(theirs);
  finding.effect = *finding.value / *finding.typical - 1;
  finding.peers = others.size();
  finding.cause = fmt::format("{} {}", plain_fact(fact.name), plain_fact(fact.values[value]));
  finding.sentence =
      fmt::format("{} with {} ({}): {} {} the {} with {}", counted_devices(rows.size()), finding.cause,
                  first_names(nodes), kind.words, share_text(*finding.effect),
                  grouped(static_cast<double>(others.size())), plain_fact(fact.values[fact.held[others[0]]]));
  report.findings.push_back(std::move(finding));
}

struct Split {
  const FactColumn* fact = nullptr;
  std::vector<std::pair<std::size_t, RowList>> parts;
  double by = 0;  // the largest difference between its parts
};

// The fact to split these rows by: one of the list, else the one whose holders differ most.
Split best_split(const JudgeTable& table, const std::vector<FactColumn>& facts, const RowList& rows, double threshold) {
  Split best;
  for (const FactColumn& fact : facts) {
    if (!fact.differs() || fact.is_identity()) continue;
    auto parts = parts_by(table, fact, rows);
    if (parts.size() < 2) continue;
    double by = 0;
    for (std::size_t i = 1; i < parts.size(); ++i)
      by = std::max(by, std::fabs(apart(table, parts[i].second, parts[0].second).by));
    const bool is_always = splits_always(fact);
    if (!is_always && by < threshold / 2) continue;
    if (is_always) by += 1;  // before all others
    if (by > best.by) best = {&fact, std::move(parts), by};
  }
  return best;
}

class ModelGroups {
 public:
  ModelGroups(JudgeTable& table, const std::vector<FactColumn>& facts, FleetReport& report)
      : table_(table), facts_(facts), report_(report) {}

  void add(const std::string& model, RowList rows, const std::string& settings, std::size_t splits) {
    const Split split = splits < kMostSplits ? best_split(table_, facts_, rows, report_.options.threshold) : Split{};
    if (split.fact == nullptr) {
      for (const std::size_t row : rows) table_.rows[row].group = report_.groups.size();
      report_.groups.push_back({model, settings, rows.size(), {}});
      return;
    }
    // Devices whose value few have are compared with the most.
    std::vector<RowList> parts(split.parts.size());
    for (const std::size_t row : rows) {
      std::size_t part = 0;
      for (std::size_t i = 0; i < split.parts.size(); ++i)
        if (split.parts[i].first == split.fact->held[row]) part = i;
      parts[part].push_back(row);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& [value, held] = split.parts[i];
      if (i > 0) {
        const Apart found = apart(table_, held, split.parts[0].second);
        if (std::fabs(found.by) >= report_.options.threshold / 2)
          add_difference_of_groups(table_, *split.fact, value, held, split.parts[0].second, found, report_);
      }
      add(model, std::move(parts[i]),
          fmt::format("{}{}{} {}", settings, settings.empty() ? "" : ", ", plain_fact(split.fact->name),
                      plain_fact(split.fact->values[value])),
          splits + 1);
    }
  }

 private:
  JudgeTable& table_;
  const std::vector<FactColumn>& facts_;
  FleetReport& report_;
};

}  // namespace

double prior_spread(Concern concern) {
  switch (concern) {
    case Concern::speed:
      return 0.01;
    case Concern::launch:
      return 0.04;
    case Concern::copies:
    case Concern::links:
      return 0.02;
  }
  return 0.04;
}

void make_groups(JudgeTable& table, const std::vector<FactColumn>& facts, FleetReport& report) {
  std::map<std::string, RowList> models;
  for (std::size_t row = 0; row < table.rows.size(); ++row) models[table.rows[row].device->model].push_back(row);
  std::vector<FactColumn> differing;
  for (const FactColumn& fact : facts)
    if (fact.differs()) differing.push_back(fact);
  ModelGroups groups(table, differing, report);
  for (auto& [model, rows] : models) groups.add(model, std::move(rows), "", 0);
}

}  // namespace weir::fleet
