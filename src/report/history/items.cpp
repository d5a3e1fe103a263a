#include "report/history/items.h"

#include <algorithm>

#include "base/named_values.h"
#include "report/history/series.h"

namespace weir::history {
namespace {

// How many runs ago the last change was; those without one come last.
std::size_t age_of(const Series& series) {
  return series.judged.changes.empty() ? static_cast<std::size_t>(-1)
                                       : series.points.size() - series.judged.changes.back().index;
}

Json item_of(Store& store, const Series& series) {
  Json points = Json::array(), changes = Json::array();
  for (const Point& point : series.points) {
    const Measure& measure = series.measure(point);
    points.push_back(WEIR_NAMED(point.at, point.commit, text_or_null(point.tag), named("p50", *measure.median),
                                named("interval", measure.low ? Json::array({*measure.low, *measure.high}) : Json()),
                                measure.count));
  }
  for (const ChangePoint& change : series.judged.changes)
    changes.push_back(WEIR_NAMED(change.index, change.ratio, change.p,
                                 named("verdict", series.is_worse(change) ? "slower" : "faster")));
  auto [device, environment] = store.conditions(series.points.back().conditions);
  Json notes = series.notes;
  if (!series.judged.reason.empty()) notes.push_back("not judged: " + series.judged.reason);
  if (series.judged.drift) notes.push_back("drifts slowly, without a step");
  return WEIR_NAMED(series.title, std::move(notes), std::move(device), std::move(environment),
                    named("workload", series.key.at("workload")), series.metric, series.unit, series.is_less_better,
                    std::move(points), std::move(changes));
}

}  // namespace

std::vector<Json> history_items(const std::string& where, const HistorySelection& selection) {
  Store store(where, DatabaseAccess::read);
  std::vector<Series> all = make_series(store, selection);
  // A series whose runs all failed has nothing to draw.
  std::erase_if(all, [](const Series& series) { return series.points.empty(); });
  std::stable_sort(all.begin(), all.end(),
                   [](const Series& one, const Series& two) { return age_of(one) < age_of(two); });
  std::vector<Json> items;
  for (const Series& series : all) items.push_back(item_of(store, series));
  return items;
}

}  // namespace weir::history
