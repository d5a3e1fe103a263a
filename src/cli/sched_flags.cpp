#include "cli/sched_flags.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/options.h"
#include "base/units.h"
#include "cli/flag_values.h"
#include "cli/process.h"
#include "submit/sched/connection.h"
#include "submit/sched/server.h"

namespace weir::cli {
namespace {

constexpr std::int64_t kMinDeadlineNs = 10'000, kMaxDeadlineNs = 3600'000'000'000;

// "high", "low", "-3"
int priority_of(const std::string& text) {
  constexpr std::pair<std::string_view, int> kWords[] = {
      {"high", scheduler::kHighestPriority}, {"normal", 0}, {"low", scheduler::kLowestPriority}};
  for (const auto& [word, priority] : kWords)
    if (text == word) return priority;
  const std::string hint = fmt::format("Use high, normal or low, or {} to {}: a higher one comes first, normal is 0.",
                                       scheduler::kLowestPriority, scheduler::kHighestPriority);
  const bool is_negative = text.starts_with('-');
  const auto number = parse_integer(std::string_view(text).substr(is_negative ? 1 : 0));
  if (!number) reject(fmt::format("--priority {}: not a priority", text), hint);
  // Compared before applying the sign, because the most negative number has no positive counterpart.
  if (*number > (is_negative ? -scheduler::kLowestPriority : scheduler::kHighestPriority))
    reject(fmt::format("--priority {}: out of range", text), hint);
  return static_cast<int>(is_negative ? -*number : *number);
}

}  // namespace

void SocketFlag::add_to(CommandSyntax syntax) {
  syntax.add("--socket PATH", socket, "where the daemon listens (default: one per user)");
}

std::filesystem::path SocketFlag::path() const {
  if (!socket.empty()) return std::filesystem::absolute(socket);
  if (const auto own = environment_variable(scheduler::kSocketVariable); own && !own->empty()) return *own;
  const auto folder = environment_variable("XDG_RUNTIME_DIR");
  return scheduler::default_socket(folder ? folder->c_str() : nullptr, ::getuid());
}

void TermsFlags::add_to(CommandSyntax syntax) {
  syntax.add("--priority NAME", priority, "high, normal, low, or -10 to 10 (policy priority)");
  syntax.add("--weight N", weight, "share of the device, relative to the others' (policy weighted fair)");
  syntax.add("--deadline DURATION", deadline, "of each request, from its begin: 10ms (policy earliest deadline)");
  syntax.add("--p99 DURATION", p99,
             "99 of 100 of its requests shall end within this time: those that make way for it get less where needed");
  syntax.add("--isolate", is_isolated, "held by the gate alone, and in no MPS, whose programs share faults");
}

scheduler::Terms TermsFlags::terms() const {
  scheduler::Terms terms;
  terms.priority = priority_of(priority);
  const auto share = parse_number(weight);
  if (!share || !(*share >= scheduler::kMinWeight && *share <= scheduler::kMaxWeight))
    reject(fmt::format("--weight {}: {}", weight, share ? "out of range" : "not a number"),
           fmt::format("Use {} to {}.", scheduler::kMinWeight, scheduler::kMaxWeight));
  terms.weight = *share;
  terms.is_isolated = is_isolated;
  if (!deadline.empty()) terms.deadline_ns = duration_of("--deadline", deadline, kMinDeadlineNs, kMaxDeadlineNs);
  if (!p99.empty()) terms.p99_ns = duration_of("--p99", p99, scheduler::kShortestP99Ns, scheduler::kLongestP99Ns);
  scheduler::check(terms);
  return terms;
}

}  // namespace weir::cli
