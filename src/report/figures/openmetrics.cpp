// Results as OpenMetrics 1.0 text. Knows rows of figures; writes no file.
#include <fmt/format.h>

#include <map>
#include <set>

#include "measure/openmetrics_text.h"
#include "report/figures/figures.h"

namespace weir {
namespace {

struct Family {
  std::string name, unit;
  const char* help;
  std::vector<std::pair<MetricLabels, double>> samples;
};

// Families in order of first appearance: the samples of a family must be contiguous, but each row has one of each.
class Families {
 public:
  void add(const std::string& group, const Figure& figure, const MetricLabels& of_row) {
    std::string name = fmt::format("{}_{}", group, figure.name);
    if (!figure.unit.empty()) name += "_" + figure.unit;
    const auto [found, is_new] = index_.emplace(name, list_.size());
    if (is_new) list_.push_back({std::move(name), figure.unit, figure.help, {}});
    MetricLabels labels = of_row;
    labels.insert(labels.end(), figure.labels.begin(), figure.labels.end());
    list_[found->second].samples.emplace_back(std::move(labels), figure.value);
  }
  void write(OpenMetricsText& text) const {
    for (const Family& family : list_) {
      text.family(family.name, "gauge", family.unit, family.help);
      // Duplicates in a file (one cause in two entries) must not make the whole text invalid.
      std::set<MetricLabels> seen;
      for (const auto& [labels, value] : family.samples)
        if (seen.insert(labels).second) text.add(labels, value);
    }
  }

 private:
  std::map<std::string, std::size_t> index_;
  std::vector<Family> list_;
};

}  // namespace

std::string results_openmetrics(std::span<const FigureRow> rows) {
  OpenMetricsText text("weir_");
  text.family("info", "gauge", "", "Programs that the results were written by; always 1.");
  std::set<std::pair<std::string, std::string>> programs;
  for (const FigureRow& row : rows)
    if (!row.version.empty() && programs.emplace(row.version, row.commit).second)
      text.add({{"version", row.version}, {"commit", row.commit}}, 1);
  Families families;
  std::map<std::pair<std::string, MetricLabels>, int> repeats;
  for (const FigureRow& row : rows) {
    MetricLabels labels;
    // Prometheus treats an empty label as missing.
    for (const auto& label : row.labels)
      if (!label.second.empty()) labels.push_back(label);
    if (const int count = ++repeats[{row.group, row.labels}]; count > 1)
      labels.emplace_back("repeat", fmt::to_string(count));
    const auto state = [&](const char* name, const char* unit, const char* help, double value) {
      families.add(row.group, {name, unit, help, {}, value}, labels);
    };
    state("failed", "", "1 where it failed, or its output was wrong.", row.is_failed ? 1 : 0);
    state("complete", "", "1 where it ran to its end; 0: interrupted, failed, skipped.",
          row.status == "complete" || row.status == "ok" || row.status == "measured" ? 1 : 0);
    if (const auto created = unix_seconds(row.created))
      state("created_timestamp", "seconds", "When the result was made, in seconds since 1970.", *created);
    for (const Figure& figure : row.figures) families.add(row.group, figure, labels);
  }
  families.write(text);
  return text.end();
}

}  // namespace weir
