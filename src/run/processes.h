// One result from several processes: medians of one program differ between processes by more than samples within one
// show, so each process is short and there are several. Runs them round after round (rounds.h) and puts their documents
// together: lists of samples hold one process after the other, and `processes` says how many each contributed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/json.h"
#include "run/children.h"
#include "run/rounds.h"

namespace weir {

// How many processes to run. With a range, more than the fewest only until their typical median is known well enough.
struct ProcessCount {
  std::size_t fewest = 1, most = 1;
  double until = 0.02;         // see median_error()
  std::int64_t budget_ns = 0;  // 0: none

  bool is_one() const { return most == 1; }
};

// How far the mean of the processes' medians may be off: half of its 95 % interval, relative. Medians are compared on a
// logarithmic scale. Nothing for fewer than two processes, or if a median is missing or not above 0.
std::optional<double> median_error(const Json& document);

// The number of processes in a document: 0 for null, 1 for a document without `processes`.
std::size_t process_count(const Json& document);

// Adds the result of another process (weir.result/2) to `all`, which is null before the first. Samples are appended,
// their summaries, the throughput and the host's cost are those of all; everything else is the first process's.
// Warnings are listed once by code.
void add_process_result(Json& all, const Json& result, std::int64_t wall_ns);

struct ProcessesControl {
  // Runs one process of a side. A failed one may have a document, which says more than its message.
  std::function<ChildOutcome(std::size_t side, std::size_t round)> run;
  // As add_process_result(), for this kind of document: must fill `processes` with latency_ns.p50.
  std::function<void(Json& all, const Json& result, std::int64_t wall_ns)> add = add_process_result;
  // Called after each process that ended, also with a failure; the documents are up to date.
  std::function<void(std::size_t side)> ended;
};

// Fills one document per side; those that are not null are continued, unless they failed. `status` is "complete",
// "interrupted" where processes are missing because `stop` was set, or "failed": that side is not run again. A side
// without any document stays null, or {"status", "failure", "hint"} if it failed. Documents with `warnings` get one if
// the budget ended before all processes, or if all of them are not precise enough.
RoundsOutcome run_in_processes(const ProcessCount& count, std::uint64_t seed, std::vector<Json>& sides,
                               const ProcessesControl& control, const std::atomic<bool>& stop);

}  // namespace weir
