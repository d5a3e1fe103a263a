// fsdp_tp on ranks that share blocks (tensor_parallel), that are stages (pipeline) and that are replicas: whatever the
// layout, the gradients are those of one rank which has all of the model and all of the samples. Ranks are threads,
// each with a device of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

#include "base/error.h"
#include "device/list.h"
#include "device/rank/threads.h"
#include "run/check.h"
#include "step/workload/workload.h"
#include "submit/placement.h"
#include "submit/submitter.h"
#include "support/replay.h"

namespace weir {
namespace {

constexpr int kSamples = 8, kBlocks = 4, kShards = 4, kAllParts = 4, kHidden = 16;
constexpr std::size_t kUsed = 12 * kHidden * kHidden / kAllParts;  // elements of a part of a block

struct Layout {
  int ranks = 1, tensor = 1, stages = 1, streams = 10;
  const char* submit = "inline";
  int replicas() const { return ranks / tensor / stages; }
  int parts() const { return kAllParts / tensor; }
};

Step step_of(const Layout& layout, int rank) {
  const Workload& workload = workload_named("fsdp_tp");
  const std::vector<std::pair<std::string, std::string>> assignments = {
      {"blocks", std::to_string(kBlocks)},
      {"hidden", std::to_string(kHidden)},
      {"heads", "4"},
      {"shards", std::to_string(kShards)},
      {"batch", std::to_string(kSamples / std::max(1, layout.replicas()))},
      {"parts", std::to_string(layout.parts())},
      {"tensor_parallel", std::to_string(layout.tensor)},
      {"pipeline", std::to_string(layout.stages)}};
  Params params(workload.params, Scale::tiny, assignments);
  params.ranks = {rank, layout.ranks};
  return workload.build(params, layout.streams);
}

using Gradients = std::map<std::pair<int, int>, std::vector<float>>;  // by block and part: a whole flat parameter's

// Puts what this rank's reductions have left into its place.
void collect(const Layout& layout, int rank, const Step& step, Session& session, Gradients& all) {
  std::vector<Access> results;
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    const Command& command = step.commands()[id];
    if (workload_named("fsdp_tp").roles[command.role] == "reduce_scatter" && command.kind != CommandKind::kernel)
      results.push_back(step.accesses(id)[1]);
  }
  const int stage = rank / (layout.tensor * layout.replicas()), replica = rank / layout.tensor % layout.replicas();
  const int first = kBlocks * stage / layout.stages, end = kBlocks * (stage + 1) / layout.stages;
  ASSERT_EQ(results.size(), static_cast<std::size_t>((end - first) * layout.parts() * kShards));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const int index = static_cast<int>(i), shard = index % kShards;
    const int part = rank % layout.tensor * layout.parts() + index / kShards % layout.parts();
    const int block = end - 1 - index / (kShards * layout.parts());
    std::vector<std::byte> bytes(step.buffers()[results[i].buffer].size_bytes());
    session.read(results[i].buffer, bytes);
    const auto values =
        floats(ElementType::f32, std::span(bytes).subspan(results[i].offset_bytes, results[i].size_bytes));
    std::vector<float>& flat = all[{block, part}];
    const std::size_t own = values.size(), piece = own * static_cast<std::size_t>(layout.replicas());
    flat.resize(piece * kShards);
    std::copy(values.begin(), values.end(),
              flat.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(shard) * piece +
                                                         static_cast<std::size_t>(replica) * own));
  }
}

Gradients run(const Layout& layout) {
  ThreadWorld world(layout.ranks);
  std::mutex mutex;
  Gradients all;
  double work = 0;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < layout.ranks; ++rank)
      threads.emplace_back([&, rank] {
        try {
          DeviceOptions options;
          options.workers = 1;
          options.communicator = &world.rank(rank);
          const auto device = open_device("cpu", options);
          const Step step = step_of(layout, rank);
          const Placement placement = place(step, "natural");
          const SubmitChoice submit = parse_submit(layout.submit, 4);
          SessionOptions session_options;
          session_options.mode = submit.mode;
          const auto session = device->prepare(step, placement, session_options);
          const auto submitter = make_submitter(submit, step, placement, *session);
          for (int i = 0; i < 2; ++i) {
            session->begin_iteration();
            submitter->submit_step();
            session->finish();
          }
          const CheckReport report = check_outputs(step, *session, &world.rank(rank));
          EXPECT_EQ(report.status, CheckReport::Status::passed) << "rank " << rank;
          const std::lock_guard lock(mutex);
          work += step.work();
          collect(layout, rank, step, *session, all);
        } catch (const std::exception& error) {
          ADD_FAILURE() << "rank " << rank << ": " << error.what();
        }
      });
  }
  EXPECT_DOUBLE_EQ(work, kSamples) << "each sample counts once";
  return all;
}

TEST(FsdpLayouts, GradientsAreThoseOfOneRankWithTheWholeModel) {
  const Gradients whole = run({});
  ASSERT_EQ(whole.size(), static_cast<std::size_t>(kBlocks * kAllParts));
  double squares = 0;
  for (const auto& [where, values] : whole)
    for (std::size_t i = 0; i < kUsed; ++i) squares += std::pow(values[i], 2);
  const double typical = std::sqrt(squares / static_cast<double>(whole.size() * kUsed));
  EXPECT_GT(typical, 0);
  for (const Layout& layout :
       {Layout{.ranks = 2}, Layout{.ranks = 2, .tensor = 2}, Layout{.ranks = 4, .tensor = 4, .streams = 1},
        Layout{.ranks = 2, .stages = 2}, Layout{.ranks = 4, .stages = 4, .streams = 1},
        Layout{.ranks = 6, .stages = 3, .streams = 3}, Layout{.ranks = 4, .tensor = 2, .stages = 2, .submit = "graph"},
        Layout{.ranks = 8, .tensor = 2, .stages = 2},
        Layout{.ranks = 8, .tensor = 2, .stages = 2, .submit = "threads:2"}}) {
    const std::string name = std::to_string(layout.ranks) + " ranks, tensor " + std::to_string(layout.tensor) +
                             ", stages " + std::to_string(layout.stages);
    const Gradients found = run(layout);
    ASSERT_EQ(found.size(), whole.size()) << name;
    double worst = 0;
    for (const auto& [where, values] : whole)
      for (std::size_t i = 0; i < kUsed; ++i)
        worst = std::max(worst, std::fabs(static_cast<double>(found.at(where).at(i)) - values[i]));
    EXPECT_LT(worst, 1e-4 * typical) << name;
  }
}

// One forward, one backward: a stage begins with as many forwards as there are stages from it to the last one, and
// never has more micro-batches in flight.
TEST(FsdpLayouts, AStageHasNoMoreInFlightThanThereAreStagesToTheLast) {
  constexpr int kStages = 4;
  for (int stage = 0; stage < kStages; ++stage) {
    const Step step = step_of({.ranks = kStages, .stages = kStages}, stage);
    int in_flight = 0, most = 0, forwards = 0, passes = 0;
    bool has_begun_backward = false;
    for (CommandId id = 0; id < step.commands().size(); ++id) {
      const std::string_view kernel = kernel_name(step, id);
      if (kernel != "gelu" && kernel != "gelu_backward") continue;
      if (++passes % kAllParts != 0) continue;  // a block each, in as many parts
      if (kernel == "gelu") {
        most = std::max(most, ++in_flight);
        forwards += has_begun_backward ? 0 : 1;
      } else {
        has_begun_backward = true;
        --in_flight;
      }
    }
    EXPECT_EQ(most, kStages - stage);
    EXPECT_EQ(forwards, kStages - stage);
    EXPECT_EQ(in_flight, 0);
  }
}

TEST(FsdpLayouts, RanksThatDoNotFitAreRejectedWithAWayOut) {
  const auto said = [](const Layout& layout) {
    try {
      step_of(layout, 0);
    } catch (const Error& error) {
      return error.what() + (" | " + error.hint);
    }
    return std::string();
  };
  EXPECT_NE(said({.ranks = 6, .tensor = 2, .stages = 2}).find("needs 4 ranks or a multiple; there are 6"),
            std::string::npos);
  EXPECT_NE(said({.ranks = 1, .tensor = 2}).find("--param parts=2"), std::string::npos);
  EXPECT_NE(said({.ranks = 5, .stages = 5}).find("there are 4 blocks"), std::string::npos);
}

}  // namespace
}  // namespace weir
