// Looks for races of a program: runs it plainly, observes it, delays its commands until an output changes, and takes
// delays away until one is left. What the delay is about is for name.h. Starts no process itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/race/candidates.h"
#include "lab/race/outputs.h"
#include "lab/race/program_runs.h"

namespace weir::race {

struct SearchOptions {
  OutputRules rules;
  std::size_t plain_runs = 3, seeds = 6, races = 3, confirmations = 3;
  double shortest_limit_s = 30;  // a run is ended after that and ten times a plain one
  std::int64_t delay_ns = 400'000, budget_ns = 300'000'000'000;
  std::uint32_t one_in = 4;
};

enum class Purpose : std::uint8_t { plain, observe, stabilise, blind, aimed, shrink, cure, confirm, explain, verify };
const char* name_of(Purpose purpose);

struct RunRecord {
  Purpose purpose = Purpose::plain;
  std::optional<std::uint64_t> seed;
  std::size_t delays = 0, waits = 0;
  std::int64_t duration_ns = 0;
  bool is_timed_out = false;
  std::string ended;                  // "0", "killed by signal 11"
  std::optional<std::string> change;  // of the output; nothing: it is that of the plain runs
};

// A command for people.
struct CommandFacts {
  std::string command, label, stream, kind;
};
CommandFacts facts_of(const Log& log, std::uint32_t call);

enum class Hazard : std::uint8_t {
  unknown,
  read_after_write,
  write_after_read,
  write_after_write,
  host_reads,   // what a copy still writes
  host_writes,  // what a copy still reads
};
const char* name_of(Hazard hazard);

struct LaneCommand {
  CommandFacts facts;
  std::uint32_t order = 0;  // among the calls of the log
};

// One place where commands are not ordered and the output depends on their order.
struct Race {
  std::vector<Delay> delays;            // that change the output
  std::optional<CommandFacts> delayed;  // the first of them, where it was seen
  std::string change;                   // what they change
  // That make the output right although the delays stay, the race's own first; empty: none was found.
  std::vector<Wait> waits;
  std::vector<Wait> repairs;                  // the first wait, and those of the same place at other times
  std::optional<CommandFacts> first, second;  // of the first wait; no second: the host
  bool is_suspect = false;                    // both were seen to touch the same memory
  std::uint64_t begin = 0, end = 0;           // that memory, in the observed run; equal: not known
  bool is_exact = false;
  std::uint32_t repeats = 1;
  Hazard hazard = Hazard::unknown;
  bool is_reused = false;  // the memory was given away in between
  std::uint32_t delayed_runs = 0, delayed_changes = 0, cured_runs = 0, cured_changes = 0;
  std::vector<std::string> first_stack, second_stack;
  std::vector<LaneCommand> first_lane, second_lane;  // around the two, in order
};

struct SuspectFacts {
  CommandFacts first;
  std::optional<CommandFacts> second;  // nothing: the host
  Suspect suspect;
};

enum class Answer : std::uint8_t { clean, found, unclear, varying };
const char* name_of(Answer answer);

struct Findings {
  Answer answer = Answer::clean;
  std::vector<std::string> warnings, judged, varying, notes;
  std::vector<RunRecord> runs;
  std::vector<Race> races;
  std::vector<SuspectFacts> suspects;  // the first ones
  bool has_log = false;                // of an observed run, which the counts below come from
  std::uint64_t suspect_count = 0, commands = 0, calls = 0, unread = 0;
  std::size_t streams = 0;
  std::optional<std::int64_t> plain_ns, observed_ns, delayed_ns;  // medians
  bool is_by_itself = false;  // the output varies without delays, and waits end that
  std::string ended_by;       // why the search ended
};

// Runs the program with a plan; `limit_s`: longer runs are ended.
using RunProgram = std::function<ProgramRun(const RunPlan& plan, double limit_s)>;
using OnRun = std::function<void(const RunRecord& record, std::size_t count)>;

// What a search knows while it goes on; naming asks it for runs.
class Search {
 public:
  Search(SearchOptions options, RunProgram run, OnRun on_run = {});
  // Fails where the program fails by itself, or submits nothing. `Interrupted` passes through: findings() has what is
  // known so far.
  void hunt();
  // Runs the delays of a race that is known, `times` times, and with `verifies` its waits in turn: counts the changes.
  // `is_by_waits`: what is right is what runs with the waits give.
  void replay(Race race, std::size_t times, bool verifies, bool is_by_waits = false);
  const Findings& findings() const { return findings_; }

  struct Tried {
    ProgramRun run;
    std::optional<std::string> change;  // also nothing where it was ended by the limit
  };
  // With the waits of the races that were found, too.
  Tried try_plan(RunPlan plan, Purpose purpose);
  bool is_over() const;
  // The waits that are in every run, because races that were found lack them.
  const std::vector<Wait>& repairs() const { return repairs_; }
  const Log& log() const { return log_; }
  const Calls& calls() const { return *calls_; }
  const Suspects& suspects() const { return suspects_; }
  const SearchOptions& options() const { return options_; }
  // How often a run must be right before it counts as cured.
  std::size_t cure_runs() const { return findings_.is_by_itself ? 3 : 1; }

 private:
  struct Hit {
    std::vector<Delay> delays;
    std::string change;
  };
  std::vector<Outputs> run_plainly();
  void observe();
  RunPlan all_waits() const;
  bool is_always_wrong();
  bool stabilise();
  void judge_varying();
  std::vector<RunPlan> disturbances() const;
  std::vector<Delay> shrink(const Hit& hit);
  bool is_due_to_delays(const Race& race);
  void summarise();

  SearchOptions options_;
  RunProgram run_;
  OnRun on_run_;
  Findings findings_;
  std::int64_t begun_ns_ = 0;
  double limit_s_ = 0;
  bool has_tried_waits_ = false;
  std::optional<Reference> reference_;
  std::vector<Wait> repairs_;
  Log log_;
  Suspects suspects_;
  std::optional<Calls> calls_;
};

}  // namespace weir::race
