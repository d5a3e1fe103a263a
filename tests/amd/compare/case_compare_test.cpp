// What two logs, captures or timelines are said to have in common and to differ in: only what they show.
#include "amd/compare/case_compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "amd/capture/manifest.h"
#include "amd/compare/case_document.h"
#include "amd/compare/case_load.h"
#include "amd/compare/case_texts.h"
#include "amd/compare/case_verdict.h"
#include "amd/log/log_document.h"
#include "base/error.h"
#include "support/kfd_text.h"

namespace weir::amd {
namespace {

namespace fs = std::filesystem;
using testing::LogText;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "weir-case-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }
  fs::path path() const { return path_; }

 private:
  fs::path path_;
};

constexpr std::uint64_t kSwq = 0x7f8edc1a8000, kHwq = 0x7f8acd200000;

// Launches with irregular gaps around `gap_us`, a barrier after every tenth.
std::string busy_log(int pid, int launches, std::uint64_t gap_us, std::uint64_t backlog, std::uint64_t hwq = kHwq,
                     std::uint64_t begin_us = 20'159'561'000) {
  LogText log(pid, begin_us);
  log.queue(kSwq, hwq);
  for (int i = 0; i < launches; ++i) {
    log.launch(kSwq, hwq, i % 3 == 0 ? "gemm" : "relu", backlog + static_cast<std::uint64_t>(i % 2));
    log.wait(gap_us + static_cast<std::uint64_t>(i * 7 % 5) * gap_us / 10);
    if (i % 10 == 9) log.barrier(kSwq, hwq);
  }
  return log.text();
}

const Compared& row(const std::vector<Compared>& rows, std::string_view name) {
  for (const Compared& each : rows)
    if (each.name == name) return each;
  throw std::out_of_range(std::string(name));
}

TEST(CaseCompare, claims_what_differs_between_two_logs) {
  const Folder folder;
  const CaseSide a = load_case(folder.write("a.log", busy_log(100, 2000, 100, 0)));
  const CaseSide b = load_case(folder.write("b.log", busy_log(200, 2000, 300, 6)));
  EXPECT_EQ(a.source, CaseSource::log);
  EXPECT_EQ(a.launches, 2000u);
  EXPECT_EQ(a.barriers, 200u);
  EXPECT_EQ(a.count(CaseQueue::Kind::compute), 1u);
  const std::vector<Compared> rows = compare_quantities(a, b);
  EXPECT_EQ(row(rows, "launch_rate").claim, Claim::a_more);
  EXPECT_NEAR(*row(rows, "launch_rate").a.value, 1e6 / 120, 300);
  EXPECT_NEAR(*row(rows, "launch_rate").ratio, 1 / 3.0, 0.02);
  EXPECT_EQ(row(rows, "gap_ns").claim, Claim::b_more);
  EXPECT_EQ(row(rows, "backlog").claim, Claim::b_more);
  EXPECT_NEAR(*row(rows, "backlog").b.value, 6.5, 0.1);
  EXPECT_EQ(row(rows, "kernel_duration_ns").claim, Claim::not_comparable);
  EXPECT_NE(row(rows, "kernel_duration_ns").reason.find("timeline"), std::string::npos);
  EXPECT_EQ(row(rows, "copy_rate").claim, Claim::not_comparable) << "no line of a copy is not no copy";
  EXPECT_FALSE(a.copies.has_value());
}

TEST(CaseCompare, a_file_differs_in_nothing_from_itself) {
  const Folder folder;
  const fs::path file = folder.write("a.log", busy_log(100, 1000, 100, 2));
  const CaseSide a = load_case(file), b = load_case(folder.path() / "." / "a.log");
  for (const Compared& each : compare_quantities(a, b))
    EXPECT_TRUE(each.claim == Claim::ambiguous || each.claim == Claim::not_comparable) << each.name;
  const QueueRelation relation = relate_queues(a, b);
  EXPECT_EQ(relation.kind, QueueRelation::Kind::same_input);
  EXPECT_EQ(relation.shared.size(), 1u);
}

TEST(CaseCompare, two_runs_of_the_same_are_not_told_apart) {
  const Folder folder;
  const CaseSide a = load_case(folder.write("a.log", busy_log(100, 1500, 100, 2)));
  const CaseSide b = load_case(folder.write("b.log", busy_log(200, 1700, 100, 2, kHwq, 90'000'000)));
  for (const Compared& each : compare_quantities(a, b))
    EXPECT_TRUE(each.claim == Claim::ambiguous || each.claim == Claim::not_comparable) << each.name;
}

TEST(CaseCompare, equal_addresses_of_two_processes_are_no_shared_queue) {
  const Folder folder;
  const CaseSide a = load_case(folder.write("a.log", busy_log(100, 50, 100, 0)));
  const CaseSide b = load_case(folder.write("b.log", busy_log(200, 50, 100, 0)));
  const QueueRelation relation = relate_queues(a, b);
  EXPECT_EQ(relation.kind, QueueRelation::Kind::different_processes);
  EXPECT_TRUE(relation.shared.empty());
  EXPECT_EQ(relation.equal_addresses, 1u);
}

TEST(CaseCompare, one_process_in_two_logs_shares_the_queues_whose_creation_both_tell_of) {
  const Folder folder;
  LogText first(100);
  first.queue(kSwq, kHwq);
  std::string second = first.text();  // the same creation
  first.launch(kSwq, kHwq, "gemm");
  LogText more(100, 20'159'900'000);
  more.queue(kSwq + 64, kHwq + 0x200000, 2).launch(kSwq + 64, kHwq + 0x200000, "relu");
  second += more.text();
  const CaseSide a = load_case(folder.write("a.log", first.text())), b = load_case(folder.write("b.log", second));
  const QueueRelation relation = relate_queues(a, b);
  EXPECT_EQ(relation.kind, QueueRelation::Kind::same_process);
  EXPECT_EQ(relation.shared, std::vector<std::string>{"0x7f8acd200000"});
  EXPECT_EQ(relation.only_a, 0u);
  EXPECT_EQ(relation.only_b, 1u);
  EXPECT_EQ(judge_preemption(a, b, compare_quantities(a, b), relation).strategy, "");
}

TEST(CaseCompare, an_equal_pid_alone_proves_nothing) {
  const Folder folder;
  const CaseSide a = load_case(folder.write("a.log", busy_log(100, 50, 100, 0)));
  const CaseSide b = load_case(folder.write("b.log", busy_log(100, 50, 100, 0, kHwq, 90'000'000)));
  EXPECT_EQ(relate_queues(a, b).kind, QueueRelation::Kind::unknown);
}

TEST(CaseCompare, a_log_of_level_3_has_no_packets_and_no_processes) {
  const Folder folder;
  LogText log(0, 6'306'213'494, false);
  log.queue(kSwq, kHwq);
  for (int i = 0; i < 500; ++i) log.launch(kSwq, kHwq, "gemm").wait(100 + static_cast<std::uint64_t>(i % 9));
  const CaseSide a = load_case(folder.write("a.log", log.text()));
  const CaseSide b = load_case(folder.write("b.log", busy_log(200, 500, 100, 0)));
  EXPECT_TRUE(a.has_unknown_process);
  EXPECT_FALSE(a.barriers.has_value());
  EXPECT_EQ(a.launches, 500u);
  const std::vector<Compared> rows = compare_quantities(a, b);
  for (const char* name : {"backlog", "barrier_rate"}) {
    EXPECT_EQ(row(rows, name).claim, Claim::not_comparable) << name;
    EXPECT_NE(row(rows, name).reason.find("level 4"), std::string::npos) << row(rows, name).reason;
  }
  EXPECT_EQ(row(rows, "gap_ns").claim, Claim::not_comparable) << "one is of names, the other of packets";
  EXPECT_EQ(relate_queues(a, b).kind, QueueRelation::Kind::unknown);
}

TEST(CaseCompare, copies_of_a_log_are_counted_where_it_has_them) {
  const Folder folder;
  LogText log(100);
  log.queue(kSwq, kHwq, 2);
  for (int i = 0; i < 300; ++i) log.launch(kSwq, kHwq, "gemm").copy(4096).wait(200);
  const CaseSide a = load_case(folder.write("a.log", log.text()));
  EXPECT_EQ(a.copies, 300u);
  EXPECT_EQ(a.copied_bytes, 300u * 4096);
  EXPECT_EQ(a.copy_engines, 1u);
  EXPECT_EQ(a.queues[0].priority, 2);
  EXPECT_FALSE(a.copy_queues_reason.empty()) << "an engine is not a queue";
}

TEST(CaseCompare, timelines_name_their_own_queues) {
  const CaseSide a = side_of_timeline(testing::kernels(300, 20'000), "a.json");
  const CaseSide b = side_of_timeline(testing::kernels(300, 20'000), "b.json");
  EXPECT_EQ(a.count(CaseQueue::Kind::compute), 1u);
  EXPECT_EQ(relate_queues(a, b).kind, QueueRelation::Kind::unknown);
  const CaseSide unnamed = side_of_timeline(testing::kernels(300, 20'000, 0, 10, kNoQueue), "c.json");
  EXPECT_TRUE(unnamed.queues.empty()) << "streams are no queues";
  EXPECT_FALSE(unnamed.queues_reason.empty());
  EXPECT_THROW(side_of_timeline(Timeline{}, "empty.json"), Error);
}

TEST(CaseCompare, a_queue_of_copies_alone_is_a_copy_engines) {
  Timeline both = testing::kernels(100, 20'000);
  const auto copy = [&](std::int32_t queue) {
    Span span = both.spans[both.spans.size() / 2];
    span.kind = SpanKind::copy;
    span.name = 1;
    span.bytes = 4096;
    span.queue = queue;
    both.spans.push_back(span);
  };
  copy(3);  // beside kernels
  copy(5);
  copy(kCopyQueues + 1);
  const CaseSide named = side_of_timeline(both, "a.json");
  EXPECT_EQ(named.count(CaseQueue::Kind::compute), 1u);
  EXPECT_EQ(named.count(CaseQueue::Kind::copy), 2u);
  EXPECT_EQ(named.copies, 3u);
  EXPECT_TRUE(named.copy_queues_reason.empty());
  copy(kNoQueue);
  EXPECT_FALSE(side_of_timeline(both, "a.json").copy_queues_reason.empty());
}

TEST(CaseCompare, a_log_and_a_timeline_are_compared_where_they_tell_the_same) {
  const Folder folder;
  const CaseSide a = load_case(folder.write("a.log", busy_log(100, 500, 100, 0)));
  const CaseSide b = side_of_timeline(testing::kernels(500, 20'000), "b.json");
  const std::vector<Compared> rows = compare_quantities(a, b);
  EXPECT_EQ(row(rows, "launch_rate").claim, Claim::b_more);
  for (const char* name : {"gap_ns", "backlog", "pause_share", "kernel_duration_ns"})
    EXPECT_EQ(row(rows, name).claim, Claim::not_comparable) << name;
}

// `count` kernels of 100 us, each with a copy beside it.
CaseSide copying(int count) {
  Timeline both = testing::kernels(count, 100'000);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    Span span = both.spans[i];
    span.kind = SpanKind::copy;
    span.name = 1;
    span.bytes = 4096;
    span.queue = 5;
    both.spans.push_back(span);
  }
  return side_of_timeline(both, "a.json");
}

TEST(CaseCompare, none_at_all_is_less_than_many) {
  const CaseSide a = copying(2000), b = side_of_timeline(testing::kernels(2000, 100'000), "b.json");
  const std::vector<Compared> rows = compare_quantities(a, b);
  EXPECT_EQ(row(rows, "copy_rate").claim, Claim::a_more);
  EXPECT_EQ(row(rows, "copied_bytes_rate").claim, Claim::a_more);
  EXPECT_EQ(*row(rows, "copy_rate").b.value, 0);
  EXPECT_DOUBLE_EQ(row(rows, "copy_rate").b.interval->high, 3e9 / b.observed_ns) << "none seen is not never";
  EXPECT_DOUBLE_EQ(row(rows, "copied_bytes_rate").b.interval->high, 3e9 / b.observed_ns * 4096);
}

TEST(CaseCompare, none_in_a_moment_is_not_less_than_a_few) {
  // One copy each 106 us; B ends after 200 us.
  const CaseSide a = copying(2000), b = side_of_timeline(testing::kernels(20, 10'000), "b.json");
  const std::vector<Compared> rows = compare_quantities(a, b);
  EXPECT_GT(row(rows, "copy_rate").a.interval->low, 0);
  for (const char* name : {"copy_rate", "copied_bytes_rate"})
    EXPECT_EQ(row(rows, name).claim, Claim::ambiguous) << name;
}

TEST(CaseCompare, none_on_either_side_is_no_difference) {
  const CaseSide a = side_of_timeline(testing::kernels(2000, 100'000), "a.json");
  const CaseSide b = side_of_timeline(testing::kernels(5000, 100'000), "b.json");
  const std::vector<Compared> rows = compare_quantities(a, b);
  for (const char* name : {"copy_rate", "copied_bytes_rate", "pause_share"})
    EXPECT_EQ(row(rows, name).claim, Claim::ambiguous) << name;
  EXPECT_DOUBLE_EQ(row(rows, "pause_share").a.interval->high, 3e7 / a.observed_ns);
}

TEST(CaseCompare, rates_of_a_short_time_are_told_with_a_note_and_pauses_are_not_told) {
  const CaseSide a = side_of_timeline(testing::kernels(4000, 8'000), "a.json");
  const CaseSide b = side_of_timeline(testing::kernels(4000, 80'000), "b.json");
  ASSERT_LT(a.observed_ns, 1e8);
  ASSERT_GT(b.observed_ns, 1e8);
  const std::vector<Compared> rows = compare_quantities(a, b);
  EXPECT_EQ(row(rows, "launch_rate").claim, Claim::a_more);
  EXPECT_EQ(row(rows, "pause_share").claim, Claim::not_comparable);
  EXPECT_NE(row(rows, "pause_share").reason.find("A: observed for 34"), std::string::npos)
      << row(rows, "pause_share").reason;
  EXPECT_EQ(row(rows, "pause_share").b.value, 0.0);
  const Json document = case_comparison(a, b);
  EXPECT_EQ(document["a"]["notes"].size(), 1u);
  EXPECT_TRUE(document["b"]["notes"].empty());
}

PreemptionVerdict verdict(const CaseSide& a, const CaseSide& b) {
  return judge_preemption(a, b, compare_quantities(a, b), relate_queues(a, b));
}
CaseSide timeline(int count, std::int64_t length_ns, std::int64_t pause_ns = 0) {
  return side_of_timeline(testing::kernels(count, length_ns, pause_ns), "t.json");
}

TEST(CaseVerdict, short_kernels_of_b_want_no_more_than_priority) {
  const PreemptionVerdict found = verdict(timeline(2000, 20'000), timeline(2000, 50'000));
  EXPECT_EQ(found.strategy, "priority");
  EXPECT_TRUE(found.is_premise_assumed);
}

TEST(CaseVerdict, long_kernels_beside_a_case_that_pauses_want_suspending) {
  // Ten kernels of 0.2 ms, then 20 ms of nothing.
  const PreemptionVerdict found = verdict(timeline(3000, 200'000, 20'000'000), timeline(300, 5'000'000));
  EXPECT_EQ(found.strategy, "suspend_resume");
  EXPECT_EQ(found.strategies[0].fit, RuleFit::does_not_fit);
}

TEST(CaseVerdict, long_kernels_beside_a_case_without_pauses_want_slices) {
  const PreemptionVerdict found = verdict(timeline(3000, 200'000), timeline(300, 5'000'000));
  EXPECT_EQ(found.strategy, "time_slice");
  EXPECT_EQ(found.strategies[1].fit, RuleFit::does_not_fit);
}

TEST(CaseVerdict, no_pause_in_a_moment_is_not_no_pause) {
  const PreemptionVerdict found = verdict(timeline(300, 200'000), timeline(300, 5'000'000));
  EXPECT_EQ(found.strategies[1].fit, RuleFit::cannot_say);
  EXPECT_EQ(found.strategies[2].fit, RuleFit::cannot_say);
  EXPECT_EQ(found.strategy, "");
  EXPECT_NE(found.because.find("observed for 63"), std::string::npos) << found.because;
}

TEST(CaseVerdict, a_few_long_kernels_count_by_their_time) {
  // One in 200 takes 100 ms: half of a percent of the launches, most of the time.
  Timeline mixed = testing::kernels(2000, 50'000);
  std::int64_t shift = 0;
  for (std::size_t i = 0; i < mixed.spans.size(); ++i) {
    mixed.spans[i].started_ns += shift;
    mixed.spans[i].submitted_ns = mixed.spans[i].accepted_ns += shift;
    if (i % 200 == 100) shift += 100'000'000;
    mixed.spans[i].ended_ns += shift;
  }
  const PreemptionVerdict found = verdict(timeline(2000, 20'000), side_of_timeline(mixed, "b.json"));
  EXPECT_EQ(found.strategies[0].fit, RuleFit::does_not_fit);
}

TEST(CaseVerdict, few_kernels_say_nothing) {
  const PreemptionVerdict found = verdict(timeline(2000, 20'000), timeline(50, 50'000));
  EXPECT_EQ(found.strategy, "");
  EXPECT_EQ(found.strategies[0].fit, RuleFit::cannot_say);
}

TEST(CaseVerdict, no_long_kernel_in_a_moment_is_not_none) {
  const PreemptionVerdict found = verdict(timeline(2000, 20'000), timeline(200, 50'000));
  EXPECT_EQ(found.strategies[0].fit, RuleFit::cannot_say);
  const RuleNumber& share = found.strategies[0].numbers[0];
  EXPECT_EQ(share.value, 0.0);
  ASSERT_TRUE(share.interval.has_value());
  EXPECT_NEAR(share.interval->high, 3 / (3 + 10.6), 0.01) << "three of 1 ms beside 10.6 ms";
}

TEST(CaseVerdict, a_long_kernel_that_no_sample_has_is_not_forgotten) {
  for (std::size_t at = 4000; at < 8000; ++at) {
    Timeline rare = testing::kernels(9000, 20'000);
    rare.spans[at].ended_ns = rare.spans[at].started_ns + 50'000'000;
    const CaseSide b = side_of_timeline(rare, "b.json");
    const std::vector<double>& samples = b.of(CaseQuantity::kernel_duration).values;
    if (*std::max_element(samples.begin(), samples.end()) > 1e6) continue;
    const PreemptionVerdict found = verdict(timeline(2000, 20'000), b);
    EXPECT_EQ(found.strategies[0].fit, RuleFit::cannot_say);
    EXPECT_NE(found.strategies[0].because.find("50.0 ms"), std::string::npos) << found.strategies[0].because;
    return;
  }
  FAIL() << "every kernel is a sample";
}

TEST(CaseVerdict, a_bound_denies_and_never_grants) {
  const Folder folder;
  LogText resting(100);
  resting.queue(kSwq, kHwq);
  for (int i = 0; i < 3000; ++i) {
    resting.launch(kSwq, kHwq, "gemm").wait(100);
    if (i % 10 == 9) resting.wait(30'000);
  }
  const CaseSide a = load_case(folder.write("a.log", resting.text()));
  const CaseSide b = load_case(folder.write("b.log", busy_log(200, 1000, 100, 0)));
  const PreemptionVerdict pausing = verdict(a, b);
  EXPECT_EQ(pausing.strategy, "");
  EXPECT_EQ(pausing.strategies[1].numbers[1].bound, "at most");
  EXPECT_GT(*pausing.strategies[1].numbers[1].value, 0.9);
  EXPECT_EQ(pausing.strategies[1].fit, RuleFit::cannot_say) << "the device may have worked in A's pauses";
  EXPECT_EQ(pausing.strategies[2].fit, RuleFit::cannot_say);
  EXPECT_FALSE(pausing.is_premise_assumed) << "two processes";
  const PreemptionVerdict busy = verdict(b, a);
  EXPECT_EQ(busy.strategies[1].fit, RuleFit::does_not_fit) << "even at most so many pauses are too few";
  EXPECT_EQ(busy.strategies[0].fit, RuleFit::cannot_say) << "a log does not say how long kernels are";
  EXPECT_EQ(busy.strategy, "");
}

TEST(CaseVerdict, many_queues_are_too_many_to_suspend) {
  CaseSide b = timeline(300, 5'000'000);
  for (int i = 0; i < 9; ++i) b.queues.push_back(b.queues[0]);
  const PreemptionVerdict found = verdict(timeline(3000, 200'000, 20'000'000), b);
  EXPECT_EQ(found.strategies[1].fit, RuleFit::does_not_fit);
  EXPECT_EQ(found.strategy, "");
}

CaseSide with_queues(int compute, int copy, bool are_copies_known = true) {
  CaseSide side;
  for (int i = 0; i < compute + copy; ++i) {
    CaseQueue queue;
    queue.kind = i < compute ? CaseQueue::Kind::compute : CaseQueue::Kind::copy;
    side.queues.push_back(queue);
  }
  if (!are_copies_known) side.copy_queues_reason = "not shown";
  return side;
}

TEST(CaseExpectation, holds_or_not_or_cannot_be_said) {
  const auto outcomes = [](const CaseSide& a, const CaseSide& b) {
    const std::vector<Expectation> rows = check_expectations(a, b);
    return std::string(rows.at(0).outcome) + " " + std::string(rows.at(1).outcome);
  };
  EXPECT_EQ(outcomes(with_queues(2, 1), with_queues(1, 0)), "as_expected as_expected");
  EXPECT_EQ(outcomes(with_queues(2, 0), with_queues(1, 1)), "other other");
  EXPECT_EQ(outcomes(with_queues(1, 0, false), with_queues(1, 0, false)), "cannot_say cannot_say");
  EXPECT_EQ(outcomes(with_queues(5, 0, false), with_queues(3, 0, false)), "other other")
      << "more than expected already";
  CaseSide none;
  none.queues_reason = "no log";
  EXPECT_EQ(outcomes(none, none), "cannot_say cannot_say");
}

TEST(CaseLoad, rejects_what_is_no_case) {
  const Folder folder;
  EXPECT_THROW(load_case(folder.path() / "missing"), Error);
  EXPECT_THROW(load_case(folder.write("empty.log", "")), Error);
  EXPECT_THROW(load_case(folder.write("binary", std::string("\x7f"
                                                            "ELF\0\0\1\2\3",
                                                            9))),
               Error);
  EXPECT_THROW(load_case(folder.write("words.txt", "nothing of the kind\n")), Error);
  EXPECT_THROW(load_case(folder.write("result.json", "{\"schema\": \"weir.result/2\", \"status\": \"complete\"}\n")),
               Error);
  fs::create_directories(folder.path() / "no_capture");
  EXPECT_THROW(load_case(folder.path() / "no_capture"), Error);
}

TEST(CaseReport, says_what_the_log_says_but_for_samples) {
  const Folder folder;
  const fs::path file = folder.write("a.log", busy_log(100, 20'000, 100, 1));
  std::vector<SummarisedLog> logs(1);
  logs[0].file = "a.log";
  logs[0].reading = read_log(file, logs[0].summary);
  const CaseSide log = load_case(file);
  const CaseSide report = load_case(folder.write("a.json", to_text(log_document(logs))));
  EXPECT_EQ(report.source, CaseSource::log_report);
  EXPECT_EQ(report.launches, log.launches);
  EXPECT_EQ(report.barriers, log.barriers);
  EXPECT_EQ(report.pids, log.pids);
  ASSERT_EQ(report.queues.size(), 1u);
  EXPECT_EQ(report.queues[0].ring, log.queues[0].ring);
  EXPECT_EQ(report.queues[0].created_ns, log.queues[0].created_ns);
  EXPECT_EQ(report.kernels.size(), log.kernels.size());
  EXPECT_TRUE(report.kernels_reason.empty()) << report.kernels_reason;
  const std::vector<Compared> rows = compare_quantities(log, report);
  EXPECT_EQ(row(rows, "launch_rate").claim, Claim::ambiguous);
  EXPECT_NEAR(*row(rows, "launch_rate").ratio, 1, 0.05);
  EXPECT_EQ(row(rows, "gap_ns").claim, Claim::not_comparable);
  EXPECT_EQ(relate_queues(log, report).kind, QueueRelation::Kind::same_process) << "the same creation";
  EXPECT_THROW(load_case(folder.write("none.json", "{\"schema\": \"weir.amd_log/2\", \"files\": [3, {}]}")), Error);
}

// A capture: its log, and snapshots that show the same queue, one of a copy engine, and one of somebody else.
CaptureManifest manifest_of(int host_pid) {
  CaptureManifest manifest;
  manifest.command = {"./program"};
  manifest.started_at = "2026-11-16T09:00:00Z";
  manifest.weir = "0.1.0";
  manifest.started_ns = 1;
  manifest.ended_ns = 2;
  manifest.exit_code = 0;
  manifest.kernel_release = "6.8.0";
  manifest.processes = {{{host_pid, 17}, "program"}};
  return manifest;
}

TEST(CaseCapture, puts_log_and_snapshots_together_by_ring) {
  testing::Scene scene = testing::random_scene(5, testing::Gfx::gfx9_4_3);
  scene.processes = {{4000, 17, "program"}, {5000, 18, "other"}};
  ASSERT_FALSE(scene.queues.empty());
  testing::SceneQueue queue;
  for (const testing::SceneQueue& each : scene.queues)
    if (!each.is_sdma && each.is_mapped) queue = each;
  queue.process = 0;
  queue.gpu = 0;
  testing::SceneQueue other = queue;
  other.process = 1;
  other.id = 1;
  other.ring_base += 0x10000000;
  other.mqd_base += 0x100000;
  other.doorbell += 0x40;
  other.slot = queue.slot == 2 ? 3 : 2;
  other.vmid = queue.vmid == 8 ? 9 : 8;
  scene.queues = {queue, other};
  scene.streams.clear();
  scene.launches.clear();
  scene.preemptions.clear();
  const Folder folder;
  testing::write_snapshot(scene, folder.path() / "snapshots" / "during-01");
  folder.write("amd.log", busy_log(17, 200, 100, 0, queue.ring_base));
  CaptureManifest manifest = manifest_of(4000);
  manifest.parts = {{"log", {"amd.log"}, "", ""}};
  manifest.snapshots = {{"during-01", "snapshots/during-01", 5}};
  folder.write("manifest.json", to_text(to_json(manifest)));
  const CaseSide side = load_case(folder.path());
  EXPECT_EQ(side.source, CaseSource::capture);
  EXPECT_EQ(side.launches, 200u);
  EXPECT_TRUE(side.copy_queues_reason.empty()) << side.copy_queues_reason;
  const auto seen = [&](std::uint64_t ring) {
    for (const CaseQueue& each : side.queues)
      if (each.ring == ring) return each.seen_in;
    return std::string("nowhere");
  };
  EXPECT_EQ(seen(queue.ring_base), "log and snapshot");
  EXPECT_EQ(seen(other.ring_base), "nowhere") << "it is another process's";
  EXPECT_FALSE(side.slots.empty());
}

TEST(CaseCapture, without_anything_is_rejected) {
  const Folder folder;
  CaptureManifest manifest = manifest_of(4000);
  manifest.parts = {{"log", {}, "the program wrote none", "is it a HIP program?"}};
  folder.write("manifest.json", to_text(to_json(manifest)));
  try {
    load_case(folder.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("empty capture"), std::string::npos) << error.what();
  }
}

TEST(CaseDocument, has_a_reason_for_everything_that_is_null) {
  const Folder folder;
  const CaseSide a = load_case(folder.write("a.log", busy_log(100, 500, 100, 0)));
  const CaseSide b = side_of_timeline(testing::kernels(500, 20'000), "b.json");
  const Json document = case_comparison(a, b);
  EXPECT_EQ(document["schema"], "weir.amd_compare/1");
  EXPECT_TRUE(document["verdict"]["is_rule"].get<bool>());
  for (const Json& each : document["quantities"])
    EXPECT_EQ(each["reason"].is_null(), each["claim"] != "not_comparable") << each.dump();
  for (const char* key : {"a", "b"}) {
    EXPECT_EQ(document[key]["copies"].is_null(), document[key]["copies_reason"].is_string());
    EXPECT_EQ(document[key]["barriers"].is_null(), document[key]["barriers_reason"].is_string());
    EXPECT_EQ(document[key]["queues"]["copy"].is_null(), document[key]["queues"]["copy_reason"].is_string());
  }
  EXPECT_EQ(document["kernels"]["a"], 2);
  EXPECT_EQ(document["kernels"]["common"], 1) << "gemm";
}

// A real log of 16 streams on 4 queues (level 3).
TEST(CaseReal, a_log_against_itself) {
  const char* const data = std::getenv("WEIR_REAL_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEIR_REAL_DATA is not set";
  const CaseSide side = load_case(fs::path(data) / "amd" / "mi308x_16streams_level3.log");
  EXPECT_EQ(side.count(CaseQueue::Kind::compute), 4u);
  EXPECT_TRUE(side.has_unknown_process);
  const Json document = case_comparison(side, side);
  EXPECT_EQ(document["queues"]["relation"], "same_input");
  EXPECT_TRUE(document["verdict"]["strategy"].is_null());
}

}  // namespace
}  // namespace weir::amd
