// The join over plain data: what matches by what, and above all what must not match.
#include "amd/join/join.h"

#include <gtest/gtest.h>

#include "amd/join/join_document.h"
#include "amd/join/units.h"

namespace weir::amd {
namespace {

constexpr std::uint64_t kRing = 0x7f41b5200000;

QueueSummary logged_queue(std::uint64_t ring, std::int64_t asked_ns, std::int64_t created_ns) {
  QueueSummary queue;
  queue.hwq = ring;
  queue.swq = ring + 0x1000000;
  queue.packets = 16384;
  queue.priority = 1;
  queue.asked_ns = asked_ns;
  queue.created_ns = created_ns;
  return queue;
}

kfd::Queue seen_queue(int pid, std::uint64_t ring, std::optional<std::uint32_t> id = std::nullopt) {
  kfd::Queue queue;
  queue.gpu_id = 0xf7bc;
  queue.pid = pid;
  queue.queue_id = id;
  queue.ring_base = ring;
  queue.ring_bytes = 1 << 20;
  queue.mqd_bases = {0x17ba000 + (ring >> 12)};
  queue.is_active = true;
  return queue;
}

ftrace::KfdSpan create_call(int pid, std::int64_t started_ns, std::int64_t ended_ns) {
  ftrace::KfdSpan call;
  call.verb = ftrace::KfdVerb::create;
  call.end = ftrace::EndKind::exact;
  call.pid = pid;
  call.process = pid;
  call.started_ns = started_ns;
  call.ended_ns = ended_ns;
  call.duration_ns = ended_ns - started_ns;
  return call;
}

// One process of a log, and whatever else a test adds.
struct Case {
  ProcessSummary summary;
  JoinInput input;

  Case() {
    summary.pid = 17;
    input.has_log = true;
    input.processes = {{{4000, 17}, "python3"}};
  }
  void snapshot(std::int64_t taken_ns, std::vector<kfd::Queue> queues) {
    input.snapshots.push_back({"s" + std::to_string(input.snapshots.size()), taken_ns, std::move(queues)});
  }
  Join join() {
    input.logged = {{&summary, true}};
    input.has_trace = input.has_trace || !input.calls.empty();
    return join_queues(input);
  }
};

std::string reason_of(const JoinedQueue& queue, MatchSide part) {
  for (const Absence& absence : queue.absences)
    if (absence.part == part) return absence.reason;
  return "";
}

TEST(Join, a_ring_of_the_log_is_found_in_every_snapshot_that_has_it) {
  Case it;
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  it.snapshot(5 * kMs, {});
  it.snapshot(50 * kMs, {seen_queue(4000, kRing, 3)});
  it.snapshot(90 * kMs, {seen_queue(4000, kRing, 3)});
  const Join join = it.join();
  ASSERT_EQ(join.queues.size(), 1u);
  const JoinedQueue& queue = join.queues[0];
  EXPECT_EQ(queue.role, QueueRole::runtime);
  ASSERT_EQ(queue.sightings.size(), 2u);
  EXPECT_EQ(queue.sightings[0].snapshot, 1u);
  EXPECT_EQ(queue.kfd_id(), 3u);
  EXPECT_EQ(queue.host_pid, 4000);
  ASSERT_EQ(queue.evidence.size(), 2u);
  EXPECT_EQ(queue.evidence[0].keys, std::vector<MatchKey>{MatchKey::ring});
  EXPECT_EQ(queue.evidence[0].snapshot, 1u);
  EXPECT_TRUE(queue.evidence[0].is_process_known);
  EXPECT_EQ(reason_of(queue, MatchSide::trace), "there is no kernel trace");
}

TEST(Join, the_same_ring_of_another_process_is_another_queue) {
  Case it;
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  it.snapshot(50 * kMs, {seen_queue(5000, kRing)});
  const Join join = it.join();
  ASSERT_EQ(join.queues.size(), 2u);
  EXPECT_TRUE(join.queues[0].sightings.empty());
  EXPECT_EQ(reason_of(join.queues[0], MatchSide::snapshot), "its ring is in none of 1 snapshot");
  EXPECT_EQ(join.queues[1].role, QueueRole::other_process);
}

TEST(Join, two_owners_of_a_ring_and_no_process_known_match_nothing) {
  Case it;
  it.input.processes.clear();
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  it.snapshot(50 * kMs, {seen_queue(4000, kRing), seen_queue(5000, kRing)});
  const Join join = it.join();
  ASSERT_EQ(join.queues.size(), 3u);
  EXPECT_TRUE(join.queues[0].sightings.empty());
  EXPECT_FALSE(join.processes[0].host_pid);
  EXPECT_NE(join.processes[0].reason.find("2 processes of the host"), std::string::npos) << join.processes[0].reason;
  EXPECT_EQ(join.queues[1].role, QueueRole::unknown_process);
  EXPECT_FALSE(join.notes.empty());
}

TEST(Join, a_ring_that_is_used_again_belongs_to_the_queue_that_lived_then) {
  Case it;
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs), logged_queue(kRing, 60 * kMs, 65 * kMs)};
  it.summary.queues[0].deleted_ns = 40 * kMs;
  it.snapshot(30 * kMs, {seen_queue(4000, kRing, 1)});
  it.snapshot(50 * kMs, {seen_queue(4000, kRing, 2)});  // neither lived: being destroyed, or somebody else's
  it.snapshot(70 * kMs, {seen_queue(4000, kRing, 3)});
  const Join join = it.join();
  ASSERT_EQ(join.queues.size(), 2u) << "a row of its own might count it twice";
  EXPECT_EQ(join.queues[0].kfd_id(), 1u);
  EXPECT_EQ(join.queues[0].sightings.size(), 1u);
  EXPECT_EQ(join.queues[1].kfd_id(), 3u);
  EXPECT_EQ(join.queues[1].sightings.size(), 1u);
  EXPECT_EQ(join.unplaced_sightings, 1u);
  ASSERT_EQ(join.notes.size(), 1u);
  EXPECT_NE(join.notes[0].find("did not live"), std::string::npos);
}

TEST(Join, a_ring_that_changes_hands_while_a_snapshot_is_read_is_of_neither_queue) {
  Case it;
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs), logged_queue(kRing, 35 * kMs, 39 * kMs)};
  it.summary.queues[0].deleted_ns = 32 * kMs;
  it.snapshot(30 * kMs, {seen_queue(4000, kRing, 2)});  // began while the first lived, and took tens of milliseconds
  it.snapshot(90 * kMs, {seen_queue(4000, kRing, 2)});
  const Join join = it.join();
  ASSERT_EQ(join.queues.size(), 2u);
  EXPECT_TRUE(join.queues[0].sightings.empty());
  EXPECT_EQ(join.queues[1].sightings.size(), 1u);
  EXPECT_EQ(join.unplaced_sightings, 1u);
}

TEST(Join, a_ring_that_two_queues_of_the_log_had_is_no_queue_of_the_runtimes_own_where_snapshots_have_no_time) {
  Case it;
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs), logged_queue(kRing, 60 * kMs, 65 * kMs)};
  it.summary.queues[0].deleted_ns = 40 * kMs;
  it.snapshot(INT64_MIN, {seen_queue(4000, kRing, 1)});
  const Join join = it.join();
  ASSERT_EQ(join.queues.size(), 2u) << "it is one of these two";
  EXPECT_EQ(join.unplaced_sightings, 1u);
}

TEST(Join, a_ring_of_two_processes_is_of_neither_even_where_a_snapshot_shows_only_one_of_them) {
  Case it;
  it.input.processes.clear();
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  it.snapshot(50 * kMs, {seen_queue(4000, kRing)});
  it.snapshot(60 * kMs, {seen_queue(4000, kRing), seen_queue(5000, kRing)});
  const Join join = it.join();
  EXPECT_TRUE(join.queues[0].sightings.empty());
  EXPECT_FALSE(join.queues[0].host_pid);
  for (std::size_t i = 1; i < join.queues.size(); ++i) EXPECT_EQ(join.queues[i].role, QueueRole::unknown_process);
}

TEST(Join, two_children_of_one_parent_with_equal_rings_are_not_both_the_one_that_a_snapshot_shows) {
  Case it;
  it.input.processes.clear();
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  ProcessSummary second = it.summary;
  second.pid = 18;
  it.input.logged = {{&it.summary, true}, {&second, true}};
  it.snapshot(50 * kMs, {seen_queue(4000, kRing)});
  Join join = join_queues(it.input);
  EXPECT_FALSE(join.processes[0].host_pid);
  EXPECT_FALSE(join.processes[1].host_pid);
  EXPECT_NE(join.processes[0].reason.find("another of the log"), std::string::npos) << join.processes[0].reason;
  EXPECT_TRUE(join.queues[0].sightings.empty());
  EXPECT_TRUE(join.queues[1].sightings.empty());
  // One that is known otherwise leaves the ring to itself.
  it.input.given = {{18, 4000}};
  join = join_queues(it.input);
  EXPECT_FALSE(join.processes[0].host_pid);
  EXPECT_EQ(join.queues[1].sightings.size(), 1u);
}

TEST(Join, snapshots_without_hqds_and_mqds_are_no_sign_of_another_run) {
  Case it;
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  it.snapshot(50 * kMs, {});
  it.input.snapshots[0].has_rings = false;
  const Join join = it.join();
  EXPECT_NE(reason_of(join.queues[0], MatchSide::snapshot).find("neither hqds nor mqds"), std::string::npos);
  std::string verdicts;
  for (const std::string& each : join_verdicts(it.input, join)) verdicts += each;
  EXPECT_EQ(verdicts.find("different runs"), std::string::npos) << verdicts;
  EXPECT_NE(verdicts.find("neither hqds nor mqds"), std::string::npos) << verdicts;
}

TEST(Join, streams_at_a_time_are_what_refcount_says_and_not_those_of_all_times) {
  Case it;
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  it.summary.queues[0].streams_most = 1;
  for (std::uint64_t i = 0; i < 5; ++i) {
    StreamSummary stream;
    stream.handle = 0x100 * (i + 1);
    stream.uses = {{static_cast<std::int64_t>(20 + i) * kMs, kRing}};
    it.summary.streams.push_back(stream);
  }
  const Join join = it.join();
  const std::string first = join_verdicts(it.input, join).front();
  EXPECT_NE(first.find("5 streams on 1 hardware queue of the log, at most 1 on one at a time"), std::string::npos)
      << first;
}

TEST(Join, an_id_that_was_handed_out_again_had_a_destruction_that_nobody_traced) {
  Case it;
  it.input.has_log = false;
  it.input.calls = {create_call(4000, 10 * kMs, 11 * kMs), create_call(4000, 20 * kMs, 21 * kMs),
                    create_call(4000, 30 * kMs, 31 * kMs)};
  for (ftrace::KfdSpan& call : it.input.calls) call.queue_id = 3;
  it.input.calls[2].verb = ftrace::KfdVerb::destroy;
  it.input.has_trace = true;
  const Join join = join_queues(it.input);
  ASSERT_EQ(join.queues.size(), 2u);
  EXPECT_EQ(join.queues[0].destroy, nullptr);
  EXPECT_EQ(join.queues[1].destroy, &it.input.calls[2]);
}

TEST(Join, queues_that_the_log_does_not_show_are_the_runtimes_own_only_where_the_log_is_whole) {
  Case it;
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  kfd::Queue small = seen_queue(4000, kRing + 0x100000, 0);
  small.ring_bytes = 4096;
  it.snapshot(50 * kMs, {seen_queue(4000, kRing, 1), small});
  it.snapshot(60 * kMs, {seen_queue(4000, kRing, 1), small});
  Join join = it.join();
  ASSERT_EQ(join.queues.size(), 2u);
  EXPECT_EQ(join.queues[1].role, QueueRole::internal);
  EXPECT_EQ(join.queues[1].sightings.size(), 2u);
  it.input.logged[0].is_whole = false;
  join = join_queues(it.input);
  EXPECT_EQ(join.queues[1].role, QueueRole::unlogged);
}

TEST(Join, processes_without_a_manifest_are_known_by_their_rings_and_never_by_equal_numbers) {
  Case it;
  it.input.processes.clear();
  it.summary.pid = 4000;  // the same number as on the host, which says nothing
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  it.input.calls = {create_call(4000, 12 * kMs, 13 * kMs)};
  EXPECT_FALSE(it.join().processes[0].host_pid);
  it.snapshot(50 * kMs, {seen_queue(4000, kRing)});
  const Join join = it.join();
  EXPECT_EQ(join.processes[0].host_pid, 4000);
  EXPECT_EQ(join.processes[0].basis, ProcessBasis::rings);
  EXPECT_EQ(join.processes[0].rings, 1u);
  it.input.snapshots.clear();
  it.input.given = {{4000, 4000}};
  EXPECT_EQ(it.join().processes[0].basis, ProcessBasis::given);
}

TEST(Join, a_log_without_pids_is_of_the_one_process_of_the_manifest_or_of_nobody) {
  Case it;
  it.summary.pid = std::nullopt;
  EXPECT_EQ(it.join().processes[0].basis, ProcessBasis::only_process);
  EXPECT_EQ(it.join().processes[0].host_pid, 4000);
  it.input.processes.push_back({{4001, 18}, "python3"});
  const Join join = it.join();
  EXPECT_FALSE(join.processes[0].host_pid);
  EXPECT_NE(join.processes[0].reason.find("2 processes"), std::string::npos);
}

TEST(Join, one_number_in_two_namespaces_is_ambiguous_unless_rings_decide) {
  Case it;
  it.input.processes = {{{4000, 17}, "a"}, {{5000, 17}, "b"}};
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  EXPECT_FALSE(it.join().processes[0].host_pid);
  it.snapshot(50 * kMs, {seen_queue(5000, kRing), seen_queue(4000, kRing + 0x200000)});
  EXPECT_EQ(it.join().processes[0].host_pid, 5000);
}

TEST(Join, a_creation_is_matched_by_queue_id_and_gives_the_way_of_it_as_ranges) {
  Case it;
  it.input.trace_clock = "mono";
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  it.snapshot(50 * kMs, {seen_queue(4000, kRing, 3)});
  it.input.calls = {create_call(4000, 12 * kMs, 12 * kMs + 150'000), create_call(4000, 16 * kMs, 17 * kMs)};
  it.input.calls[0].queue_id = 3;
  it.input.calls[1].queue_id = 4;  // a queue of the runtime's own in the same bracket
  const Join join = it.join();
  ASSERT_EQ(join.clock.basis, OffsetBasis::same_clock);
  ASSERT_EQ(join.queues.size(), 2u);
  const JoinedQueue& queue = join.queues[0];
  ASSERT_EQ(queue.create, &it.input.calls[0]);
  EXPECT_EQ(queue.evidence.back().keys, std::vector<MatchKey>{MatchKey::queue_id});
  EXPECT_EQ(queue.evidence.back().from, MatchSide::snapshot);
  ASSERT_TRUE(queue.hops.asked_to_entered && queue.hops.entered_to_left && queue.hops.left_to_created);
  EXPECT_EQ(queue.hops.asked_to_entered->least_ns, 2 * kMs - 1500);
  EXPECT_EQ(queue.hops.asked_to_entered->most_ns, 2 * kMs + 1000);
  EXPECT_EQ(queue.hops.entered_to_left->least_ns, 150'000);
  EXPECT_EQ(queue.hops.left_to_created->least_ns, 7 * kMs - 150'000 - 1000);
  EXPECT_EQ(join.queues[1].role, QueueRole::internal);
  EXPECT_EQ(join.queues[1].kfd_id(), 4u);
}

TEST(Join, two_creations_in_one_bracket_without_ids_are_not_told_apart_and_make_no_phantom_rows) {
  Case it;
  it.input.trace_clock = "mono";
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs), logged_queue(kRing + 0x200000, 30 * kMs, 35 * kMs)};
  it.input.calls = {create_call(4000, 12 * kMs, 13 * kMs), create_call(4000, 16 * kMs, 17 * kMs),
                    create_call(4000, 32 * kMs, 33 * kMs)};
  const Join join = it.join();
  ASSERT_EQ(join.queues.size(), 2u);
  EXPECT_EQ(join.queues[0].create, nullptr);
  EXPECT_NE(reason_of(join.queues[0], MatchSide::trace).find("2 creations"), std::string::npos);
  EXPECT_EQ(join.unplaced_creates, 2u);
  ASSERT_EQ(join.queues[1].create, &it.input.calls[2]);
  EXPECT_EQ(join.queues[1].evidence.back().keys, std::vector<MatchKey>{MatchKey::time});
}

TEST(Join, time_alone_matches_nothing_where_the_trace_lost_events) {
  Case it;
  it.input.trace_clock = "mono";
  it.input.has_lost_events = true;
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  it.input.calls = {create_call(4000, 12 * kMs, 13 * kMs)};
  const Join join = it.join();
  EXPECT_EQ(join.queues[0].create, nullptr);
  EXPECT_NE(reason_of(join.queues[0], MatchSide::trace).find("lost events"), std::string::npos);
}

TEST(Join, a_failed_creation_is_no_queue) {
  Case it;
  it.input.trace_clock = "mono";
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  it.input.calls = {create_call(4000, 12 * kMs, 13 * kMs), create_call(4000, 14 * kMs, 15 * kMs)};
  it.input.calls[0].result = -12;
  const Join join = it.join();
  EXPECT_EQ(join.failed_creates, 1u);
  ASSERT_EQ(join.queues.size(), 1u);
  EXPECT_EQ(join.queues[0].create, &it.input.calls[1]);
}

TEST(Join, other_clocks_are_aligned_by_brackets_and_hops_show_the_error) {
  Case it;
  it.input.trace_clock = "local";
  it.summary.queues = {logged_queue(kRing, 1010 * kMs, 1019 * kMs)};
  it.input.calls = {create_call(4000, 12 * kMs, 13 * kMs)};
  const Join join = it.join();
  ASSERT_EQ(join.clock.basis, OffsetBasis::brackets);
  EXPECT_LE(join.clock.range.low_ns, 1000 * kMs);
  EXPECT_GE(join.clock.range.high_ns, 1000 * kMs);
  const JoinedQueue& queue = join.queues[0];
  ASSERT_TRUE(queue.hops.asked_to_entered);
  EXPECT_EQ(queue.hops.asked_to_entered->least_ns, 0);
  EXPECT_FALSE(queue.hops.asked_to_entered->is_distinguishable);
  EXPECT_GE(queue.hops.asked_to_entered->most_ns, 2 * kMs);
  EXPECT_TRUE(queue.hops.entered_to_left->is_distinguishable);
}

TEST(Join, without_an_offset_hops_between_the_clocks_are_missing_with_the_reason) {
  Case it;
  it.summary.queues = {logged_queue(kRing, 1010 * kMs, 1019 * kMs)};
  it.input.calls = {create_call(4000, 12 * kMs, 13 * kMs), create_call(4000, 900 * kMs, 901 * kMs)};
  it.input.calls[0].ring_base = kRing + 0x500000;
  it.input.calls[1].ring_base = kRing + 0x600000;
  const Join none = it.join();
  EXPECT_FALSE(none.clock.is_known());
  it.input.calls[1].ring_base = kRing;  // what a probe told decides
  const Join join = it.join();
  ASSERT_EQ(join.queues[0].create, &it.input.calls[1]);
  EXPECT_TRUE(join.clock.is_known());
}

TEST(Join, mono_that_the_log_contradicts_gives_no_offset_and_no_match_by_time) {
  Case it;
  it.input.trace_clock = "mono";
  it.summary.queues = {logged_queue(kRing, 1010 * kMs, 1019 * kMs)};
  it.input.calls = {create_call(4000, 12 * kMs, 13 * kMs)};
  const Join join = it.join();
  EXPECT_FALSE(join.clock.is_known());
  EXPECT_FALSE(join.clock.warning.empty());
  EXPECT_EQ(join.queues[0].create, nullptr);
  EXPECT_FALSE(join.queues[0].hops.asked_to_entered);
  EXPECT_TRUE(join.queues[0].hops.asked_to_created);
}

TEST(Join, an_end_that_was_not_traced_bounds_hops_from_one_side) {
  Case it;
  it.input.trace_clock = "mono";
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  it.input.calls = {create_call(4000, 12 * kMs, 13 * kMs)};
  it.input.calls[0].end = ftrace::EndKind::at_least;
  const Join join = it.join();
  const CreationHops& hops = join.queues[0].hops;
  EXPECT_FALSE(hops.is_left_exact);
  EXPECT_EQ(hops.entered_to_left->least_ns, kMs);
  EXPECT_EQ(hops.entered_to_left->most_ns, INT64_MAX);
  EXPECT_EQ(hops.left_to_created->least_ns, 0);
  EXPECT_EQ(hops.left_to_created->most_ns, 6 * kMs + 1500);
}

TEST(Join, streams_go_to_the_queue_that_had_the_address_then) {
  Case it;
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs), logged_queue(kRing, 60 * kMs, 65 * kMs)};
  StreamSummary early, late;
  early.handle = 0x100;
  early.uses = {{20 * kMs, kRing}};
  late.handle = 0x200;
  late.uses = {{66 * kMs, kRing}, {67 * kMs, kRing}};
  it.summary.streams = {early, late};
  const Join join = it.join();
  ASSERT_EQ(join.queues[0].streams.size(), 1u);
  EXPECT_EQ(join.queues[0].streams[0].handle, 0x100u);
  ASSERT_EQ(join.queues[1].streams.size(), 1u);
  EXPECT_EQ(join.queues[1].streams[0].handle, 0x200u);
}

TEST(Join, a_queue_of_sysfs_alone_is_joined_by_its_id) {
  Case it;
  it.summary.queues = {logged_queue(kRing, 10 * kMs, 19 * kMs)};
  it.snapshot(50 * kMs, {seen_queue(4000, kRing, 3)});
  kfd::Queue without_ring = seen_queue(4000, 0, 3);
  without_ring.mqd_bases.clear();
  it.snapshot(60 * kMs, {without_ring});
  const Join join = it.join();
  ASSERT_EQ(join.queues.size(), 1u);
  ASSERT_EQ(join.queues[0].sightings.size(), 2u);
  EXPECT_EQ(join.queues[0].evidence.back().keys, std::vector<MatchKey>{MatchKey::queue_id});
}

TEST(Join, without_a_log_snapshots_and_trace_are_joined_among_themselves) {
  Case it;
  it.snapshot(50 * kMs, {seen_queue(4000, kRing, 3)});
  it.input.calls = {create_call(4000, 12 * kMs, 13 * kMs)};
  it.input.calls[0].queue_id = 3;
  it.input.has_log = false;
  it.input.has_trace = true;
  it.input.logged.clear();
  const Join join = join_queues(it.input);
  ASSERT_EQ(join.queues.size(), 1u);
  EXPECT_EQ(join.queues[0].create, &it.input.calls[0]);
  EXPECT_EQ(join.queues[0].role, QueueRole::unknown_process);
  EXPECT_EQ(reason_of(join.queues[0], MatchSide::log), "there is no log");
  EXPECT_EQ(join.clock.reason, "there is no log");
}

}  // namespace
}  // namespace weir::amd
