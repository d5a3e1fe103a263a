// weir.overlap/2: how much communication each rank hid, and why the rest was exposed.
#include <fmt/format.h>

#include "base/units.h"
#include "report/page/items.h"
#include "report/page/list.h"
#include "report/page/values.h"
#include "run/variable_axis.h"

namespace weir::page {
namespace {

constexpr std::size_t kMaxRanks = 1024, kMaxCauses = 32;
constexpr double kMinLoss = 0.02;  // of a step, exposed; smaller losses appear only in the picture
constexpr double kMinGain = 0.02;  // of a step, compared with everything on one stream

void find_losses(Page& page, const std::string& name, const Json& document, const std::string& anchor) {
  if (const Json failure = values::word_or_null(document, {"failure"}); failure.is_string())
    page.find({Tone::bad, 1, fmt::format("{}: the run failed: {}", name, failure.get<std::string>()), "", anchor});
  const Json& overlap = values::at(document, {"overlap"});
  const auto span = values::amount(overlap, {"span_ns"}), exposed = values::amount(overlap, {"exposed_ns"});
  const auto efficiency = values::finite(overlap, {"efficiency"});
  if (span && exposed && *span > 0 && efficiency) {
    const double share = *exposed / *span;
    const Json& causes = values::list(document, {"causes"});
    const Json& first = causes.empty() ? Json() : causes.front();
    const std::string advice = values::sentence(values::word(first, {"advice"}));
    page.find({share >= kMinLoss ? Tone::warning : Tone::good, share,
               fmt::format("{}: {:.1f} % of the communication was hidden; {} of a step ({:.1f} %) were exposed.", name,
                           100 * *efficiency, format_duration(*exposed), 100 * share),
               share >= kMinLoss ? advice : "", anchor});
  }
  const auto step = values::amount(document, {"step_ns", "overlapped", "p50"});
  const auto serial = values::amount(document, {"step_ns", "serial", "p50"});
  // Medians differ only where their intervals do not overlap.
  const Json own = values::interval(document, {"step_ns", "overlapped", "p50_interval"});
  const Json other = values::interval(document, {"step_ns", "serial", "p50_interval"});
  if (step && serial && *serial > 0 && own.is_array() && other.is_array() &&
      own[0].get<double>() > other[1].get<double>() && *step > *serial * (1 + kMinGain))
    page.find(
        {Tone::warning, *step / *serial - 1,
         fmt::format("{}: a step takes {} on several streams and {} on one: overlapping costs more than it hides.",
                     name, format_duration(*step), format_duration(*serial)),
         "Use one stream, or look at what compute loses beside communication (inflation).", anchor});
  for (const Json& straggler : values::list(document, {"stragglers"}))
    page.find({Tone::warning, 0,
               fmt::format("{}: rank {} keeps the others waiting: {}.", name, fields::text(straggler, {"rank"}),
                           values::word(straggler, {"reason"})),
               "", anchor});
}

}  // namespace

void section_list::overlap(Page& page, std::size_t source, const Json& document) {
  std::string name = "overlap " + values::word(document, {"name"}, "run");
  if (const std::string variables = variable_words(document); !variables.empty()) name += ", " + variables;
  const auto ranks = values::count(document, {"ranks", "count"});
  const Json& overlap = values::at(document, {"overlap"});
  Json item = page.item("overlaps", ranks > 0 ? fmt::format("{}: {} rank{}", name, ranks, ranks == 1 ? "" : "s") : name,
                        source, page.environment_of(source));
  item["step_ns"] = {{"p50", values::duration(document, {"step_ns", "overlapped", "p50"})}};
  item["serial_step_ns"] = {{"p50", values::duration(document, {"step_ns", "serial", "p50"})}};
  item["efficiency"] = values::number(overlap, {"efficiency"});
  item["best_efficiency"] = values::number(overlap, {"best_efficiency"});
  item["inflation"] = values::number(overlap, {"inflation"});
  item["bars"] = Json::array();
  std::vector<std::string> notes;
  for (const Json& rank : values::list(document, {"per_rank"})) {
    if (item["bars"].size() == kMaxRanks) {
      notes.push_back(fmt::format("Only the first {} ranks are drawn.", kMaxRanks));
      break;
    }
    OverlapBar bar;
    bar.label = "rank " + fields::text(rank, {"rank"});
    if (make_bar(values::at(rank, {"overlapped"}), bar, notes)) item["bars"].push_back(to_json(bar));
  }
  item["causes"] = Json::array();
  for (const Json& cause : values::list(document, {"causes"}))
    if (item["causes"].size() < kMaxCauses)
      item["causes"].push_back({{"cause", values::word(cause, {"cause"}, "unknown")},
                                {"ns_per_step", values::amount(cause, {"ns_per_step"}).value_or(0)},
                                {"share", values::amount(cause, {"share"}, 1).value_or(0)},
                                {"meaning", values::word(cause, {"meaning"})},
                                {"advice", values::word(cause, {"advice"})}});
  for (const Json& note : values::list(document, {"notes"}))
    if (note.is_string()) notes.push_back(note.get<std::string>());
  item["notes"] = std::move(notes);
  find_losses(page, name, document, page.add("overlaps", std::move(item)));
  add_text(page, source, document, name);
}

}  // namespace weir::page
