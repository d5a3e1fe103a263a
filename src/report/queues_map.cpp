#include "report/queues_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/queues_text.h"
#include "report/wrap.h"

namespace weir {
namespace {

constexpr std::size_t kLabel = 12;  // columns before a value

std::string line(std::string_view label, const std::string& text) {
  return fmt::format("  {:<{}}{}\n", label, kLabel - 2, wrapped(text, kLabel));
}

std::string level(double confidence) {
  return confidence > 0.9999 ? "more than 99.99 %" : fmt::format("{:.2f} %", 100 * confidence);
}

// One row per queue, one column per stream.
std::string matrix(const Json& queue_of_stream, int streams) {
  int queues = 0;
  for (int i = 0; i < streams; ++i)
    queues = std::max(queues, queue_of_stream[static_cast<std::size_t>(i)].get<int>() + 1);
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
    const double share = point["stuck"].get<double>() / std::max(1.0, point["marked"].get<double>());
    const auto cells = static_cast<std::size_t>(kCells * share + 0.5);
    text += fmt::format("  {:>4}   {}{} {:>3.0f} %  ({} of {})\n", point["held"].get<int>(), std::string(cells, '#'),
                        std::string(static_cast<std::size_t>(kCells) - cells, '.'), 100 * share,
                        point["stuck"].get<int>(), point["marked"].get<int>());
  }
  return text;
}

// What the other two ways say, and who disagrees.
std::string others(const Json& document) {
  const Json& map = document["map"];
  std::string text;
  const auto why = [&](const char* name) { return queues_text::reason(document, name); };
  if (const Json& ids = map["runtime"]; ids.is_object()) {
    text += line("by ids", fmt::format("{} queues ({}); {} of {} marks beside held streams were stuck exactly if their "
                                       "queue was held",
                                       ids["queues"].get<int>(), ids["source"].get<std::string>(),
                                       ids["agreeing_marks"].get<int>(), ids["marks"].get<int>()));
  } else {
    text += line("by ids", why("map.runtime"));
  }
  if (const Json& step = map["timeline"]; step.is_object()) {
    const std::string fixed = step["is_fixed"].is_null()     ? ""
                              : step["is_fixed"].get<bool>() ? "; every stream kept its queue"
                                                             : "; streams moved between queues";
    text += line("by a step", fmt::format("{} of {} pairs of streams are on different queues by the order of their "
                                          "starts{} ({})",
                                          step["pairs_apart"].get<int>(), step["pairs"].get<int>(), fixed,
                                          step["step"].get<std::string>()));
  } else {
    text += line("by a step", why("map.timeline"));
  }
  const Json& agreement = map["agreement"];
  text += line("together", agreement["disagree"].empty()
                               ? fmt::format("they agree ({} comparisons)", agreement["agree"].size())
                               : fmt::format("they DISAGREE in {} of {} comparisons", agreement["disagree"].size(),
                                             agreement["agree"].size() + agreement["disagree"].size()));
  return text;
}

}  // namespace

std::string describe_queue_map(const Json& document) {
  const Json& map = document["map"];
  const Json& probe = map["probe"];
  const Json& base = probe["baseline"];
  std::string text = wrapped(fmt::format("Hardware queues of {} ({})", document["device"]["name"].get<std::string>(),
                                         document["device"]["model"].get<std::string>()),
                             0) +
                     "\n\n";
  const std::string count =
      probe["queues"].is_null()
          ? "not known"
          : fmt::format("{}{}", probe["is_lower_bound"].get<bool>() ? "at least " : "", probe["queues"].get<int>());
  text += line("queues", count);
  text += line("mapping", probe["mapping"].get<std::string>());
  if (!probe["reason"].get<std::string>().empty()) text += line("note", probe["reason"].get<std::string>());
  text += line("certain", fmt::format("{}: {} repetitions of each verdict, {} of {} marks late with nothing held",
                                      level(probe["confidence"].get<double>()), probe["repetitions"].get<int>(),
                                      base["late"].get<int>(), base["marks"].get<int>()));
  text += line(
      "probe",
      fmt::format("{} trials on {} streams in {}; a mark takes {} and is stuck after {}", probe["trials"].get<int>(),
                  probe["streams"].get<int>(), format_duration(probe["elapsed_ns"].get<double>()),
                  format_duration(base["median_ns"].get<double>()), format_duration(base["window_ns"].get<double>())));
  if (probe["record_blocks"].is_boolean())
    text += line("events", probe["record_blocks"].get<bool>() ? "recording one stops its queue until its stream is done"
                                                              : "recording one does not stop its queue");
  text += others(document);
  if (!probe["queue_of_stream"].is_null()) text += matrix(probe["queue_of_stream"], map["streams"].get<int>());
  if (!probe["saturation"].empty()) text += saturation(probe["saturation"]);
  queues_text::warnings(text, document);
  return text;
}

}  // namespace weir
