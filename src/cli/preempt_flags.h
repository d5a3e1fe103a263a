// The flags of `weir preempt`, and the plan that follows from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/document_output.h"
#include "lab/preempt/experiment.h"

namespace weir::cli {

// As typed. Numbers are kept as text, so that messages can show the flag and the word.
struct PreemptFlags {
  std::string device = "auto";
  std::string mechanisms = "all";
  std::string victims, waves, block_times;
  std::string requests, interval, intruder;
  std::string in_flight = "2", queued_ahead = "8", alone = "3", seed = "1";
  std::string hardware_queues;
  std::vector<std::string> sim;
  bool is_quick = false;
  std::string svg;
  DocumentOutput document_output;
  std::string child;  // this process is a child: the file with its request

  void add_to(CommandSyntax syntax);
  // Rejects bad values, naming the flag.
  preempt::Plan plan() const;
  std::vector<const preempt::Mechanism*> chosen() const;
  // The plan for one victim: values that were not given follow from the length of its kernels.
  preempt::Plan paced(const preempt::Plan& plan, const preempt::Victim& victim) const;
};

// "10us", "1.5ms", "2s", and lists of them: "10us,1ms", "10us..10ms" (every decade), "10us..1ms:x2". Sorted, without
// repeats; rejects values below `lowest_ns` or above `highest_ns`.
std::vector<std::int64_t> parse_times(const std::string& flag, const std::string& text, std::int64_t lowest_ns,
                                      std::int64_t highest_ns);

}  // namespace weir::cli
