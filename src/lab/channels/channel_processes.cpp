#include "lab/channels/channel_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "measure/bootstrap.h"
#include "run/line_process.h"
#include "run/rounds.h"

namespace weir {
namespace {

using channel_bench::Benchmark;
using channel_bench::Conditions;
using channel_bench::Group;
using channel_bench::Measurement;

constexpr std::array kEndNames{"done", "crashed", "timed_out", "interrupted"};  // in the order of LineProcess::How

Json request_of(const ChannelPlan& plan, const std::vector<std::string>& ids) {
  Json request = Json::object();
  request["conditions"] = to_json(plan.conditions);
  request["benchmarks"] = ids;
  return request;
}

Measurement read_measurement(const Json& line, const std::string& id) {
  const auto found = line.find("measurement");
  try {
    return measurement_from(found == line.end() ? Json() : *found, id);
  } catch (const Error& error) {
    Measurement measurement;
    measurement.failure = error.what();
    return measurement;
  }
}

Measurement run_one(const Benchmark& benchmark, const Conditions& conditions) {
  Measurement failed;
  if (!benchmark.unavailable.empty()) {
    failed.failure = benchmark.unavailable;
    return failed;
  }
  try {
    return benchmark.run(conditions);
  } catch (const std::exception& error) {
    failed.failure = error.what();
  }
  return failed;
}

}  // namespace

std::uint64_t seed_of_process(std::uint64_t seed, int process) {
  return SplitMix(seed + 0x632be59bd9b4e019U * static_cast<std::uint64_t>(process + 1)).next();
}

bool run_processes(const ChannelPlan& plan, const ChannelEvents& events, const std::atomic<bool>& stop) {
  std::set<std::string> given_up;  // hung or crashed: not tried again
  std::size_t done = 0;
  const std::size_t total = plan.ids.size() * static_cast<std::size_t>(plan.processes);
  const auto run_process = [&](std::size_t, std::size_t round) {
    const auto process = static_cast<int>(round);
    ChannelPlan mine = plan;
    const std::uint64_t seed = seed_of_process(plan.conditions.seed, process);
    mine.conditions.seed = seed;
    std::vector<std::string> pending;
    for (const std::size_t at : order_of_round(plan.ids.size(), plan.conditions.seed, round))
      if (!given_up.contains(plan.ids[at])) pending.push_back(plan.ids[at]);
    done += plan.ids.size() - pending.size();
    while (!pending.empty()) {
      const std::size_t before = pending.size();
      const std::int64_t begun_ns = now_ns();
      std::string running;  // the benchmark that has begun and not ended
      LineProcess child(mine.command, request_of(mine, pending), mine.limit_ns);
      LineProcess::End end = child.follow(stop, [&](const Json& line) {
        if (const std::string id = text_of(line, "begins"); !id.empty()) {
          running = id;
          if (events.began) events.began(process, id, done, total);
        }
        const std::string id = text_of(line, "ends");
        const auto found = std::find(pending.begin(), pending.end(), id);
        if (found == pending.end()) return;
        running.clear();
        pending.erase(found);
        ++done;
        events.measured(process, id, read_measurement(line, id));
      });
      if (end.how == LineProcess::How::done && !running.empty())
        end = {LineProcess::How::crashed, "", child.words_of_exit(0)};
      const std::size_t measured = before - pending.size();
      if (events.ended)
        events.ended({process, seed, measured, static_cast<double>(now_ns() - begun_ns) * 1e-9,
                      kEndNames[static_cast<std::size_t>(end.how)]});
      if (end.how == LineProcess::How::interrupted) return false;
      if (const auto found = std::find(pending.begin(), pending.end(), running); found != pending.end()) {
        Measurement failed;
        failed.failure = end.words;
        given_up.insert(running);
        pending.erase(found);
        ++done;
        events.measured(process, running, std::move(failed));
      } else if (!pending.empty() && measured == 0) {
        // No benchmark ran or was running, so the next child would fail the same way.
        fail(fmt::format("a child process failed: {}", end.words.empty() ? "it ended early" : end.words));
      }
    }
    return true;
  };
  // One side: a process runs all benchmarks, which take turns within it.
  const RoundsPlan rounds{.max_rounds = static_cast<std::size_t>(plan.processes)};
  return run_rounds(rounds, {.run = run_process}, stop).end != RoundsEnd::interrupted;
}

void run_channel_child(const std::string& file) {
  const Json request = read_json(file);
  if (!request.is_object() || !request.contains("benchmarks") || !request["benchmarks"].is_array() ||
      !request.contains("conditions"))
    reject(fmt::format("--child {}: not a request of weir channel", file));
  const Conditions conditions = conditions_from(request["conditions"], file);
  const ToParent parent;
  std::map<std::string, std::vector<Benchmark>> made;  // by group; only those requested
  for (const Json& wanted : request["benchmarks"]) {
    const std::string id = wanted.is_string() ? wanted.get<std::string>() : "";
    const std::string name = id.substr(0, id.find('/'));
    parent.send({{"begins", id}});  // before its group is created, which may fail as well
    const Benchmark* chosen = nullptr;
    for (const Group& group : channel_bench::groups()) {
      if (group.name != name) continue;
      if (!made.contains(name)) made[name] = group.benchmarks(conditions);
      for (const Benchmark& benchmark : made[name])
        if (benchmark.id() == id) chosen = &benchmark;
    }
    if (chosen == nullptr) reject(fmt::format("--child {}: unknown benchmark '{}'", file, id));
    parent.send({{"ends", id}, {"measurement", to_json(run_one(*chosen, conditions))}});
  }
}

}  // namespace weir
