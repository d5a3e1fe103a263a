// Ways to bring a step's commands to a session. One call per iteration; nothing is allocated or locked in it.
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
  // Submits one iteration of the step; returns when its last command was submitted.
  virtual void submit_step() noexcept = 0;
  // Writes down when commands were enqueued, where they were and the submitter was made to trace them. Iterations count
  // from the submitter's first step.
  virtual void stamp(Timeline&) const {}
};

// What the user asked for: "inline", "threads", "threads:4", "graph", "channel", "channel:mpsc", "channel:mpsc:4" (four
// producers), "channel:mpsc:4x2" (and two submitters), "scheduled:priority", "scheduled:priority:4" (four commands on
// the device at once).
inline constexpr int kDefaultInFlight =
    2;  // one runs and one waits behind it: no gap, and no more than one to wait for
inline constexpr int kMostInFlight = 1024;
struct SubmitChoice {
  std::string name;  // canonical, with all counts: threads becomes threads:k, channel becomes channel:mpsc:k
  SubmitMode mode = SubmitMode::eager;
  int threads = 0;      // 0: the caller's thread submits
  std::string channel;  // empty: none
  int producers = 0;    // that enqueue into the channel
  int submitters = 0;   // that drain it, the caller's thread being one of them
  std::string policy;   // that decides whose command is next; empty: none
  int in_flight = 0;    // then: commands on the device at once

  // Threads that call the session.
  int host_threads() const { return std::max({1, threads, submitters}); }
  // What a session must be prepared for.
  SessionOptions session_options() const {
    SessionOptions options;
    options.mode = mode;
    options.host_threads = host_threads();
    options.follows_progress = !policy.empty();
    return options;
  }
};

// Rejects what there is not. `streams` bounds the threads: more threads than streams would have nothing to do.
SubmitChoice parse_submit(std::string_view text, int streams);
// How many producers a channel has where nobody says; a channel that there is not has none.
int default_producers(std::string_view channel);

// Step, placement and session must outlive the submitter. Threads, if any, start here and end with it.
// `traced_iterations`: the first so many are kept for stamp().
std::unique_ptr<Submitter> make_submitter(const SubmitChoice& choice, const Step& step, const Placement& placement,
                                          Session& session, int traced_iterations = 0);

std::unique_ptr<Submitter> inline_submitter(const Step& step, Session& session);
std::unique_ptr<Submitter> threads_submitter(int threads, const Step& step, const Placement& placement,
                                             Session& session);

}  // namespace weir
