// Reads the plan that `weir race` wrote for the library inside a program (trace/race_format.h). Does nothing of it, and
// knows no vendor.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/race_format.h"

namespace weir::inject {

// The S-th command of the T-th thread, both from 1.
struct RaceName {
  std::uint32_t thread = 0, sequence = 0;
  friend auto operator<=>(const RaceName&, const RaceName&) = default;
};
std::string text_of(RaceName name);  // 1.417

// What the plan wants of one command.
struct RaceOrders {
  std::int64_t delay_ns = 0;
  bool joins = false, hashes = false, shows_stack = false;
  std::vector<std::uint32_t> recorded, awaited;  // waits of the plan of which it is the first, or the second
};

struct RacePlan {
  struct Wait {
    RaceName first, second;
  };
  bool observes = false;
  std::uint64_t seed = 0;
  std::uint32_t one_in = 0;  // 0: no delays by seed
  std::int64_t blind_ns = 0;
  std::uint32_t most = race_format::kMostDelays;  // of those by seed
  std::map<RaceName, RaceOrders> orders;
  std::vector<Wait> waits;

  const RaceOrders* orders_of(RaceName name) const {
    const auto found = orders.find(name);
    return found == orders.end() ? nullptr : &found->second;
  }
  // Nanoseconds; 0: the seed does not choose it.
  std::int64_t blind_delay(RaceName name) const noexcept {
    const bool is_chosen = one_in != 0 && race_format::mix(seed, name.thread, name.sequence) % one_in == 0;
    return is_chosen ? blind_ns : 0;
  }
  bool has_kernels() const noexcept;  // whether commands of our own may be needed
};

// Nothing, and the reason with the number of the line, where any of it makes no sense.
std::optional<RacePlan> read_race_plan(std::string_view text, std::string& reason);
std::optional<RacePlan> read_race_plan_file(const std::string& path, std::string& reason);

}  // namespace weir::inject
