#include "cli/submit_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/options.h"
#include "cli/flag_values.h"
#include "step/command.h"

namespace weir::cli {
namespace {

bool is_channel(const std::string& way) { return way == "channel" || way.starts_with("channel:"); }

}  // namespace

void SubmitFlags::add_to(CommandSyntax syntax, bool takes_several) {
  syntax.add(
      "--submit NAME", submit,
      takes_several ? "one or several: inline,threads,graph,channel" : "inline, threads[:k], graph or channel[:mpsc]");
  syntax.add("--producers N", producers, "with channel: threads that enqueue (default: 4, or the streams if fewer)");
  syntax.add("--submitters N", submitters, "with channel: threads that submit what was enqueued (default: 1)");
  syntax.add("--schedule NAME", schedule,
             takes_several ? "one or several policies that decide whose command is next: fifo,priority"
                           : "policy that decides whose command is next: fifo, priority, ... (docs/scheduling.md)");
  syntax.add("--in-flight N", in_flight, "with --schedule: commands on the device at once (default: 2)");
}

std::string SubmitFlags::with_counts(const std::string& way) const {
  if (!is_channel(way) || (producers.empty() && submitters.empty())) return way;
  const std::string named = way == "channel" ? "channel:mpsc" : way;
  const std::string channel = named.substr(named.find(':') + 1);
  if (channel.find(':') != std::string::npos)
    reject(fmt::format("{} {}: --submit {} has its counts already", producers.empty() ? "--submitters" : "--producers",
                       producers.empty() ? submitters : producers, way),
           "Give them in one place.");
  const std::string usual = std::to_string(std::max(1, default_producers(channel)));
  const std::string counted = fmt::format("{}:{}", named, producers.empty() ? usual : producers);
  return submitters.empty() ? counted : fmt::format("{}x{}", counted, submitters);
}

// One thread decides for all streams, command by command; ways of submitting that bypass it cannot be scheduled.
std::vector<std::string> SubmitFlags::scheduled(const std::vector<std::string>& ways) const {
  for (const std::string& way : ways) {
    if (way == "inline") continue;
    reject(fmt::format("--schedule {}: --submit {} cannot be scheduled: {}", schedule, way,
                       way == "graph"                 ? "a graph is one launch, whatever is in it"
                       : way.starts_with("threads")   ? "its threads submit without asking each other"
                       : is_channel(way)              ? "a channel has an order of its own"
                       : way.starts_with("scheduled") ? "it names its policy already"
                                                      : "only inline can"),
           "Leave out --submit, or --schedule.");
  }
  std::vector<std::string> named;
  for (const std::string& policy : parse_names("--schedule", schedule))
    named.push_back(in_flight.empty() ? "scheduled:" + policy : fmt::format("scheduled:{}:{}", policy, in_flight));
  return named;
}

std::vector<std::string> SubmitFlags::names() const {
  std::vector<std::string> ways = parse_names("--submit", submit);
  const bool has_channel = std::any_of(ways.begin(), ways.end(), is_channel);
  for (const auto& [flag, text] : {std::pair("--producers", &producers), std::pair("--submitters", &submitters)}) {
    if (text->empty()) continue;
    whole_number(flag, *text, 1, kMaxStreams, "not a number of threads");
    if (!has_channel)
      reject(fmt::format("{} {}: --submit {} has no channel", flag, *text, submit),
             submit == "graph"
                 ? "A graph is one launch, so none of its commands travels by itself: leave one of them out."
                 : "Use --submit channel, or leave it out.");
  }
  for (std::string& way : ways) way = with_counts(way);
  if (!schedule.empty()) return scheduled(ways);
  if (!in_flight.empty())
    reject(fmt::format("--in-flight {}: nothing is scheduled", in_flight), "Use --schedule fifo, or leave it out.");
  return ways;
}

std::vector<SubmitChoice> SubmitFlags::ways() const {
  std::vector<SubmitChoice> ways;
  for (const std::string& name : names()) ways.push_back(parse_submit(name));
  return ways;
}

SubmitChoice SubmitFlags::way() const {
  // A list is passed on as one unknown mode, which the parser rejects.
  if (submit.find(',') != std::string::npos) return parse_submit(submit);
  if (schedule.find(',') != std::string::npos) return parse_submit("scheduled:" + schedule);
  return ways().front();
}

}  // namespace weir::cli
