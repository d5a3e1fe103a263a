// Row of "What AORTA gets wrong": MoE runs every expert on all tokens, speculative decoding credits a constant, slots
// are never refilled. Here the device decides, and these tests take its decisions again from its own data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <set>

#include "run/runner.h"
#include "run/tiny_request.h"
#include "submit/placement.h"
#include "submit/submitter.h"
#include "support/replay.h"

namespace weir {
namespace {

using Assignments = std::vector<std::pair<std::string, std::string>>;

// One iteration of a workload on the cpu device, and what it left there.
class Ran {
 public:
  explicit Ran(const RunRequest& request) : device_(open_device("cpu", {})), run_(build_run(device_->info(), request)) {
    session_ = device_->prepare(run_.step, run_.placement, {});
    const auto submitter = inline_submitter(run_.step, *session_);
    session_->begin_iteration();
    submitter->submit_step();
    session_->finish();
  }
  const Step& step() const { return run_.step; }
  std::vector<std::byte> bytes(const Access& access) {
    std::vector<std::byte> all(step().buffers()[access.buffer].size_bytes());
    session_->read(access.buffer, all);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(access.offset_bytes);
    return {begin, begin + static_cast<std::ptrdiff_t>(access.size_bytes)};
  }
  std::vector<std::int32_t> ints(CommandId id, std::size_t operand) {
    return integers(bytes(step().accesses(id)[operand]));
  }
  std::vector<double> reals(CommandId id, std::size_t operand) {
    const Access& access = step().accesses(id)[operand];
    return floats(step().buffers()[access.buffer].type, bytes(access));
  }
  CommandId only(std::string_view kernel) const {
    const std::vector<CommandId> found = launches_of(step(), kernel);
    EXPECT_EQ(found.size(), 1u) << kernel;
    return found.at(0);
  }

 private:
  std::unique_ptr<Device> device_;
  BuiltRun run_;
  std::unique_ptr<Session> session_;
};

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

// [m][k] times [k][n], in double.
std::vector<double> product(std::span<const double> a, std::span<const double> b, std::size_t m, std::size_t n,
                            std::size_t k) {
  std::vector<double> c(m * n, 0.0);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t l = 0; l < k; ++l)
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
  return c;
}

std::vector<std::int32_t> loads_of(Ran& ran) {
  const std::vector<std::int32_t> offsets = ran.ints(ran.only("route"), 1);
  std::vector<std::int32_t> loads;
  for (std::size_t e = 0; e + 1 < offsets.size(); ++e) loads.push_back(offsets[e + 1] - offsets[e]);
  return loads;
}

TEST(AortaMoe, TokensGoToTheBestTwoOfTheGatesScores) {
  Ran ran(tiny("moe", 4));
  const CommandId top = ran.only("top_k"), add = ran.only("add"), gate = ran.only("gemm");
  const auto [tokens, experts, picks, unused] = ran.step().commands()[top].shape.dims;
  const std::size_t columns = size(experts);
  const std::vector<double> logits = product(ran.reals(gate, 0), ran.reals(gate, 1), size(tokens), columns,
                                             size(ran.step().commands()[gate].shape.dims[2]));
  const std::vector<double> slope = ran.reals(add, 1);
  const std::vector<std::int32_t> ids = ran.ints(top, 2);
  ASSERT_EQ(picks, 2);
  std::set<std::int32_t> picked;
  for (std::size_t t = 0; t < size(tokens); ++t) {
    std::vector<double> scores(columns);
    for (std::size_t e = 0; e < columns; ++e) scores[e] = logits[t * columns + e] + slope[e];
    const auto first = size(ids[2 * t]), second = size(ids[2 * t + 1]);
    ASSERT_LT(std::max(first, second), columns);
    EXPECT_NE(first, second);
    EXPECT_GE(scores[first], scores[second] - 1e-5);
    for (std::size_t e = 0; e < columns; ++e)
      if (e != first) {
        EXPECT_LE(scores[e], scores[second] + 1e-5) << "token " << t;
      }
    picked.insert({ids[2 * t], ids[2 * t + 1]});
  }
  EXPECT_GT(picked.size(), 3u) << "the token decides, not the slope alone";
}

TEST(AortaMoe, LoadsAreUnequalAndGrowMoreSoWithTheSkew) {
  std::vector<std::int32_t> largest;
  for (const char* skew : {"0", "1", "4", "20"}) {
    Ran ran(tiny("moe", 4, {{"skew", skew}}));
    const std::vector<std::int32_t> loads = loads_of(ran);
    const auto tokens = static_cast<std::int32_t>(ran.step().commands()[ran.only("top_k")].shape.dims[0]);
    EXPECT_EQ(std::accumulate(loads.begin(), loads.end(), 0), 2 * tokens) << "nothing is dropped";
    EXPECT_NE(std::ranges::min(loads), std::ranges::max(loads)) << skew;
    largest.push_back(std::ranges::max(loads));
    if (std::string_view(skew) == "20") {
      EXPECT_EQ(loads.back(), tokens) << "everybody picks the last";
      EXPECT_EQ(loads.front(), 0);
    }
    // What the route says is what was picked.
    const std::vector<std::int32_t> ids = ran.ints(ran.only("top_k"), 2);
    for (std::size_t e = 0; e < loads.size(); ++e)
      EXPECT_EQ(loads[e], std::ranges::count(ids, static_cast<std::int32_t>(e))) << "expert " << e;
  }
  EXPECT_TRUE(std::ranges::is_sorted(largest));
  EXPECT_LT(largest.front(), largest.back());
}

TEST(AortaMoe, ExpertsWorkOnTheirRowsAloneAndTheirResultsAreWhatComesOut) {
  Ran ran(tiny("moe", 4));
  const Step& step = ran.step();
  const std::vector<CommandId> products = launches_of(step, "ragged_gemm");
  const CommandId combine = ran.only("combine"), top = ran.only("top_k"), gate = ran.only("gemm");
  const auto [tokens, width, picks, capacity] = step.commands()[combine].shape.dims;
  const std::vector<std::int32_t> loads = loads_of(ran), ids = ran.ints(top, 2);
  ASSERT_EQ(products.size(), 2 * loads.size());
  std::int64_t rows_done = 0;
  for (std::size_t i = 0; i < products.size(); ++i) {
    const std::vector<double> made = ran.reals(products[i], 3);
    const std::size_t n = size(step.commands()[products[i]].shape.dims[1]);
    ASSERT_EQ(made.size(), size(capacity) * n);
    for (std::size_t row = 0; row < size(capacity); ++row) {
      const bool is_routed = static_cast<std::int32_t>(row) < loads[i / 2];
      rows_done += is_routed ? 1 : 0;
      for (std::size_t c = 0; c < n; ++c) EXPECT_EQ(std::isnan(made[row * n + c]), !is_routed) << "row " << row;
    }
  }
  EXPECT_EQ(rows_done, 2 * tokens * picks) << "two products for each pick, not for each expert";

  // From the tokens and the experts' matrices, in double: softmax over the two best, each expert's MLP.
  const std::vector<double> x = ran.reals(gate, 0), values = ran.reals(top, 1), out = ran.reals(combine, 4);
  const std::size_t h = size(width), inner = size(step.commands()[products[0]].shape.dims[1]);
  for (std::size_t t = 0; t < size(tokens); ++t) {
    std::vector<double> expected(h, 0.0);
    const double odds = std::exp(values[2 * t + 1] - values[2 * t]);
    for (const std::size_t pick : {2 * t, 2 * t + 1}) {
      const std::size_t expert = size(ids[pick]);
      const double weight = (pick == 2 * t ? 1 : odds) / (1 + odds);
      std::vector<double> up = product(std::span(x).subspan(t * h, h), ran.reals(products[2 * expert], 1), 1, inner, h);
      for (double& value : up) value *= 0.5 * std::erfc(-value / std::numbers::sqrt2);
      const std::vector<double> down = product(up, ran.reals(products[2 * expert + 1], 1), 1, h, inner);
      for (std::size_t c = 0; c < h; ++c) expected[c] += weight * down[c];
    }
    for (std::size_t c = 0; c < h; ++c) EXPECT_NEAR(out[t * h + c], expected[c], 1e-4) << "token " << t;
  }
}

// Speculative decoding: what a run on some streams is said to have produced.
double tokens_of(const Assignments& params, int streams) {
  const auto device = open_device("cpu", {});
  const Result result = run_workload(*device, tiny("speculative_decode", streams, params), {}, {});
  EXPECT_EQ(result.check["status"], "passed") << result.failure;
  return result.work_per_iteration;
}

TEST(AortaSpeculation, AcceptedTokensAreThoseThatBothModelsAgreeOn) {
  for (const char* disagreement : {"0", "0.1", "0.5", "10"}) {
    const Assignments params = {{"disagreement", disagreement}, {"speculate", "3"}};
    Ran ran(tiny("speculative_decode", 6, params));
    const Step& step = ran.step();
    double total = 0;
    std::size_t rounds = 0;
    for (const CommandId id : launches_of(step, "accept")) {
      const std::vector<std::int32_t> drafted = ran.ints(id, 0), verified = ran.ints(id, 1);
      ASSERT_EQ(drafted.size(), 3u);
      ASSERT_EQ(verified.size(), 4u);
      std::size_t agreed = 0;
      while (agreed < 3 && drafted[agreed] == verified[agreed]) ++agreed;
      const auto accepted = static_cast<std::int32_t>(agreed + 1);  // and what the target says itself
      EXPECT_EQ(ran.ints(id, 5), std::vector{accepted});
      EXPECT_EQ(ran.ints(id, 3), std::vector{ran.ints(id, 2)[0] + accepted}) << "only those stay in the caches";
      EXPECT_EQ(ran.ints(id, 4), std::vector{verified[agreed]}) << "the next round starts from it";
      total += accepted;
      ++rounds;
      // Both sides' tokens are the arg-max of their own scores.
      for (const std::size_t operand : {0u, 1u}) {
        for (const CommandId writer : last_writers(step, step.accesses(id)[operand], id)) {
          ASSERT_EQ(kernel_name(step, writer), "arg_max");
          const std::vector<double> scores = ran.reals(writer, 0);
          const std::vector<std::int32_t> chosen = ran.ints(writer, 1);
          const std::size_t columns = scores.size() / chosen.size();
          for (std::size_t row = 0; row < chosen.size(); ++row) {
            const auto begin = scores.begin() + static_cast<std::ptrdiff_t>(row * columns);
            EXPECT_EQ(std::max_element(begin, begin + static_cast<std::ptrdiff_t>(columns)) - begin, chosen[row]);
          }
        }
      }
    }
    EXPECT_EQ(rounds, 6u * 2);
    EXPECT_EQ(tokens_of(params, 6), total) << "the result counts what was accepted";
  }
}

TEST(AortaSpeculation, TheCountFollowsTheAgreement) {
  constexpr double kRounds = 6 * 2, kSpeculate = 2;
  const double all = tokens_of({{"disagreement", "0"}}, 6);
  const double most = tokens_of({}, 6);
  const double few = tokens_of({{"disagreement", "10"}}, 6);
  EXPECT_EQ(all, kRounds * (kSpeculate + 1)) << "models that agree accept every proposal, and add one";
  EXPECT_GE(most, kRounds);
  EXPECT_LE(most, all);
  EXPECT_LT(few, all);
  EXPECT_LE(few, most);
  EXPECT_GE(few, kRounds) << "the target's own token is always there";
}

// Continuous batching: the server's books, kept again by hand.
TEST(AortaBatching, TokensAreCountedWhereASequenceWasStillRunning) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const RunRequest request = tiny("continuous_batch", 8, {}, seed);
    Ran ran(request);
    const Step& step = ran.step();
    double produced = 0;
    std::map<StreamId, std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>>> books;  // lengths, remaining
    std::size_t passes = 0;
    for (CommandId id = 0; id < step.commands().size(); ++id) {
      const bool is_admission = kernel_name(step, id) == "admit";
      if (!is_admission && kernel_name(step, id) != "advance") continue;
      auto& [lengths, remaining] = books[step.commands()[id].stream];
      if (lengths.empty()) {
        lengths = ran.ints(id, 0);
        remaining = ran.ints(id, 1);
        EXPECT_TRUE(std::ranges::all_of(lengths, [](std::int32_t length) { return length == 24 - 4; }));
      }
      EXPECT_EQ(ran.ints(id, 0), lengths) << "each command takes up where the last one left";
      EXPECT_EQ(ran.ints(id, 1), remaining);
      if (is_admission) {
        for (const std::int32_t slot : ran.ints(id, 4)) {
          const auto free = std::ranges::find(lengths, 0);
          EXPECT_EQ(slot, free == lengths.end() ? -1 : free - lengths.begin());
          if (free == lengths.end()) continue;
          *free = 8 + 1;  // the prompt and the token that follows it
          remaining[static_cast<std::size_t>(slot)] = 4;
        }
      } else {
        ++passes;
        std::vector<std::int32_t> flags(lengths.size(), 0);
        for (std::size_t s = 0; s < lengths.size(); ++s) {
          flags[s] = lengths[s] > 0 && remaining[s] > 0 ? 1 : 0;
          remaining[s] = flags[s] == 1 ? remaining[s] - 1 : 0;
          lengths[s] = remaining[s] > 0 ? lengths[s] + 1 : 0;
          produced += flags[s];
        }
        EXPECT_EQ(ran.ints(id, 4), flags);
      }
    }
    EXPECT_EQ(passes, 4 * books.size());
    const auto device = open_device("cpu", {});
    EXPECT_EQ(run_workload(*device, request, {}, {}).work_per_iteration, produced);
    EXPECT_LT(produced, 4 * 16) << "some had ended";
    EXPECT_GT(produced, 0);
  }
}

TEST(AortaBatching, AnEndedSequencesSlotIsTakenByAPromptWithItsKeysAndValues) {
  std::size_t admitted = 0;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    Ran ran(tiny("continuous_batch", 16, {}, seed));
    const Step& step = ran.step();
    for (const CommandId admit : launches_of(step, "admit")) {
      const std::vector<std::int32_t> slots = ran.ints(admit, 4);
      for (CommandId id = admit + 1; id < step.commands().size() && kernel_name(step, id) != "gather"; ++id) {
        if (kernel_name(step, id) != "cache_write") continue;
        const auto accesses = step.accesses(id);
        ASSERT_EQ(accesses[1].buffer, step.accesses(admit)[4].buffer) << "the slot is the one that was found";
        const std::int32_t slot = ran.ints(id, 1)[0];
        if (slot < 0) continue;
        ++admitted;
        const auto [sequences, queries, positions, width] = step.commands()[id].shape.dims;
        const ElementType type = step.buffers()[accesses[3].buffer].type;
        const auto row = static_cast<std::uint64_t>(width) * size_of(type);
        const Access place{.buffer = accesses[3].buffer,
                           .offset_bytes = static_cast<std::uint64_t>(slot * positions) * row,
                           .size_bytes = static_cast<std::uint64_t>(queries) * row};
        EXPECT_EQ(ran.bytes(place), ran.bytes(accesses[0])) << "the prompt's keys or values";
        std::vector<std::byte> before(step.buffers()[place.buffer].size_bytes());
        initialise(step.buffers()[place.buffer], before);
        before.erase(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(place.offset_bytes));
        before.resize(place.size_bytes);
        EXPECT_NE(ran.bytes(place), before);
      }
    }
  }
  EXPECT_GT(admitted, 4u);
}

}  // namespace
}  // namespace weir
