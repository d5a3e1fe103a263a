#include "base/upgrade.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/schemas.h"

namespace weir {
namespace {

// Names that changed: the member at `from` is `to` in version 2, below the same parent, and its numbers are `factor`
// times as large. Moves are made in this order, so that a later one may begin with a name that an earlier one made.
//   processes[].commands_per_second    each element of a list
//   ceilings.*.bandwidth               each member of an object
//   hops[].{p50,p99}_ns                each of these words; {} in `to` is the word of the last part
struct Move {
  std::string_view schema;  // of version 2
  std::string_view from, to;
  double factor = 1;
};

constexpr double kFromUs = 1e3, kFromMs = 1e6, kFromSeconds = 1e9, kFromMegabytes = 1e6;

constexpr Move kMoves[] = {
    {schemas::result, "processes[].p50_ns", "latency_ns.p50"},
    {schemas::result, "processes[].commands_per_second", "commands_per_s"},
    {schemas::result, "metrics.commands_per_second", "commands_per_s"},
    {schemas::result, "metrics.energy.mean_watts", "watts.mean"},
    {schemas::result, "metrics.queue_switch.timeline.{same_stream,same_queue,other_queue,unknown_queue}_gap", "{}_ns"},
    {schemas::result, "metrics.queue_switch.timeline.*.median_ns", "p50"},
    {schemas::result, "ranks.skew.{p50,p95,p99,max}_ns", "skew_ns.{}"},
    {schemas::result, "check.seconds", "duration_ns", kFromSeconds},

    {schemas::comparison, "tests[].pairs[].metrics.*.{baseline,test}.median", "p50"},
    {schemas::trace_comparison, "pace.{baseline,test}.median_ns", "duration_ns.p50"},
    {schemas::trace_comparison, "kernels[].{baseline,test}.median_ns", "duration_ns.p50"},

    {schemas::trials, "plan.timeout_s", "timeout_ns", kFromSeconds},
    {schemas::trials, "settings[].median", "p50"},

    {schemas::channel, "settings.sample_ms", "sample_ns", kFromMs},
    {schemas::channel, "processes[].wall_s", "wall_ns", kFromSeconds},
    {schemas::channel, "benchmarks[].{p50,p99}_ns", "latency_ns.{}"},
    {schemas::channel, "benchmarks[].processes[].{p50,p99}_ns", "latency_ns.{}"},

    {schemas::conformance, "devices[].counts.seconds", "duration_ns", kFromSeconds},
    {schemas::conformance, "devices[].{groups,cases}[].seconds", "duration_ns", kFromSeconds},

    {schemas::overlap, "processes[].p50_ns", "latency_ns.p50"},
    {schemas::overlap, "skew.{p50,p95,p99,max}_ns", "skew_ns.{}"},
    {schemas::overlap, "per_rank[].step_p50_ns", "step_ns.p50"},
    {schemas::overlap, "check.seconds", "duration_ns", kFromSeconds},
    {schemas::overlap_tune, "trials[].seconds", "duration_ns", kFromSeconds},

    {schemas::profile, "check.seconds", "duration_ns", kFromSeconds},
    {schemas::profile, "tracing.{timed,traced}_p50_ns", "{}_ns.p50"},
    {schemas::profile, "devices[].waterfall[].hops[].{p50,p95,p99,mean}_ns", "duration_ns.{}"},
    {schemas::profile, "devices[].waterfall[].{dominating,dominating_to_end}.{p50,p95,p99,mean}_ns", "duration_ns.{}"},

    {schemas::analysis, "ranks.skew.{p50,p95,p99,max}_ns", "skew_ns.{}"},
    {schemas::analysis, "ranks.kinds[].{p50,p95,max}_ns", "skew_ns.{}"},
    {schemas::analysis, "devices[].queue_switch.{same_stream,same_queue,other_queue,unknown_queue}", "{}_ns"},
    {schemas::analysis, "devices[].queue_switch.*.median_ns", "p50"},
    {schemas::analysis, "devices[].host_blocked.launch_p50_ns", "launch_ns.p50"},
    {schemas::analysis, "devices[].collectives.classes[].{p50,p99}_ns", "duration_ns.{}"},
    {schemas::analysis, "devices[].collectives.classes[].{algorithm,bus}_bandwidth", "{}_bytes_per_s"},
    {schemas::analysis, "devices[].overlap_slowdown.kernels[].{alone,beside}_p50_ns", "{}_ns.p50"},
    {schemas::analysis, "devices[].waterfall.classes[].hops[].{mean,p50,p95,p99}_ns", "duration_ns.{}"},
    {schemas::analysis, "devices[].top.top[].{mean,p50,p99,min,max}_ns", "duration_ns.{}"},
    {schemas::analysis, "devices[].gaps.*.{mean,p50,p95,p99,max}_ns", "duration_ns.{}"},

    {schemas::queues, "map.probe.baseline.median_ns", "latency_ns.p50"},
    {schemas::queues, "sweep.best[].p50_ns", "latency_ns.p50"},
    {schemas::queues, "sweep.points[].runs[].p50_ns", "latency_ns.p50"},
    {schemas::queues, "switch.settings[].rows[].timeline.*.median", "p50"},

    {schemas::preempt, "{alone,mechanisms[].points[]}.{late,to_start,to_end}", "{}_ns"},
    {schemas::preempt, "{alone,mechanisms[].points[]}.*.{mean,p50,p90,p99,p999,max}_ns", "{}"},
    {schemas::preempt, "{alone,mechanisms[].points[]}.*.{p50,p90,p99}_interval_ns", "{}_interval"},
    {schemas::preempt, "alone.medians_ns", "to_end_ns.p50_by_repeat"},
    {schemas::preempt, "mechanisms[].points[].start_p99_in_blocks", "start_in_blocks.p99"},
    {schemas::preempt, "mechanisms[].points[].unavailable.to_start", "to_start_ns"},
    {schemas::preempt, "mechanisms[].points[].unavailable.start_p99_in_blocks", "start_in_blocks"},
    {schemas::preempt, "published.levels[].points[].kernel_us", "kernel_ns", kFromUs},
    {schemas::preempt, "published.levels[].points[].{mean,p50,p90,p99}_us", "latency_ns.{}", kFromUs},

    {schemas::bench, "ceilings.*.bandwidth", "bytes_per_s"},
    {schemas::bench, "ceilings.*.compute", "flop_per_s"},
    {schemas::bench, "cases[].timing.latency_ms_{p50,p90,p99,mean,std}", "latency_ns.{}", kFromMs},
    {schemas::bench, "cases[].timing.interval_ms", "latency_ns.p50_interval", kFromMs},
    {schemas::bench, "cases[].timing.throughput_ops_per_sec", "runs_per_s"},
    {schemas::bench, "cases[].timing.items_per_sec", "items_per_s"},
    {schemas::bench, "cases[].{timing,timing.disturbed}.samples_ms", "samples_ns", kFromMs},
    {schemas::bench, "cases[].timing.clocks_mhz.median", "p50"},
    {schemas::bench, "cases[].memory.{peak,allocated}_mb", "{}_bytes", kFromMegabytes},
    {schemas::bench, "cases[].energy.window_s", "window_ns", kFromSeconds},
    {schemas::bench, "cases[].roofline.bandwidth", "bytes_per_s"},
    {schemas::bench, "cases[].roofline.compute", "flop_per_s"},
    {schemas::bench, "cases[].roofline.ceiling_bandwidth", "ceiling_bytes_per_s"},
    {schemas::bench, "cases[].roofline.ceiling_compute", "ceiling_flop_per_s"},
    {schemas::bench, "regressions.cases[].p50_ms_{before,after}", "{}_ns.p50", kFromMs},

    {schemas::amd_ftrace, "runlist.per_second", "rebuilds_per_s"},
    {schemas::amd_ftrace, "{verbs[],processes[].verbs[]}.{exact,at_least,at_most}", "{}_ns"},
    {schemas::amd_ftrace, "{verbs[],processes[].verbs[]}.*.n", "count"},
    {schemas::amd_ftrace, "{verbs[],processes[].verbs[]}.*.{min,p50,p90,p99,max}_ns", "{}"},
    {schemas::amd_log, "files[].processes[].creation.later", "later_ns"},
    {schemas::amd_log, "files[].processes[].creation.later_ns.{min,max,mean}_ns", "{}"},
    {schemas::amd_hqd, "sysfs.processes[].evicted[].ms", "duration_ns", kFromMs},
    {schemas::amd_hqd, "{queues,hiqs}[].quantum.duration", "count"},
};

// A number, or each number of a list; anything else stays as it is. A number that grows beyond all limits is lost.
void scale(Json& value, double factor) {
  if (factor == 1) return;
  if (value.is_array()) {
    for (Json& each : value)
      if (!each.is_structured()) scale(each, factor);
  } else if (value.is_number()) {
    value = number_or_null(value.get<double>() * factor);
  }
}

// Gives a member of `parent` its new name, in its place; a name with a dot is a member of an object, which takes the
// place of the first that moves into it. A value whose new name is taken stays where it is.
void move_member(Json& parent, std::string_view name, std::string_view to, double factor) {
  const auto place = parent.find(name);
  if (place == parent.end()) return;
  const std::size_t dot = to.find('.');
  const std::string_view first = to.substr(0, dot), inner = dot == to.npos ? std::string_view() : to.substr(dot + 1);
  if (const auto taken = parent.find(first); taken != parent.end()) {
    if (inner.empty() || !taken->is_object() || taken->contains(inner)) return;
    scale(*place, factor);
    taken->append(std::string(inner), *place);
    parent.erase(name);
    return;
  }
  scale(*place, factor);
  for (Json::Member& member : parent.items())
    if (member.name == name) {
      member.name = first;
      if (!inner.empty()) {
        Json holder = Json::object();
        holder.append(std::string(inner), std::move(member.value));
        member.value = std::move(holder);
      }
      return;
    }
}

// `path` is what is left of the way below `here`.
void follow(Json& here, std::string_view path, std::string_view to, double factor) {
  if (!here.is_object()) return;
  const std::size_t dot = path.find('.');
  std::string_view name = path.substr(0, dot);
  if (dot == path.npos) return move_member(here, name, to, factor);
  const std::string_view rest = path.substr(dot + 1);
  if (name == "*") {
    for (Json::Member& member : here.items()) follow(member.value, rest, to, factor);
    return;
  }
  const bool is_list = name.ends_with("[]");
  if (is_list) name.remove_suffix(2);
  const auto found = here.find(name);
  if (found == here.end()) return;
  if (!is_list) return follow(*found, rest, to, factor);
  if (found->is_array())
    for (Json& element : *found) follow(element, rest, to, factor);
}

// "unavailable" has reasons under the paths of values: {"metrics.commands_per_second": "no time passed"}.
void rename_reason(Json& document, std::string_view from, std::string_view to) {
  const auto reasons = document.find("unavailable");
  if (reasons == document.end() || !reasons->is_object()) return;
  const std::string renamed = std::string(from.substr(0, from.rfind('.') + 1)).append(to);
  if (reasons->contains(renamed)) return;
  for (Json::Member& reason : reasons->items())
    if (reason.name == from) reason.name = renamed;
}

// Makes a move for each of the words in its braces.
void make(Json& document, const std::string& from, const std::string& to, double factor) {
  const std::size_t open = from.find('{');
  if (open == from.npos) {
    follow(document, from, to, factor);
    rename_reason(document, from, to);
    return;
  }
  const std::size_t close = from.find('}', open);
  const std::string before = from.substr(0, open), after = from.substr(close + 1);
  const std::size_t blank = after.find('.') == after.npos ? to.find("{}") : to.npos;
  for (std::size_t begin = open + 1; begin < close;) {
    const std::size_t end = std::min(from.find(',', begin), close);
    const std::string word = from.substr(begin, end - begin);
    std::string renamed = to;
    if (blank != to.npos) renamed.replace(blank, 2, word);
    make(document, before + word + after, renamed, factor);
    begin = end + 1;
  }
}

}  // namespace

void upgrade(Json& document) {
  const Json& named = member(document, "schema");
  if (!named.is_string()) return;
  const std::string schema = named.string();
  if (schema == schemas::sweep) {
    const auto results = document.find("results");
    if (results == document.end() || !results->is_array()) return;
    for (Json& result : *results)
      if (const Json& inner = member(result, "schema");
          inner.is_string() && schemas::are_alike(inner.string(), schemas::result))
        upgrade(result);
    return;
  }
  const std::string_view today = schemas::current(schema);
  if (schemas::version_of(schema) != "1" || today.empty() || schemas::version_of(today) == "1") return;
  for (const Move& move : kMoves)
    if (move.schema == today) make(document, std::string(move.from), std::string(move.to), move.factor);
  document["schema"] = today;
}

}  // namespace weir
