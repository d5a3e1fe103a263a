#include "watch/openmetrics.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace weir::watch {
namespace {

// Length of the UTF-8 character that begins at `at`; 0 where there is none (overlong, surrogate, cut).
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) >= 0xa0) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) >= 0x90) return 0;
  return length;
}

// key="value" with \, " and line breaks escaped. The format wants UTF-8; other control characters are no use to
// anybody.
std::string escaped(std::string_view text) {
  std::string clean;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_bytes(text, i);
    const char c = text[i];
    if (length == 0) {
      clean += "\xef\xbf\xbd";
    } else if (c == '\\') {
      clean += "\\\\";
    } else if (c == '"') {
      clean += "\\\"";
    } else if (c == '\n') {
      clean += "\\n";
    } else if (length == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) {
      clean += '?';
    } else {
      clean += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return clean;
}

using Labels = std::vector<std::pair<std::string_view, std::string>>;

class Text {
 public:
  // # TYPE weir_watch_queue_busy_ratio gauge
  // # UNIT weir_watch_queue_busy_ratio ratio
  // # HELP weir_watch_queue_busy_ratio Part of the window ...
  void family(std::string_view name, std::string_view type, std::string_view unit, std::string_view help) {
    name_ = fmt::format("weir_watch_{}", name);
    suffix_ = type == "counter" ? "_total" : type == "info" ? "_info" : "";
    opening_ = fmt::format("# TYPE {} {}\n", name_, type);
    if (!unit.empty()) opening_ += fmt::format("# UNIT {} {}\n", name_, unit);
    opening_ += fmt::format("# HELP {} {}\n", name_, help);
  }
  // A family without any sample is left out.
  void add(const Labels& labels, double value) {
    if (!std::isfinite(value)) return;
    text_ += std::exchange(opening_, {});
    text_ += fmt::format("{}{}", name_, suffix_);
    for (std::size_t i = 0; i < labels.size(); ++i)
      fmt::format_to(std::back_inserter(text_), "{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first,
                     escaped(labels[i].second));
    text_ += labels.empty() ? " " : "} ";
    text_ += fmt::format("{}\n", value);
  }
  std::string end() { return std::move(text_) + "# EOF\n"; }

 private:
  std::string text_, name_, suffix_, opening_;
};

struct Family {
  std::string_view name, type, unit, help;
  std::function<std::optional<double>(const Row&)> value;
};

std::optional<double> truth(const std::optional<bool>& claim) {
  if (!claim) return std::nullopt;
  return *claim ? 1 : 0;
}

const std::vector<Family>& queue_families() {
  static const std::vector<Family> kFamilies = {
      {"queue_active", "gauge", "",
       "1 where the queue is on the hardware now (kfd), or ran something in the window (device).",
       [](const Row& row) { return truth(row.is_active); }},
      {"queue_mapped", "gauge", "", "1 where the queue has a hardware slot now.",
       [](const Row& row) { return truth(row.is_mapped); }},
      {"queue_preempted", "gauge", "", "1 where the queue was preempted in mid-kernel.",
       [](const Row& row) { return truth(row.is_preempted); }},
      {"queue_priority", "gauge", "", "Priority as the source has it; higher is more urgent.",
       [](const Row& row) { return row.priority.value; }},
      {"queue_streams", "gauge", "", "Streams that use the queue.", [](const Row& row) { return row.streams.value; }},
      {"queue_kernels_per_second", "gauge", "", "Kernels that started, over the window.",
       [](const Row& row) { return row.kernels_per_s.value; }},
      {"queue_commands_per_second", "gauge", "", "Commands that started, over the window.",
       [](const Row& row) { return row.commands_per_s.value; }},
      {"queue_packets_per_second", "gauge", "",
       "Packets that were read, over the window; a lower bound where the ring may have wrapped more than once.",
       [](const Row& row) { return row.packets_per_s.value; }},
      {"queue_busy_ratio", "gauge", "ratio", "Part of the window in which a command of the queue ran.",
       [](const Row& row) { return row.busy.value; }},
      {"queue_kernels", "counter", "", "Kernels since the watch began, while it looked.",
       [](const Row& row) { return row.kernels.value; }},
      {"queue_commands", "counter", "", "Commands since the watch began, while it looked.",
       [](const Row& row) { return row.commands.value; }},
      {"queue_packets", "counter", "packets",
       "Packets read since the watch began; a lower bound where the ring may have wrapped more than once.",
       [](const Row& row) { return row.packets.value; }},
  };
  return kFamilies;
}

Labels labels_of(const Row& row) {
  Labels labels = {{"queue", row.key}, {"device", row.device}, {"kind", row.kind}};
  if (row.pid) labels.emplace_back("pid", fmt::format("{}", *row.pid));
  return labels;
}

}  // namespace

std::string metrics_text(const Sample& sample) {
  Text text;
  text.family("source", "info", "", "What is watched.");
  text.add({{"source", sample.source}, {"device", sample.device}, {"workload", sample.workload}}, 1);
  text.family("samples", "counter", "", "Samples since the watch began.");
  text.add({}, static_cast<double>(sample.number));
  text.family("window_seconds", "gauge", "seconds", "What rates are taken over.");
  if (sample.window_ns) text.add({}, static_cast<double>(*sample.window_ns) / 1e9);
  text.family("queues", "gauge", "", "Queues that the source shows.");
  if (sample.missing.empty() || !sample.rows.empty()) text.add({}, static_cast<double>(sample.rows.size()));
  for (const Fact& fact : sample.facts) {
    const std::string name = fmt::format("device_{}_{}", fact.name, fact.unit);
    text.family(name, "gauge", fact.unit, fact.help);
    if (fact.figure.value) text.add({{"device", sample.device}}, *fact.figure.value);
  }
  const std::string_view unit = sample.unit == Unit::packets ? "packets" : "commands";
  text.family(fmt::format("queue_backlog_{}", unit), "gauge", unit,
              sample.unit == Unit::packets ? "Written to the ring and not yet read."
                                           : "Submitted and not yet started, on average over the window.");
  for (const Row& row : sample.rows)
    if (row.backlog.value) text.add(labels_of(row), *row.backlog.value);
  for (const Family& family : queue_families()) {
    text.family(family.name, family.type, family.unit, family.help);
    for (const Row& row : sample.rows)
      if (const auto value = family.value(row)) text.add(labels_of(row), *value);
  }
  return text.end();
}

}  // namespace weir::watch
