// Streams on a part of the device, over the fake table: what each is given, by masks and in parts; what is refused; and
// that nothing is left behind.
#include <gtest/gtest.h>

#include <bit>

#include "base/error.h"
#include "device/fake_gpu.h"
#include "device/gpu/gpu.h"
#include "device/gpu_cases.h"
#include "support/message_of.h"
#include "support/text.h"

namespace weir {
namespace {

using namespace gpu_cases;

// One short kernel per stream, so urgent.
Step one_each(const std::vector<int>& priorities) {
  StepBuilder builder(1);
  for (std::size_t s = 0; s < priorities.size(); ++s)
    builder.launch("fill", {.stream = static_cast<StreamId>(s), .priority = static_cast<std::int8_t>(priorities[s])},
                   {.dims = {8, 0}, .scalars = {1}}, {{builder.output(ElementType::f32, 8)}});
  return std::move(builder).seal(static_cast<int>(priorities.size()));
}

class ComputeUnits : public ::testing::Test {
 protected:
  void SetUp() override { fake_gpu::reset({}); }
  void TearDown() override { EXPECT_EQ(fake_gpu::leaks(), ""); }
  std::unique_ptr<Device> open(const fake_gpu::Settings& settings, int units, int rest_stream = -1) {
    fake_gpu::reset(settings);
    return open_gpu(fake_gpu::api(), {.compute_units = units, .rest_stream = rest_stream});
  }
  // Units of each of `streams` streams, and what the session says of them; checks that the results are right, too.
  std::vector<std::uint64_t> given(Device& device, int streams) {
    const Step step = one_each(std::vector<int>(static_cast<std::size_t>(streams), 0));
    const Placement placement = natural(step);
    const auto session = device.prepare(step, placement, {});
    const std::vector<std::uint64_t> units = fake_gpu::confined_to();
    EXPECT_EQ(units.size(), static_cast<std::size_t>(streams));
    for (std::size_t s = 0; s < units.size(); ++s)
      EXPECT_EQ(session->compute_units(static_cast<StreamId>(s)), std::popcount(units[s])) << s;
    iterate(*session, *inline_submitter(step, *session), {.iterations = 2});
    EXPECT_TRUE(read_all(*session, step) == reference(step, 2));
    return units;
  }
};

using Units = std::vector<std::uint64_t>;

TEST_F(ComputeUnits, parts_are_disjoint_and_rounded_up) {
  const auto device = open({.multiprocessors = 20, .part_step = 8}, 5);
  EXPECT_TRUE(device->info().compute_units);
  EXPECT_EQ(device->info().stream_compute_units, 8);
  EXPECT_EQ(device->info().asked_compute_units, 5);
  EXPECT_EQ(given(*device, 2), (Units{0xff, 0xff00}));
}

TEST_F(ComputeUnits, more_streams_than_parts_share_them_in_turn) {
  EXPECT_EQ(given(*open({.multiprocessors = 20, .part_step = 8}, 8), 5), (Units{0xff, 0xff00, 0xff, 0xff00, 0xff}));
}

TEST_F(ComputeUnits, one_stream_has_what_the_others_leave) {
  EXPECT_EQ(given(*open({.multiprocessors = 20, .part_step = 8}, 8, 0), 2), (Units{0xfff00, 0xff}));
  EXPECT_EQ(given(*open({.multiprocessors = 20, .part_step = 8}, 8, 1), 2), (Units{0xff, 0xfff00}));
  EXPECT_EQ(given(*open({.multiprocessors = 20, .part_step = 8}, 8, 1), 3), (Units{0xff, 0xf0000, 0xff00}));
}

// So that a victim alone is measured on the same part as with its rival.
TEST_F(ComputeUnits, a_rest_alone_is_what_one_part_leaves) {
  EXPECT_EQ(given(*open({.multiprocessors = 20, .part_step = 8}, 8, 0), 1), (Units{0xfff00}));
  EXPECT_EQ(given(*open({.multiprocessors = 20, .has_masks = true}, 8, 0), 1), (Units{0xfff00}));
}

TEST_F(ComputeUnits, masks_give_one_stream_the_rest_too) {
  EXPECT_EQ(given(*open({.multiprocessors = 40, .has_masks = true}, 5), 3), (Units{0x1f, 0x1f << 5, 0x1f << 10}));
  EXPECT_EQ(given(*open({.multiprocessors = 40, .has_masks = true}, 5, 0), 2), (Units{0xffffffffe0, 0x1f}));
  EXPECT_EQ(given(*open({.multiprocessors = 4, .has_masks = true}, 1, 1), 4), (Units{1, 8, 2, 4}));
}

TEST_F(ComputeUnits, all_of_them_are_one_part) {
  const auto device = open({.multiprocessors = 20, .part_step = 8}, 20);
  EXPECT_EQ(device->info().stream_compute_units, 20);
  EXPECT_EQ(given(*device, 2), (Units{0xfffff, 0xfffff}));
}

TEST_F(ComputeUnits, without_them_streams_are_as_ever) {
  const auto device = open({}, 0, 0);
  EXPECT_EQ(device->info().stream_compute_units, 0);
  const Step step = one_each({0, 0});
  const Placement placement = natural(step);
  const auto session = device->prepare(step, placement, {});
  EXPECT_EQ(session->compute_units(0), 0);
  EXPECT_TRUE(fake_gpu::confined_to().empty());
}

TEST_F(ComputeUnits, streams_in_parts_have_priorities_and_masked_ones_have_none) {
  {
    const auto device = open({}, 2);
    EXPECT_TRUE(device->info().priorities);
    const Step step = one_each({0, 3});
    const Placement placement = natural(step);
    const auto session = device->prepare(step, placement, {});
    EXPECT_EQ(fake_gpu::priorities()[0], 0);
    EXPECT_EQ(fake_gpu::priorities()[1], -3);
  }
  EXPECT_FALSE(open({.has_masks = true}, 2)->info().priorities);
}

TEST_F(ComputeUnits, what_cannot_be_given_is_rejected) {
  EXPECT_TRUE(has(message_of([&] { open({}, 5); }), "compute_units 5: fake:0 has 4"));
  const std::string rounds = message_of([&] { open({.multiprocessors = 20, .part_step = 8}, 17); });
  EXPECT_TRUE(has(rounds, "compute_units 17: fake:0 has 20, and the driver makes no part of that size | Use fewer"))
      << rounds;
  const auto device = open({.multiprocessors = 16, .part_step = 8}, 8, 0);
  const Step step = one_each({0, 0, 0});
  const Placement placement = natural(step);
  EXPECT_TRUE(has(message_of([&] { device->prepare(step, placement, {}); }),
                  "compute_units 8: nothing is left of the device for stream 0"));
  const auto masked = open({.has_masks = true}, 2, 0);
  EXPECT_TRUE(has(message_of([&] { masked->prepare(step, placement, {}); }), "nothing is left of the device"));
}

TEST_F(ComputeUnits, a_driver_that_cannot_says_why) {
  const auto device = open({.part_step = 0}, 0);
  EXPECT_FALSE(device->info().compute_units);
  EXPECT_EQ(device->info().compute_units.reason, "the fake driver cuts nothing");
  EXPECT_TRUE(has(message_of([&] { open({.part_step = 0}, 2); }), "cannot confine streams: the fake driver cuts"));
}

TEST_F(ComputeUnits, a_part_that_cannot_be_made_leaves_nothing_behind) {
  for (int part = 0; part < 3; ++part) {
    const auto device = open({.multiprocessors = 6, .fail_part = part}, 2, 0);
    const Step step = one_each({0, 0, 0});
    const Placement placement = natural(step);
    EXPECT_TRUE(has(message_of([&] { device->prepare(step, placement, {}); }), "dividing the device failed")) << part;
  }
}

TEST_F(ComputeUnits, results_are_the_same_however_it_is_submitted) {
  for (const bool has_masks : {false, true})
    for (std::uint64_t seed = 1; seed <= 4; ++seed)
      expect_same_buffers(*open({.seed = seed, .multiprocessors = 32, .has_masks = has_masks}, 2, seed % 2 ? 0 : -1),
                          seed);
}

}  // namespace
}  // namespace weir
