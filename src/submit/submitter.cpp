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
    reject(fmt::format("--submit {}: '{}' is not a number of {}", text, number, what),
           fmt::format("Use 1 to {}, for example {}.", kMaxStreams, example));
  return static_cast<int>(*asked);
}

const ChannelWay* channel_named(std::string_view name) {
  for (const ChannelWay& way : channel_ways())
    if (way.name == name) return &way;
  return nullptr;
}

SubmitChoice parse_threads(std::string_view text, std::string_view count, bool has_count, int streams) {
  int threads = std::min(8, std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  if (has_count) threads = parse_count(text, count, "threads", "threads:4");
  threads = std::min(threads, streams);
  SubmitChoice choice;
  choice.name = fmt::format("threads:{}", threads);
  choice.threads = threads;
  return choice;
}

// "mpsc", "mpsc:4", "mpsc:4x2"
SubmitChoice parse_channel(std::string_view text, std::string_view rest, int streams) {
  const std::size_t colon = rest.find(':');
  const std::string_view name = rest.substr(0, colon);
  const ChannelWay* const way = channel_named(name);
  if (way == nullptr) {
    std::vector<std::string> names;
    for (const ChannelWay& known : channel_ways()) names.emplace_back(known.name);
    reject(fmt::format("--submit {}: there is no channel '{}' to submit through", text, name), suggestion(name, names));
  }
  SubmitChoice choice;
  choice.channel = name;
  choice.producers = default_producers(name);
  choice.submitters = 1;
  if (colon != std::string_view::npos) {
    const std::string_view counts = rest.substr(colon + 1);
    const std::size_t by = counts.find('x');
    choice.producers = parse_count(text, counts.substr(0, by), "producers", "channel:mpsc:4");
    if (by != std::string_view::npos)
      choice.submitters = parse_count(text, counts.substr(by + 1), "submitters", "channel:mpsc:4x2");
  }
  if (choice.producers > way->most_producers)
    reject(fmt::format("--submit {}: a channel '{}' takes {} producer{}, not {}", text, name, way->most_producers,
                       way->most_producers == 1 ? "" : "s", choice.producers),
           fmt::format("Use --producers {}, or channel:mpsc, which takes many.", way->most_producers));
  choice.producers = std::min(choice.producers, streams);
  choice.submitters = std::min(choice.submitters, streams);
  choice.name = fmt::format("channel:{}:{}", name, choice.producers);
  if (choice.submitters > 1) choice.name += fmt::format("x{}", choice.submitters);
  return choice;
}

// "priority", "priority:4"
SubmitChoice parse_scheduled(std::string_view text, std::string_view rest, int streams) {
  const std::size_t colon = rest.find(':');
  const std::string_view name = rest.substr(0, colon);
  std::vector<std::string> names;
  for (const scheduler::Policy& policy : scheduler::policies()) names.emplace_back(policy.name);
  if (std::find(names.begin(), names.end(), name) == names.end())
    reject(name.empty() ? fmt::format("--submit {}: a policy is needed", text)
                        : fmt::format("--schedule {}: there is no such policy", name),
           suggestion(name, names));
  SubmitChoice choice;
  choice.policy = name;
  choice.in_flight = kDefaultInFlight;
  if (colon != std::string_view::npos) {
    const auto asked = parse_integer(rest.substr(colon + 1));
    if (!asked || *asked < 1 || *asked > kMostInFlight)
      reject(fmt::format("--in-flight {}: not a number of commands", rest.substr(colon + 1)),
             fmt::format("Use 1 to {}: with none on the device nothing would run.", kMostInFlight));
    choice.in_flight = static_cast<int>(*asked);
  }
  if (streams > scheduler::kMostClients)
    reject(
        fmt::format("--schedule {}: a policy ranks {} streams at most, not {}", name, scheduler::kMostClients, streams),
        fmt::format("Use --streams {} or fewer.", scheduler::kMostClients));
  choice.name = fmt::format("scheduled:{}:{}", name, choice.in_flight);
  return choice;
}

}  // namespace

SubmitChoice parse_submit(std::string_view text, int streams) {
  const std::size_t colon = text.find(':');
  const bool has_more = colon != std::string_view::npos;
  const std::string_view kind = text.substr(0, colon);
  const std::string_view rest = has_more ? text.substr(colon + 1) : std::string_view();
  SubmitChoice choice;
  choice.name = text;
  if (text == "inline") return choice;
  if (text == "graph") {
    choice.mode = SubmitMode::graph;
    return choice;
  }
  if (kind == "threads") return parse_threads(text, rest, has_more, streams);
  if (kind == "channel") return parse_channel(text, has_more ? rest : "mpsc", streams);
  if (kind == "scheduled") return parse_scheduled(text, rest, streams);
  const std::array<std::string, 5> names = {"inline", "threads", "graph", "channel", "scheduled"};
  reject(fmt::format("--submit {}: there is no such way to submit", text), suggestion(kind, names));
}

int default_producers(std::string_view channel) {
  const ChannelWay* const way = channel_named(channel);
  return way == nullptr ? 0 : std::min(4, way->most_producers);
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
