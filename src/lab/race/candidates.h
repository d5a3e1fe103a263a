// Which suspect pairs a delay can be about: those whose first command it holds back while the second goes on. And the
// waits that would order them. Knows logs; runs nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "lab/race/log.h"
#include "lab/race/run_plan.h"
#include "lab/race/suspects.h"

namespace weir::race {

// The calls of a log by name, and the commands around each in its stream.
class Calls {
 public:
  explicit Calls(const Log& log);
  std::optional<std::uint32_t> find(CommandName name) const;
  // The commands of a stream, in the order of their calls.
  std::span<const std::uint32_t> commands_of(std::uint32_t stream) const;
  // The command itself, or the next (the one before) in its stream, where the call is none: memory that is given away.
  std::optional<std::uint32_t> command_at(std::uint32_t call) const;
  std::optional<std::uint32_t> command_before(std::uint32_t call) const;
  std::size_t command_count() const { return by_name_.size(); }

 private:
  const Log* log_;
  std::map<CommandName, std::uint32_t> by_name_;
  std::vector<std::vector<std::uint32_t>> by_stream_;
};

// A pair that may be the race, as commands; `second` is kHost where it is the host.
struct Candidate {
  std::uint32_t first = 0, second = 0;  // calls
  std::optional<Suspect> suspect;       // nothing: no common memory is known
};
Wait wait_for(const Candidate& candidate, const Log& log);

// The waits that would order this pair and all others of its place in the program.
std::vector<Wait> waits_like(const Candidate& candidate, const Log& log, const Calls& calls);

// The suspect pairs whose first command is delayed by one of `delays`, also by way of `waits`, at most `limit`: first
// those between commands, whose second is not delayed by it, the delayed command's own; then by rank.
std::vector<Candidate> candidates(const Log& log, const Calls& calls, std::span<const Delay> delays,
                                  std::span<const Wait> waits, std::size_t limit);

// All pairs by rank, as commands.
std::vector<Candidate> all_candidates(const Log& log, const Calls& calls, const Suspects& suspects, std::size_t limit);

// A delay before the first command of each pair, best first, one for each command. It is at least `ns`, and longer
// where the commands are submitted further apart.
std::vector<Delay> aimed_delays(const Log& log, const Calls& calls, const Suspects& suspects, std::int64_t ns);

}  // namespace weir::race
