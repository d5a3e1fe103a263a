// Host functions: in stream order among kernels and copies, on many streams, however they are submitted.
#include <fmt/format.h>

#include "lab/conformance/checks.h"
#include "lab/conformance/list.h"
#include "lab/conformance/round_trip.h"

namespace weir::conformance {
namespace {

// One host function alone on each stream.
Step lone_step(int streams) {
  constexpr std::int64_t kCount = 40'000;
  StepBuilder builder(1);
  for (int s = 0; s < streams; ++s) {
    const BufferId host = builder.host(ElementType::f32, kCount, Init::constant);
    builder.launch_on_host("fill", {.stream = static_cast<StreamId>(s)},
                           {.dims = {kCount}, .scalars = {static_cast<float>(s) + 0.5f}}, {{host}});
  }
  return std::move(builder).seal(streams);
}

// Each adds to the previous one's result; the streams take turns.
Step host_relay_step(int streams) {
  StepBuilder builder(1);
  const BufferId host = builder.host(ElementType::i32, 1'000, Init::constant);
  for (int i = 0; i < 6 * streams; ++i)
    builder.launch_on_host("increase", {.stream = static_cast<StreamId>(i % streams)},
                           {.type = ElementType::i32, .dims = {1'000, i + 1}}, {{host}, {host}});
  return std::move(builder).seal(streams);
}

}  // namespace

Cases host_functions() {
  Cases cases;
  const auto add = [&](const std::string& name, auto make, int iterations) {
    for (const char* submit : {"inline", "threads:2", "channel:mpsc:2"})
      for (const bool is_pipelined : {false, true})
        cases.push_back({"host_functions",
                         fmt::format("{}/{}{}", name, submit, is_pipelined ? " pipelined" : ""),
                         {.host_functions = true},
                         [=](Subject& subject) {
                           const Step step = make();
                           return same_buffers(subject, step, natural(step), {submit, is_pipelined, iterations});
                         }});
  };
  add("alone on 3 streams", [] { return lone_step(3); }, 2);
  add("one after the other on 4 streams", [] { return host_relay_step(4); }, 3);
  add("there and back", [] { return round_trip_step(false); }, 20);
  cases.push_back({"host_functions", "not offered, then rejected", {}, [](Subject& subject) {
                     if (subject.info.host_functions) return skipped("host functions are offered");
                     return rejected(subject, lone_step(1), {}, "host");
                   }});
  return cases;
}

}  // namespace weir::conformance
