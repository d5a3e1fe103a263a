// weir.queues/2, map: verdict, picture, confidence, disagreements.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/queues_text.h"

namespace weir {
namespace {

using namespace fields;

constexpr std::size_t kLabel = 12;  // columns before a value
constexpr int kMaxMapRows = 1024;   // a document may claim any number of queues

std::string map_line(std::string_view label, const std::string& text) {
  return fmt::format("  {:<{}}{}\n", label, kLabel - 2, wrapped(text, kLabel));
}

std::string level(double confidence) {
  return confidence > 0.9999 ? "more than 99.99 %" : fmt::format("{:.2f} %", 100 * confidence);
}

// One row per queue, one column per stream.
std::string map_matrix(const Json& queue_of_stream, int streams) {
  int queues = 0;
  streams = std::min(streams, queue_of_stream.is_array() ? static_cast<int>(queue_of_stream.size()) : 0);
  for (int i = 0; i < streams; ++i)
    queues =
        std::max(queues, std::clamp(queue_of_stream[static_cast<std::size_t>(i)].get<int>(), 0, kMaxMapRows - 1) + 1);
  std::string text;
  constexpr int kColumns = 64;
  for (int from = 0; from < streams; from += kColumns) {
    const int to = std::min(streams, from + kColumns);
    text += fmt::format("\n  {:<9} ", "stream");
    for (int i = from; i < to; ++i) text += i % 10 == 0 ? static_cast<char>('0' + i / 10 % 10) : ' ';
    text += fmt::format("\n  {:<9} ", "");
    for (int i = from; i < to; ++i) text += static_cast<char>('0' + i % 10);
    text += '\n';
    for (int queue = 0; queue < queues; ++queue) {
      text += fmt::format("  queue {:<3} ", queue);
      for (int i = from; i < to; ++i)
        text += queue_of_stream[static_cast<std::size_t>(i)].get<int>() == queue ? '#' : '.';
      text += '\n';
    }
  }
  return text;
}

std::string saturation(const Json& curve) {
  constexpr double kCells = 40;
  std::string text = fmt::format("\n  {:<7}others that are stuck\n", "held");
  for (const Json& point : curve) {
    const double share = at(point, {"stuck"}).get<double>() / std::max(1.0, at(point, {"marked"}).get<double>());
    const auto cells = static_cast<std::size_t>(kCells * std::clamp(share, 0.0, 1.0) + 0.5);
    text += fmt::format("  {:>4}   {}{} {:>3.0f} %  ({} of {})\n", at(point, {"held"}).get<int>(),
                        std::string(cells, '#'), std::string(static_cast<std::size_t>(kCells) - cells, '.'),
                        100 * share, at(point, {"stuck"}).get<int>(), at(point, {"marked"}).get<int>());
  }
  return text;
}

// The results of the other two methods, and where they disagree.
std::string others(const Json& document) {
  const Json& map = at(document, {"map"});
  std::string text;
  const auto why = [&](const char* name) { return queues_text::reason(document, name); };
  if (const Json& ids = at(map, {"runtime"}); ids.is_object()) {
    text +=
        map_line("by ids", fmt::format("{} queues ({}); {} of {} marks beside held streams were stuck exactly if their "
                                       "queue was held",
                                       at(ids, {"queues"}).get<int>(), fields::text(ids, {"source"}),
                                       at(ids, {"agreeing_marks"}).get<int>(), at(ids, {"marks"}).get<int>()));
  } else {
    text += map_line("by ids", why("map.runtime"));
  }
  if (const Json& step = at(map, {"timeline"}); step.is_object()) {
    const std::string fixed = at(step, {"is_fixed"}).is_null()     ? ""
                              : at(step, {"is_fixed"}).get<bool>() ? "; every stream kept its queue"
                                                                   : "; streams moved between queues";
    text += map_line("by a step", fmt::format("{} of {} pairs of streams are on different queues by the order of their "
                                              "starts{} ({})",
                                              at(step, {"pairs_apart"}).get<int>(), at(step, {"pairs"}).get<int>(),
                                              fixed, fields::text(step, {"step"})));
  } else {
    text += map_line("by a step", why("map.timeline"));
  }
  const Json& agreement = at(map, {"agreement"});
  text += map_line("together",
                   at(agreement, {"disagree"}).empty()
                       ? fmt::format("they agree ({} comparisons)", at(agreement, {"agree"}).size())
                       : fmt::format("they DISAGREE in {} of {} comparisons", at(agreement, {"disagree"}).size(),
                                     at(agreement, {"agree"}).size() + at(agreement, {"disagree"}).size()));
  return text;
}

}  // namespace

std::string describe_queue_map(const Json& document) {
  const Json& map = at(document, {"map"});
  const Json& probe = at(map, {"probe"});
  const Json& base = at(probe, {"baseline"});
  std::string text = wrapped(fmt::format("Hardware queues of {} ({})", fields::text(document, {"device", "name"}),
                                         fields::text(document, {"device", "model"})),
                             0) +
                     "\n\n";
  const std::string count = at(probe, {"queues"}).is_null()
                                ? "not known"
                                : fmt::format("{}{}", at(probe, {"is_lower_bound"}).get<bool>() ? "at least " : "",
                                              at(probe, {"queues"}).get<int>());
  text += map_line("queues", count);
  text += map_line("mapping", fields::text(probe, {"mapping"}));
  if (!fields::text(probe, {"reason"}).empty()) text += map_line("note", fields::text(probe, {"reason"}));
  if (!at(probe, {"queues"}).is_null())
    text += map_line("certain",
                     fmt::format("{}: {} repetitions of each verdict, {} of {} marks late with nothing held",
                                 level(at(probe, {"confidence"}).get<double>()), at(probe, {"repetitions"}).get<int>(),
                                 at(base, {"late"}).get<int>(), at(base, {"marks"}).get<int>()));
  text += map_line("probe", fmt::format("{} trials on {} streams in {}; a mark takes {} and is stuck after {}",
                                        at(probe, {"trials"}).get<int>(), at(probe, {"streams"}).get<int>(),
                                        format_duration(at(probe, {"elapsed_ns"}).get<double>()),
                                        format_duration(at(base, {"latency_ns", "p50"}).get<double>()),
                                        format_duration(at(base, {"window_ns"}).get<double>())));
  if (at(probe, {"record_blocks"}).is_boolean())
    text += map_line("events", at(probe, {"record_blocks"}).get<bool>()
                                   ? "recording one stops its queue until its stream is done"
                                   : "recording one does not stop its queue");
  if (at(probe, {"barrier"}).is_boolean() && at(probe, {"barrier"}).get<bool>())
    text += map_line("barrier", "a queue goes on only when its command has ended");
  text += others(document);
  if (!at(probe, {"queue_of_stream"}).is_null())
    text += map_matrix(at(probe, {"queue_of_stream"}), at(map, {"streams"}).get<int>());
  if (!at(probe, {"saturation"}).empty()) text += saturation(at(probe, {"saturation"}));
  queues_text::warnings(text, document);
  return text;
}

}  // namespace weir
