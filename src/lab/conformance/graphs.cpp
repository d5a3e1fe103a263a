// Steps recorded once and launched as graphs: whole, cut, with only host functions between graphs, many in flight.
#include <fmt/format.h>

#include "lab/conformance/checks.h"
#include "lab/conformance/list.h"
#include "lab/conformance/round_trip.h"

namespace weir::conformance {
namespace {

CaseOutcome examine_graph(Subject& subject, std::uint64_t seed, Mix mix, bool is_pipelined) {
  Dice dice(seed);
  const int streams = 1 + static_cast<int>(dice.below(7));
  const Step step = random_step(seed, streams, mix);
  const Placement placement =
      dice.below(2) == 0 ? natural(step) : random_placement(step, seed, 1 + static_cast<int>(dice.below(9)));
  return same_buffers(subject, step, placement, {"graph", is_pipelined, 1 + static_cast<int>(dice.below(4))});
}

}  // namespace

Cases graphs() {
  Cases cases;
  struct Kind {
    const char* name;
    Mix mix;
  };
  for (const auto& [name, mix] :
       {Kind{"whole", {false, false}}, Kind{"cut", {false, true}}, Kind{"with host functions", {true, false}},
        Kind{"cut with host functions, some alone", {true, true}}})
    for (std::uint64_t seed = 1; seed <= 5; ++seed)
      for (const bool is_pipelined : {false, true})
        cases.push_back({"graphs",
                         fmt::format("{}/{}{}", name, seed, is_pipelined ? " pipelined" : ""),
                         {.graphs = true, .host_functions = mix.has_host},
                         [=](Subject& subject) { return examine_graph(subject, seed, mix, is_pipelined); }});
  for (const bool has_cuts : {false, true})
    for (const bool is_pipelined : {false, true})
      cases.push_back({"graphs",
                       fmt::format("there and back{}{}", has_cuts ? ", cut" : "", is_pipelined ? ", pipelined" : ""),
                       {.graphs = true, .host_functions = true},
                       [=](Subject& subject) {
                         const Step step = round_trip_step(has_cuts);
                         return same_buffers(subject, step, natural(step), {"graph", is_pipelined, 20});
                       }});
  cases.push_back({"graphs", "700 iterations in flight", {.runs = true, .graphs = true}, [](Subject& subject) {
                     return many_iterations(subject, "graph", 700);
                   }});
  cases.push_back({"graphs", "traced", {.graphs = true}, [](Subject& subject) {
                     const Step step = random_step(4, 3);
                     return consistent_timeline(subject, step, natural(step), {"graph", false, 2});
                   }});
  cases.push_back({"graphs", "not offered, then rejected", {}, [](Subject& subject) {
                     if (subject.info.graphs) return skipped("graphs are offered");
                     return rejected(subject, random_step(1, 1), {.mode = SubmitMode::graph}, "submit graph");
                   }});
  return cases;
}

}  // namespace weir::conformance
