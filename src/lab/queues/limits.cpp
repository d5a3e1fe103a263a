#include "lab/queues/limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "lab/queues/stamps.h"

namespace weir {
namespace {

constexpr int kLimitRepetitions = 3;

struct DepthTrial {
  std::optional<int> launches;
  std::int64_t waited_ns = 0;
  bool ran_out_of_time = false;
};

DepthTrial try_depth(StampSession& session, int max_launches, std::int64_t limit_ns) {
  DepthTrial trial;
  session.begin();
  session.submit(CommandId{0});
  if (!session.await_started(0)) fail("a held kernel did not start", "Is somebody else using the device?");
  const std::int64_t hold_ends_ns = session.now_ns() + limit_ns;
  for (int i = 0; i < max_launches; ++i) {
    SubmitCall call;
    call.from_ns = session.now_ns();
    if (session.moment(0).ended_ns != 0) {
      trial.ran_out_of_time = true;
      break;
    }
    session.submit(static_cast<CommandId>(i + 1));
    call.to_ns = session.now_ns();
    // A call that waits for room waits until the held kernel has ended; other slow calls do not.
    if (waited_for_hold(call, hold_ends_ns) && session.moment(0).ended_ns != 0) {
      trial.launches = i;
      trial.waited_ns = call.to_ns - call.from_ns;
      break;
    }
  }
  session.release(0);
  session.finish();
  return trial;
}

// A session that needs many streams only for their number; the device may have fewer.
std::unique_ptr<StampSession> one_kernel_per_stream(Device& device, int streams, std::int64_t duration_ns,
                                                    SubmitMode mode = SubmitMode::eager) {
  StampStep step(0, static_cast<std::uint32_t>(streams));
  for (int i = 0; i < streams; ++i)
    step.stamp({.stream = static_cast<StreamId>(i)}, duration_ns, static_cast<std::uint32_t>(i));
  SessionOptions options;
  options.mode = mode;
  return std::make_unique<StampSession>(device, std::move(step), streams, options);
}

}  // namespace

bool waited_for_hold(const SubmitCall& call, std::int64_t hold_ends_ns) {
  constexpr std::int64_t kShortestNs = 1'000'000;  // with less, any hiccup of the host would disturb the result
  const std::int64_t took_ns = call.to_ns - call.from_ns;
  return took_ns >= kShortestNs && took_ns > (hold_ends_ns - call.from_ns) / 2;
}

QueueDepth measure_queue_depth(Device& device, int max_launches) {
  QueueDepth depth;
  depth.tried = max_launches;
  std::int64_t longest_ns = 0;
  for (std::int64_t limit_ns = 60'000'000; limit_ns <= 1'000'000'000; limit_ns *= 4) {
    longest_ns = limit_ns;
    StampStep step(1, static_cast<std::uint32_t>(max_launches) + 1);
    step.hold({}, 0, 0, 1, limit_ns);
    for (int i = 1; i <= max_launches; ++i) step.stamp({}, 0, static_cast<std::uint32_t>(i));
    StampSession session(device, std::move(step), 1);
    bool is_too_slow = false;
    for (int i = 0; i < kLimitRepetitions && !is_too_slow; ++i) {
      const DepthTrial trial = try_depth(session, max_launches, limit_ns);
      is_too_slow = trial.ran_out_of_time;
      if (trial.launches) depth.found.push_back(*trial.launches);
      if (trial.launches && !depth.waited_ns) depth.waited_ns = trial.waited_ns;
    }
    if (!is_too_slow) {
      if (depth.found.size() == static_cast<std::size_t>(kLimitRepetitions)) {
        depth.launches = {*std::min_element(depth.found.begin(), depth.found.end()), "by experiment"};
      } else if (depth.found.empty()) {
        depth.launches.reason = fmt::format("more than {}: the host never had to wait", max_launches);
      } else {
        depth.launches.reason =
            fmt::format("the host waited in {} of {} repetitions only", depth.found.size(), kLimitRepetitions);
      }
      return depth;
    }
    depth.found.clear();
    depth.waited_ns.reset();
  }
  depth.launches.reason = fmt::format("{} launches take longer than a kernel could be held ({})", max_launches,
                                      format_duration(static_cast<double>(longest_ns)));
  return depth;
}

ResidentLimit measure_resident_limit(Device& device, int max_streams, std::optional<int> barrier_queues) {
  constexpr std::int64_t kShortestNs = 2'000'000, kLongestNs = 50'000'000;
  ResidentLimit limit;
  limit.tried = max_streams;
  limit.duration_ns = kShortestNs;
  std::unique_ptr<StampSession> session;
  // No kernel has another of its own stream in front of it, so nothing blocks at the head of a queue: kernels can only
  // wait for room on the device.
  std::vector<CommandId> commands(static_cast<std::size_t>(max_streams));
  for (std::size_t i = 0; i < commands.size(); ++i) commands[i] = static_cast<CommandId>(i);
  std::int64_t submitted_in_ns = 0;  // the last time
  const auto run = [&](int kernels) {
    session->begin();
    const std::int64_t from_ns = session->now_ns();
    session->submit(std::span(commands).first(static_cast<std::size_t>(kernels)));
    submitted_in_ns = session->now_ns() - from_ns;
    session->finish();
    const std::vector<Moment> moments = session->moments(0, static_cast<std::uint32_t>(kernels));
    limit.most_at_once = std::max(limit.most_at_once, most_at_once(moments));
    return makespan_ns(moments);
  };
  // Counts the kernels that were seen at once: somebody else's kernels make ours longer, but they take nothing from
  // those that are resident.
  const auto measure = [&](int kernels) {
    if (std::any_of(limit.points.begin(), limit.points.end(), [&](const auto& p) { return p.kernels == kernels; }))
      return;
    std::int64_t best_ns = INT64_MAX;
    for (int i = 0; i < kLimitRepetitions; ++i) best_ns = std::min(best_ns, run(kernels));
    limit.points.push_back({kernels, best_ns});
  };

  session = one_kernel_per_stream(device, max_streams, limit.duration_ns);
  run(max_streams);  // warm-up
  run(max_streams);
  // A host that is slow to submit them all would look like a device that cannot run them at once.
  const std::int64_t needed_ns = std::min(8 * submitted_in_ns, kLongestNs);
  if (needed_ns > limit.duration_ns) {
    limit.duration_ns = needed_ns;
    session.reset();
    session = one_kernel_per_stream(device, max_streams, limit.duration_ns);
    run(max_streams);
  }
  limit.most_at_once = 0;
  measure(max_streams);
  if (barrier_queues && limit.most_at_once <= *barrier_queues && device.info().graphs) {
    // Streams cannot show more than one kernel of each queue; a graph may not pass through these queues.
    session.reset();
    session = one_kernel_per_stream(device, max_streams, limit.duration_ns, SubmitMode::graph);
    run(max_streams);  // warm-up
    const std::int64_t makespan_ns = run(max_streams);
    limit.is_in_graph = limit.most_at_once > *barrier_queues;
    if (limit.is_in_graph) limit.points = {{max_streams, makespan_ns}};
  } else {
    // With one more than were ever seen at once, there are still no more.
    for (int most = 0; most != limit.most_at_once && limit.most_at_once > 0;) {
      most = limit.most_at_once;
      measure(most);
      if (most < max_streams) measure(most + 1);
    }
  }
  std::sort(limit.points.begin(), limit.points.end(),
            [](const auto& a, const auto& b) { return a.kernels < b.kernels; });

  if (limit.most_at_once == 0) {
    limit.kernels.reason = "the kernels left no moments";
  } else if (limit.most_at_once == max_streams) {
    limit.kernels.reason = fmt::format("more than {}: as many as were tried ran at once", max_streams);
  } else if (barrier_queues && limit.most_at_once <= *barrier_queues) {
    limit.kernels.reason =
        fmt::format("at least {}: each of the {} queues runs one kernel at a time, so that streams cannot show more",
                    limit.most_at_once, *barrier_queues);
  } else if (2 * submitted_in_ns > limit.duration_ns) {  // one more than fit, where no queue makes the host wait
    limit.kernels.reason =
        fmt::format("at least {}: the host needs {} to submit {} kernels, and none lasts longer than {}",
                    limit.most_at_once, format_duration(static_cast<double>(submitted_in_ns)), limit.most_at_once + 1,
                    format_duration(static_cast<double>(limit.duration_ns)));
  } else {
    limit.kernels = {limit.most_at_once, "by experiment"};
  }
  return limit;
}

}  // namespace weir
