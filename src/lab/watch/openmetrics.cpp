#include "lab/watch/openmetrics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "lab/watch/columns.h"
#include "measure/openmetrics_text.h"

namespace weir::watch {
namespace {

struct Family {
  std::string_view name, type, unit, help;
  std::function<std::optional<double>(const Row&)> value;
};

std::optional<double> as_number(const std::optional<bool>& claim) {
  if (!claim) return std::nullopt;
  return *claim ? 1 : 0;
}

const std::vector<Family>& queue_families() {
  static const std::vector<Family> kFamilies = {
      {"queue_active", "gauge", "",
       "1 where the queue is on the hardware now (kfd), or ran something in the window (device).",
       [](const Row& row) { return as_number(row.is_active); }},
      {"queue_mapped", "gauge", "", "1 where the queue has a hardware slot now.",
       [](const Row& row) { return as_number(row.is_mapped); }},
      {"queue_preempted", "gauge", "", "1 where the queue was preempted in mid-kernel.",
       [](const Row& row) { return as_number(row.is_preempted); }},
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

struct ProcessFamily {
  std::string_view name, unit, help;
  SampleValue ProcessUse::* value;
};
constexpr ProcessFamily kProcessFamilies[] = {
    {"process_memory_bytes", "bytes", "Of video memory, by a process.", &ProcessUse::memory_bytes},
    {"process_compute_units", "", "Compute units that have waves of a process now.", &ProcessUse::compute_units},
    {"process_busy_ratio", "ratio", "Part of the window in which the busiest engine ran for a process.",
     &ProcessUse::busy},
    {"process_evictions", "", "Evictions of a process's queues since the watch began.", &ProcessUse::evictions},
};

MetricLabels labels_of(const Row& row) {
  MetricLabels labels = {{"queue", row.key}, {"device", row.device}, {"kind", row.kind}};
  if (row.pid) labels.emplace_back("pid", fmt::format("{}", *row.pid));
  return labels;
}

}  // namespace

std::string metrics_text(const Sample& sample) {
  OpenMetricsText text("weir_watch_");
  text.family("source_info", "gauge", "", "What is watched; always 1.");
  text.add({{"source", sample.source}, {"device", sample.device}, {"workload", sample.workload}}, 1);
  text.family("samples", "counter", "", "Samples since the watch began.");
  text.add({}, static_cast<double>(sample.number));
  text.family("window_seconds", "gauge", "seconds", "What rates are taken over.");
  if (sample.window_ns) text.add({}, static_cast<double>(*sample.window_ns) / 1e9);
  text.family("queues", "gauge", "", "Queues that the source shows.");
  if (sample.missing.empty() || !sample.rows.empty()) text.add({}, static_cast<double>(sample.rows.size()));
  std::vector<std::string_view> shown;
  for (const Fact& fact : sample.facts) {
    if (std::find(shown.begin(), shown.end(), fact.name) != shown.end()) continue;
    shown.push_back(fact.name);
    text.family(fmt::format("device_{}_{}", fact.name, fact.unit), "gauge", fact.unit, fact.help);
    for (const Fact& each : sample.facts)
      if (each.name == fact.name && each.figure.value)
        text.add({{"device", each.device.empty() ? sample.device : each.device}}, *each.figure.value);
  }
  for (const ProcessFamily& family : kProcessFamilies) {
    if (sample.processes.empty()) break;
    text.family(family.name, "gauge", family.unit, family.help);
    for (const ProcessUse& use : sample.processes)
      if (const auto value = (use.*family.value).value)
        text.add({{"device", use.device}, {"pid", fmt::format("{}", use.pid)}, {"name", use.name}}, *value);
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

MetricsFile::MetricsFile(std::string path, bool is_forced) : path_(std::move(path)) {
  if (path_.empty()) return;
  std::error_code status;
  if (std::filesystem::exists(path_, status) && !std::filesystem::is_regular_file(path_, status))
    reject(fmt::format("--openmetrics {}: exists and is not a file", printable(path_)), "Choose another name.");
  const bool is_ours = start_of_file(path_, kMetricsBegin.size()) == kMetricsBegin;
  check_writable(path_, is_forced || is_ours);
}

void MetricsFile::write(const Sample& sample) const {
  if (path_.empty()) return;
  // Without sync(): a moment later there is another one.
  NewFile file(path_, true);
  file.write(metrics_text(sample));
  file.commit();
}

}  // namespace weir::watch
