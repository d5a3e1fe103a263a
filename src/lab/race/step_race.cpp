#include "lab/race/step_race.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "device/plan.h"
#include "lab/race/order.h"
#include "lab/race/step_trial.h"
#include "lab/race/suspects.h"
#include "trace/race_format.h"

namespace weir::race {
namespace {

constexpr std::size_t kMostPairs = 8, kMostTrials = 8;
// With the wait back nothing overtakes, so the whole delay passes; long enough for what comes behind to be ready.
constexpr std::int64_t kControlNs = 20'000'000;

std::vector<std::uint32_t> chosen_waits(std::uint32_t waits, const StepRaceOptions& options) {
  if (options.wait) return {*options.wait};
  if (options.missing > waits)
    reject_setting("inject_missing_wait", std::to_string(options.missing),
                   fmt::format("the step's plan has {} waits", waits),
                   waits == 0 ? "Use more streams, or a workload whose streams depend on each other." : "Use fewer.");
  std::vector<std::uint32_t> numbers(waits);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::uint32_t i = 0; i < options.missing; ++i)
    std::swap(numbers[i], numbers[i + race_format::mix(options.seed, 1, i) % (waits - i)]);
  numbers.resize(options.missing);
  return numbers;
}

class StepSuspects {
 public:
  StepSuspects(const Step& step, const Placement& placement, bool is_pipelined)
      : step_(step),
        placement_(placement),
        is_pipelined_(is_pipelined),
        plan_(make_plan(step, placement, is_pipelined)),
        intact_(log_of(step, placement, {}, is_pipelined)),
        place_of_(step.commands().size() * (is_pipelined ? 2 : 1)) {
    for (std::uint32_t i = 0; i < intact_.calls.size(); ++i)
      if (is_command(intact_.calls[i].kind)) place_of_[intact_.calls[i].name.sequence - 1] = i;
    for (BufferId id = 0; id < step.buffers().size(); ++id) begins_.push_back(address_of(step, id));
  }

  const StepPlan& plan() const { return plan_; }
  std::uint64_t intact_pairs() const {
    const Suspects suspects = find_suspects(intact_);
    return static_cast<std::uint64_t>(
        std::count_if(suspects.pairs.begin(), suspects.pairs.end(), [](const Suspect& pair) { return pair.is_exact; }));
  }

  MissingWait without(std::uint32_t number) const {
    MissingWait missing;
    missing.number = number;
    for (CommandId id = 0; id < plan_.hops.size(); ++id) {
      const StepPlan::Hop& hop = plan_.hops[id];
      if (number >= hop.first_wait && number < hop.first_wait + hop.wait_count) missing.waiter.command = id;
      if ((hop.flags & StepPlan::kRecords) != 0 && number < plan_.waits.size() && plan_.waits[number] == hop.event)
        missing.awaited = id;
    }
    // A wait for a later command is one for the iteration before.
    missing.waiter.iteration = missing.awaited >= missing.waiter.command ? 1 : 0;
    const Log log = log_of(step_, placement_, std::span(&number, 1), is_pipelined_);
    for (const Suspect& suspect : find_suspects(log).pairs) {
      if (!suspect.is_exact || missing.pairs.size() == kMostPairs) continue;
      missing.pairs.push_back(describe(log, suspect));
      missing.is_found |= missing.pairs.back().is_ordered_with_wait;
    }
    return missing;
  }

 private:
  StepRacePair describe(const Log& log, const Suspect& suspect) const {
    const Call &first = log.calls[suspect.first], &second = log.calls[suspect.second];
    StepRacePair pair;
    pair.first = command_of(step_, first);
    pair.second = command_of(step_, second);
    pair.first_name = log.label_of(first);
    pair.second_name = log.label_of(second);
    pair.first_stream = static_cast<StreamId>(first.stream);
    pair.second_stream = static_cast<StreamId>(second.stream);
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), suspect.begin);
    pair.buffer = static_cast<BufferId>(after - begins_.begin() - 1);
    const Buffer& buffer = step_.buffers()[pair.buffer];
    pair.buffer_name = fmt::format("buffer {} ({} elements in {} memory)", pair.buffer, buffer.count,
                                   buffer.place == Place::host ? "host" : "device");
    pair.offset_bytes = suspect.begin - begins_[pair.buffer];
    pair.size_bytes = suspect.end - suspect.begin;
    const std::pair both{place_of_[first.name.sequence - 1], place_of_[second.name.sequence - 1]};
    pair.is_ordered_with_wait = are_ordered(intact_, std::span(&both, 1)).front();
    return pair;
  }

  const Step& step_;
  const Placement& placement_;
  bool is_pipelined_;
  StepPlan plan_;
  Log intact_;
  std::vector<std::uint32_t> place_of_;  // in the intact log, by number of the command
  std::vector<std::uint64_t> begins_;    // of buffers
};

// True if a run shows one of the pairs.
bool show(StepTrial& trial, MissingWait& missing, std::int64_t patience_ns) {
  for (std::size_t i = 0; i < std::min(kMostTrials, missing.pairs.size()); ++i) {
    StepRacePair& pair = missing.pairs[i];
    if (!pair.is_ordered_with_wait) continue;
    Disturbance disturbance = trial.disturbance(pair.first, pair.second, patience_ns);
    disturbance.missing_waits = {missing.number};
    const TrialVerdict without = trial.judge(disturbance, pair.first, pair.second);
    pair.is_overtaken = without.is_overtaken;
    pair.is_shown = without.is_wrong;
    pair.shown = without.said;
    if (!without.is_wrong) continue;
    const TrialVerdict with =
        trial.judge(trial.disturbance(pair.first, pair.second, kControlNs), pair.first, pair.second);
    pair.is_right_with_wait = !with.is_overtaken && !with.is_wrong;
    if (!*pair.is_right_with_wait) pair.shown += fmt::format("; with the wait: {}", with.said);
    return true;
  }
  return false;
}

}  // namespace

StepRace race_step(Device& device, const Step& step, const Placement& placement, const StepRaceOptions& options) {
  const DeviceInfo info = device.info();
  if (info.backend != "cpu" && info.backend != "sim")
    reject(fmt::format("device '{}' cannot hold single commands up", info.name), "Use --device cpu or --device sim.");
  const StepSuspects suspects(step, placement, options.is_pipelined);
  StepRace race;
  race.device = info.name;
  race.streams = placement.stream_count;
  race.is_pipelined = options.is_pipelined;
  race.waits = static_cast<std::uint32_t>(suspects.plan().waits.size());
  race.intact_pairs = suspects.intact_pairs();
  StepTrial trial(device, step, placement, options.is_pipelined);
  if (options.shows) race.shown = 0;
  for (const std::uint32_t number : chosen_waits(race.waits, options)) {
    MissingWait& missing = race.missing.emplace_back(suspects.without(number));
    if (missing.is_found) ++race.found;
    if (options.shows && show(trial, missing, options.patience_ns)) ++*race.shown;
  }
  return race;
}

StepRace race_step(const std::string& device, const RunRequest& request, const StepRaceOptions& options) {
  const Workload& workload = workload_of(request);
  const int streams = request.streams == 0 ? workload.streams.recommended : request.streams;
  DeviceOptions opened;
  opened.hardware_queues = std::clamp(streams, 8, kMaxStreams - 1);
  const auto opened_device = open_device(device, opened);
  const BuiltRun built = build_run(opened_device->info(), request);
  return race_step(*opened_device, built.step, built.placement, options);
}

}  // namespace weir::race
