#include "run/soak.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/named_values.h"
#include "base/units.h"
#include "measure/statistics.h"

namespace weir {
namespace {

constexpr double kDriftAlarm = 0.02;         // of the latency: the end of the interval that is nearer to no change
constexpr double kClockAlarm = 0.95;         // last quarter / first quarter
constexpr double kTemperatureAlarm = 2;      // degrees in the second half, by the lower end of the interval
constexpr std::size_t kMinWindows = 8;       // for a slope with an interval
constexpr std::uint64_t kDrainEvery = 1024;  // iterations between looks at what the session collects

bool any_rank(const RunControl& control, bool claim) {
  return control.has_ranks() ? control.communicator->any(claim) : claim;
}

// The values of all windows that have one.
struct Series {
  std::vector<double> times, values;
  bool is_known() const { return !values.empty(); }
};
template <class Get>
Series series_of(std::span<const SoakWindow> windows, Get get) {
  Series series;
  for (const SoakWindow& window : windows)
    if (const std::optional<double> value = get(window)) {
      series.times.push_back((window.started_ns + window.ended_ns) / 2);
      series.values.push_back(*value);
    }
  return series;
}

Json window_json(const SoakWindow& window) {
  Json json = WEIR_NAMED(window.started_ns, window.ended_ns, window.iterations);
  json["latency_ns"] = window.p50_ns ? Json{{"p50", *window.p50_ns}, {"p95", number_or_null(window.p95_ns)}} : Json();
  json.update(WEIR_NAMED(number_or_null(window.telemetry.clock_mhz), number_or_null(window.telemetry.temperature_c),
                         number_or_null(window.telemetry.power_w), window.telemetry.throttle));
  return json;
}

void judge_latency(Result& result, const Series& medians, Json& json, std::vector<Warning>& alarms) {
  json["latency_change"] = nullptr;
  const auto change = robust_change(medians.times, medians.values);
  const double level = median(medians.values);
  if (!change || !(level > 0)) {
    result.unavailable["metrics.soak.latency_change"] =
        fmt::format("{} windows with iterations are too few: {} are needed", medians.values.size(), kMinWindows);
    return;
  }
  const Interval ends = {change->interval.low / level, change->interval.high / level};
  json["latency_change"] = {{"value", change->value / level}, {"interval", Json::array({ends.low, ends.high})}};
  // Neighbours that come and go make windows resemble each other, which the interval does not know.
  const auto agreed = trend(medians.values);
  if (!agreed || !agreed->is_clear) return;
  if (ends.low > kDriftAlarm)
    alarms.push_back(
        {"soak_latency_drift",
         fmt::format("iterations became slower by {:.1f} % over the soak ({:.1f} to {:.1f} %)",
                     100 * change->value / level, 100 * ends.low, 100 * ends.high),
         "Look at temperatures and clocks below, and at what else runs; a longer soak shows whether it ends."});
  if (ends.high < -kDriftAlarm)
    alarms.push_back({"soak_latency_drift",
                      fmt::format("iterations became faster by {:.1f} % over the soak ({:.1f} to {:.1f} %)",
                                  -100 * change->value / level, -100 * ends.high, -100 * ends.low),
                      "It was not warm at the start: raise --warmup."});
}

void judge_temperature(Result& result, std::span<const SoakWindow> windows, Json& json, std::vector<Warning>& alarms) {
  const auto get = [](const SoakWindow& window) { return window.telemetry.temperature_c; };
  const Series all = series_of(windows, get);
  json["temperature_c"] = nullptr;
  if (!all.is_known()) {
    result.unavailable["metrics.soak.temperature_c"] = "the device does not report a temperature";
    return;
  }
  json["temperature_c"] = {{"first", all.values.front()},
                           {"last", all.values.back()},
                           {"max", *std::max_element(all.values.begin(), all.values.end())}};
  const Series late = series_of(windows.subspan(windows.size() / 2), get);
  const auto rise = robust_change(late.times, late.values);
  if (rise && rise->interval.low >= kTemperatureAlarm)
    alarms.push_back(
        {"soak_temperature",
         fmt::format("the temperature was still rising at the end: {:.0f} C more in the second half, {:.0f} C now",
                     rise->value, all.values.back()),
         "Soak for longer: what is measured now is not yet what it will be."});
}

void judge_clocks(Result& result, std::span<const SoakWindow> windows, Json& json, std::vector<Warning>& alarms) {
  const Series clocks = series_of(windows, [](const SoakWindow& window) { return window.telemetry.clock_mhz; });
  json["clock_mhz"] = nullptr;
  if (clocks.is_known()) {
    json["clock_mhz"] = {{"first", clocks.values.front()},
                         {"last", clocks.values.back()},
                         {"min", *std::min_element(clocks.values.begin(), clocks.values.end())}};
    const std::size_t quarter = clocks.values.size() / 4;
    if (quarter > 0) {
      const std::span<const double> values = clocks.values;
      const double first = median(values.first(quarter)), last = median(values.last(quarter));
      if (last < kClockAlarm * first)
        alarms.push_back(
            {"soak_clock", fmt::format("the clock fell from {:.0f} to {:.0f} MHz over the soak", first, last),
             "Cool the device or lower its power draw; latencies of short runs will look better than these."});
    }
  } else {
    result.unavailable["metrics.soak.clock_mhz"] = "the device does not report a clock";
  }
  // A device that reports neither clock nor temperature reports no reasons for lower clocks either.
  const bool is_reported = clocks.is_known() || json["temperature_c"].is_object();
  json["throttled_share"] = nullptr;
  if (!is_reported) {
    result.unavailable["metrics.soak.throttled_share"] = "the device does not report whether it holds clocks back";
    return;
  }
  std::set<std::string> reasons;
  std::size_t held = 0;
  double first_ns = 0;
  for (const SoakWindow& window : windows) {
    if (window.telemetry.throttle.empty()) continue;
    if (held++ == 0) first_ns = window.ended_ns;
    reasons.insert(window.telemetry.throttle.begin(), window.telemetry.throttle.end());
  }
  json["throttled_share"] = windows.empty() ? 0 : static_cast<double>(held) / static_cast<double>(windows.size());
  if (held > 0)
    alarms.push_back({"soak_throttled",
                      fmt::format("the device held its clocks back at the end of {} of {} windows, first after {}: {}",
                                  held, windows.size(), format_duration(first_ns), fmt::join(reasons, ", ")),
                      "Cool it, or lower its power draw; `docs/method.md` says what the windows hold."});
}

}  // namespace

SoakSamples::SoakSamples(std::size_t most, std::uint64_t seed)
    : most_(std::max<std::size_t>(2, most / 2 * 2)), random_(seed) {
  kept_.reserve(most_);
}

void SoakSamples::add(const SoakSample& sample) noexcept {
  ++in_block_;
  // The n-th of a block replaces the chosen one with probability 1/n, so each is equally likely in the end.
  if (in_block_ == 1 || random_.fraction() * static_cast<double>(in_block_) < 1) chosen_ = sample;
  if (in_block_ < stride_) return;
  in_block_ = 0;
  kept_.push_back(chosen_);
  if (kept_.size() < most_) return;
  for (std::size_t i = 0; i < most_ / 2; ++i) kept_[i] = kept_[2 * i + random_.below(2)];
  kept_.resize(most_ / 2);
  stride_ *= 2;
}

std::optional<RobustChange> robust_change(std::span<const double> times, std::span<const double> values) {
  const std::size_t count = values.size();
  if (count < kMinWindows || times.size() != count) return std::nullopt;
  std::vector<double> slopes;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = i + 1; j < count; ++j)
      if (times[j] > times[i]) slopes.push_back((values[j] - values[i]) / (times[j] - times[i]));
  if (slopes.empty()) return std::nullopt;
  std::sort(slopes.begin(), slopes.end());
  const auto points = static_cast<double>(count), pairs = static_cast<double>(slopes.size());
  const double reach = 1.959964 * std::sqrt(points * (points - 1) * (2 * points + 5) / 18);
  const auto at = [&](double rank) { return slopes[static_cast<std::size_t>(std::clamp(rank, 0.0, pairs - 1))]; };
  const double span = times.back() - times.front();
  return RobustChange{median(slopes) * span,
                      {at(std::floor((pairs - reach) / 2)) * span, at(std::ceil((pairs + reach) / 2)) * span}};
}

TimedPass run_soak_pass(Device& device, Session& session, Submitter& submitter, const RunRequest& request,
                        const RunControl& control, SessionWatch* watch, Soak& soak) {
  TimedPass pass;
  pass.sync = request.sync;
  soak = {};
  soak.asked_ns = request.duration_ns;
  soak.windows.reserve(kSoakWindows);
  SoakSamples samples(kMostSoakSamples, request.seed);  // all ranks keep the same iterations
  if (control.has_ranks()) control.communicator->barrier();
  warm_up(session, submitter, request, control, watch);
  pass.before = device.telemetry();
  if (control.has_ranks()) control.communicator->barrier();  // reading telemetry takes some longer than others
  const auto asked = static_cast<double>(soak.asked_ns), window_ns = asked / kSoakWindows;
  const std::int64_t begun_ns = now_ns(), session_begun = session.now_ns();
  const auto elapsed = [&] { return static_cast<double>(now_ns() - begun_ns); };
  SoakWindow window;
  SoakSample sample;
  bool has_sample = false, is_interval_known = true, is_over = false;
  std::int64_t last_begun = 0;
  double reported = 0;
  const auto keep = [&] {
    if (has_sample) samples.add(sample);
    has_sample = false;
  };
  try {
    for (;;) {
      const double iteration_begun = elapsed();
      is_over = iteration_begun >= asked;
      if (any_rank(control, is_over || control.is_stopped()) && soak.iterations > 0) break;
      std::optional<SessionWatch::Inside> inside(std::in_place, watch);
      session.begin_iteration();
      const std::int64_t begun = session.now_ns();
      if (has_sample && is_interval_known) sample.interval_ns = static_cast<double>(begun - last_begun);
      keep();
      submitter.submit_step();
      const std::int64_t submitted = session.now_ns();
      session.finish();
      const std::int64_t ended = session.now_ns();
      const double now = elapsed();
      sample = {iteration_begun, static_cast<double>(ended - begun), static_cast<double>(ended - begun),
                static_cast<double>(submitted - begun)};
      has_sample = is_interval_known = true;
      last_begun = begun;
      ++soak.iterations;
      ++window.iterations;
      inside.reset();
      if (control.after_iteration) {
        control.after_iteration(session);
        is_interval_known = false;
      }
      if (soak.iterations % kDrainEvery == 0) session.take_spans();  // else a session that marks would keep all
      // The next bound after this window's begin, wherever in a window it began.
      if (now >= (std::floor(window.started_ns / window_ns) + 1) * window_ns &&
          soak.windows.size() + 1 < kSoakWindows) {
        window.ended_ns = now;
        window.telemetry = device.telemetry();
        soak.windows.push_back(window);
        window = {};
        window.started_ns = now;
        is_interval_known = false;
      }
      if (control.progress && now - reported > 250e6) {
        control.progress("soak, seconds", static_cast<int>(now * 1e-9), static_cast<int>(std::ceil(asked * 1e-9)));
        reported = now;
        is_interval_known = false;
      }
    }
    // All ranks stop when the first one's time is over, so no rank may judge by its own clock.
    pass.is_interrupted = !any_rank(control, is_over);
  } catch (const std::exception&) {
    if (soak.iterations == 0) throw;
    pass.failure = std::current_exception();
  }
  keep();
  soak.elapsed_ns = elapsed();
  pass.total_ns = static_cast<double>(session.now_ns() - session_begun);
  pass.after = device.telemetry();
  if (window.iterations > 0) {
    window.ended_ns = soak.elapsed_ns;
    window.telemetry = pass.after;
    soak.windows.push_back(window);
  }
  pass.iterations = soak.iterations;
  soak.stride = samples.stride();
  for (const SoakSample& each : samples.kept()) {
    soak.begun_ns.push_back(each.begun_ns);
    pass.latency_ns.push_back(each.latency_ns);
    pass.interval_ns.push_back(each.interval_ns);
    pass.submit_ns.push_back(each.submit_ns);
  }
  pass.memory = session.memory();
  return pass;
}

void add_soak(Result& result, const TimedPass& pass, Soak& soak) {
  std::vector<double> inside;
  std::size_t next = 0;
  const std::size_t known = std::min(soak.begun_ns.size(), pass.latency_ns.size());
  for (SoakWindow& window : soak.windows) {
    inside.clear();
    for (; next < known && soak.begun_ns[next] < window.ended_ns; ++next) inside.push_back(pass.latency_ns[next]);
    if (inside.empty()) continue;
    std::sort(inside.begin(), inside.end());
    window.p50_ns = quantile_sorted(inside, 0.5);
    window.p95_ns = quantile_sorted(inside, 0.95);
  }
  result.iterations = static_cast<int>(std::min<std::uint64_t>(soak.iterations, INT32_MAX));
  Json json = WEIR_NAMED(soak.asked_ns, named("elapsed_ns", std::llround(soak.elapsed_ns)), soak.iterations,
                         named("kept_every", soak.stride));
  std::vector<Warning> alarms;
  judge_latency(result, series_of(soak.windows, [](const SoakWindow& window) { return window.p50_ns; }), json, alarms);
  judge_temperature(result, soak.windows, json, alarms);
  judge_clocks(result, soak.windows, json, alarms);
  json["windows"] = json_list(soak.windows, window_json);
  json["alarms"] = json_list(alarms, [](const Warning& alarm) { return to_json(alarm); });
  result.metrics["soak"] = std::move(json);
  result.warnings.insert(result.warnings.end(), alarms.begin(), alarms.end());
}

}  // namespace weir
