// Ways to submit a step's commands to a session. One call per iteration; it allocates nothing and takes no lock.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "device/device.h"

namespace weir {

class Submitter {
 public:
  virtual ~Submitter() = default;
  // Submits one iteration of the step; returns when its last command has been submitted.
  virtual void submit_step() noexcept = 0;
  // Records when commands were enqueued, if they were and the submitter was made to trace them. Iterations count from
  // the submitter's first step.
  virtual void stamp(Timeline&) const {}
};

// The user's choice, as parse_submit() reads it: "inline", "threads", "threads:4", "graph", "channel", "channel:mpsc",
// "channel:mpsc:4" (four producers), "channel:mpsc:4x2" (and two submitters), "scheduled:priority",
// "scheduled:priority:4" (four commands on the device at once).
inline constexpr int kDefaultInFlight = 2;  // one runs and one waits behind it: no gap, and only one to wait for
inline constexpr int kMaxInFlight = 1024;
struct SubmitChoice {
  std::string name = "inline";  // as the user wrote it; after fitted_to() canonical: threads becomes threads:k
  SubmitMode mode = SubmitMode::eager;
  int threads = 0;      // 0: the caller's thread submits
  std::string channel;  // empty: none
  int producers = 0;    // that enqueue into the channel
  int submitters = 0;   // that drain it, including the caller's thread
  std::string policy;   // decides whose command is next; empty: none
  int in_flight = 0;    // with a policy: commands on the device at once

  // The same for a run on this many streams, with all counts in its name. More threads than streams would have nothing
  // to do; rejects more streams than a policy can rank.
  SubmitChoice fitted_to(int streams) const;
  // The number of threads that call the session.
  int host_threads() const { return std::max({1, threads, submitters}); }
  // The options that a session needs.
  SessionOptions session_options() const {
    SessionOptions options;
    options.mode = mode;
    options.host_threads = host_threads();
    options.follows_progress = !policy.empty();
    return options;
  }
};

// Rejects unknown modes and counts that a mode does not support.
SubmitChoice parse_submit(std::string_view text);
inline SubmitChoice parse_submit(std::string_view text, int streams) { return parse_submit(text).fitted_to(streams); }
// A channel's default number of producers; 0 for unknown channels.
int default_producers(std::string_view channel);

// Step, placement and session must outlive the submitter. Threads, if any, start here and end with it. The first
// `traced_iterations` are kept for stamp().
std::unique_ptr<Submitter> make_submitter(const SubmitChoice& choice, const Step& step, const Placement& placement,
                                          Session& session, int traced_iterations = 0);

std::unique_ptr<Submitter> inline_submitter(const Step& step, Session& session);
std::unique_ptr<Submitter> threads_submitter(int threads, const Step& step, const Placement& placement,
                                             Session& session);

}  // namespace weir
