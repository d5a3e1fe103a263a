// Ways to bring a step's commands to a session. One call per iteration; nothing is allocated or locked in it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "device/device.h"

namespace weir {

class Submitter {
 public:
  virtual ~Submitter() = default;
  // Submits one iteration of the step; returns when its last command was submitted.
  virtual void submit_step() noexcept = 0;
};

// What the user asked for: "inline", "threads", "threads:4", "graph".
struct SubmitChoice {
  std::string name;  // as typed, canonical: threads without a count becomes threads:k
  SubmitMode mode = SubmitMode::eager;
  int threads = 0;  // 0: the caller's thread submits
};

// Rejects what there is not. `streams` bounds the threads: more threads than streams would have nothing to do.
SubmitChoice parse_submit(std::string_view text, int streams);

// Step, placement and session must outlive the submitter. Threads, if any, start here and end with it.
std::unique_ptr<Submitter> make_submitter(const SubmitChoice& choice, const Step& step, const Placement& placement,
                                          Session& session);

std::unique_ptr<Submitter> inline_submitter(const Step& step, Session& session);
std::unique_ptr<Submitter> threads_submitter(int threads, const Step& step, const Placement& placement,
                                             Session& session);

}  // namespace weir
