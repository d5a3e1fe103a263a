#include "submit/inject/race_plan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "submit/inject/process.h"

namespace weir::inject {
namespace {

using race_format::kLongestDelayNs;

constexpr std::size_t kMostPlanBytes = std::size_t{1} << 20;

using Words = std::array<std::string_view, 4>;

// At most four words; the number of words, or 5 where there are more.
std::size_t split_plan_line(std::string_view line, Words& words) {
  std::size_t count = 0;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (count == words.size()) return count + 1;
    words[count++] = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return count;
}

template <class Number>
bool read_plan_number(std::string_view word, Number& number, Number least, Number most) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc{} && end == word.data() + word.size() && number >= least && number <= most;
}

// 1.417
bool read_plan_name(std::string_view word, RaceName& name) {
  const std::size_t dot = word.find('.');
  if (dot == std::string_view::npos) return false;
  constexpr std::uint32_t kMost = race_format::kNone - 1;
  return read_plan_number(word.substr(0, dot), name.thread, 1U, kMost) &&
         read_plan_number(word.substr(dot + 1), name.sequence, 1U, kMost);
}

bool read_plan_delay(std::string_view word, std::int64_t& ns) {
  return read_plan_number<std::int64_t>(word, ns, 1, kLongestDelayNs);
}

bool read_plan_line(std::string_view line, RacePlan& plan) {
  Words words;
  const std::size_t count = split_plan_line(line, words);
  if (count == 0) return false;
  const std::string_view verb = words[0];
  RaceName name;
  if (verb == "observe") return plan.observes = count == 1;
  if (verb == "blind")
    return count == 4 && read_plan_number<std::uint64_t>(words[1], plan.seed, 0, UINT64_MAX) &&
           read_plan_number(words[2], plan.one_in, 1U, race_format::kNone) && read_plan_delay(words[3], plan.blind_ns);
  if (verb == "most") return count == 2 && read_plan_number(words[1], plan.most, 0U, race_format::kMostDelays);
  if (verb == "delay") {
    std::int64_t ns = 0;
    if (count != 3 || !read_plan_name(words[1], name) || !read_plan_delay(words[2], ns)) return false;
    plan.orders[name].delay_ns = ns;
    return true;
  }
  if (verb == "wait") {
    RaceName second;
    if (count != 3 || !read_plan_name(words[1], name) || !read_plan_name(words[2], second) || name == second)
      return false;
    const auto number = static_cast<std::uint32_t>(plan.waits.size());
    plan.waits.push_back({name, second});
    plan.orders[name].recorded.push_back(number);
    plan.orders[second].awaited.push_back(number);
    return true;
  }
  if (count != 2 || (verb != "join" && verb != "hash" && verb != "stack") || !read_plan_name(words[1], name))
    return false;
  RaceOrders& orders = plan.orders[name];
  (verb == "join" ? orders.joins : verb == "hash" ? orders.hashes : orders.shows_stack) = true;
  return true;
}

}  // namespace

std::string text_of(RaceName name) { return std::to_string(name.thread) + "." + std::to_string(name.sequence); }

bool RacePlan::has_kernels() const noexcept {
  return one_in != 0 || std::any_of(orders.begin(), orders.end(),
                                    [](const auto& one) { return one.second.delay_ns != 0 || one.second.hashes; });
}

std::optional<RacePlan> read_race_plan(std::string_view text, std::string& reason) {
  RacePlan plan;
  std::uint32_t number = 0;
  for (; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    // A line without its end was not written to its end.
    const bool is_whole = end != std::string_view::npos;
    const std::string_view line = text.substr(0, end);
    const bool is_good =
        is_whole && (number == 0 ? line == race_format::kPlanTitle
                                 : number <= race_format::kMostInstructions && read_plan_line(line, plan));
    if (!is_good) {
      reason = "line " + std::to_string(number + 1) +
               (!is_whole                                 ? " is torn"
                : number == 0                             ? " is not the title of a plan"
                : number > race_format::kMostInstructions ? " is one instruction too many"
                                                          : " is no instruction");
      return std::nullopt;
    }
    text.remove_prefix(end + 1);
  }
  if (number > 0) return plan;
  reason = "it is empty";
  return std::nullopt;
}

std::optional<RacePlan> read_race_plan_file(const std::string& path, std::string& reason) {
  const int descriptor = open_own_file(path, O_RDONLY | O_NONBLOCK);
  struct stat facts{};
  if (descriptor < 0 || ::fstat(descriptor, &facts) != 0) {
    reason = std::strerror(errno);
    if (descriptor >= 0) ::close(descriptor);
    return std::nullopt;
  }
  std::string text;
  if (S_ISREG(facts.st_mode)) {
    char part[4096];
    for (ssize_t got = 0; text.size() <= kMostPlanBytes;) {
      got = ::read(descriptor, part, sizeof(part));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      text.append(part, static_cast<std::size_t>(got));
    }
  }
  ::close(descriptor);
  if (S_ISREG(facts.st_mode) && text.size() <= kMostPlanBytes) return read_race_plan(text, reason);
  reason = S_ISREG(facts.st_mode) ? "it has more than 1 MB" : "it is not a file";
  return std::nullopt;
}

}  // namespace weir::inject
