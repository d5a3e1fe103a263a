// weir watch: a live view of queues: on a terminal, as documents, or as a file for Prometheus.
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/console.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/options.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/run_flags.h"
#include "lab/watch/device_source.h"
#include "lab/watch/document.h"
#include "lab/watch/kfd_source.h"
#include "lab/watch/openmetrics.h"
#include "lab/watch/screen.h"
#include "lab/watch/view.h"

namespace weir::cli {
namespace {

constexpr const char* kDefaultWorkload = "hetero_kernels";
constexpr std::int64_t kFirstSampleNs = 250'000'000;  // so that a live view does not stay empty for a long interval

struct WatchFlags {
  std::string source = "auto";
  std::string device = "auto";
  std::string workload, file, streams, scale;
  std::vector<std::string> params, sim;
  std::string hardware_queues;
  kfd::Roots roots;
  std::string debugfs, sysfs, procfs;
  std::string interval = "1s";
  std::string iterations;
  std::string sort = "queue";
  bool is_reversed = false;
  bool is_once = false;
  bool is_json = false;
  std::string metrics;
  std::string output;
  bool is_quiet = false;
  bool is_forced = false;

  void add_to(CommandSyntax syntax) {
    syntax
        .add("--source NAME", source,
             "auto, kfd (what AMD's driver shows of all processes) or device (a workload of ours)")
        .one_of({"auto", "kfd", "device"});
    syntax.add("--device NAME", device, "auto, cpu, cuda:0, hip:0, opencl:0, sim:h200");
    syntax.add("workload NAME", workload,
               fmt::format("runs again and again on the device (default {})", kDefaultWorkload));
    syntax.add("--file PATH", file, "read the workload from this YAML file (docs/yaml.md)");
    syntax.add("--streams N", streams, "number of streams (default: the workload's recommended)");
    syntax.add("--scale NAME", scale, "tiny, small or full (default: full on a GPU, small elsewhere)");
    syntax.add("--param NAME=VALUE", params, "name=value, repeatable; `weir list -v` shows the names");
    syntax.add("--hw-queues N", hardware_queues, "hardware queues of the devices cpu and sim");
    syntax.add("--sim NAME=VALUE", sim, "name=value, repeatable: a setting of the simulated device (docs/sim.md)");
    syntax.add("--debugfs PATH", debugfs, "where debugfs is mounted (default /sys/kernel/debug)");
    syntax.add("--sysfs PATH", sysfs, "where sysfs is mounted (default /sys)");
    syntax.add("--procfs PATH", procfs, "where proc is, for tests").for_tests();
    syntax.add("--smi PATH", roots.smi, "a file of events for each GPU, for tests").for_tests();
    syntax.add("--interval DURATION", interval, "from sample to sample: 500ms, 1s, 2m");
    syntax.add("--iterations N", iterations, "stop after N samples (default: until stopped)");
    syntax.add("--sort NAME", sort, "queue, active, backlog, priority, streams, rate or busy");
    syntax.add("--reverse", is_reversed, "the other way round");
    syntax.add("--once", is_once, "one sample as a table, and end");
    syntax.add("--json", is_json, "documents (weir.watch/1): one with --once, else one per sample and line");
    syntax.add("--openmetrics PATH", metrics, "rewrite this file at each sample, for Prometheus");
    syntax.add("--output,-o PATH", output, "with --once: write the document to this file (-: standard output)");
    syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
    syntax.add("--force,-f", is_forced, "replace existing files");
  }
};

// "1s", "500ms", "2m"
std::int64_t interval_of(const std::string& text) {
  const auto ns = time_in(text, {"ms", "s", "m"});
  if (!ns) reject(fmt::format("--interval {}: not a time", watch::printable(text)), "Use 500ms, 1s, 2m and the like.");
  if (!(*ns >= static_cast<double>(watch::kMinIntervalNs) && *ns <= static_cast<double>(watch::kMaxIntervalNs)))
    reject(fmt::format("--interval {}: out of range", text), "Use 50ms to 60m.");
  return static_cast<std::int64_t>(*ns);
}

std::uint64_t sample_count_of(const WatchFlags& flags) {
  if (flags.iterations.empty()) return flags.is_once ? 1 : UINT64_MAX;
  if (flags.is_once)
    reject(fmt::format("--iterations {}: --once is one sample", watch::printable(flags.iterations)),
           "Leave one of them out.");
  const auto count = parse_integer(flags.iterations);
  if (!count || *count < 1)
    reject(fmt::format("--iterations {}: not a count", watch::printable(flags.iterations)), "Use 1 or more.");
  return static_cast<std::uint64_t>(*count);
}

struct Source {
  watch::Feed::Body body;
  bool has_rates_at_once = false;  // the first sample already has rates
};

std::string words_of(const kfd::MissingPart& part) { return fmt::format("{}: {}", part.path, part.reason); }

Source device_source(const WatchFlags& flags, std::vector<std::string> notes) {
  RunRequest request;
  WorkloadFlags{flags.workload.empty() && flags.file.empty() ? kDefaultWorkload : flags.workload, flags.file}.choose(
      request);
  if (!flags.scale.empty()) request.scale = scale_named(flags.scale);
  for (const std::string& param : flags.params) request.params.push_back(parse_assignment("--param", param));
  if (!flags.streams.empty())
    request.streams = one_stream_count(flags.streams, workload_of(request), "One run is watched at a time.");
  watch::Load load;
  load.device = open_able(flags.device, device_options(flags.hardware_queues, flags.sim));
  const DeviceInfo info = load.device->info();
  if (!info.runs())
    reject(fmt::format("--device {}: it runs nothing, so there is nothing to watch", info.name),
           "Use a GPU, cpu or sim.");
  load.run = std::make_shared<const BuiltRun>(build_run(info, request));
  load.workload = fmt::format("{}, {} streams", request.workload, load.run->streams);
  if (!info.is_gpu || info.is_virtual)
    notes.push_back(fmt::format("A demo: {} on the {} device{}.", request.workload, info.name,
                                info.is_virtual ? ", in simulated time" : ""));
  load.notes = std::move(notes);
  return {watch::watch_device(std::move(load)), true};
}

Source source_of(const WatchFlags& flags) {
  const bool asks_for_device = flags.device != "auto" || !flags.workload.empty() || !flags.file.empty();
  if (flags.source == "kfd" && asks_for_device)
    reject("--source kfd: shows what others run, so it takes no --device, workload or --file", "Leave them out.");
  if (flags.source == "device" || asks_for_device) return device_source(flags, {});
  const kfd::Snapshot snapshot = kfd::read_snapshot(flags.roots);
  if (watch::can_watch(snapshot)) return {watch::watch_kfd(flags.roots), false};
  if (flags.source == "kfd") {
    if (snapshot.missing.empty()) reject("--source kfd: neither hqds nor mqds can be read");
    reject(fmt::format("--source kfd: {}", words_of(snapshot.missing.front())), snapshot.missing.front().hint);
  }
  std::vector<std::string> notes;
  // There is an AMD GPU, but its queues cannot be read.
  if (snapshot.sysfs && !snapshot.missing.empty())
    notes.push_back(fmt::format("KFD's queues cannot be seen: {}. {}", words_of(snapshot.missing.front()),
                                snapshot.missing.front().hint));
  return device_source(flags, std::move(notes));
}

watch::View view_of(const WatchFlags& flags) {
  watch::View view;
  view.sort = watch::column_named(flags.sort);
  view.is_reversed = flags.is_reversed;
  view.interval_ns = interval_of(flags.interval);
  return view;
}

// Without a screen: prints tables or documents, or only writes the metrics, until there were enough samples.
int print_samples(const WatchFlags& flags, const watch::View& view, const Source& source, std::uint64_t count) {
  const std::atomic<bool>& stop = catch_interrupts();
  const watch::MetricsFile metrics(flags.metrics, flags.is_forced);
  // A single sample must have rates.
  const std::uint64_t first = flags.is_once && !source.has_rates_at_once ? 2 : 1;
  watch::Feed feed(source.body, {source.has_rates_at_once ? view.interval_ns : 0, view.interval_ns});
  for (std::uint64_t next = first; next - first < count;) {
    const auto sample = feed.await(next, 100'000'000);
    if (stop.load(std::memory_order_relaxed)) return kExitInterrupted;
    if (sample == nullptr || sample->number < next) {
      if (!feed.has_ended()) continue;
      feed.rethrow();
      return 1;
    }
    next = sample->number + 1;
    metrics.write(*sample);
    const Json document = watch::watch_document(*sample, view.interval_ns, wall_time());
    if (!flags.output.empty()) write_file(flags.output, to_text(document), flags.is_forced);
    if (flags.is_quiet) continue;
    if (flags.is_json && flags.is_once) {
      write_json(to_text(document));
    } else if (flags.is_json) {
      write_json(document.dump() + "\n");
    } else if (flags.is_once) {
      print_out("{}", watch::table_text(view, *sample));
    }
    if (!flush_out()) break;
  }
  return 0;
}

// The screen is closed, and the work on the device ends after its iteration.
void end_feed(watch::Feed& feed) {
  feed.stop();
  feed.await(UINT64_MAX, 1'000'000'000);
  if (!feed.has_ended())
    print_err("weir: waiting for the iteration that runs to end; Ctrl-C{} ends it within a second\n",
              first_interrupt() != 0 ? "" : ", twice,");
}

int show_live(const WatchFlags& flags, watch::View view, const std::function<Source()>& open, std::uint64_t count) {
  const watch::MetricsFile metrics(flags.metrics, flags.is_forced);
  const Descriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int wake = bell.get();
  if (wake < 0) fail(fmt::format("cannot make an eventfd: {}", std::strerror(errno)));
  watch::keep_screen_signals();
  const Source source = open();
  const std::int64_t first_ns = source.has_rates_at_once ? std::min(view.interval_ns, kFirstSampleNs) : 0;
  watch::Feed feed(source.body, {first_ns, view.interval_ns}, [wake] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake, &one, sizeof one);
  });
  try {
    watch::Screen screen(environment_variable("TERM"));
    std::shared_ptr<const watch::Sample> newest, shown;
    for (;;) {
      if (const auto sample = feed.latest(); sample != newest) {
        newest = sample;
        metrics.write(*newest);
      }
      if (!view.is_paused || shown == nullptr) shown = newest;
      const auto room = [&] { return watch::rows_shown(view, shown.get(), screen.width(), screen.height()); };
      const std::size_t rows = shown == nullptr ? 0 : shown->rows.size();
      watch::press(view, watch::Key::none, rows, room());
      screen.draw(watch::picture(view, shown.get(), screen.width(), screen.height()));
      if (newest != nullptr && newest->number >= count) break;
      if (feed.has_ended()) break;
      for (const watch::Key key : screen.await(wake)) {
        const std::int64_t before = view.interval_ns;
        watch::press(view, key, rows, room());
        if (view.interval_ns != before) feed.set_interval(view.interval_ns);
        if (key == watch::Key::redraw) screen.redraw();
      }
      if (view.has_quit || screen.is_ended()) break;
    }
  } catch (...) {
    end_feed(feed);
    throw;
  }
  end_feed(feed);
  feed.rethrow();
  return first_interrupt() != 0 ? kExitInterrupted : 0;
}

int execute_watch(WatchFlags flags) {
  const watch::View view = view_of(flags);
  const std::uint64_t count = sample_count_of(flags);
  if (!flags.debugfs.empty()) flags.roots.debugfs = flags.debugfs;
  if (!flags.sysfs.empty()) flags.roots.sysfs = flags.sysfs;
  if (flags.output == "-" && flags.is_once) {
    flags.is_json = true;
    flags.output.clear();
  }
  if (!flags.procfs.empty()) flags.roots.proc = flags.procfs;
  if (!flags.output.empty() && !flags.is_once)
    reject("--output: is for --once", "Use --json, which prints a document per sample.");
  if (!flags.output.empty()) check_writable(flags.output, flags.is_forced);
  const bool has_screen = !flags.is_once && !flags.is_json && !flags.is_quiet;
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1;
  if (has_screen && is_terminal) return show_live(flags, view, [&] { return source_of(flags); }, count);
  if (has_screen && flags.metrics.empty())
    reject("the live view needs a terminal", "Use --once for a table, --once --json for a document.");
  if (flags.is_quiet && flags.metrics.empty() && flags.output.empty())
    reject("--quiet: there would be no output", "Use it with --openmetrics or --output.");
  return print_samples(flags, view, source_of(flags), count);
}

}  // namespace

CliCommand watch() {
  return command("watch", "a live view of queues: active, backlog, priority, streams, kernels/s", execute_watch);
}

}  // namespace weir::cli
