// What stands out in a weir.analysis/2: the largest losses, each with its figure and advice.
#include <fmt/format.h>

#include <algorithm>

#include "report/text/analysis_words.h"
#include "report/text/documents.h"

namespace weir {
namespace {

using namespace analysis;

constexpr std::size_t kMax = 5;
// Of a device's span; smaller losses appear only in the sections.
constexpr double kMinShare = 0.02;
constexpr double kMaxIdle = 0.10;  // a device that was idle for longer is not called good
constexpr double kMinWarned = 0.05;
constexpr double kMinRatio = 1.05;
constexpr double kMinCause = 0.25;  // of exposed communication

double value(const Json& json, std::initializer_list<const char*> keys) { return number(json, keys).value_or(0); }

std::string cost(double ns, double share) {
  return fmt::format("{} ({:.1f} % of the span)", format_duration(ns), 100 * share);
}

bool is_idle(const Json& device, double span_ns) { return value(device, {"times", "idle_ns"}) > kMaxIdle * span_ns; }

std::string where(const Json& document, const Json& device) {
  if (at(document, {"devices"}).size() < 2) return "";
  std::size_t of_rank = 0;
  for (const Json& other : at(document, {"devices"})) of_rank += at(other, {"rank"}) == at(device, {"rank"}) ? 1 : 0;
  return of_rank == 1 ? fmt::format("rank {}: ", count(device, "rank"))
                      : fmt::format("rank {}, {}: ", count(device, "rank"), word(device, "label"));
}

// One kind of finding on one device; empty where it is too small.
using Look = std::optional<Standout> (*)(const Json& device, double span_ns);

// Parts of the idle time that the findings below report; 0 where a part is too small to be reported.
double host_late_ns(const Json& device, double span_ns) {
  const Json& bound = at(device, {"launch_bound"});
  const double ns = value(bound, {"host_ns"}) + value(bound, {"launch_ns"});
  return ns / span_ns < kMinShare ? 0 : ns;
}
double launching_ns(const Json& device, double span_ns) {
  const Json& bound = at(device, {"launch_bound"});
  const double ns = value(bound, {"calling_ns"}) + value(bound, {"calling_launch_ns"});
  return ns / span_ns < kMinShare ? 0 : ns;
}
double held_ns(const Json& device, double span_ns) {
  const double ns = value(device, {"launch_bound", "held_ns"});
  return ns / span_ns < kMinShare ? 0 : ns;
}

std::optional<Standout> launch_bound(const Json& device, double span_ns) {
  const Json& bound = at(device, {"launch_bound"});
  const double ns = host_late_ns(device, span_ns), share = ns / span_ns;
  if (ns == 0) return std::nullopt;
  const double host_ns = value(bound, {"host_ns"}), launch_ns = value(bound, {"launch_ns"});
  const bool is_waiting = value(bound, {"synchronizing_ns"}) > 0.5 * host_ns;
  const bool is_in_driver = value(bound, {"in_calls_ns"}) > 0.5 * host_ns;
  std::string advice =
      launch_ns > host_ns ? "The way from the call to the device takes most of it: submit further ahead of the device, "
                            "in larger graphs "
                            "or fewer and larger kernels."
      : is_waiting
          ? "The host was waiting for the device itself: remove synchronisation and blocking copies between steps."
      : is_in_driver
          ? "The host was in other calls of the driver: look for allocations and modules that are loaded late."
          : "The CPU was in the program's own code (Python, a framework): use graphs, fewer and larger kernels, or a "
            "faster host thread.";
  // The line of the program that waited longest.
  if (const Json& sites = at(device, {"host_blocked", "synchronize", "sites"});
      is_waiting && launch_ns <= host_ns && sites.is_array() && !sites.empty() && at(sites[0], {"line"}).is_string())
    advice += fmt::format(" The longest waits are in {} at {}.", word(sites[0], "call"), word(sites[0], "line"));
  const std::string then = launch_ns > 0 ? fmt::format(" It took {} until it did, and {} from then to the start.",
                                                       format_duration(host_ns), format_duration(launch_ns))
                                         : "";
  return Standout{share,
                  fmt::format("idle {} because the CPU had not launched the next command.{}", cost(ns, share), then),
                  std::move(advice)};
}

std::optional<Standout> launch_limited(const Json& device, double span_ns) {
  const double ns = launching_ns(device, span_ns), share = ns / span_ns;
  if (ns == 0) return std::nullopt;
  const auto each = number(device, {"host_blocked", "launch_ns", "p50"});
  return Standout{share,
                  fmt::format("idle {} because the host was still in the call that launches the next command{}: "
                              "kernels end faster than it can launch them.",
                              cost(ns, share), each ? fmt::format(" ({} each)", format_duration(*each)) : ""),
                  "Use graphs, fewer and larger kernels, or several submitting threads."};
}

std::optional<Standout> held_back(const Json& device, double span_ns) {
  const Json& bound = at(device, {"launch_bound"});
  const double ns = held_ns(device, span_ns), share = ns / span_ns;
  if (ns == 0) return std::nullopt;
  return Standout{
      share,
      fmt::format("idle {} although the driver had the next command. It waited for something that this trace does "
                  "not show, {} at most{}.",
                  cost(ns, share), duration(bound, "held_most_ns"),
                  at(bound, {"held_before"}).is_string()
                      ? fmt::format(" (before {})", short_kernel_name(word(bound, "held_before"), 40))
                      : ""),
      "That can be an event of another device, of another process or from before the trace, or another program on the "
      "device. Trace those too, or begin the trace earlier."};
}

std::optional<Standout> exposed(const Json& device, double span_ns) {
  const double ns = value(device, {"times", "exposed_communication_ns"}), share = ns / span_ns;
  if (share < kMinShare) return std::nullopt;
  std::string advice =
      "Start it earlier (smaller buckets, prefetch) or give it compute to run beside; in collectives that is also time "
      "spent waiting for other ranks.";
  // The largest known cause.
  for (const Json& cause : at(device, {"exposed_causes", "causes"})) {
    if (word(cause, "cause") == "unknown") continue;
    if (value(cause, {"share"}) >= kMinCause)
      advice = fmt::format("For {} of what was exposed, {}: {}.", percent(number(cause, {"share"})),
                           word(cause, "meaning"), word(cause, "advice"));
    break;
  }
  return Standout{share,
                  fmt::format("communication ran {} while nothing else did, {} of all communication.", cost(ns, share),
                              share_of(at(device, {"times"}), "exposed_communication_ns", "communication_ns")),
                  std::move(advice)};
}

std::optional<Standout> serialised(const Json& device, double span_ns) {
  const Json& found = at(device, {"false_serialisation"});
  const double ns = value(found, {"wall_ns"}), share = ns / span_ns;
  if (share < kMinShare) return std::nullopt;
  return Standout{
      share,
      fmt::format("for up to {} commands that were ready waited behind other streams' on a shared hardware "
                  "queue{}.",
                  cost(ns, share), is_true(found, {"are_dependencies_known"}) ? "" : " (as far as waits are known)"),
      "More queues (CUDA_DEVICE_MAX_CONNECTIONS, GPU_MAX_HW_QUEUES), fewer streams, or another order of submission; "
      "`weir queues cost` predicts which."};
}

std::optional<Standout> slowed(const Json& device, double span_ns) {
  const Json& slow = at(device, {"overlap_slowdown"});
  const double ns = value(slow, {"cost_ns"}), share = ns / span_ns, ratio = value(slow, {"ratio"});
  if (share < kMinShare || ratio < kMinRatio || value(slow, {"clear"}) < 1) return std::nullopt;
  return Standout{
      share,
      fmt::format("kernels took {:.2f}x as long beside collectives as alone, {} in all.", ratio, cost(ns, share)),
      "Give collectives fewer channels (NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS)."};
}

std::optional<Standout> copies(const Json& device, double span_ns) {
  const double ns = value(device, {"times", "copy_ns"}) - value(device, {"times", "copy_beside_compute_ns"});
  const double share = ns / span_ns;
  if (share < kMinShare) return std::nullopt;
  return Standout{share, fmt::format("copies and memsets ran {} without compute beside them.", cost(ns, share)),
                  "Run them on a stream of their own, ahead of use; those of the host need pinned memory."};
}

// Part of the time that the host was late, so the worst wait comes with what that is for.
std::optional<Standout> data_loading(const Json& device, double span_ns) {
  const Json& loading = at(device, {"data_loading"});
  const double ns = value(loading, {"idle_ns"}), share = ns / span_ns;
  if (share < kMinShare) return std::nullopt;
  return Standout{share,
                  fmt::format("idle {} while the program waited for its data loader ({}, {} in all).", cost(ns, share),
                              counted(loading, "waits", "wait"), duration(loading, "total_ns")),
                  "More workers, a larger prefetch_factor, pinned memory, or cheaper preprocessing."};
}

std::optional<Standout> queue_full(const Json& device, double span_ns) {
  const double ns = value(device, {"host_blocked", "queue_full", "total_ns"}), share = ns / span_ns;
  if (share < kMinShare) return std::nullopt;
  return Standout{share,
                  fmt::format("the host was held {} in launches because a queue was full, which costs only where "
                              "it had other work.",
                              cost(ns, share)),
                  "Submit less far ahead, or in graphs."};
}

// The idle time that no other finding reports.
std::optional<Standout> idle_otherwise(const Json& device, double span_ns) {
  const double ns = value(device, {"times", "idle_ns"});
  const double rest_ns = ns - host_late_ns(device, span_ns) - launching_ns(device, span_ns) - held_ns(device, span_ns);
  const double share = rest_ns / span_ns;
  if (!is_idle(device, span_ns) || share < kMinShare) return std::nullopt;
  if (at(device, {"launch_bound"}).is_object())
    return Standout{
        share,
        fmt::format("idle {}: the next command waited for other streams or for the launch itself, or many short "
                    "gaps add up (see idle gaps).",
                    cost(rest_ns, share)),
        "Graphs and fewer, larger kernels have fewer gaps; events between streams cost one each."};
  return Standout{
      share,
      fmt::format("idle {}, and the trace does not show why: it has no calls of the host.", cost(rest_ns, share)),
      "Trace these too (rocprofv3 --sys-trace, PyTorch's ProfilerActivity.CPU)."};
}

// Its cost is unknown, so it comes last.
std::optional<Standout> shared_queues(const Json& device, double) {
  const Json& map = at(device, {"queue_map"});
  if (value(map, {"shared_queues"}) < 1 || at(device, {"false_serialisation"}).is_object()) return std::nullopt;
  return Standout{
      0,
      fmt::format("{} share {}; what that costs is not known: {}.", counted(map, "sharing_streams", "stream"),
                  counted(map, "shared_queues", "hardware queue"),
                  fields::text(device, {"unavailable", "false_serialisation"})),
      ""};
}

std::optional<Standout> straggler(const Json& document) {
  const Json& ranks = at(document, {"ranks"});
  if (!at(ranks, {"stragglers"}).is_array() || at(ranks, {"stragglers"}).empty()) return std::nullopt;
  const Json* most = nullptr;
  for (const Json& rank : at(ranks, {"ranks"}))
    if (most == nullptr || value(rank, {"wait_share"}) > value(*most, {"wait_share"})) most = &rank;
  if (most == nullptr || value(*most, {"wait_share"}) < kMinShare) return std::nullopt;
  const Json& late = at(ranks, {"stragglers"})[0];
  return Standout{value(*most, {"wait_share"}),
                  fmt::format("rank {} is a straggler: it {}; rank {} waited {} for others in collectives.",
                              count(late, "rank"), word(late, "reason"), count(*most, "rank"),
                              cost(value(*most, {"waiting_ns"}), value(*most, {"wait_share"}))),
                  fmt::format("Look at what rank {} does before them.", count(late, "rank"))};
}

// The figures of a trace without its start-up say little about all of it, so it is never just good.
std::optional<Standout> startup(const Json& document, const Json* device, bool is_all) {
  const Json& window = at(document, {"window"});
  if (word(window, "reason") != "start-up") return std::nullopt;
  std::string text = fmt::format("start-up took {} ({} of the trace) and is not in these figures.",
                                 duration(window, "begin_ns"), share_of(window, "begin_ns", "end_ns"));
  if (is_all && device != nullptr)
    text += fmt::format(" After it nothing stands out: the device was busy for {} of the time.",
                        share_of(at(*device, {"times"}), "busy_ns", "span_ns"));
  return Standout{0, std::move(text), "`weir analyze --window all` includes it."};
}

}  // namespace

std::vector<Standout> standouts(const Json& document) {
  std::vector<Standout> found;
  if (auto late = straggler(document)) {
    late->is_warning = late->share >= kMinWarned;
    found.push_back(std::move(*late));
  }
  const Json* busiest = nullptr;
  for (const Look look : {launch_bound, data_loading, launch_limited, held_back, exposed, serialised, slowed, copies,
                          queue_full, idle_otherwise, shared_queues}) {
    const bool is_of_idle =
        look == launch_bound || look == launch_limited || look == held_back || look == idle_otherwise;
    std::optional<Standout> worst;
    bool must_warn = false;  // a device that is not the worst may still be idle for too long
    for (const Json& device : at(document, {"devices"})) {
      const double span_ns = value(device, {"times", "span_ns"});
      if (span_ns <= 0) continue;
      if (busiest == nullptr) busiest = &device;
      std::optional<Standout> here = look(device, span_ns);
      if (!here) continue;
      must_warn = must_warn || here->share >= kMinWarned || (is_of_idle && is_idle(device, span_ns));
      if (worst && worst->share >= here->share) continue;
      here->text = where(document, device) + here->text;
      worst = std::move(here);
    }
    if (worst) {
      worst->is_warning = must_warn;
      found.push_back(std::move(*worst));
    }
  }
  if (auto before = startup(document, busiest, found.empty())) found.push_back(std::move(*before));
  if (found.empty() && busiest != nullptr)
    found.push_back({0,
                     fmt::format("Nothing: the device was busy for {} of the span, with compute for {}.",
                                 share_of(at(*busiest, {"times"}), "busy_ns", "span_ns"),
                                 share_of(at(*busiest, {"times"}), "compute_ns", "span_ns")),
                     ""});
  std::stable_sort(found.begin(), found.end(), [](const Standout& a, const Standout& b) { return a.share > b.share; });
  if (found.size() > kMax) found.resize(kMax);
  for (Standout& each : found) each.text = sentence(std::move(each.text));
  return found;
}

std::vector<std::string> findings(const Json& document) {
  std::vector<std::string> sentences;
  for (const Standout& each : standouts(document))
    sentences.push_back(each.advice.empty() ? each.text : each.text + " " + each.advice);
  return sentences;
}

}  // namespace weir
