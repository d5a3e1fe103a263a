#include "lab/queues/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "base/error.h"
#include "lab/queues/lab.h"
#include "lab/queues/probe_control.h"

namespace weir {
namespace {

constexpr double kBusy = 0.1;       // share of late marks with nothing held; beyond it, no verdict is reliable
constexpr std::size_t kSample = 8;  // marks that show roughly whether all streams are stuck
constexpr int kConfirmations = 3;   // how often a stream must appear stuck by chance before that counts as a policy
constexpr int kGrace = kProbeGrace, kMaxAttempts = kProbeAttempts;

class Prober {
 public:
  Prober(Device& device, const ProbeOptions& options) : device_(device), options_(options), random_(options.seed) {
    lab_ = std::make_unique<Lab>(device, options.streams);
    probe_.streams = options.streams;
  }

  QueueProbe run() {
    const std::int64_t begun = ended_ns_ = lab_->now_ns();
    try {
      infer();
    } catch (const Stopped&) {
      forget();
      probe_.reason = "interrupted";
    } catch (const Shallow&) {
      forget();
      probe_.reason = fmt::format(
          "the device's queues are too shallow for the probe: the host had to wait for room in one, and a trial needs "
          "room for up to {} launches behind a held kernel. {}",
          options_.streams + 1,
          device_.info().is_virtual ? fmt::format("Use --sim queue_depth={} or more.", 2 * options_.streams)
                                    : std::string("`weir queues limits` says how many a queue takes."));
    }
    if (lab_) ended_ns_ = lab_->now_ns();
    probe_.elapsed_ns = ended_ns_ - begun;
    return std::move(probe_);
  }

 private:
  // What was inferred before the probe had to end early.
  void forget() {
    probe_.policy = MappingPolicy::unknown;
    probe_.queues.reset();
    probe_.queue_of_stream.clear();
    probe_.is_lower_bound = false;
    probe_.barrier.reset();
  }

  struct Stopped {};
  struct Shallow {};  // a queue was full in the middle of a trial
  using Streams = std::vector<StreamId>;

  void infer() {
    if (!take_baseline()) return;
    if (rotates()) {
      probe_.policy = MappingPolicy::rotating;
      saturate();
    } else if (classify() && are_classes_mutual()) {
      probe_.queues = 1 + *std::max_element(probe_.queue_of_stream.begin(), probe_.queue_of_stream.end());
      if (*probe_.queues == 1) {
        probe_.policy = MappingPolicy::one_queue;
        probe_.barrier = is_stopped_by_one(0, all_but({0}));
        if (probe_.barrier != false) ask_for_room();
      } else {
        probe_.policy = MappingPolicy::fixed;
        infer_barrier();
        ended_ns_ = lab_->now_ns();
        lab_.reset();  // its streams hold references
        if (is_cyclic()) infer_creation_policy();
      }
    } else {
      saturate();
    }
    // The next entry in the queue table is unknown, so nothing is known about new streams.
    if (probe_.queues && !probe_.is_lower_bound && probe_.policy != MappingPolicy::fixed) infer_record_placement();
    const double error_probability =
        control_error_ + options_.streams * std::pow(probe_.baseline.late_probability, probe_.baseline.repetitions);
    probe_.confidence = 1 - std::min(1.0, error_probability);
  }

  void report(std::string_view phase, int done, int total) const {
    if (options_.progress) options_.progress(phase, done, total);
    if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) throw Stopped{};
  }

  Streams all_but(const Streams& excluded) const {
    Streams rest;
    for (int i = 0; i < options_.streams; ++i)
      if (std::find(excluded.begin(), excluded.end(), i) == excluded.end()) rest.push_back(static_cast<StreamId>(i));
    return rest;
  }

  // Returns false if no verdict can be based on the marks.
  bool take_baseline() {
    const auto progress = [&](int done, int total) { report("baseline", done, total); };
    ProbeBaseline& base = probe_.baseline = measure_baseline(*lab_, options_.confidence, progress);
    if (base.missing <= kBusy * base.marks) return true;
    probe_.reason =
        fmt::format("{} of {} marks did not come back with nothing held: somebody else keeps the device busy",
                    base.missing, base.marks);
    return false;
  }

  // Which of `marked`, by position, do not get through while `held` are held.
  std::vector<std::uint8_t> stuck(const Streams& held, const Streams& marked, bool is_blocking = true) {
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      ++probe_.trials;
      const std::int64_t window_ns = probe_.baseline.window_ns;
      if (auto verdict = lab_->stuck(held, marked, window_ns, kGrace * window_ns, is_blocking)) return *verdict;
      ++probe_.spoilt;
      if (lab_->has_waited_for_room()) throw Shallow{};
    }
    fail("the queue probe could not hold a stream for as long as a trial takes",
         "The machine is too busy: close other programs, or use fewer --streams.");
  }

  // Whether a stream that becomes busy takes the next queue. Then a hold stops whichever stream's turn it is, and
  // stopped streams get through when they come first. Marking only those repeatedly leaves none; at worst their number
  // halves each time.
  bool rotates() {
    const int rounds = std::max(probe_.baseline.repetitions,
                                2 + static_cast<int>(std::bit_width(static_cast<unsigned>(probe_.streams))));
    for (int confirmation = 0; confirmation < kConfirmations; ++confirmation) {
      report("policy", confirmation, kConfirmations);
      Streams stopped = still_stuck(0, all_but({0}));
      if (stopped.empty()) return false;
      for (int round = 0; round < rounds && !stopped.empty(); ++round) {
        std::shuffle(stopped.begin(), stopped.end(), random_);
        if (stopped.size() > kSample) stopped.resize(kSample);
        stopped = still_stuck(0, std::move(stopped));
      }
      if (!stopped.empty()) return false;
    }
    // With two queues, a policy that takes a free queue a little late looks the same so far, but its streams keep their
    // queues.
    return is_stuck_in_the_end(1);
  }

  // Marks one stream repeatedly while the first is held: with rotation it reaches the held queue sooner or later.
  bool is_stuck_in_the_end(StreamId stream) {
    const Streams again(static_cast<std::size_t>(2 * probe_.streams), stream);
    ++probe_.trials;
    lab_->begin();
    lab_->hold(0);
    lab_->settle(probe_.baseline.window_ns);
    bool is_stuck = false;
    for (std::size_t i = 0; i < again.size() && !is_stuck; ++i)
      is_stuck = lab_->mark(again[i], probe_.baseline.window_ns) == kNoTime;
    lab_->release();
    return is_stuck;
  }

  // The streams of `marked`, shuffled, that do not get through while `holder` is held.
  Streams still_stuck(StreamId holder, Streams marked) {
    std::shuffle(marked.begin(), marked.end(), random_);
    const auto verdict = stuck({holder}, marked);
    Streams left;
    for (std::size_t k = 0; k < marked.size(); ++k)
      if (verdict[k] != 0) left.push_back(marked[k]);
    return left;
  }

  // Holds each stream alone. Returns true if some of them share a queue; then queue_of_stream has the classes.
  bool classify() {
    std::vector<int> label(static_cast<std::size_t>(options_.streams), -1);
    int labels = 0;
    for (int i = 0; i < options_.streams; ++i) {
      report("classes", i, options_.streams);
      if (label[static_cast<std::size_t>(i)] >= 0) continue;
      const auto holder = static_cast<StreamId>(i);
      Streams members;
      for (int k = i + 1; k < options_.streams; ++k)
        if (label[static_cast<std::size_t>(k)] < 0) members.push_back(static_cast<StreamId>(k));
      // A stream that gets through once is no member; one that never does is a member, with the certainty of the
      // repetitions.
      for (int same = 0; same < probe_.baseline.repetitions && !members.empty();) {
        const std::size_t before = members.size();
        members = still_stuck(holder, std::move(members));
        same = members.size() == before ? same + 1 : 0;
      }
      label[holder] = labels;
      for (const StreamId member : members) label[member] = labels;
      ++labels;
    }
    if (labels == options_.streams) return false;
    probe_.queue_of_stream = std::move(label);
    return true;
  }

  // Streams that share a queue stop each other, whichever is held. On a busy host, a worker that gets no core
  // repeatedly looks like a stuck stream, but not for every holder.
  bool are_classes_mutual() {
    std::map<int, Streams> classes;
    for (int i = 0; i < options_.streams; ++i)
      classes[probe_.queue_of_stream[static_cast<std::size_t>(i)]].push_back(static_cast<StreamId>(i));
    for (auto& [label, members] : classes) {
      if (members.size() < 2) continue;
      for (int round = 0; round < probe_.baseline.repetitions; ++round) {
        report("classes", options_.streams, options_.streams);
        std::shuffle(members.begin(), members.end(), random_);
        Streams others(members.begin() + 1, members.end());
        if (others.size() > kSample) others.resize(kSample);
        const std::size_t count = others.size();
        if (still_stuck(members[0], std::move(others)).size() == count) continue;
        probe_.queue_of_stream.clear();
        return false;
      }
    }
    return true;
  }

  bool are_all_stuck(int held_count, std::size_t max_marks) {
    Streams streams = all_but({});
    std::shuffle(streams.begin(), streams.end(), random_);
    const Streams held(streams.begin(), streams.begin() + held_count);
    Streams marked(streams.begin() + held_count, streams.end());
    if (marked.size() > max_marks) marked.resize(max_marks);
    const auto verdict = stuck(held, marked);
    const auto count = static_cast<int>(std::count(verdict.begin(), verdict.end(), 1));
    probe_.saturation.push_back({held_count, count, static_cast<int>(marked.size())});
    return count == static_cast<int>(marked.size());
  }

  // Finds the smallest number of held streams with which no other stream gets through.
  void saturate() {
    const int most = options_.streams - 1;
    const auto all_streams = static_cast<std::size_t>(options_.streams);
    const auto not_saturated = [&] {
      probe_.queues = options_.streams;
      probe_.is_lower_bound = true;
      probe_.policy = MappingPolicy::unshared;
      probe_.reason =
          fmt::format("no two of {} streams ever share a queue: there are at least that many", options_.streams);
    };
    int low = 0, high = most;  // not stuck at low, stuck at high
    if (!are_all_stuck(high, all_streams)) {
      // With a dynamic policy, once may be chance.
      for (int r = 1; r < probe_.baseline.repetitions; ++r)
        if (are_all_stuck(high, all_streams)) return not_certain();
      return not_saturated();
    }
    const auto search = [&] {
      while (high - low > 1) {
        report("saturation", most - (high - low), most);
        const int middle = (low + high) / 2;
        (are_all_stuck(middle, kSample) ? high : low) = middle;
      }
    };
    search();
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      report("saturation", attempt, kMaxAttempts);
      bool is_stuck = true, is_free_below = high == 1;
      for (int r = 0; r < probe_.baseline.repetitions && is_stuck; ++r) is_stuck = are_all_stuck(high, all_streams);
      for (int r = 0; r < probe_.baseline.repetitions && !is_free_below; ++r)
        is_free_below = !are_all_stuck(high - 1, all_streams);
      if (is_stuck && is_free_below) {
        return conclude(high);
      }
      high = is_stuck ? high - 1 : high + 1;
      if (high > most) return not_saturated();
    }
    not_certain();
  }

  // Holding this many streams stops all others, and holding one less does not: says why.
  void conclude(int held_count) {
    report("control", 0, 1);
    probe_.queues = held_count;
    const ProbeControl control = find_what_stops(*lab_, held_count, probe_.baseline, options_.confidence, random_);
    add(control);
    if (control.stopped_by == StoppedBy::queues || control.stopped_by == StoppedBy::barrier) {
      probe_.barrier = control.stopped_by == StoppedBy::barrier;
      if (probe_.policy == MappingPolicy::unknown) probe_.policy = MappingPolicy::load_based;
    } else if (control.stopped_by == StoppedBy::room) {
      out_of_room(held_count);
    } else {
      probe_.policy = MappingPolicy::unknown;
      probe_.is_lower_bound = true;
      probe_.reason = "whether its queues or its room for kernels stops streams did not show";
    }
  }

  void out_of_room(int kernels) {
    probe_.policy = MappingPolicy::unknown;
    probe_.queues = kernels;
    probe_.is_lower_bound = true;
    probe_.queue_of_stream.clear();
    probe_.barrier.reset();
    probe_.reason = fmt::format("the device runs only {} kernel{} at once, which comes before any limit of its queues",
                                kernels, kernels == 1 ? "" : "s");
  }

  void add(const ProbeControl& control) {
    probe_.trials += control.trials;
    probe_.spoilt += control.spoilt;
    control_error_ += control.error_probability;
  }

  // Whether a held kernel with nothing after it in its stream stops all of these streams; nothing if that differs from
  // trial to trial.
  std::optional<bool> is_stopped_by_one(StreamId holder, const Streams& marked) {
    int stopped = 0;
    const int rounds = probe_.baseline.repetitions;
    for (int round = 0; round < rounds; ++round) {
      const auto verdict = stuck({holder}, marked, false);
      stopped += std::find(verdict.begin(), verdict.end(), 0) == verdict.end() ? 1 : 0;
    }
    if (stopped != 0 && stopped != rounds) return std::nullopt;
    return stopped != 0;
  }

  // One running kernel stops all others. A single queue that waits for the end of each command does that, and so does a
  // device that runs one kernel at a time, whatever queues it has.
  void ask_for_room() {
    const ProbeControl control = find_what_stops_all(device_, options_.streams, probe_.baseline);
    add(control);
    if (control.stopped_by == StoppedBy::room) return out_of_room(1);
    if (control.stopped_by == StoppedBy::barrier) {
      probe_.reason = "the queue waits for the end of each command: one kernel that runs stops all others";
      return;
    }
    probe_.is_lower_bound = true;
    probe_.barrier.reset();
    probe_.reason =
        "one kernel that runs stops all others: the queue waits for the end of each command, or the device runs one "
        "kernel at a time";
  }

  // Where streams keep their queues: a held kernel against the others of its queue, with a stream of another queue
  // beside them to show that there is room.
  void infer_barrier() {
    Streams inside, outside;
    for (int i = 1; i < options_.streams; ++i) {
      const bool is_inside =
          probe_.queue_of_stream[static_cast<std::size_t>(i)] == probe_.queue_of_stream[0] && inside.size() < kSample;
      if (is_inside) inside.push_back(static_cast<StreamId>(i));
      if (probe_.queue_of_stream[static_cast<std::size_t>(i)] != probe_.queue_of_stream[0] && outside.empty())
        outside.push_back(static_cast<StreamId>(i));
    }
    if (inside.empty() || is_stopped_by_one(0, outside) != false) return;
    probe_.barrier = is_stopped_by_one(0, inside);
  }

  void not_certain() {
    probe_.policy = MappingPolicy::unknown;
    probe_.queues.reset();
    probe_.reason = "the number of held streams that stops all others differs from trial to trial";
  }

  // Holds enough streams to stop all others, with an event after each instead of a kernel.
  void infer_record_placement() {
    if (lab_) lab_.reset();
    const int streams = probe_.streams - 1;  // the events need one more stream
    if (streams < 2) return;
    Lab lab(device_, streams, {.records = true});
    Streams held = {0};
    Streams marked;
    if (is_static(probe_.policy)) {
      for (int i = 1; i < streams; ++i)
        if (probe_.queue_of_stream[static_cast<std::size_t>(i)] == probe_.queue_of_stream[0])
          marked.push_back(static_cast<StreamId>(i));
    } else {
      if (*probe_.queues >= streams) return;
      held.resize(static_cast<std::size_t>(*probe_.queues));
      std::iota(held.begin(), held.end(), StreamId{0});
      marked = all_but(held);
      marked.pop_back();
    }
    if (marked.size() > kSample) marked.resize(kSample);
    int blocked = 0;
    const int rounds = probe_.baseline.repetitions;
    for (int round = 0; round < rounds; ++round) {
      report("events", round, rounds);
      ++probe_.trials;
      const std::int64_t window_ns = probe_.baseline.window_ns;
      const auto is_stuck = lab.stuck(held, marked, window_ns, kGrace * window_ns, false);
      if (!is_stuck) {
        ++probe_.spoilt;
        return;  // unknown
      }
      blocked += std::find(is_stuck->begin(), is_stuck->end(), 0) == is_stuck->end() ? 1 : 0;
    }
    ended_ns_ = lab.now_ns();
    if (!marked.empty() && (blocked == 0 || blocked == rounds)) probe_.record_blocks = blocked == rounds;
  }

  bool is_cyclic() const {
    const int queues = *probe_.queues;
    for (int i = 0; i < options_.streams; ++i)
      if (probe_.queue_of_stream[static_cast<std::size_t>(i)] != i % queues) return false;
    return true;
  }

  // Opens stream A on one queue, B on the next, C on all others, then closes B. A new stream takes B's place if
  // references are counted, and joins A if the queues take turns.
  void infer_creation_policy() {
    int with_a = 0, with_none = 0;
    const int rounds = probe_.baseline.repetitions;
    for (int round = 0; round < rounds; ++round) {
      report("creation", round, rounds);
      Lab a(device_, 1);
      auto b = std::make_unique<Lab>(device_, 1);
      std::unique_ptr<Lab> c;
      if (*probe_.queues > 2) c = std::make_unique<Lab>(device_, *probe_.queues - 2);
      b.reset();
      Lab d(device_, 1);
      const auto is_behind = [&](Lab& holder, StreamId stream) {
        ++probe_.trials;
        holder.begin();
        holder.hold(stream);
        holder.settle(probe_.baseline.window_ns);
        d.begin();
        const Streams only = {0};
        std::vector<std::uint8_t> is_stuck = {d.mark(0, probe_.baseline.window_ns) == kNoTime};
        d.look_again(only, is_stuck, kGrace * probe_.baseline.window_ns);
        holder.release();
        d.release();
        return is_stuck[0] != 0;
      };
      bool is_elsewhere = false;
      for (int i = 0; c && i < c->streams() && !is_elsewhere; ++i)
        is_elsewhere = is_behind(*c, static_cast<StreamId>(i));
      if (!is_elsewhere) ++(is_behind(a, 0) ? with_a : with_none);
    }
    if (with_a == rounds) {
      probe_.policy = MappingPolicy::round_robin;
    } else if (with_none == rounds) {
      probe_.policy = MappingPolicy::least_referenced;
    } else {
      probe_.reason = "streams get their queues in turn, but whether by turn or by counting references did not show";
    }
  }

  Device& device_;
  ProbeOptions options_;
  std::mt19937_64 random_;
  std::unique_ptr<Lab> lab_;
  QueueProbe probe_;
  std::int64_t ended_ns_ = 0;
  double control_error_ = 0;  // probability that a control gave the wrong answer
};

}  // namespace

std::string_view name_of(MappingPolicy policy) {
  constexpr std::string_view kNames[] = {"unknown",          "one_queue", "unshared", "round_robin",
                                         "least_referenced", "fixed",     "rotating", "load_based"};
  return kNames[static_cast<int>(policy)];
}

std::string_view in_words(MappingPolicy policy) {
  constexpr std::string_view kWords[] = {
      "not known",
      "one queue for all streams",
      "no two streams share a queue",
      "fixed: a stream gets the next queue in turn when it is created, and keeps it",
      "fixed: a stream gets the queue with the fewest streams when it is created, and keeps it",
      "fixed: a stream keeps its queue",
      "dynamic: a stream takes the next queue in turn whenever it becomes busy",
      "dynamic: a stream takes a free queue whenever it becomes busy, while there is one",
  };
  return kWords[static_cast<int>(policy)];
}

QueueProbe probe_queues(Device& device, const ProbeOptions& options) {
  if (options.streams < 2)
    reject_setting("streams", std::to_string(options.streams), "the probe needs at least 2", "Use --streams 40.");
  return Prober(device, options).run();
}

}  // namespace weir
