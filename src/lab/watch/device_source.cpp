#include "lab/watch/device_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "lab/watch/timeline_tally.h"
#include "submit/submitter.h"

namespace weir::watch {
namespace {

// Limits what a session keeps between two readings. A session that keeps only the first iterations is replaced when it
// is full.
constexpr std::size_t kKeptSpans = 40'000;
constexpr std::size_t kMaxKeptIterations = 2'000;

SampleValue reported(const std::optional<double>& value, double factor = 1) {
  return value ? known(*value * factor) : unknown("this device does not report it");
}

SampleValue reported(const std::optional<std::uint64_t>& value, const std::string& reason) {
  return value ? known(static_cast<double>(*value))
               : unknown(reason.empty() ? "this device does not report it" : reason);
}

class Loop {
 public:
  Loop(Feed& feed, const Load& load)
      : feed_(feed),
        load_(load),
        info_(load.device->info()),
        kept_(static_cast<std::uint32_t>(
            std::clamp(kKeptSpans / std::max<std::size_t>(load.run->step.commands().size(), 1), std::size_t{1},
                       kMaxKeptIterations))) {}

  void run() {
    while (!feed_.is_stopped()) run_session();
  }

 private:
  void run_session() {
    SessionOptions options = load_.run->submit.session_options();
    options.is_traced = true;
    options.marks_iterations = false;
    options.trace_iterations = static_cast<int>(kept_) + 1;
    const auto session = load_.device->prepare(load_.run->step, load_.run->placement, options);
    const auto submitter = make_submitter(load_.run->submit, load_.run->step, load_.run->placement, *session);
    counted_ = 0;
    std::int64_t begun_ns = kNoTime;
    for (std::uint32_t i = 0; !feed_.is_stopped(); ++i) {
      const std::int64_t now = session->now_ns();
      session->begin_iteration();
      submitter->submit_step();
      session->finish();
      if (i == 0) continue;  // warm-up
      if (begun_ns == kNoTime) begun_ns = now;
      const bool is_full = i - counted_ >= kept_ || i == kept_ + 1;
      const bool is_due = feed_.is_due();
      if (!is_full && !is_due) continue;
      const bool has_kept = count(*session, i, begun_ns, session->now_ns());
      begun_ns = kNoTime;
      // Devices keep the first iterations (cpu, sim) or the last ones (GPUs). This one kept none of the newest.
      if (i > kept_ && !has_kept && has_spans_) keeps_last_ = false;
      if (!has_kept && !keeps_last_) return;
      if (is_full && info_.is_virtual && !feed_.await_due()) return;
      if (is_due || info_.is_virtual) publish(*session);
      if (i >= kept_ && !keeps_last_) return;
    }
  }

  // Adds the timeline's iterations after `counted_` to the tally. Returns false if there are none.
  bool count(Session& session, std::uint32_t newest, std::int64_t begun_ns, std::int64_t ended_ns) {
    Timeline timeline = session.timeline();
    source_ = timeline.source;
    std::erase_if(timeline.spans,
                  [&](const Span& span) { return span.iteration <= counted_ || span.iteration > newest; });
    counted_ = newest;
    if (timeline.spans.empty()) return false;
    has_spans_ = true;
    tally_.add(timeline.spans, load_.run->step, begun_ns, ended_ns);
    return true;
  }

  void publish(Session& session) {
    if (tally_.is_empty() && has_spans_) return;  // the next session will have data
    Sample sample;
    sample.source = "device";
    sample.device = info_.name;
    sample.model = info_.model;
    sample.workload = load_.workload;
    sample.taken_ns = now_ns();
    sample.is_virtual = info_.is_virtual;
    sample.unit = Unit::commands;
    sample.notes = load_.notes;
    if (!tally_.is_empty()) sample.window_ns = tally_.window_ns();
    sample.rows = tally_.rows(info_.name);
    if (!has_spans_)
      sample.missing.push_back({"timeline", info_.name, source_, "Watch another device, or another workload."});
    if (tally_.untimed() > 0)
      sample.notes.push_back(fmt::format("{} commands of this window have no times.", tally_.untimed()));
    add_facts(session, sample);
    tally_.clear();
    feed_.publish(std::move(sample));
  }

  void add_facts(Session& session, Sample& sample) {
    const Telemetry state = load_.device->telemetry();
    const MemoryUse memory = session.memory();
    sample.facts = {
        {"utilisation", "ratio", "Of the time lately in which some kernel ran, whoever's.",
         reported(state.utilisation)},
        {"memory_taken", "bytes", "By the workload that runs.", reported(memory.reserved_bytes, memory.reason)},
        {"memory", "bytes", "Of the device.", reported(info_.memory_bytes.value, info_.memory_bytes.reason)},
        {"power", "watts", "Of the whole device.", reported(state.power_w)},
        {"temperature", "celsius", "Of the device.", reported(state.temperature_c)},
        {"clock", "hertz", "Of the multiprocessors.", reported(state.clock_mhz, 1e6)}};
  }

  Feed& feed_;
  const Load& load_;
  const DeviceInfo info_;
  const std::uint32_t kept_;  // the most iterations between two readings
  std::uint32_t counted_ = 0;
  bool keeps_last_ = true;  // until the device turns out to keep the first
  bool has_spans_ = false;
  std::string source_;
  TimelineTally tally_;
};

}  // namespace

Feed::Body watch_device(Load load) {
  return [load = std::make_shared<const Load>(std::move(load))](Feed& feed) { Loop(feed, *load).run(); };
}

}  // namespace weir::watch
