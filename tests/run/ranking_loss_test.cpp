// ranking_transformer learns the same on any number of ranks, however its parameters are sharded, gathered, cut and
// placed: losses of the first iterations against those of one rank that has everything.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "device/rank/alone.h"
#include "device/rank/threads.h"
#include "run/check.h"
#include "step/workload/ranking_transformer.h"
#include "step/workload/workload.h"
#include "submit/placement.h"
#include "submit/submitter.h"
#include "support/replay.h"

namespace weir {
namespace {

constexpr int kSamples = 8;  // of a step, whatever it is made of

struct Setting {
  std::string mode = "ddp";
  int ranks = 1;
  bool has_lone_collectives = false;
  int prefetch = 1, reshard = 1, bucket_kib = 0, accumulation = 1;
  std::string placement = "natural";
  int queues = 4;
  int gradient_slots = 2;
  std::string precision = "fp32";
  std::string submit = "inline";
  bool is_pipelined = false;  // only the last loss is looked at
  int shard_group = 0;
  std::string dropout = "0";
  bool has_schedule = false;

  std::string text() const {
    return mode + " ranks " + std::to_string(ranks) + (has_lone_collectives ? " alone" : "") + " prefetch " +
           std::to_string(prefetch) + " reshard " + std::to_string(reshard) + " bucket " + std::to_string(bucket_kib) +
           " accumulation " + std::to_string(accumulation) + ' ' + placement + " queues " + std::to_string(queues) +
           " slots " + std::to_string(gradient_slots) + ' ' + precision + " group " + std::to_string(shard_group) +
           " dropout " + dropout + (has_schedule ? " schedule" : "");
  }
};

Step step_of(const Setting& setting, int rank) {
  const Workload& workload = workload_named("ranking_transformer");
  const std::vector<std::pair<std::string, std::string>> assignments = {
      {"mode", setting.mode},
      {"prefetch", std::to_string(setting.prefetch)},
      {"reshard", std::to_string(setting.reshard)},
      {"bucket_kib", std::to_string(setting.bucket_kib)},
      {"accumulation", std::to_string(setting.accumulation)},
      {"gradient_slots", std::to_string(setting.gradient_slots)},
      {"batch", std::to_string(kSamples / setting.accumulation)},
      {"scorer", "7"},  // 17 x 7 weights: padded for 2 and 4 ranks
      {"clip", "0.1"},  // less than the norm is: what pads or repeats elements changes every step
      {"rate", "0.01"},
      {"shard_group", std::to_string(setting.shard_group)},
      {"dropout", setting.dropout},
      {"beta1", setting.has_schedule ? "0.7" : "0.9"},
      {"epsilon", setting.has_schedule ? "0.001" : "1e-8"},
      {"total_steps", setting.has_schedule ? "5" : "0"},
      {"warmup_steps", "2"},
      {"schedule", "cosine"},
      {"least_rate", "0.002"}};
  Params params(workload.params, Scale::tiny, assignments);
  params.ranks = {rank, setting.ranks, setting.has_lone_collectives};
  params.precision = precision_named(setting.precision).value();
  return workload.build(params, workload.streams.recommended);
}

struct Outcome {
  std::vector<double> losses;
  CheckReport check;
};

Outcome run_rank(const Setting& setting, int rank, Communicator* communicator, int iterations, bool is_checked) {
  const SubmitChoice submit = parse_submit(setting.submit, 4);
  DeviceOptions options;
  options.workers = 1;
  options.hardware_queues = setting.queues;
  options.communicator = communicator;
  const auto device = open_device("cpu", options);
  const Step step = step_of(setting, rank);
  const Placement placement = place(step, setting.placement);
  SessionOptions session_options;
  session_options.mode = submit.mode;
  session_options.is_pipelined = setting.is_pipelined;
  const auto session = device->prepare(step, placement, session_options);
  const auto submitter = make_submitter(submit, step, placement, *session);
  const BufferId loss = ranking_buffers(step).loss;
  Outcome outcome;
  for (int i = 0; i < iterations; ++i) {
    session->begin_iteration();
    submitter->submit_step();
    if (setting.is_pipelined && i + 1 < iterations) continue;
    session->finish();
    std::vector<std::byte> bytes(4);
    session->read(loss, bytes);
    outcome.losses.push_back(floats(ElementType::f32, bytes)[0]);
  }
  if (is_checked) outcome.check = check_outputs(step, *session, communicator);
  return outcome;
}

// By rank.
std::vector<Outcome> run(const Setting& setting, int iterations, bool is_checked = false) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(setting.ranks));
  if (setting.ranks == 1) {
    AloneCommunicator alone;
    outcomes[0] = run_rank(setting, 0, setting.has_lone_collectives ? &alone : nullptr, iterations, is_checked);
    return outcomes;
  }
  ThreadWorld world(setting.ranks);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < setting.ranks; ++rank)
      threads.emplace_back([&, rank] {
        try {
          outcomes[static_cast<std::size_t>(rank)] = run_rank(setting, rank, &world.rank(rank), iterations, is_checked);
        } catch (const std::exception& error) {
          ADD_FAILURE() << setting.text() << ", rank " << rank << ": " << error.what();
        }
      });
  }
  return outcomes;
}

// TSan takes ten times as long: then every seventh combination, which has every value and most pairs, because no choice
// has as many values.
#if defined(__SANITIZE_THREAD__)
constexpr std::size_t kEvery = 7;
#else
constexpr std::size_t kEvery = 1;
#endif

std::vector<Setting> settings() {
  struct World {
    int ranks;
    bool has_lone_collectives;
  };
  constexpr World kWorlds[] = {{1, false}, {1, true}, {2, false}, {4, false}};
  std::vector<Setting> chosen;
  std::size_t number = 0;
  for (const char* mode : {"fsdp", "ddp"})
    for (const int reshard : {0, 1})
      for (const int prefetch : {0, 1, 3})
        for (const World& world : kWorlds)
          for (const int bucket : {0, 1})
            for (const int accumulation : {1, 2})
              for (const char* placement : {"natural", "serial", "round_robin"})
                for (const int queues : {1, 4}) {
                  const bool is_sharded = std::string_view(mode) == "fsdp";
                  if (!is_sharded && (reshard != 0 || prefetch != 0)) continue;  // means nothing to it
                  if (number++ % kEvery != 0) continue;
                  chosen.push_back({mode, world.ranks, world.has_lone_collectives, prefetch, reshard, bucket,
                                    accumulation, placement, queues, number % 5 == 0 ? 0 : 2});
                }
  return chosen;
}

TEST(RankingLoss, IsThatOfOneRankWithEverything) {
  constexpr int kIterations = 6;
  const std::vector<double> expected = run({}, kIterations)[0].losses;
  ASSERT_GT(expected[0], 0.3);
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(setting.text());
    for (const Outcome& outcome : run(setting, kIterations)) {
      ASSERT_EQ(outcome.losses.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(outcome.losses[i], expected[i], 1e-5 * expected[i]) << "iteration " << i;
    }
  }
}

void expect_losses(const Setting& setting, const std::vector<double>& expected) {
  SCOPED_TRACE(setting.text());
  for (const Outcome& outcome : run(setting, static_cast<int>(expected.size()))) {
    ASSERT_EQ(outcome.losses.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(outcome.losses[i], expected[i], 1e-5 * expected[i]) << "iteration " << i;
  }
}

// Parameters sharded within a group and copied across: as 2x2, as four copies, and as one.
TEST(RankingLoss, IsTheSameOfHybridShards) {
  const std::vector<double> expected = run({}, 6)[0].losses;
  for (const int group : {1, 2, 4})
    for (const int reshard : {0, 1})
      for (const int bucket : {0, 1})
        for (const int accumulation : {1, 2}) {
          Setting setting;
          setting.mode = "fsdp";
          setting.ranks = 4;
          setting.shard_group = group;
          setting.reshard = reshard;
          setting.bucket_kib = bucket;
          setting.accumulation = accumulation;
          expect_losses(setting, expected);
        }
}

// Which elements are dropped depends on the step and on their place in the whole model, and on nothing else.
TEST(RankingLoss, IsTheSameWithDropoutWhateverTheLayout) {
  Setting alone;
  alone.dropout = "0.25";
  const std::vector<double> expected = run(alone, 6)[0].losses, plain = run({}, 6)[0].losses;
  EXPECT_GT(std::fabs(expected[0] - plain[0]), 1e-3 * plain[0]) << "something was dropped";
  for (const char* mode : {"fsdp", "ddp"})
    for (const int ranks : {1, 2, 4})
      for (const int accumulation : {1, 2})
        for (const char* submit : {"inline", "graph"}) {
          Setting setting = alone;
          setting.mode = mode;
          setting.ranks = ranks;
          setting.accumulation = accumulation;
          setting.submit = submit;
          setting.shard_group = ranks == 4 ? 2 : 0;
          setting.placement = accumulation == 2 ? "round_robin" : "natural";
          expect_losses(setting, expected);
        }
}

// The rate follows a counter on the device, so that a graph that is replayed has the right one as well.
TEST(RankingLoss, FollowsTheScheduleHoweverItIsSubmitted) {
  Setting alone;
  alone.has_schedule = true;
  const std::vector<double> expected = run(alone, 7)[0].losses, plain = run({}, 7)[0].losses;
  EXPECT_NEAR(expected[0], plain[0], 1e-6) << "before the first update";
  EXPECT_GT(std::fabs(expected[6] - plain[6]), 1e-3 * plain[6]);
  for (const char* mode : {"fsdp", "ddp"})
    for (const char* submit : {"inline", "graph"}) {
      Setting setting = alone;
      setting.mode = mode;
      setting.ranks = 2;
      setting.submit = submit;
      expect_losses(setting, expected);
    }
}

// The parameters that AdamW leaves after some steps, against the same in double.
TEST(RankingUpdate, IsThatOfTheFormula) {
  Setting setting;
  setting.has_schedule = true;
  const Step step = step_of(setting, 0);
  const auto device = open_device("cpu", {});
  const Placement placement = place(step, "natural");
  const auto session = device->prepare(step, placement, {});
  const auto submitter = inline_submitter(step, *session);
  const auto values = [&](CommandId id, std::size_t operand) {
    const Access& access = step.accesses(id)[operand];
    const Buffer& buffer = step.buffers()[access.buffer];
    std::vector<std::byte> bytes(buffer.size_bytes());
    session->read(access.buffer, bytes);
    const std::vector<double> all = floats(buffer.type, bytes);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(access.offset_bytes / size_of(buffer.type));
    return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(access.size_bytes / size_of(buffer.type)));
  };
  const std::vector<CommandId> updates = launches_of(step, "adamw");
  std::vector<std::vector<double>> parameters, means(updates.size()), squares(updates.size());
  for (const CommandId id : updates) parameters.push_back(values(id, 1));
  constexpr double kRates[] = {0.005, 0.01, 0.01, 0.002 + 0.008 * 0.75, 0.002 + 0.008 * 0.25, 0.002, 0.002};
  for (int i = 0; i < 7; ++i) {
    session->begin_iteration();
    submitter->submit_step();
    session->finish();
    const double clip = values(updates[0], 4)[1];
    EXPECT_NEAR(values(updates[0], 4)[2], kRates[i], 1e-8) << i;
    for (std::size_t u = 0; u < updates.size(); ++u) {
      const std::vector<double> gradients = values(updates[u], 0), now = values(updates[u], 1);
      means[u].resize(now.size());
      squares[u].resize(now.size());
      for (std::size_t e = 0; e < now.size(); ++e) {
        const double gradient = clip * gradients[e];
        means[u][e] = 0.7 * means[u][e] + 0.3 * gradient;
        squares[u][e] = 0.999 * squares[u][e] + 0.001 * gradient * gradient;
        const double size = std::sqrt(squares[u][e] / (1 - std::pow(0.999, i + 1))) + 0.001;
        parameters[u][e] -= kRates[i] * (0.01 * parameters[u][e] + means[u][e] / (1 - std::pow(0.7, i + 1)) / size);
        ASSERT_NEAR(now[e], parameters[u][e], 2e-6) << "step " << i << ", unit " << u << ", element " << e;
      }
    }
  }
}

// What an iteration must wait for of the one before it follows from the data as well.
TEST(RankingLoss, IsTheSameWhereIterationsArePipelined) {
  const double expected = run({}, 6)[0].losses.back();
  for (const char* mode : {"fsdp", "ddp"})
    for (const int ranks : {1, 2})
      for (const char* submit : {"inline", "graph"}) {
        Setting setting;
        setting.mode = mode;
        setting.ranks = ranks;
        setting.prefetch = 3;
        setting.submit = submit;
        setting.is_pipelined = true;
        for (const Outcome& outcome : run(setting, 6)) {
          ASSERT_EQ(outcome.losses.size(), 1u);
          EXPECT_NEAR(outcome.losses[0], expected, 1e-5 * expected) << setting.text() << ' ' << submit;
        }
      }
}

TEST(RankingLoss, Falls) {
  for (const char* mode : {"fsdp", "ddp"}) {
    Setting setting;
    setting.mode = mode;
    for (const char* precision : {"fp32", "bf16"}) {
      setting.precision = precision;
      const std::vector<double> losses = run(setting, 20)[0].losses;
      EXPECT_LT(losses.back(), 0.3 * losses.front()) << setting.text();
    }
  }
}

TEST(RankingCheck, PassesOnEveryRank) {
  std::vector<Setting> checked;
  for (const char* mode : {"fsdp", "ddp"})
    for (const char* precision : {"fp32", "bf16"})
      for (const int accumulation : {1, 2}) {
        Setting setting;
        setting.mode = mode;
        setting.precision = precision;
        setting.accumulation = accumulation;
        checked.push_back(setting);
        setting.has_lone_collectives = true;
        checked.push_back(setting);
        setting.has_lone_collectives = false;
        setting.ranks = 2;
        setting.bucket_kib = 1;
        checked.push_back(setting);
        setting.ranks = 4;
        setting.gradient_slots = 0;
        setting.reshard = 0;
        checked.push_back(setting);
        setting.shard_group = 2;
        setting.dropout = "0.2";
        setting.has_schedule = true;
        checked.push_back(setting);
      }
  for (const Setting& setting : checked) {
    SCOPED_TRACE(setting.text());
    for (const Outcome& outcome : run(setting, 1, true))
      EXPECT_EQ(outcome.check.status, CheckReport::Status::passed) << outcome.check.reason;
  }
}

// Without its collectives the step still computes with numbers: what the computation takes alone is measured so.
TEST(RankingLoss, IsANumberWithoutCollectives) {
  for (const Setting& setting : {Setting{.mode = "fsdp", .ranks = 2}, Setting{.mode = "fsdp", .ranks = 2, .reshard = 0},
                                 Setting{.mode = "ddp", .ranks = 2}}) {
    const Step whole = step_of(setting, 0);
    const Step step = only(whole, [&](CommandId id) { return whole.commands()[id].kind != CommandKind::collective; });
    const auto device = open_device("cpu", {});
    const Placement placement = place(step, "natural");
    const auto session = device->prepare(step, placement, {});
    const auto submitter = inline_submitter(step, *session);
    for (int i = 0; i < 3; ++i) {
      session->begin_iteration();
      submitter->submit_step();
    }
    session->finish();
    std::vector<BufferId> looked_at;
    for (const CommandId id : launches_of(step, "weighted_bce")) looked_at.push_back(step.accesses(id)[4].buffer);
    for (const CommandId id : launches_of(step, "adamw")) looked_at.push_back(step.accesses(id)[1].buffer);
    ASSERT_EQ(looked_at.size(), 5u);
    for (const BufferId buffer : looked_at) {
      std::vector<std::byte> bytes(step.buffers()[buffer].size_bytes());
      session->read(buffer, bytes);
      for (const double value : floats(ElementType::f32, bytes)) ASSERT_TRUE(std::isfinite(value)) << setting.text();
    }
  }
}

// A session that misremembers one number.
class Tampered final : public Session {
 public:
  Tampered(std::unique_ptr<Session> whole, const Access& where) : whole_(std::move(whole)), where_(where) {}
  void begin_iteration() noexcept override { whole_->begin_iteration(); }
  void submit(std::span<const CommandId> commands) noexcept override { whole_->submit(commands); }
  void finish() override { whole_->finish(); }
  std::vector<IterationSpan> take_spans() override { return whole_->take_spans(); }
  Timeline timeline() override { return whole_->timeline(); }
  void reset() override { whole_->reset(); }
  MemoryUse memory() const override { return whole_->memory(); }
  void read(BufferId buffer, std::span<std::byte> bytes) override {
    whole_->read(buffer, bytes);
    if (buffer != where_.buffer) return;
    float value = 0;
    std::memcpy(&value, bytes.data() + where_.offset_bytes, sizeof value);
    value += 1;
    std::memcpy(bytes.data() + where_.offset_bytes, &value, sizeof value);
  }

 private:
  std::unique_ptr<Session> whole_;
  Access where_;
};

// What a reduction leaves on one rank is wrong, and its inputs, the gradients in their slots, are gone on all of them.
TEST(RankingCheck, SeesAWrongReductionOfWhatIsOverwritten) {
  Setting setting;
  setting.mode = "fsdp";
  setting.ranks = 2;
  for (const CollectiveOp op : {CollectiveOp::reduce_scatter, CollectiveOp::all_reduce, CollectiveOp::all_gather}) {
    ThreadWorld world(setting.ranks);
    std::vector<CheckReport> reports(2);
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < setting.ranks; ++rank)
        threads.emplace_back([&, rank] {
          DeviceOptions options;
          options.workers = 1;
          options.communicator = &world.rank(rank);
          const auto device = open_device("cpu", options);
          const Step step = step_of(setting, rank);
          CommandId wrong = 0;
          while (step.commands()[wrong].kind != CommandKind::collective || step.commands()[wrong].collective != op)
            ++wrong;
          const Placement placement = place(step, "natural");
          auto session = device->prepare(step, placement, {});
          if (rank == 1) session = std::make_unique<Tampered>(std::move(session), step.accesses(wrong)[1]);
          const auto submitter = inline_submitter(step, *session);
          session->begin_iteration();
          submitter->submit_step();
          session->finish();
          reports[static_cast<std::size_t>(rank)] = check_outputs(step, *session, &world.rank(rank));
        });
    }
    EXPECT_EQ(reports[0].status, CheckReport::Status::passed) << reports[0].reason;
    EXPECT_EQ(reports[1].status, CheckReport::Status::failed) << name_of(op);
    EXPECT_NE(reports[1].reason.find(name_of(op)), std::string::npos) << reports[1].reason;
  }
}

// The gradients that AdamW is given against differences of the loss, for the parameters of each unit that matter most.
TEST(RankingGradient, IsThatOfTheLoss) {
  for (const Setting& setting : {Setting{.mode = "fsdp"}, Setting{.mode = "ddp", .accumulation = 2},
                                 Setting{.mode = "fsdp", .dropout = "0.3"}}) {
    SCOPED_TRACE(setting.text());
    const Step step = step_of(setting, 0);
    const BufferId loss = ranking_buffers(step).loss;
    const auto loss_with = [&](const Access& parameters, std::size_t index, float change) {
      Replay moved(step);
      moved.values<float>(parameters)[index] += change;
      moved.run();
      return static_cast<double>(moved.values<float>({.buffer = loss, .size_bytes = 4})[0]);
    };
    Replay replay(step);
    replay.run();
    const std::vector<CommandId> updates = launches_of(step, "adamw");
    ASSERT_EQ(updates.size(), 4u);
    for (const CommandId id : updates) {
      const Access &gradients = step.accesses(id)[0], &parameters = step.accesses(id)[5];
      const auto values = replay.values<float>(gradients);
      std::vector<std::size_t> order(values.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::partial_sort(order.begin(), order.begin() + 3, order.end(),
                        [&](std::size_t a, std::size_t b) { return std::fabs(values[a]) > std::fabs(values[b]); });
      order[3] = order.size() / 3;
      for (std::size_t i = 0; i < 4; ++i) {
        const auto difference = [&](float by) {
          return (loss_with(parameters, order[i], by) - loss_with(parameters, order[i], -by)) / (2 * by);
        };
        const double derivative = (4 * difference(0x1p-6f) - difference(0x1p-5f)) / 3;
        EXPECT_NEAR(values[order[i]], derivative, 2e-3 * std::fabs(values[order[0]]) + 2e-5)
            << "unit of " << values.size() << ", element " << order[i];
      }
    }
  }
}

}  // namespace
}  // namespace weir
