#include "submit/submitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "submit/channel.h"
#include "submit/sched/policy.h"
#include "submit/scheduled.h"

namespace weir {

namespace {

// Parses "4", up to the number of streams. Rejects anything that is not a number of `what`.
int parse_count(std::string_view text, std::string_view number, const char* what, const char* example) {
  const auto asked = parse_integer(number);
  if (!asked || *asked < 1 || *asked > kMaxStreams)
    reject_setting("submit", text, fmt::format("'{}' is not a number of {}", number, what),
                   fmt::format("Use 1 to {}, for example {}.", kMaxStreams, example));
  return static_cast<int>(*asked);
}

const ChannelWay* channel_named(std::string_view name) {
  for (const ChannelWay& way : channel_ways())
    if (way.name == name) return &way;
  return nullptr;
}

// "mpsc", "mpsc:4", "mpsc:4x2"
void parse_channel(SubmitChoice& choice, std::string_view rest) {
  const std::size_t colon = rest.find(':');
  const std::string_view name = rest.substr(0, colon);
  const ChannelWay* const way = channel_named(name);
  if (way == nullptr) {
    std::vector<std::string> names;
    for (const ChannelWay& known : channel_ways()) names.emplace_back(known.name);
    reject_setting("submit", choice.name, fmt::format("there is no channel '{}' to submit through", name),
                   suggestion(name, names));
  }
  choice.channel = name;
  choice.producers = default_producers(name);
  choice.submitters = 1;
  if (colon != std::string_view::npos) {
    const std::string_view counts = rest.substr(colon + 1);
    const std::size_t by = counts.find('x');
    choice.producers = parse_count(choice.name, counts.substr(0, by), "producers", "channel:mpsc:4");
    if (by != std::string_view::npos)
      choice.submitters = parse_count(choice.name, counts.substr(by + 1), "submitters", "channel:mpsc:4x2");
  }
  if (choice.producers > way->max_producers)
    reject_setting("submit", choice.name,
                   fmt::format("a channel '{}' takes {} producer{}, not {}", name, way->max_producers,
                               way->max_producers == 1 ? "" : "s", choice.producers),
                   fmt::format("Use --producers {}, or channel:mpsc, which takes many.", way->max_producers));
}

// "priority", "priority:4"
void parse_scheduled(SubmitChoice& choice, std::string_view rest) {
  const std::size_t colon = rest.find(':');
  const std::string_view name = rest.substr(0, colon);
  std::vector<std::string> names;
  for (const scheduler::Policy& policy : scheduler::policies()) names.emplace_back(policy.name);
  if (name.empty()) reject_setting("submit", choice.name, "a policy is needed", suggestion(name, names));
  if (std::find(names.begin(), names.end(), name) == names.end())
    reject_setting("schedule", name, "there is no such policy", suggestion(name, names));
  choice.policy = name;
  choice.in_flight = kDefaultInFlight;
  if (colon == std::string_view::npos) return;
  const std::string_view number = rest.substr(colon + 1);
  const auto asked = parse_integer(number);
  if (!asked || *asked < 1 || *asked > kMaxInFlight)
    reject_setting("in_flight", number, "not a number of commands",
                   fmt::format("Use 1 to {}: with none on the device nothing would run.", kMaxInFlight));
  choice.in_flight = static_cast<int>(*asked);
}

}  // namespace

SubmitChoice parse_submit(std::string_view text) {
  const std::size_t colon = text.find(':');
  const bool has_more = colon != std::string_view::npos;
  const std::string_view kind = text.substr(0, colon);
  const std::string_view rest = has_more ? text.substr(colon + 1) : std::string_view();
  SubmitChoice choice;
  choice.name = text;
  if (text == "graph") {
    choice.mode = SubmitMode::graph;
  } else if (kind == "threads") {
    choice.threads = has_more ? parse_count(text, rest, "threads", "threads:4")
                              : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
  } else if (kind == "channel") {
    parse_channel(choice, has_more ? rest : "mpsc");
  } else if (kind == "scheduled") {
    parse_scheduled(choice, rest);
  } else if (text != "inline") {
    const std::array<std::string, 5> names = {"inline", "threads", "graph", "channel", "scheduled"};
    reject_setting("submit", text, "there is no such way to submit", suggestion(kind, names));
  }
  return choice;
}

SubmitChoice SubmitChoice::fitted_to(int streams) const {
  SubmitChoice fitted = *this;
  fitted.threads = std::min(threads, streams);
  fitted.producers = std::min(producers, streams);
  fitted.submitters = std::min(submitters, streams);
  if (threads > 0) fitted.name = fmt::format("threads:{}", fitted.threads);
  if (!channel.empty()) {
    fitted.name = fmt::format("channel:{}:{}", channel, fitted.producers);
    if (fitted.submitters > 1) fitted.name += fmt::format("x{}", fitted.submitters);
  }
  if (!policy.empty()) {
    if (streams > scheduler::kMaxClients)
      reject_setting("schedule", policy,
                     fmt::format("a policy ranks {} streams at most, not {}", scheduler::kMaxClients, streams),
                     fmt::format("Use --streams {} or fewer.", scheduler::kMaxClients));
    fitted.name = fmt::format("scheduled:{}:{}", policy, in_flight);
  }
  return fitted;
}

int default_producers(std::string_view channel) {
  const ChannelWay* const way = channel_named(channel);
  return way == nullptr ? 0 : std::min(4, way->max_producers);
}

std::unique_ptr<Submitter> make_submitter(const SubmitChoice& choice, const Step& step, const Placement& placement,
                                          Session& session, int traced_iterations) {
  if (!choice.channel.empty())
    return channel_named(choice.channel)->make(choice, step, placement, session, traced_iterations);
  if (!choice.policy.empty())
    return scheduled_submitter({.policy = &scheduler::policy_named(choice.policy),
                                .in_flight = choice.in_flight,
                                .terms = stream_terms(step, placement)},
                               step, placement, session, traced_iterations);
  if (choice.threads == 0) return inline_submitter(step, session);
  return threads_submitter(choice.threads, step, placement, session);
}

}  // namespace weir
