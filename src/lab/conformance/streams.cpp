// Steps dense in hazards: any placement, any way to submit, with and without overlapping iterations, up to the maximum
// number of streams. The buffers must be the same, bit for bit.
#include <fmt/format.h>

#include "lab/conformance/checks.h"
#include "lab/conformance/list.h"

namespace weir::conformance {
namespace {

struct HazardCase {
  std::uint64_t seed;
  const char* submit;
  bool is_pipelined;
};

CaseOutcome examine_hazards(Subject& subject, const HazardCase& hazard) {
  Dice dice(hazard.seed + 1'000);
  const int streams = 1 + static_cast<int>(dice.below(7));
  const bool has_host = hazard.seed % 2 == 0 && subject.info.host_functions;
  const Step step = random_step(hazard.seed, streams, {.has_host = has_host, .has_cuts = hazard.seed % 3 == 0});
  const int iterations = (hazard.is_pipelined ? 3 : 1) + static_cast<int>(dice.below(3));
  const Placement placement =
      dice.below(2) == 0 ? natural(step) : random_placement(step, hazard.seed, 1 + static_cast<int>(dice.below(9)));
  return same_buffers(subject, step, placement, {hazard.submit, hazard.is_pipelined, iterations});
}

// The maximum number of streams, each with work; every one depends on others.
CaseOutcome examine_many_streams(Subject& subject, int streams) {
  const Step step = random_step(99, streams);
  return same_buffers(subject, step, natural(step), {"inline", true, 3});
}

// The same, submitted in pieces of any size.
CaseOutcome examine_pieces(Subject& subject, std::uint64_t seed) {
  Dice dice(seed);
  const Step step = random_step(seed, 4);
  const Placement placement = natural(step);
  const auto session = subject.device.prepare(step, placement, {.is_pipelined = true});
  constexpr int kIterations = 3;
  for (int i = 0; i < kIterations; ++i) {
    session->begin_iteration();
    std::vector<CommandId> piece;
    for (CommandId id = 0; id < step.commands().size(); ++id) {
      piece.push_back(id);
      if (id + 1 < step.commands().size() && dice.below(4) != 0) continue;
      session->submit(piece);
      piece.clear();
    }
  }
  session->finish();
  if (!subject.info.computes) return passed();
  const std::string difference = difference_of(step, read_all(*session, step), reference(step, kIterations));
  return difference.empty() ? passed() : failed(difference);
}

}  // namespace

Cases streams() {
  constexpr std::uint64_t kSteps = 6;  // for each way to submit
  Cases cases;
  std::uint64_t first = 1;
  for (const char* submit :
       {"inline", "threads:2", "threads:3", "channel:mpsc:4", "channel:lanes:2", "channel:mpsc:3x2"}) {
    for (std::uint64_t seed = first; seed < first + kSteps; ++seed)
      for (const bool is_pipelined : {false, true}) {
        const HazardCase hazard{seed, submit, is_pipelined};
        cases.push_back({"streams",
                         fmt::format("hazards/{}/{}{}", submit, seed, is_pipelined ? " pipelined" : ""),
                         {},
                         [hazard](Subject& subject) { return examine_hazards(subject, hazard); }});
      }
    first += kSteps;
  }
  for (const int streams : {1, 32, kMaxStreams})
    cases.push_back({"streams", fmt::format("{} streams", streams), {}, [streams](Subject& subject) {
                       return examine_many_streams(subject, streams);
                     }});
  for (std::uint64_t seed = 21; seed <= 24; ++seed)
    cases.push_back({"streams", fmt::format("in pieces/{}", seed), {}, [seed](Subject& subject) {
                       return examine_pieces(subject, seed);
                     }});
  return cases;
}

}  // namespace weir::conformance
