// Random scenes, written in every form of trace, must come back as they were described.
#include <gtest/gtest.h>

#include <algorithm>

#include "amd/ftrace/read.h"
#include "support/amd_scene.h"
#include "support/ftrace_text.h"
#include "trace/archive_testing.h"

namespace weir::ftrace {
namespace {

using testing::Scene;
using testing::TraceForm;
using testing::TraceStyle;

constexpr int kSeeds = 25;
constexpr std::int64_t kRounding = 1000;

struct Spans : KfdSink {
  std::vector<KfdSpan> all;
  void on(const KfdSpan& span) override { all.push_back(span); }
  std::vector<KfdSpan> of(KfdVerb verb) const {
    std::vector<KfdSpan> found;
    for (const KfdSpan& span : all)
      if (span.verb == verb) found.push_back(span);
    std::sort(found.begin(), found.end(), [](const KfdSpan& a, const KfdSpan& b) {
      return std::pair(a.started_ns, a.pid) < std::pair(b.started_ns, b.pid);
    });
    return found;
  }
};

struct Truth {
  int pid = 0;
  std::int64_t from = 0, to = 0;
  const testing::SceneQueue* queue = nullptr;
};

std::vector<Truth> creates_of(const Scene& scene, std::int64_t inset) {
  std::vector<Truth> list;
  for (std::size_t i = 0; i < scene.queues.size(); ++i)
    list.push_back({testing::asking_thread(scene, i), scene.queues[i].ioctl_ns + inset,
                    scene.queues[i].ioctl_end_ns - inset, &scene.queues[i]});
  std::sort(list.begin(), list.end(),
            [](const Truth& a, const Truth& b) { return std::pair(a.from, a.pid) < std::pair(b.from, b.pid); });
  return list;
}

// Bounds must hold, and exact lengths must be exact, whatever the form.
void expect_length(const KfdSpan& span, std::int64_t truth) {
  if (span.end == EndKind::exact) {
    EXPECT_LE(std::abs(span.duration_ns - truth), kRounding);
    return;
  }
  if (span.duration_ns >= 0) {
    EXPECT_LE(span.duration_ns, truth);
  }
  if (span.longest_ns >= 0) {
    EXPECT_GE(span.longest_ns, truth);
  }
}

struct Variant {
  TraceForm form;
  TraceStyle style;
  const char* name;
};

std::vector<Variant> variants() {
  std::vector<Variant> list;
  TraceStyle style;
  list.push_back({TraceForm::function, style, "function"});
  style.has_tgid = true;
  style.has_new_flags = false;
  style.has_offsets = true;
  style.cpus = 2;
  list.push_back({TraceForm::function, style, "function, old flags, tgid, offsets"});
  style = {};
  list.push_back({TraceForm::function_graph, style, "graph"});
  style.has_proc = false;
  style.has_tail = true;
  style.cpus = 1;
  list.push_back({TraceForm::function_graph, style, "graph of task switches, tails"});
  style = {};
  style.has_retval = true;
  style.failed_creates = 2;
  list.push_back({TraceForm::function_graph, style, "graph with results, failures"});
  style = {};
  style.has_tgid = true;
  style.failed_creates = 3;
  list.push_back({TraceForm::kprobes, style, "kprobes, failures"});
  list.push_back({TraceForm::events, style, "events, failures"});
  style = {};
  style.has_tgid = true;
  list.push_back({TraceForm::trace_printk, style, "trace_printk"});
  return list;
}

TEST(FtraceRoundTrip, finds_every_queue_in_every_form) {
  for (const Variant& variant : variants()) {
    for (int seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(std::string(variant.name) + ", seed " + std::to_string(seed));
      const Scene scene = testing::random_scene(static_cast<std::uint64_t>(seed), static_cast<testing::Gfx>(seed % 5));
      const std::string text = testing::ftrace_text(scene, variant.form, variant.style);
      Spans spans;
      const auto source = bytes_of(text);
      const FtraceCounters counters = read_ftrace(*source, spans);
      EXPECT_TRUE(counters.unread.empty()) << counters.unread[0].reason << " in line " << counters.unread[0].first_line;
      EXPECT_EQ(counters.unmatched_returns, 0u);

      std::vector<KfdSpan> creates = spans.of(KfdVerb::create);
      const auto failed =
          std::stable_partition(creates.begin(), creates.end(), [](const KfdSpan& span) { return !has_failed(span); });
      EXPECT_EQ(creates.end() - failed, variant.style.failed_creates);
      creates.erase(failed, creates.end());
      const auto truth = creates_of(scene, variant.form == TraceForm::events ? 0 : testing::kHandlerInset_ns);
      ASSERT_EQ(creates.size(), truth.size());
      for (std::size_t i = 0; i < truth.size(); ++i) {
        const testing::SceneQueue& queue = *truth[i].queue;
        const testing::SceneGpu& gpu = scene.gpus[static_cast<std::size_t>(queue.gpu)];
        const int process = scene.processes[static_cast<std::size_t>(queue.process)].host_pid;
        EXPECT_EQ(creates[i].started_ns, truth[i].from);
        EXPECT_EQ(creates[i].pid, truth[i].pid);
        expect_length(creates[i], truth[i].to - truth[i].from);
        const bool is_exact = variant.form != TraceForm::function && variant.form != TraceForm::trace_printk;
        EXPECT_EQ(creates[i].end == EndKind::exact, is_exact);
        if (creates[i].process) {
          EXPECT_EQ(*creates[i].process, process);
        }
        EXPECT_EQ(creates[i].process.has_value(), variant.style.has_tgid || variant.form == TraceForm::kprobes);
        if (variant.form == TraceForm::kprobes || variant.form == TraceForm::trace_printk) {
          EXPECT_EQ(creates[i].queue_id, queue.id);
          EXPECT_EQ(creates[i].gpu_id, gpu.gpu_id);
          EXPECT_EQ(creates[i].doorbell, queue.doorbell);
          EXPECT_EQ(creates[i].mqd_base, queue.mqd_base);
          EXPECT_EQ(creates[i].result, 0);
        }
        if (variant.form == TraceForm::kprobes) {
          EXPECT_EQ(creates[i].ring_base, queue.ring_base);
        }
        if (variant.form != TraceForm::events && variant.form != TraceForm::trace_printk) {
          EXPECT_EQ(creates[i].mqd_allocations, 1);
          EXPECT_EQ(creates[i].mqd_inits, queue.is_sdma ? 1 : gpu.xccs);
          EXPECT_EQ(creates[i].doorbell_allocations, 1);
        }
      }
      std::size_t destroyed = 0;
      for (const testing::SceneQueue& queue : scene.queues) destroyed += queue.deleted_ns != 0 ? 1 : 0;
      const auto destroys = spans.of(KfdVerb::destroy);
      EXPECT_EQ(destroys.size(), destroyed);
      const std::int64_t around = variant.form == TraceForm::events ? 2 * testing::kHandlerInset_ns : 0;
      for (const KfdSpan& span : destroys)
        if (span.duration_ns >= 0) expect_length(span, testing::kDestroy_ns + around);
    }
  }
}

TEST(FtraceRoundTrip, finds_every_preemption) {
  for (const Variant& variant : variants()) {
    if (variant.form == TraceForm::trace_printk) continue;
    for (int seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(std::string(variant.name) + ", seed " + std::to_string(seed));
      const Scene scene = testing::random_scene(static_cast<std::uint64_t>(seed), static_cast<testing::Gfx>(seed % 5));
      const std::string text = testing::ftrace_text(scene, variant.form, variant.style);
      Spans spans;
      const auto source = bytes_of(text);
      read_ftrace(*source, spans);
      const auto evictions = spans.of(KfdVerb::evict);
      ASSERT_EQ(evictions.size(), scene.preemptions.size());
      if (variant.form == TraceForm::events) {
        for (std::size_t i = 0; i < evictions.size(); ++i)
          EXPECT_EQ(evictions[i].process,
                    scene.processes[static_cast<std::size_t>(scene.preemptions[i].process)].host_pid);
        continue;
      }
      const auto preemptions = spans.of(KfdVerb::preempt);
      ASSERT_EQ(preemptions.size(), scene.preemptions.size());
      for (std::size_t i = 0; i < preemptions.size(); ++i) {
        const std::int64_t truth = scene.preemptions[i].fence_ns - scene.preemptions[i].unmap_ns;
        EXPECT_EQ(preemptions[i].started_ns, scene.preemptions[i].unmap_ns);
        expect_length(preemptions[i], truth);
        if (variant.form == TraceForm::function) {
          EXPECT_EQ(preemptions[i].end, EndKind::at_least);
          EXPECT_GE(preemptions[i].longest_ns, 0);
        }
      }
    }
  }
}

TEST(FtraceRoundTrip, bounds_hold_where_events_were_lost) {
  for (const TraceForm form : {TraceForm::function, TraceForm::function_graph, TraceForm::kprobes}) {
    for (int seed = 0; seed < kSeeds; ++seed) {
      const Scene scene = testing::random_scene(static_cast<std::uint64_t>(seed), testing::Gfx::gfx9_4_3);
      TraceStyle style;
      style.lost_every = 3 + seed;
      style.lost_each = seed % 3 == 0 ? 0 : 7;
      Spans spans;
      const std::string text = testing::ftrace_text(scene, form, style);
      const auto source = bytes_of(text);
      const FtraceCounters counters = read_ftrace(*source, spans);
      EXPECT_GT(counters.lost_gaps, 0u);
      EXPECT_EQ(counters.lost_events, style.lost_each * counters.lost_gaps);
      EXPECT_EQ(counters.lost_uncounted, style.lost_each == 0 ? counters.lost_gaps : 0u);
      for (const KfdSpan& span : spans.of(KfdVerb::create)) {
        // A create that a gap cut in two may begin at an inner function: it is inside one that was described.
        const auto truth = creates_of(scene, testing::kHandlerInset_ns);
        const auto found = std::find_if(truth.begin(), truth.end(), [&](const Truth& one) {
          return one.pid == span.pid && one.from <= span.started_ns && span.started_ns < one.to;
        });
        ASSERT_NE(found, truth.end());
        if (span.started_ns == found->from) expect_length(span, found->to - found->from);
      }
    }
  }
}

TEST(FtraceRoundTrip, reads_packed_files_and_ones_that_end_in_the_middle) {
  const Scene scene = testing::random_scene(3, testing::Gfx::gfx9);
  const std::string text = testing::ftrace_text(scene, TraceForm::function);
  const std::string packed = gzip(text);
  Spans whole, cut;
  const auto source = bytes_of(packed);
  EXPECT_EQ(read_ftrace(*source, whole).problem, "");
  EXPECT_EQ(whole.of(KfdVerb::create).size(), scene.queues.size());
  const std::string half = packed.substr(0, packed.size() * 3 / 4);
  const auto shorter = bytes_of(half);
  EXPECT_NE(read_ftrace(*shorter, cut).problem, "");
  EXPECT_FALSE(cut.all.empty());
}

}  // namespace
}  // namespace weir::ftrace
