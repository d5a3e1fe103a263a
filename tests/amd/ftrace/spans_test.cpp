// What each form of trace proves about KFD's calls, on traces written by hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "amd/ftrace/read.h"
#include "base/error.h"

namespace weir::ftrace {
namespace {

struct Read : KfdSink {
  std::vector<KfdSpan> spans;
  FtraceCounters counters;

  explicit Read(const std::string& text) {
    const auto source = bytes_of(text);
    counters = read_ftrace(*source, *this);
  }
  void on(const KfdSpan& span) override { spans.push_back(span); }
  std::vector<KfdSpan> of(KfdVerb verb) const {
    std::vector<KfdSpan> found;
    for (const KfdSpan& span : spans)
      if (span.verb == verb) found.push_back(span);
    return found;
  }
  // The only one.
  KfdSpan one(KfdVerb verb) const {
    const auto found = of(verb);
    EXPECT_EQ(found.size(), 1u) << name_of(verb);
    return found.empty() ? KfdSpan{} : found[0];
  }
};

// "41 100 kfd_ioctl <-x": thread 41, 100 us.
std::string functions(const std::vector<std::string>& lines) {
  std::string text = "# tracer: function\n#\n";
  for (const std::string& line : lines) {
    const std::size_t first = line.find(' '), second = line.find(' ', first + 1);
    std::string us = line.substr(first + 1, second - first - 1);
    us.insert(0, 6 - us.size(), '0');
    text += "   python3-" + line.substr(0, first) + "   [00" + line.substr(0, 1) + "] ..... 10." + us + ": " +
            line.substr(second + 1) + "\n";
  }
  return text;
}

TEST(FtraceSpans, bound_the_end_of_functions_by_what_is_seen) {
  const Read read(functions({
      "41 100 kfd_ioctl <-__x64_sys_ioctl",
      "41 101 kfd_ioctl_create_queue <-kfd_ioctl",
      "41 102 pqm_create_queue <-kfd_ioctl_create_queue",
      "41 150 create_queue_cpsch <-pqm_create_queue",
      "41 160 init_mqd <-create_queue_cpsch",
      "41 190 kfd_unlock_process <-kfd_ioctl",
      "41 500 kfd_ioctl <-__x64_sys_ioctl",
  }));
  const KfdSpan create = read.one(KfdVerb::create);
  EXPECT_EQ(create.end, EndKind::at_least);
  EXPECT_EQ(create.pid, 41);
  EXPECT_EQ(create.started_ns, 10'000'101'000);
  EXPECT_EQ(create.ended_ns, 10'000'160'000);    // init_mqd ran below it
  EXPECT_EQ(create.duration_ns, 59'000 - 1000);  // less the rounding
  EXPECT_EQ(create.longest_ns, 89'000 + 1000);   // by 190 kfd_ioctl had called the next
  EXPECT_EQ(create.mqd_inits, 1);
  EXPECT_FALSE(create.result);
  const auto ioctls = read.of(KfdVerb::ioctl);
  ASSERT_EQ(ioctls.size(), 2u);
  EXPECT_EQ(ioctls[0].ended_ns, 10'000'190'000);
  EXPECT_EQ(ioctls[0].longest_ns, 400'000 + 1000);
  EXPECT_EQ(ioctls[1].end, EndKind::unknown);
  EXPECT_EQ(ioctls[1].duration_ns, -1);
  EXPECT_EQ(ioctls[1].longest_ns, -1);
}

TEST(FtraceSpans, tell_threads_apart_by_pid_not_by_cpu) {
  // Both on CPU 4; the other thread's functions end nothing and prove nothing.
  const Read read(functions({
      "41 100 kfd_ioctl <-__x64_sys_ioctl",
      "41 101 kfd_ioctl_create_queue <-kfd_ioctl",
      "42 110 kfd_ioctl <-__x64_sys_ioctl",
      "42 111 kfd_ioctl_destroy_queue <-kfd_ioctl",
      "41 120 pqm_create_queue <-kfd_ioctl_create_queue",
      "42 300 pqm_destroy_queue <-kfd_ioctl_destroy_queue",
  }));
  EXPECT_EQ(read.one(KfdVerb::create).ended_ns, 10'000'120'000);
  EXPECT_EQ(read.one(KfdVerb::create).longest_ns, -1);
  EXPECT_EQ(read.one(KfdVerb::destroy).pid, 42);
  EXPECT_EQ(read.one(KfdVerb::destroy).ended_ns, 10'000'300'000);
}

TEST(FtraceSpans, ignore_interrupts_in_a_thread) {
  const std::string text =
      functions({"41 100 kfd_ioctl <-__x64_sys_ioctl", "41 101 kfd_ioctl_create_queue <-kfd_ioctl"}) +
      "   python3-41   [004] ..h1. 10.000300: kfd_ioctl <-__x64_sys_ioctl\n"
      "   python3-41   [004] ..s1. 10.000400: amdgpu_x <-kfd_ioctl_create_queue\n";
  const Read read(text);
  EXPECT_EQ(read.one(KfdVerb::create).end, EndKind::unknown);
  EXPECT_EQ(read.of(KfdVerb::ioctl).size(), 1u);
}

TEST(FtraceSpans, bound_preemption_of_the_function_tracer) {
  const Read read(functions({
      "41 100 unmap_queues_cpsch <-execute_queues_cpsch",
      "41 102 pm_send_unmap_queue <-unmap_queues_cpsch",
      "41 103 pm_send_query_status <-unmap_queues_cpsch",
      "41 104 amdkfd_fence_wait_timeout <-unmap_queues_cpsch",
      "41 300 amdgpu_amdkfd_is_fed <-amdkfd_fence_wait_timeout",
      "41 350 pm_release_ib <-unmap_queues_cpsch",
      "41 360 map_queues_cpsch <-execute_queues_cpsch",
  }));
  const KfdSpan preempt = read.one(KfdVerb::preempt);
  EXPECT_EQ(preempt.end, EndKind::at_least);
  EXPECT_EQ(preempt.started_ns, 10'000'102'000);
  EXPECT_EQ(preempt.duration_ns, 198'000 - 1000);
  EXPECT_EQ(preempt.longest_ns, 248'000 + 1000);
  EXPECT_EQ(read.one(KfdVerb::unmap).longest_ns, 260'000 + 1000);
  EXPECT_EQ(read.counters.calls.fence_wait, 1u);
}

TEST(FtraceSpans, a_wait_that_calls_others_is_as_long_as_its_own_length) {
  // The wait asks now and then whether the GPU has died: none of those calls is its beginning.
  const Read read(
      "10.000102 |   5)   python3-41   |               |  unmap_queues_cpsch [amdgpu]() {\n"
      "10.000102 |   5)   python3-41   |   0.500 us    |    pm_send_unmap_queue [amdgpu]();\n"
      "10.000103 |   5)   python3-41   |               |    amdkfd_fence_wait_timeout [amdgpu]() {\n"
      "10.000150 |   5)   python3-41   |   0.200 us    |      amdgpu_amdkfd_is_fed [amdgpu]();\n"
      "10.000300 |   5)   python3-41   |   0.200 us    |      amdgpu_amdkfd_is_fed [amdgpu]();\n"
      "10.000303 |   5)   python3-41   | ! 200.250 us  |    }\n"
      "10.000304 |   5)   python3-41   | ! 202.000 us  |  }\n");
  const KfdSpan preempt = read.one(KfdVerb::preempt);
  EXPECT_EQ(preempt.end, EndKind::exact);
  EXPECT_EQ(preempt.duration_ns, 1000 + 200'250);
  EXPECT_EQ(preempt.ended_ns, 10'000'303'250);
}

TEST(FtraceSpans, a_preemption_whose_request_was_not_traced_is_bounded) {
  // The request lies between the unmap and the wait; a new grace period may come before it.
  const Read graph(
      "10.000100 |   5)   p-41   |               |  unmap_queues_cpsch [amdgpu]() {\n"
      "10.000150 |   5)   p-41   | ! 200.250 us  |    amdkfd_fence_wait_timeout [amdgpu]();\n"
      "10.000352 |   5)   p-41   | ! 252.000 us  |  }\n");
  EXPECT_EQ(graph.one(KfdVerb::preempt).end, EndKind::at_least);
  EXPECT_EQ(graph.one(KfdVerb::preempt).duration_ns, 200'250);
  EXPECT_EQ(graph.one(KfdVerb::preempt).longest_ns, 250'250 + 1000);
  const Read probes(
      "x-1 [000] .... 1.000100: p1: (unmap_queues_cpsch+0x0/0x5c0 [amdgpu])\n"
      "x-1 [000] .... 1.000150: p2: (amdkfd_fence_wait_timeout+0x0/0x5c0 [amdgpu])\n"
      "x-1 [000] .... 1.000350: r2: (unmap_queues_cpsch+0x2c/0x90 [amdgpu] <- amdkfd_fence_wait_timeout) ret=0\n");
  EXPECT_EQ(probes.one(KfdVerb::preempt).end, EndKind::at_least);
  EXPECT_EQ(probes.one(KfdVerb::preempt).duration_ns, 200'000 - 1000);
  EXPECT_EQ(probes.one(KfdVerb::preempt).longest_ns, 250'000 + 1000);
  const Read functions_only(functions({"41 100 unmap_queues_cpsch <-execute_queues_cpsch",
                                       "41 150 amdkfd_fence_wait_timeout <-unmap_queues_cpsch",
                                       "41 350 pm_release_ib <-unmap_queues_cpsch"}));
  EXPECT_EQ(functions_only.one(KfdVerb::preempt).duration_ns, -1);
  EXPECT_EQ(functions_only.one(KfdVerb::preempt).longest_ns, 250'000 + 1000);
}

TEST(FtraceSpans, what_an_unmap_did_before_its_request_is_no_preemption) {
  const Read read(
      " 5)               |  unmap_queues_cpsch [amdgpu]() {\n"
      " 5) + 50.000 us   |    pm_update_grace_period [amdgpu]();\n"
      " 5)   0.500 us    |    pm_send_unmap_queue [amdgpu]();\n"
      " 5) ! 200.250 us  |    amdkfd_fence_wait_timeout [amdgpu]();\n"
      " 5) ! 262.000 us  |  }\n");
  EXPECT_EQ(read.one(KfdVerb::preempt).duration_ns, 200'750);
  EXPECT_EQ(read.one(KfdVerb::preempt).longest_ns, 262'000);
}

TEST(FtraceSpans, a_length_that_does_not_reach_back_to_the_entry_is_not_its_own) {
  const Read read(
      "10.000100 |   5)   p-41   |               |  kfd_ioctl_create_queue [amdgpu]() {\n"
      "10.000150 |   5)   p-41   |   1.000 us    |    pqm_create_queue [amdgpu]();\n"
      "10.000900 |   3)   p-41   | ! 120.000 us  |  } /* kfd_ioctl_create_queue [amdgpu] */\n");
  const KfdSpan create = read.one(KfdVerb::create);
  EXPECT_EQ(create.end, EndKind::at_least);
  EXPECT_EQ(create.duration_ns, 50'000 - 1000);
  EXPECT_EQ(create.longest_ns, 800'000 + 1000);
}

TEST(FtraceSpans, a_wait_without_an_unmap_is_no_preemption) {
  const Read read(functions({"41 104 amdkfd_fence_wait_timeout <-x", "41 350 pm_release_ib <-unmap_queues_cpsch"}));
  EXPECT_TRUE(read.of(KfdVerb::preempt).empty());
}

TEST(FtraceSpans, an_unseen_caller_proves_nothing) {
  // evict's caller is not traced: it may be below the create or after it. Its functions are not the create's.
  const Read read(functions({
      "41 100 kfd_ioctl_create_queue <-x",
      "41 110 pqm_create_queue <-kfd_ioctl_create_queue",
      "41 500 evict_process_queues_cpsch <-kfd_process_evict_queues",
      "41 510 execute_queues_cpsch <-evict_process_queues_cpsch",
      "41 900 amdgpu_vm_x <-untraced",
  }));
  const KfdSpan create = read.one(KfdVerb::create);
  EXPECT_EQ(create.ended_ns, 10'000'110'000);
  EXPECT_EQ(create.longest_ns, -1);
  EXPECT_EQ(read.one(KfdVerb::evict).ended_ns, 10'000'510'000);
}

TEST(FtraceSpans, give_up_what_is_open_where_events_were_lost) {
  const std::string before =
      functions({"41 100 kfd_ioctl <-__x64_sys_ioctl", "41 101 kfd_ioctl_create_queue <-kfd_ioctl",
                 "41 110 pqm_create_queue <-kfd_ioctl_create_queue"});
  const std::string after = "   python3-41   [004] ..... 10.000900: create_queue_cpsch <-pqm_create_queue\n";
  const Read whole(before + after), lost(before + "CPU:4 [LOST 9 EVENTS]\n" + after);
  EXPECT_EQ(whole.one(KfdVerb::create).ended_ns, 10'000'900'000);
  // What comes after the gap may be the same create: it is not counted twice.
  EXPECT_EQ(lost.one(KfdVerb::create).ended_ns, 10'000'110'000);
  EXPECT_EQ(lost.one(KfdVerb::create).longest_ns, -1);
  EXPECT_EQ(lost.counters.lost_events, 9u);
  EXPECT_EQ(lost.counters.lost_gaps, 1u);
  EXPECT_EQ(lost.counters.given_up, 2u);  // ioctl and create
}

TEST(FtraceSpans, count_a_call_that_begins_after_a_gap) {
  const Read read(
      functions({"41 100 kfd_ioctl <-__x64_sys_ioctl", "41 101 kfd_ioctl_create_queue <-kfd_ioctl"}) +
      "CPU:4 [LOST 9 EVENTS]\n" +
      functions({"41 200 create_queue_cpsch <-pqm_create_queue", "41 300 kfd_ioctl <-__x64_sys_ioctl",
                 "41 301 kfd_ioctl_create_queue <-kfd_ioctl", "41 302 create_queue_cpsch <-pqm_create_queue",
                 "42 400 create_queue_cpsch <-pqm_create_queue"}));
  const auto creates = read.of(KfdVerb::create);
  ASSERT_EQ(creates.size(), 3u);  // one cut, one whole, one of another thread
  EXPECT_EQ(read.of(KfdVerb::ioctl).size(), 2u);
}

TEST(FtraceSpans, give_up_where_a_buffer_starts_late) {
  // The kernel writes the mark only where events were overwritten, whether or not a header counts them.
  const std::string before = functions({"41 100 kfd_ioctl_create_queue <-kfd_ioctl"});
  const Read read(before + "##### CPU 2 buffer started ####\n" +
                  functions({"41 900 pqm_create_queue <-kfd_ioctl_create_queue"}));
  EXPECT_EQ(read.one(KfdVerb::create).end, EndKind::unknown);
  EXPECT_TRUE(read.counters.has_losses());
}

TEST(FtraceSpans, of_a_graph_are_exact) {
  const Read read(
      "# tracer: function_graph\n"
      "10.000100 |   5)   python3-41   |               |  kfd_ioctl [amdgpu]() {\n"
      "10.000101 |   5)   python3-41   |               |    kfd_ioctl_create_queue [amdgpu]() {\n"
      "10.000102 |   5)   python3-41   |               |      unmap_queues_cpsch [amdgpu]() {\n"
      "10.000102 |   5)   python3-41   |   0.500 us    |        pm_send_unmap_queue [amdgpu]();\n"
      "10.000103 |   5)   python3-41   | ! 200.250 us  |        amdkfd_fence_wait_timeout [amdgpu](); /* = 0 */\n"
      "10.000304 |   5)   python3-41   | ! 202.000 us  |      }\n"
      "10.000310 |   5)   python3-41   | ! 208.500 us  |    } /* kfd_ioctl_create_queue [amdgpu] = 0 */\n"
      "10.000311 |   5)   python3-41   | ! 210.000 us  |  } /* kfd_ioctl [amdgpu] = 0 */\n");
  const KfdSpan create = read.one(KfdVerb::create);
  EXPECT_EQ(create.end, EndKind::exact);
  EXPECT_EQ(create.duration_ns, 208'500);
  EXPECT_EQ(create.ended_ns, create.started_ns + 208'500);
  EXPECT_EQ(create.result, 0);
  const KfdSpan preempt = read.one(KfdVerb::preempt);
  EXPECT_EQ(preempt.end, EndKind::exact);
  EXPECT_EQ(preempt.duration_ns, 1000 + 200'250);
  EXPECT_EQ(preempt.result, 0);
  EXPECT_EQ(read.one(KfdVerb::unmap).duration_ns, 202'000);
  EXPECT_EQ(read.one(KfdVerb::ioctl).duration_ns, 210'000);
}

TEST(FtraceSpans, of_a_graph_without_times_bound_preemption_by_lengths) {
  const Read read(
      " 5)               |  unmap_queues_cpsch [amdgpu]() {\n"
      " 5)   0.500 us    |    pm_send_unmap_queue [amdgpu]();\n"
      " 5) ! 200.250 us  |    amdkfd_fence_wait_timeout [amdgpu]();\n"
      " 5)   9.000 us    |    pm_release_ib [amdgpu]();\n"
      " 5) ! 212.000 us  |  }\n");
  const KfdSpan preempt = read.one(KfdVerb::preempt);
  EXPECT_EQ(preempt.end, EndKind::at_least);
  EXPECT_EQ(preempt.duration_ns, 200'750);
  EXPECT_EQ(preempt.longest_ns, 212'000);
  EXPECT_EQ(preempt.started_ns, kNoTime);
  EXPECT_EQ(read.one(KfdVerb::unmap).end, EndKind::exact);
  EXPECT_EQ(read.one(KfdVerb::unmap).duration_ns, 212'000);
  EXPECT_EQ(read.counters.without_time, 4u);
}

TEST(FtraceSpans, of_a_graph_follow_task_switches_on_a_cpu) {
  const Read read(
      " 5)               |  kfd_ioctl_create_queue [amdgpu]() {\n"
      " ------------------------------------------\n"
      " 5)  python3-41  =>  kworker/1:2-77\n"
      " ------------------------------------------\n\n"
      " 5)               |  evict_process_worker [amdgpu]() {\n"
      " 5)   3.000 us    |  }\n"
      " 5)  kworker/1:2-77  =>  python3-41\n"
      " 5) ! 120.000 us  |  }\n");
  EXPECT_EQ(read.one(KfdVerb::evict).pid, 77);
  EXPECT_EQ(read.one(KfdVerb::evict).duration_ns, 3000);
  EXPECT_EQ(read.one(KfdVerb::create).pid, 41);
  EXPECT_EQ(read.one(KfdVerb::create).duration_ns, 120'000);
}

TEST(FtraceSpans, of_a_graph_survive_a_return_that_is_missing) {
  const Read read(
      "10.000100 |   5)   p-41   |               |  kfd_ioctl_create_queue [amdgpu]() {\n"
      "10.000101 |   5)   p-41   |               |    pqm_create_queue [amdgpu]() {\n"
      "10.000200 |   5)   p-41   | ! 100.000 us  |  }\n"
      "10.000300 |   5)   p-41   |               |  kfd_ioctl_destroy_queue [amdgpu]() {\n"
      "10.000400 |   5)   p-41   |   5.000 us    |  kfd_ioctl_update_queue [amdgpu]();\n");
  EXPECT_EQ(read.one(KfdVerb::create).duration_ns, 100'000);
  const KfdSpan destroy = read.one(KfdVerb::destroy);
  EXPECT_EQ(destroy.end, EndKind::unknown);
  EXPECT_EQ(destroy.longest_ns, 100'000 + 1000);
  EXPECT_EQ(read.one(KfdVerb::update).duration_ns, 5000);
}

TEST(FtraceSpans, returns_without_an_entry_make_no_span) {
  const Read read(
      " 5) ! 120.000 us  |    } /* pqm_create_queue [amdgpu] */\n"
      " 5) ! 130.000 us  |  } /* kfd_ioctl_create_queue [amdgpu] */\n"
      "x-1 [000] .... 1.000001: r: (kfd_ioctl+0x2c/0x90 <- kfd_ioctl_create_queue) ret=0x0\n");
  EXPECT_TRUE(read.spans.empty());
  EXPECT_EQ(read.counters.unmatched_returns, 3u);
}

TEST(FtraceSpans, of_probes_are_exact_and_know_their_result) {
  const Read read(
      "x-1 [000] .... 1.000100: p1: (kfd_ioctl_create_queue+0x0/0x5c0 [amdgpu]) pid=1\n"
      "x-1 [000] .... 1.000200: r1: (kfd_ioctl+0x2c/0x90 [amdgpu] <- kfd_ioctl_create_queue) ret=0xfffffff4\n"
      "x-1 [000] .... 1.000300: p1: (kfd_ioctl_create_queue+0x4/0x5c0 [amdgpu]) gpu_id=0xf7bc\n"
      "x-1 [000] .... 1.000450: r1: (kfd_ioctl+0x2c/0x90 [amdgpu] <- kfd_ioctl_create_queue) ret=0x0 queue_id=3\n");
  const auto creates = read.of(KfdVerb::create);
  ASSERT_EQ(creates.size(), 2u);
  EXPECT_EQ(creates[0].result, -12);
  EXPECT_TRUE(has_failed(creates[0]));
  EXPECT_EQ(creates[1].result, 0);
  EXPECT_EQ(creates[1].duration_ns, 150'000);
  EXPECT_EQ(creates[1].end, EndKind::exact);
  EXPECT_EQ(creates[1].queue_id, 3u);
  EXPECT_EQ(creates[1].gpu_id, 0xf7bcu);
}

TEST(FtraceSpans, of_the_probes_that_weir_amd_capture_sets_know_their_queue) {
  const Read read(
      "python3-41 (     40) [000] .... 1.000100: kfd_ioctl_create_queue: (kfd_ioctl_create_queue+0x0/0x5c0 [amdgpu]) "
      "ring_base=0x7f8acd200000 ring_size=1048576 gpu_id=0xf7bc\n"
      "python3-41 (     40) [000] .... 1.000200: kfd_ioctl_create_queue_ret: (kfd_ioctl+0x2c/0x90 [amdgpu] <- "
      "kfd_ioctl_create_queue) ret=-12\n"
      "python3-41 (     40) [000] .... 1.000300: kfd_ioctl_update_queue: (kfd_ioctl_update_queue+0x0/0x5c0 [amdgpu]) "
      "ring_base=0x7f8acd200000 queue_id=7\n"
      "python3-41 (     40) [000] .... 1.000400: kfd_ioctl_update_queue_ret: (kfd_ioctl+0x2c/0x90 [amdgpu] <- "
      "kfd_ioctl_update_queue) ret=0\n"
      "python3-41 (     40) [000] .... 1.000500: kfd_ioctl_destroy_queue: (kfd_ioctl_destroy_queue+0x0/0x5c0 [amdgpu]) "
      "queue_id=7\n"
      "python3-41 (     40) [000] .... 1.000600: kfd_ioctl_destroy_queue_ret: (kfd_ioctl+0x2c/0x90 [amdgpu] <- "
      "kfd_ioctl_destroy_queue) ret=0\n");
  const KfdSpan create = read.one(KfdVerb::create);
  EXPECT_EQ(create.ring_base, 0x7f8acd200000u);
  EXPECT_EQ(create.ring_bytes, 1048576u);
  EXPECT_EQ(create.gpu_id, 0xf7bcu);
  EXPECT_EQ(create.result, -12);
  EXPECT_EQ(create.process, 40);
  EXPECT_EQ(read.one(KfdVerb::update).ring_base, 0x7f8acd200000u);
  EXPECT_EQ(read.one(KfdVerb::update).queue_id, 7u);
  EXPECT_EQ(read.one(KfdVerb::destroy).queue_id, 7u);
  EXPECT_EQ(read.one(KfdVerb::destroy).result, 0);
}

TEST(FtraceSpans, of_entry_probes_alone_have_no_end) {
  const Read read(
      "x-1 [000] .... 1.000100: p1: (kfd_ioctl_create_queue+0x0/0x5c0 [amdgpu])\n"
      "x-1 [000] .... 1.000150: p2: (create_queue_cpsch+0x0/0x5c0 [amdgpu])\n"
      "x-1 [000] .... 1.000300: p3: (map_queues_cpsch+0x0/0x5c0 [amdgpu])\n"
      "x-1 [000] .... 1.000900: p1: (kfd_ioctl_create_queue+0x0/0x5c0 [amdgpu])\n");
  const auto creates = read.of(KfdVerb::create);
  ASSERT_EQ(creates.size(), 2u);
  EXPECT_EQ(creates[0].end, EndKind::at_least);   // create_queue_cpsch is of a create
  EXPECT_EQ(creates[0].ended_ns, 1'000'150'000);  // map_queues_cpsch may be anybody's
  EXPECT_EQ(creates[0].longest_ns, 800'000 + 1000);
  EXPECT_EQ(creates[1].end, EndKind::unknown);
  EXPECT_EQ(read.counters.calls.create_handler, 2u);
}

TEST(FtraceSpans, a_probe_and_the_tracer_tell_of_one_call) {
  const Read read(
      "x-1 [000] .... 1.000100: kfd_ioctl_create_queue <-kfd_ioctl\n"
      "x-1 [000] .... 1.000100: p1: (kfd_ioctl_create_queue+0x0/0x5c0 [amdgpu]) gpu_id=0x7\n"
      "x-1 [000] .... 1.000150: r1: (kfd_ioctl+0x2c/0x90 [amdgpu] <- kfd_ioctl_create_queue) ret=0x0\n");
  const KfdSpan create = read.one(KfdVerb::create);
  EXPECT_EQ(create.duration_ns, 50'000);
  EXPECT_EQ(create.gpu_id, 7u);
  EXPECT_EQ(read.counters.calls.create_handler, 1u);
}

TEST(FtraceSpans, of_system_calls_are_exact) {
  const Read read(
      "x-1 [000] .... 1.000100: sys_ioctl(fd: 3, cmd: c0604b02, arg: 7ffd1c7c9d80)\n"
      "x-1 [000] .... 1.000110: kfd_ioctl <-__x64_sys_ioctl\n"
      "x-1 [000] .... 1.000111: kfd_ioctl_create_queue <-kfd_ioctl\n"
      "x-1 [000] .... 1.000300: sys_ioctl -> 0x0\n"
      "x-1 [000] .... 1.000400: sys_ioctl(fd: 3, cmd: 4b31, arg: 7ffd1c7c9d80)\n"
      "x-1 [000] .... 1.000500: sys_ioctl -> 0x0\n");
  EXPECT_EQ(read.one(KfdVerb::ioctl).duration_ns, 200'000);
  EXPECT_EQ(read.one(KfdVerb::create).duration_ns, 200'000);
  EXPECT_EQ(read.one(KfdVerb::create).result, 0);
  EXPECT_EQ(read.counters.calls.kfd_ioctl, 1u);
  ASSERT_EQ(read.counters.calls.ioctls.size(), 1u);
  EXPECT_EQ(read.counters.calls.ioctls[0].name, "create_queue");
  EXPECT_EQ(read.counters.calls.ioctls[0].count, 1u);
}

TEST(FtraceSpans, of_events_belong_to_the_process_they_name) {
  const Read read(
      "kworker/1:1-77 (     77) [000] .... 1.000100: kfd_evict_process_worker_start: Process pid=4000\n"
      "kworker/1:1-77 (     77) [000] .... 1.000400: kfd_evict_process_worker_end: Process pid=4000, "
      "StatusMsg=Success\n"
      "kworker/1:1-78 (     78) [000] .... 1.000500: kfd_restore_process_worker_start: Process pid=4000\n"
      "kworker/1:1-78 (     78) [000] .... 1.000600: kfd_restore_process_worker_end: Process pid=4000, StatusMsg=x\n"
      "kworker/1:1-78 (     78) [000] .... 1.000700: kfd_map_memory_to_gpu_start: Process pid =4000\n");
  EXPECT_EQ(read.one(KfdVerb::evict).process, 4000);
  EXPECT_EQ(read.one(KfdVerb::evict).duration_ns, 300'000);
  EXPECT_EQ(read.one(KfdVerb::restore).duration_ns, 100'000);
  EXPECT_TRUE(read.of(KfdVerb::map).empty());  // memory is no queue
  EXPECT_EQ(read.counters.calls.memory_map, 1u);
}

TEST(FtraceSpans, a_worker_is_not_the_process_that_it_evicts) {
  const Read read("kworker/1:1-77 (     77) [000] .... 1.000100: evict_process_worker <-process_one_work\n");
  EXPECT_FALSE(read.one(KfdVerb::evict).process);
  const Read named(
      "kworker/1:1-77 (     77) [000] .... 1.000100: kfd_evict_process_worker_start: Process pid=4000\n"
      "kworker/1:1-77 (     77) [000] .... 1.000200: unmap_queues_cpsch <-execute_queues_cpsch\n");
  EXPECT_EQ(named.one(KfdVerb::unmap).process, 4000);
}

TEST(FtraceSpans, of_texts_took_at_least_what_lies_between_marks) {
  const Read read(
      "x-1 [000] .... 1.000100: kfd_ioctl_create_queue: [KFD-TRACE] CREATE_QUEUE: pid=1 gpu_id=0xf7bc queue_type=2\n"
      "x-1 [000] .... 1.000300: kfd_ioctl_create_queue: [KFD-TRACE] CREATE_QUEUE: pid=1 gpu_id=0xf7bc queue_type=2\n"
      "x-1 [000] .... 1.000350: create_queue_cpsch: [KFD-TRACE] CREATE_QUEUE_CPSCH: pid=1 queue_id=4 "
      "doorbell_offset=0x1008 mqd_addr=0x1600000\n"
      "x-1 [000] .... 1.000450: kfd_ioctl_create_queue: [KFD-TRACE] CREATE_QUEUE_SUCCESS: pid=1 queue_id=4 "
      "gpu_id=0xf7bc\n"
      "x-1 [000] .... 1.000500: map_queues_cpsch: [KFD-TRACE] KFD_MAP_QUEUES_CPSCH: pid=1 queue_id=4 pipe=0 queue=0\n"
      "x-1 [000] .... 1.000600: KFD_MQD_CREATE: pid=3934101 gpu=0xf7bc qid=0 type=0 active=1 | Total_MQDs=1\n");
  const auto creates = read.of(KfdVerb::create);
  ASSERT_EQ(creates.size(), 2u);
  EXPECT_FALSE(creates[0].result);  // the first never said that it succeeded
  EXPECT_FALSE(creates[0].queue_id);
  EXPECT_EQ(creates[1].result, 0);
  EXPECT_EQ(creates[1].end, EndKind::at_least);
  EXPECT_EQ(creates[1].duration_ns, 150'000 - 1000);
  EXPECT_EQ(creates[1].longest_ns, -1);
  EXPECT_EQ(creates[1].queue_id, 4u);
  EXPECT_EQ(creates[1].doorbell, 0x1008u);
  EXPECT_EQ(creates[1].mqd_base, 0x1600000u);
  EXPECT_EQ(creates[1].process, 1);
  EXPECT_EQ(read.one(KfdVerb::map).queue_id, 4u);
  EXPECT_EQ(read.counters.texts, 6u);
  EXPECT_EQ(read.counters.events, 0u);
  EXPECT_EQ(read.counters.calls.mqd_texts, 1u);
}

TEST(FtraceSpans, suspended_queues_are_counted_by_the_result) {
  const Read read(
      "x-1 [000] .... 1.000100: p1: (suspend_queues+0x0/0x5c0 [amdgpu])\n"
      "x-1 [000] .... 1.000300: r1: (kfd_dbg+0x2c/0x90 [amdgpu] <- suspend_queues) ret=0x3\n"
      "x-1 [000] .... 1.000400: p2: (resume_queues+0x0/0x5c0 [amdgpu])\n"
      "x-1 [000] .... 1.000500: r2: (kfd_dbg+0x2c/0x90 [amdgpu] <- resume_queues) ret=0xffffffff\n");
  EXPECT_EQ(read.one(KfdVerb::suspend).result, 3);
  EXPECT_FALSE(has_failed(read.one(KfdVerb::suspend)));
  EXPECT_TRUE(has_failed(read.one(KfdVerb::resume)));
}

TEST(FtraceSpans, time_that_goes_backwards_gives_no_length) {
  const Read read(
      "x-1 [000] .... 1.000300: p1: (kfd_ioctl_create_queue+0x0/0x5c0 [amdgpu])\n"
      "x-1 [001] .... 1.000100: r1: (kfd_ioctl+0x2c/0x90 [amdgpu] <- kfd_ioctl_create_queue) ret=0x0\n");
  EXPECT_EQ(read.one(KfdVerb::create).duration_ns, -1);
}

}  // namespace
}  // namespace weir::ftrace
