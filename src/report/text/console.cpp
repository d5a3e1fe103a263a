// weir.result/2 and weir.sweep/1 for a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"
#include "run/scaling_curves.h"
#include "run/variable_axis.h"

namespace weir {
namespace {

using namespace fields;

constexpr double kGoodFit = 0.8;  // R2 from which a fitted law is worth printing

// Rates in GFLOP/s already have a scaled unit; plain counts are scaled here: 3.90 M.
std::string bare_rate(double value, const std::string& unit) {
  if (unit.starts_with("GFLOP") || unit.starts_with("TFLOP"))
    return fmt::format("{:.{}f}", value, value < 1 ? 4 : (value < 100 ? 2 : 0));
  return format_quantity(value);
}

std::string rate(std::optional<double> value, const std::string& unit) {
  return value ? fmt::format("{} {}", bare_rate(*value, unit), unit) : "-";
}

void add_line(std::string& out, const char* label, const std::string& value) {
  out += fmt::format("  {:<13}{}\n", label, wrapped(value, 15));
}

// One column narrower than other texts.
std::string narrow(const std::string& words, std::size_t indent) {
  return wrapped(words, indent, report_columns() - 1);
}

void add_convoy(std::string& out, const Json& result) {
  if (at(result, {"metrics", "convoy"}).is_null()) return;
  add_line(out, "convoy index",
           fmt::format("{:.2f}: {} commands p99 {} mixed, {} alone",
                       number(result, {"metrics", "convoy", "index"}).value_or(NAN),
                       text(result, {"metrics", "convoy", "role"}),
                       duration(number(result, {"metrics", "convoy", "mixed_ns", "p99"})),
                       duration(number(result, {"metrics", "convoy", "alone_ns", "p99"}))));
}

void add_serving(std::string& out, const Json& result) {
  for (const auto& [label, key] :
       {std::pair("first token", "first_token_ns"), std::pair("next token", "next_token_ns")})
    if (const auto p50 = number(result, {"metrics", "serving", key, "p50"}))
      add_line(
          out, label,
          fmt::format("p50 {}, p99 {}", duration(p50), duration(number(result, {"metrics", "serving", key, "p99"}))));
}

void add_traced(std::string& out, const Json& result) {
  if (const auto mean = number(result, {"metrics", "concurrency", "mean"}))
    add_line(out, "concurrency",
             fmt::format("{:.2f} commands at once on average, {} at most", *mean,
                         text(result, {"metrics", "concurrency", "max"})));
  if (const auto fairness = number(result, {"metrics", "fairness"}))
    add_line(out, "fairness", fmt::format("{:.3f} (Jain; 1 is equal)", *fairness));
  if (const auto hop = number(result, {"metrics", "queue_switch", "controlled", "ns_per_hop"}))
    add_line(out, "queue switch",
             fmt::format("{} per hop to another stream (chain of {} kernels)", format_duration(*hop),
                         text(result, {"metrics", "queue_switch", "controlled", "hops"})));
  add_convoy(out, result);
  add_serving(out, result);
}

void add_run_ranks(std::string& out, const Json& result) {
  const Json& ranks = at(result, {"ranks"});
  if (ranks.is_null()) return;
  const Json& members = at(ranks, {"per_rank"});
  std::optional<double> fastest, slowest;
  for (const Json& member : members) {
    auto median = number(member, {"latency_ns", "p50"});
    if (!median) median = number(member, {"device_ns", "p50"});
    if (!median) continue;
    fastest = std::min(fastest.value_or(*median), *median);
    slowest = std::max(slowest.value_or(*median), *median);
  }
  const std::size_t hosts = at(ranks, {"hosts"}).size();
  add_line(out, "ranks",
           fmt::format("{} on {} host{}, {}", text(ranks, {"count"}), hosts, hosts == 1 ? "" : "s",
                       text(ranks, {"library"})));
  if (fastest)
    add_line(out, "", fmt::format("p50 {} (fastest rank) .. {} (slowest)", duration(fastest), duration(slowest)));
  if (const auto skew = number(ranks, {"skew", "skew_ns", "p50"}))
    add_line(out, "skew",
             fmt::format("p50 {}  p95 {}  max {}  ({} collectives)", format_duration(*skew),
                         duration(number(ranks, {"skew", "skew_ns", "p95"})),
                         duration(number(ranks, {"skew", "skew_ns", "max"})), text(ranks, {"skew", "instances"})));
  double busiest = 0;
  for (const Json& member : members) busiest = std::max(busiest, number(member, {"collective_share"}).value_or(0));
  if (busiest > 0) add_line(out, "collectives", fmt::format("up to {:.0f} % of a rank's time", 100 * busiest));
  for (const Json& straggler : at(ranks, {"stragglers"}))
    add_line(out, "straggler", fmt::format("rank {} {}", text(straggler, {"rank"}), text(straggler, {"reason"})));
}

// What a soak of `weir run --seconds` saw; its alarms are among the warnings.
void add_soak(std::string& out, const Json& result) {
  const Json& soak = at(result, {"metrics", "soak"});
  if (!soak.is_object()) return;
  const std::size_t alarms = at(soak, {"alarms"}).size();
  add_line(out, "soak",
           fmt::format(
               "{}, {} iterations, {}; {} alarm{}", duration(number(soak, {"elapsed_ns"})), text(soak, {"iterations"}),
               number(soak, {"kept_every"}).value_or(1) > 1 ? fmt::format("one of {} kept", text(soak, {"kept_every"}))
                                                            : std::string("all kept"),
               alarms == 0 ? "no" : std::to_string(alarms), alarms == 1 ? "" : "s"));
  if (const auto ends = interval(soak, {"latency_change", "interval"}))
    add_line(out, "over time",
             fmt::format("latency {:+.1f} % ({:+.1f} to {:+.1f} %)",
                         100 * number(soak, {"latency_change", "value"}).value_or(NAN), 100 * ends->first,
                         100 * ends->second));
  if (const auto last = number(soak, {"temperature_c", "last"}))
    add_line(out, "",
             fmt::format("{:.0f} C at the start, {:.0f} C at the end, {:.0f} C at most",
                         number(soak, {"temperature_c", "first"}).value_or(NAN), *last,
                         number(soak, {"temperature_c", "max"}).value_or(NAN)));
  if (const auto last = number(soak, {"clock_mhz", "last"}))
    add_line(out, "",
             fmt::format("{:.0f} MHz at the start, {:.0f} MHz at the end, {:.0f} MHz at least",
                         number(soak, {"clock_mhz", "first"}).value_or(NAN), *last,
                         number(soak, {"clock_mhz", "min"}).value_or(NAN)));
}

void add_check(std::string& out, const Json& result) {
  const std::string status = text(result, {"check", "status"});
  if (status == "passed") {
    add_line(
        out, "check",
        fmt::format("passed: {} buffers as the CPU reference, worst error {:.1e}", text(result, {"check", "buffers"}),
                    number(result, {"check", "worst_relative_error"}).value_or(0)));
  } else {
    add_line(out, "check", fmt::format("{}: {}", status, text(result, {"check", "reason"})));
  }
}

}  // namespace

std::string processes_text(const Json& result) {
  const Json& processes = at(result, {"processes"});
  if (!processes.is_array() || processes.empty()) return "";
  std::vector<double> medians;
  for (const Json& process : processes)
    if (const auto median = number(process, {"latency_ns", "p50"}); median && *median > 0) medians.push_back(*median);
  const std::string count = fmt::format("{} process{}", processes.size(), processes.size() == 1 ? "" : "es");
  if (medians.empty()) return count;
  const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
  const double ratio = *most / *least;
  return fmt::format("{}, medians {} to {} ({})", count, format_duration(*least), format_duration(*most),
                     ratio < 2 ? fmt::format("{:.1f} % apart", 100 * (ratio - 1)) : fmt::format("{:.1f} times", ratio));
}

// 412 ms before the first iteration: 6 regions, 6 compiled (g++ (Debian 12.2.0-14) 12.2.0)
std::string compile_text(const Json& compile, const std::string& reason) {
  const auto time = number(compile, {"compile_ns"});
  std::string out = fmt::format("{}{} regions", time ? duration(time) + " before the first iteration: " : "",
                                text(compile, {"regions"}));
  constexpr std::pair<const char*, const char*> kWays[] = {{"compiled", "compiled"},
                                                           {"from_disk", "from the cache"},
                                                           {"from_memory", "compiled earlier in this process"},
                                                           {"uncompiled", "not compiled"}};
  for (const auto& [key, words] : kWays)
    if (const auto count = number(compile, {key}); count && *count > 0) out += fmt::format(", {} {}", *count, words);
  if (!at(compile, {"compiler"}).is_null()) out += fmt::format(" ({})", text(compile, {"compiler"}));
  return reason.empty() ? out : out + ": " + reason;
}

std::string describe_result(const Json& result) {
  std::string out =
      wrapped(fmt::format("{}, {} streams, on {} ({})", text(result, {"workload", "name"}), text(result, {"streams"}),
                          text(result, {"device", "name"}), text(result, {"device", "model"})),
              0) +
      "\n";
  out += fmt::format("  {}\n\n",
                     narrow(fmt::format("{}, scale {}; submit {}, placement {}, sync {}", text(result, {"precision"}),
                                        text(result, {"scale"}), text(result, {"submit"}), text(result, {"placement"}),
                                        text(result, {"sync_mode"})),
                            2));
  if (text(result, {"status"}) == "interrupted")
    out += result.contains("processes") ? std::string("  INTERRUPTED: processes are missing\n\n")
           : at(result, {"metrics", "soak"}).is_object()
               ? fmt::format("  INTERRUPTED: {} were asked for\n\n",
                             duration(number(result, {"metrics", "soak", "asked_ns"})))
               : fmt::format("  INTERRUPTED: {} iterations were asked for\n\n", text(result, {"iterations"}));
  if (text(result, {"status"}) == "failed") out += "  FAILED: " + narrow(text(result, {"failure"}), 10) + "\n\n";

  const std::string unit = text(result, {"workload", "unit"});
  const Json& throughput = at(result, {"metrics", "throughput"});
  if (!throughput.is_null()) {
    std::string value = rate(number(throughput, {"value"}), unit);
    if (const auto ends = interval(throughput, {"interval"}))
      value += fmt::format("  (95 % interval {} .. {})", bare_rate(ends->first, unit), bare_rate(ends->second, unit));
    add_line(out, "throughput", value);
  }
  const auto quantiles = [](const Json& times) {
    return fmt::format("p50 {}  p95 {}  p99 {}  ({} iterations)", duration(number(times, {"p50"})),
                       duration(number(times, {"p95"})), duration(number(times, {"p99"})), text(times, {"count"}));
  };
  const Json &latency = at(result, {"metrics", "latency_ns"}), &device = at(result, {"metrics", "device_ns"});
  const bool is_pipelined = text(result, {"sync_mode"}) == "end_only";  // documents of 0.1 have a latency there too
  if (!latency.is_null() && !is_pipelined) add_line(out, "latency", quantiles(latency));
  if (const std::string processes = processes_text(result); !processes.empty()) add_line(out, "repeated", processes);
  if (const std::string variables = variable_words(result); !variables.empty()) add_line(out, "variables", variables);
  if (!device.is_null() && is_pipelined) add_line(out, "on device", quantiles(device));
  if (!device.is_null() && !is_pipelined)
    add_line(out, "on device",
             fmt::format("p50 {} from the first start to the last end", duration(number(device, {"p50"}))));
  // A scheduled host waits until a command may run; that is not a cost of submitting.
  const bool waits = text(result, {"submit"}).starts_with("scheduled:");
  const auto cost = number(result, {"metrics", "host_ns_per_command"});
  const auto floor = number(result, {"metrics", "floor_ns_per_command"});
  // The floor is measured apart from the run, so noise may put it above the cost, and then it is none.
  const bool is_below = cost && floor && *cost < *floor;
  add_line(out, "host cost",
           fmt::format("{} per command{}, {} commands ({})", duration(cost), waits ? " with waiting" : "",
                       text(result, {"commands_per_iteration"}),
                       is_below ? fmt::format("no more than the null device's {}", duration(floor))
                                : fmt::format("floor {}", duration(floor))));
  add_traced(out, result);
  if (const Json& compile = at(result, {"metrics", "compile"}); compile.is_object())
    add_line(out, "compile", compile_text(compile, string(result, {"unavailable", "metrics.compile"})));
  if (const auto bytes = number(result, {"metrics", "memory", "allocated_bytes"}))
    add_line(out, "memory", format_bytes(static_cast<std::uint64_t>(*bytes)));
  if (const auto joules = number(result, {"metrics", "energy", "joules_per_iteration"}))
    add_line(out, "energy",
             fmt::format("{:.3g} J per iteration, {:.1f} W", *joules,
                         number(result, {"metrics", "energy", "watts", "mean"}).value_or(0)));
  add_run_ranks(out, result);
  add_soak(out, result);
  add_check(out, result);

  for (const Json& warning : at(result, {"warnings"}))
    out += fmt::format("\n  ! {}\n    {}\n", narrow(text(warning, {"message"}) + ".", 4),
                       narrow(text(warning, {"advice"}), 4));
  return out;
}

constexpr std::size_t kMaxSubmitWidth = 12;  // a row with a mark then has 80 columns

std::string sweep_head(const Json& settings, std::size_t submit_width) {
  submit_width = std::min(submit_width, kMaxSubmitWidth);
  return fmt::format("{} on {} ({}), scale {}, {}\n\n{:>7}  {:<{}} {:>18} {:>9} {:>9} {:>9}  {}\n",
                     text(settings, {"workload"}), text(settings, {"device"}), text(settings, {"model"}),
                     text(settings, {"scale"}), text(settings, {"precision"}), "streams", "submit", submit_width,
                     "throughput", "p50", "p99", "host/cmd", "check");
}

std::string sweep_row(const Json& result, bool was_kept, std::size_t submit_width) {
  const Json& units = at(result, {"device", "compute_units"});
  std::string way =
      way_of(text(result, {"submit"}), units.is_number_integer() ? units.get<int>() : 0, variable_words(result));
  submit_width = std::min(submit_width, kMaxSubmitWidth);
  // A long name (scheduled:earliest_deadline:2) gets a separate line, so that the numbers stay within 80 columns.
  if (way.size() > submit_width) way += "\n" + std::string(9 + submit_width, ' ');
  const std::string unit = text(result, {"workload", "unit"});
  const bool is_interrupted = text(result, {"status"}) == "interrupted";
  const char* const time = at(result, {"metrics", "latency_ns"}).is_null() ? "device_ns" : "latency_ns";
  if (text(result, {"status"}) == "failed")
    return fmt::format("{:>7}  {:<{}} FAILED: {}\n", text(result, {"streams"}), way, submit_width,
                       narrow(text(result, {"failure"}), 10 + submit_width));
  return fmt::format("{:>7}  {:<{}} {:>18} {:>9} {:>9} {:>9}  {}{}\n", text(result, {"streams"}), way, submit_width,
                     rate(number(result, {"metrics", "throughput", "value"}), unit),
                     duration(number(result, {"metrics", time, "p50"})),
                     duration(number(result, {"metrics", time, "p99"})),
                     duration(number(result, {"metrics", "host_ns_per_command"})),
                     was_kept         ? "kept"
                     : is_interrupted ? "interrupted"
                                      : text(result, {"check", "status"}),
                     at(result, {"warnings"}).empty() ? "" : " !");
}

std::string scaling_words(const std::string& name, const Json& analysis, const std::string& unit) {
  const Json& rows = at(analysis, {"rows"});
  if (rows.size() < 2) return {};  // one point shows no scaling
  std::string words = fmt::format("{}: best at {} stream{}", name, text(analysis, {"best_streams"}),
                                  at(analysis, {"best_streams"}) == 1 ? "" : "s");
  for (const Json& row : rows)
    if (at(row, {"streams"}) == at(analysis, {"best_streams"}))
      words += fmt::format(" ({}, {:.2f}x of {}, efficiency {:.0f}%)", rate(number(row, {"throughput"}), unit),
                           number(row, {"speedup"}).value_or(NAN), text(rows[0], {"streams"}),
                           100 * number(row, {"efficiency"}).value_or(NAN));
  if (at(analysis, {"knee"}).is_number())
    words += fmt::format("; {} enough for 95% of it",
                         at(analysis, {"knee"}) == 1 ? "1 is" : text(analysis, {"knee"}) + " are");
  words += '.';
  // A law that does not fit the points predicts nothing.
  const double fit = number(analysis, {"usl", "r_squared"}).value_or(0);
  if (fit >= kGoodFit) {
    words += fmt::format(" Scalability law: contention {:.3f}, coherency {:.5f} (R2 {:.3f})",
                         number(analysis, {"usl", "alpha"}).value_or(NAN),
                         number(analysis, {"usl", "beta"}).value_or(NAN), fit);
    if (const auto peak = number(analysis, {"usl", "peak_streams"}))
      words += fmt::format(", peak near {:.0f} stream{}", *peak, *peak < 1.5 ? "" : "s");
    words += '.';
  } else if (!at(analysis, {"usl"}).is_null()) {
    words += fmt::format(" The scalability law does not fit (R2 {:.2f}).", fit);
  }
  return words;
}

std::string sweep_summary(const Json& sweep) {
  std::string out;
  const Json& results = at(sweep, {"results"});
  const std::string unit = results.empty() ? "" : text(results[0], {"workload", "unit"});
  for (const auto& [submit, analysis] : fields::members(at(sweep, {"scaling"})))
    if (const std::string words = scaling_words(submit, analysis, unit); !words.empty()) out += narrow(words, 2) + "\n";
  // One line per kind of warning: where it occurred, and its first message.
  std::map<std::string, std::pair<std::string, std::string>> seen;
  for (const Json& result : results) {
    for (const Json& warning : at(result, {"warnings"})) {
      auto& [where, words] = seen[text(warning, {"code"})];
      if (words.empty()) words = text(warning, {"message"}) + ". " + text(warning, {"advice"});
      where += fmt::format("{}{} {}", where.empty() ? "" : ", ", text(result, {"streams"}), text(result, {"submit"}));
    }
  }
  for (const auto& [code, entry] : seen) {
    const auto& [where, words] = entry;
    out += narrow(fmt::format("! {} (at {}): {}", code, where, words), 2) + "\n";
  }
  return out;
}

}  // namespace weir
