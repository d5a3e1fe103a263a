// Totals of KFD's spans: counts and durations by verb and process, each create, MQDs per create. Its document is
// weir.amd_ftrace/2. Memory is bounded for any file. Knows no text for people.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "amd/ftrace/read.h"
#include "base/json.h"

namespace weir::ftrace {

// A distribution of durations in bounded memory: exact for few values, within 1.6 % for more.
class Tally {
 public:
  void add(std::int64_t ns);  // not negative
  std::uint64_t count() const { return count_; }
  std::int64_t smallest() const { return smallest_; }
  std::int64_t largest() const { return largest_; }
  // Exact for up to kFew values; for more, the middle of the bucket. -1 if there are none.
  double quantile(double level) const;
  // {"count", "min", "p50", "p90", "p99", "max", "quantile_error"}, or null if there are none.
  Json document() const;

  static constexpr std::size_t kFew = 1024;

 private:
  static std::size_t bucket_of(std::uint64_t value);
  static double middle_of(std::size_t bucket);

  std::uint64_t count_ = 0;
  std::int64_t smallest_ = INT64_MAX, largest_ = -1;
  std::vector<std::int64_t> few_;       // empty once there are many
  std::vector<std::uint64_t> buckets_;  // 32 per power of two
};

// Exact durations and bounds are never mixed; failed calls are in neither.
struct VerbTally {
  std::uint64_t calls = 0, failed = 0, succeeded = 0;  // the result of the rest is unknown
  std::uint64_t bounded = 0, unknown = 0;              // durations that are not exact
  Tally exact, at_least, at_most;

  void add(const KfdSpan& span);
};

class KfdSummary final : public KfdSink {
 public:
  void on(const KfdSpan& span) override;

  const VerbTally& of(KfdVerb verb) const { return verbs_[static_cast<std::size_t>(verb)]; }
  // Creates that are not known to have failed.
  std::uint64_t creates() const { return of(KfdVerb::create).calls - of(KfdVerb::create).failed; }
  std::uint64_t creates_with_doorbell() const { return creates_with_doorbell_; }

  Json verbs_document() const;
  Json processes_document() const;
  Json mqds_document(const KfdCalls& calls) const;
  Json creates_document() const;

 private:
  using Verbs = std::array<VerbTally, kVerbs>;
  struct Owner {
    bool is_process = false;  // false: a thread whose process was not recorded
    int id = 0;
    auto operator<=>(const Owner&) const = default;
  };
  static constexpr std::size_t kOwners = 64;    // with numbers of their own; the rest are merged
  static constexpr std::size_t kCreates = 256;  // listed one by one
  static constexpr std::size_t kRepeats = 64;   // distinct numbers of calls per create

  Verbs verbs_;
  std::map<Owner, std::map<KfdVerb, VerbTally>> owners_;
  std::map<KfdVerb, VerbTally> others_;
  std::uint64_t creates_with_doorbell_ = 0;
  std::map<int, std::uint64_t> allocations_, inits_;  // number of calls per create -> number of creates
  std::vector<KfdSpan> first_creates_;
};

struct DocumentOptions {
  std::string file;
  std::string trace_clock;  // as the user gave it; empty: unknown
  std::vector<std::string> command_line;
};
// weir.amd_ftrace/2.
Json ftrace_document(const KfdSummary& summary, const FtraceCounters& counters, const DocumentOptions& options);

// answers.cpp: the questions that such traces are recorded for, each with an answer or the reason why there is none.
Json ftrace_answers(const KfdSummary& summary, const FtraceCounters& counters);

}  // namespace weir::ftrace
