// Figures of benches, overlap runs, preemption labs and channel benchmarks.
#include <fmt/format.h>

#include <array>

#include "report/figures/figures_row.h"
#include "report/text/fields.h"

namespace weir::figures {
namespace {

using namespace fields;

constexpr std::size_t kMaxCauses = 50;

// A row with the fields that all documents begin with.
FigureRow begun(const Json& document, const char* group) {
  FigureRow row;
  row.group = group;
  row.created = label(at(document, {"created"}));
  row.version = label(at(document, {"weir", "version"}));
  row.commit = label(at(document, {"weir", "commit"}));
  row.status = label(at(document, {"status"}));
  return row;
}

FigureRow bench_row(const Json& document, const Json& entry) {
  FigureRow row = begun(document, "bench");
  row.labels = {{"kernel", label(at(entry, {"kernel_name"}))},
                {"backend", label(at(entry, {"backend"}))},
                {"precision", label(at(entry, {"precision"}))},
                {"problem", settings(at(entry, {"problem_size"}))},
                {"device", label(at(entry, {"device", "model"}))}};
  row.status = label(at(entry, {"status"}));
  row.is_failed = row.status != "ok" && row.status != "skipped";
  row.failure = label(at(entry, {"error", "what"}));
  const Json& timing = at(entry, {"timing"});
  add_summary(row, "latency", "Time of one run of the kernel, by quantile.", at(timing, {"latency_ns"}), kFromNs);
  add(row, "samples", "", "Measured runs.", number(timing, {"iterations"}));
  add(row, "runs_per_second", "", "Runs of the kernel per second.", number(timing, {"runs_per_s"}));
  add(row, "items_per_second", "", "Items of the problem per second.", number(timing, {"items_per_s"}));
  add(row, "memory_peak", "bytes", "Most memory in use at once.", number(entry, {"memory", "peak_bytes"}));
  add(row, "energy_per_run", "joules", "Energy of one run.", number(entry, {"energy", "energy_j"}));
  add(row, "power", "watts", "Mean over the window.", number(entry, {"energy", "power_w"}));
  add(row, "rmse", "", "Root mean square error against the reference.", number(entry, {"accuracy", "rmse"}));
  add(row, "relative_error", "ratio", "Error against the reference, relative.",
      number(entry, {"accuracy", "relative_error"}));
  add(row, "of_ceiling", "ratio", "Part of what the device can do at best at this intensity.",
      number(entry, {"roofline", "of_ceiling"}));
  add(row, "bandwidth_bytes_per_second", "", "Bytes moved per second.", number(entry, {"roofline", "bytes_per_s"}));
  add(row, "flop_per_second", "", "Floating point operations per second.", number(entry, {"roofline", "flop_per_s"}));
  add_series(row, "latency", "seconds", at(timing, {"samples_ns"}), kFromNs);
  return row;
}

}  // namespace

std::vector<FigureRow> of_bench(const Json& document, const std::string&) {
  std::vector<FigureRow> rows;
  for (const Json& entry : list(document, {"cases"})) rows.push_back(bench_row(document, entry));
  return rows;
}

std::vector<FigureRow> of_overlap(const Json& document, const std::string&) {
  FigureRow row = begun(document, "overlap");
  row.labels = {{"name", label(at(document, {"name"}))},
                {"device", label(at(document, {"device", "name"}))},
                {"mode", label(at(document, {"config", "parallel.mode"}))},
                {"precision", label(at(document, {"config", "training.precision"}))},
                {"scale", label(at(document, {"scale"}))},
                {"streams", label(at(document, {"streams"}))},
                {"placement", label(at(document, {"placement"}))},
                {"ranks", label(at(document, {"ranks", "count"}))},
                {"parameters", settings(at(document, {"parameters"}))}};
  row.is_failed = row.status == "failed";
  row.failure = label(at(document, {"failure"}));
  for (const char* pass : {"overlapped", "serial"})
    add_summary(row, "step", "Time of a training step, by pass and quantile.", at(document, {"step_ns", pass}), kFromNs,
                {{"pass", pass}});
  constexpr std::array kTimes{
      std::pair{"compute", "Time per step in which computation ran."},
      std::pair{"communication", "Time per step in which communication ran."},
      std::pair{"exposed", "Communication while nothing else ran, per step."},
      std::pair{"hidden", "Communication while something else ran, per step."},
      std::pair{"idle", "Nothing ran, per step."},
  };
  for (const auto& [name, help] : kTimes)
    add(row, name, "seconds", help, number(document, {"overlap", fmt::format("{}_ns", name).c_str()}), kFromNs);
  add(row, "efficiency", "ratio", "Part of the communication that is hidden.",
      number(document, {"overlap", "efficiency"}));
  add(row, "best_efficiency", "ratio", "What could be hidden at most.",
      number(document, {"overlap", "best_efficiency"}));
  for (const Json& cause : first(list(document, {"causes"}), kMaxCauses))
    add(row, "exposed_cause", "seconds", "Exposed time per step, by its cause.", number(cause, {"ns_per_step"}),
        kFromNs, {{"cause", label(at(cause, {"cause"}))}});
  add_series(row, "step", "seconds", at(document, {"step_ns", "overlapped", "samples_ns"}), kFromNs);
  add_series(row, "exposed", "seconds", at(document, {"overlap", "samples", "exposed_ns"}), kFromNs);
  add_series(row, "efficiency", "ratio", at(document, {"overlap", "samples", "efficiency"}), 1);
  return {std::move(row)};
}

std::vector<FigureRow> of_preempt(const Json& document, const std::string&) {
  std::vector<FigureRow> rows;
  for (const Json& mechanism : list(document, {"mechanisms"}))
    for (const Json& point : list(mechanism, {"points"})) {
      FigureRow row = begun(document, "preempt");
      row.labels = {{"device", label(at(document, {"device", "name"}))},
                    {"mechanism", label(at(mechanism, {"name"}))},
                    {"victim", settings(at(point, {"victim"}))}};
      row.failure = label(at(point, {"failure"}));
      row.is_failed = !row.failure.empty();
      if (row.is_failed) row.status = "failed";
      add_summary(row, "to_start", "From when a request was due to its start, by quantile.", at(point, {"to_start_ns"}),
                  kFromNs);
      add_summary(row, "to_end", "From when a request was due to its end, by quantile.", at(point, {"to_end_ns"}),
                  kFromNs);
      add(row, "samples", "", "Requests.", number(point, {"requests"}));
      add(row, "victim_loss", "ratio", "Part of its work that the victim lost to the requests.",
          number(point, {"victim_loss"}));
      add(row, "against_alone", "ratio",
          "The tail (p99; p90 below 400 requests, the median below 100) over that of requests alone.",
          number(point, {"against_alone"}));
      rows.push_back(std::move(row));
    }
  return rows;
}

std::vector<FigureRow> of_channel(const Json& document, const std::string&) {
  std::vector<FigureRow> rows;
  for (const Json& entry : list(document, {"benchmarks"})) {
    FigureRow row = begun(document, "channel");
    row.labels = {{"benchmark", fmt::format("{}/{}", label(at(entry, {"group"})), label(at(entry, {"name"})))},
                  {"contestant", label(at(entry, {"contestant"}))}};
    row.status = label(at(entry, {"status"}));
    row.failure = label(at(entry, {"reason"}));
    row.is_failed = row.status == "failed";
    const Json& unit = at(entry, {"unit"});
    if (unit == "per_second") {
      add(row, "operations_per_second", "", "Median over processes.", number(entry, {"value"}));
    } else {
      add(row, unit == "ns_in_all" ? "whole" : "operation", "seconds", "Median over processes.",
          number(entry, {"value"}), kFromNs);
    }
    add_summary(row, "latency", "Of single operations, by quantile.", at(entry, {"latency_ns"}), kFromNs);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace weir::figures
