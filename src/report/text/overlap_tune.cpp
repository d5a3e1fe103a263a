// weir.overlap_tune/2: what a search for better settings found.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/plain_text.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr std::size_t kMaxTrials = 12;

// "prefetch 2, streams 6": the differences from the first trial, without section names.
std::string settings_of(const Json& trial, const Json& first) {
  std::string text;
  for (const auto& [key, value] : fields::members(at(trial, {"settings"}))) {
    if (at(first, {"settings", key.c_str()}) == value) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key.substr(key.rfind('.') + 1), fields::text(value, {}));
  }
  return text.empty() ? "as given" : text;
}

ReportTable trial_table(const std::vector<const Json*>& trials, const Json& first, std::size_t most) {
  ReportTable table{{{"settings", true}, {"step"}, {"exposed"}, {"efficiency"}, {"memory"}}};
  for (const Json* trial : trials) {
    if (table.rows.size() == most) {
      table.after = fmt::format("and {} more", trials.size() - most);
      break;
    }
    table.rows.push_back({settings_of(*trial, first), duration((*trial)["step_ns"]), duration((*trial)["exposed_ns"]),
                          percent((*trial)["efficiency"]), bytes((*trial)["memory_bytes"])});
  }
  return table;
}

}  // namespace

TextReport tune_report(const Json& document) {
  TextReport report;
  const Json& trials = at(document, {"trials"});
  report.title = fmt::format("weir overlap tune {}", fields::text(document, {"config"}));
  if (trials.empty()) {
    report.open("No trial ran.");
    return report;
  }
  if (!trials.is_array()) reject("the document's trials are not a list");
  const Json& first = trials[0];
  report.open("{} of {} combinations tried{}.", trials.size(), at(document, {"combinations"}).get<std::size_t>(),
              at(document, {"is_exhausted"}).get<bool>() ? "; no single change helps any more" : "");
  if (const Json& number = at(document, {"best"});
      number.is_number_unsigned() && number.get<std::size_t>() < trials.size()) {
    const Json& best = trials[number.get<std::size_t>()];
    std::string sets;
    for (const auto& [key, value] : fields::members(at(best, {"settings"})))
      if (at(first, {"settings", key.c_str()}) != value)
        sets += " --set " + shell_word(fmt::format("{}={}", key, fields::text(value, {})));
    report.open("Least exposed: {} a step ({} as given), a step of {} ({}).", duration(at(best, {"exposed_ns"})),
                duration(at(first, {"exposed_ns"})), duration(at(best, {"step_ns"})), duration(at(first, {"step_ns"})));
    report.open(sets.empty() ? "That is with the settings as given." : "Use:" + sets);
  }
  std::vector<const Json*> front, usable, failed;
  for (const Json& trial : trials) {
    if (at(trial, {"is_on_front"}).get<bool>()) front.push_back(&trial);
    (at(trial, {"failure"}).is_string() ? failed : usable).push_back(&trial);
  }
  const auto by = [](const char* key) {
    return [key](const Json* a, const Json* b) {
      const auto value = [&](const Json* json) { return number(*json, {key}).value_or(1e300); };
      return value(a) < value(b);
    };
  };
  std::stable_sort(front.begin(), front.end(), by("step_ns"));
  std::stable_sort(usable.begin(), usable.end(), by("exposed_ns"));
  ReportSection pareto{"Step time against memory: nothing is both faster and smaller"};
  pareto.tables.push_back(trial_table(front, first, kMaxTrials));
  ReportSection all{"Trials, least exposed first"};
  all.tables.push_back(trial_table(usable, first, kMaxTrials));
  for (const Json* trial : failed)
    all.remark("failed: {}: {}", settings_of(*trial, first), fields::text(*trial, {"failure"}));
  report.sections = {std::move(pareto), std::move(all)};
  return report;
}

DocumentText text_list::overlap_tune(const Json& document) { return tune_report(document); }

}  // namespace weir
