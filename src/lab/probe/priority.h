// Whether the priority of streams does anything in the user's own PyTorch: what a script that their Python runs has
// measured is read, judged and written down. Knows no process and no GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "measure/comparison.h"
#include "run/runner.h"

namespace weir::probe {

// The text of priority_script.py.
std::string_view priority_script();

// What one process of the script reports: times from the launch of a short kernel until the host knows that it has
// ended, while long kernels of the lowest priority fill the device.
struct PrioritySamples {
  std::string python, torch, runtime, runtime_version, device;  // empty: not reported
  std::optional<std::int64_t> least, greatest;                  // priorities on offer; smaller numbers are more urgent
  double kernel_ns = 0;                                         // of one long kernel alone
  std::int64_t queued = 0;                                      // long kernels in line when the short one comes
  std::int64_t idle = 0;                                        // times not kept: the long kernels had ended
  std::vector<double> equal_ns, high_ns, alone_ns;  // on a stream of the lowest and of the highest priority; no others
  std::string error;                                // why it could not measure; empty: it did, or there is one priority
};

inline constexpr std::int64_t kMaxProbeIterations = 2000;

// Whether this line is the script's: Python and libraries print lines of their own.
bool is_priority_line(const Json& line);
// Reads it; throws Error where a value is not what the script writes.
PrioritySamples read_priority_line(const Json& line);
// The script's lines in the text of a file. Rejects a text that has none, naming the file.
std::vector<PrioritySamples> read_priority_lines(std::string_view text, const std::string& name);

enum class Answer : std::uint8_t {
  helps,        // a short kernel of high priority ends sooner
  nothing,      // priority changes less than the threshold
  slower,       // it ends later
  undecided,    // too noisy, or too little was measured
  unavailable,  // nothing could be measured
};
const char* name_of(Answer answer);

struct PriorityFinding {
  Answer answer = Answer::unavailable;
  std::string reason;  // empty where the answer is plain
  Change change;       // of high against equal priority
  // Whether the short kernel passes between blocks of the long one that runs (true), or waits for that one and passes
  // those in line behind it (false). Nothing: priority does not help.
  std::optional<bool> passes_running;
};

// One process is judged by its samples, which prove nothing about other processes; several by their medians.
PriorityFinding judge_priority(std::span<const PrioritySamples> processes, const CompareOptions& options);

// weir.probe_priority/1.
Json priority_document(std::span<const PrioritySamples> processes, const PriorityFinding& finding,
                       const CompareOptions& options, const RunContext& context);

}  // namespace weir::probe
