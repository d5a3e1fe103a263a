// hqds: lines of all kernels, slots of all states, and what is not as it should be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "amd/kfd/debugfs.h"
#include "amd/kfd/snapshot.h"
#include "support/kfd_text.h"

namespace weir::testing {
namespace {

using namespace kfd;

Scene small_scene(Gfx gfx) {
  Scene scene;
  scene.gpus.push_back({.gfx = gfx, .xccs = gfx == Gfx::gfx9_4_3 ? 4 : 1});
  scene.processes.push_back({});
  SceneQueue queue;
  queue.ring_base = 0x7f4100000000;
  queue.mqd_base = 0x1700000;
  queue.doorbell = 0x1008;
  queue.vmid = 5;
  queue.read_packets = 16384 + 3;
  queue.written_packets = 16384 + 10;
  scene.queues.push_back(queue);
  return scene;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Hqds, registers_are_decoded_by_their_place) {
  const HqdFile file = parse_hqds(hqds_text(small_scene(Gfx::gfx9_4_3)), "hqds");
  ASSERT_EQ(file.nodes.size(), 1u);
  const HqdNode& node = file.nodes[0];
  EXPECT_EQ(node.node, 2);
  EXPECT_EQ(node.gpu_id, 0xf7bcu);
  EXPECT_EQ(node.xccs, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(node.slots_per_xcc(), 24u);
  const HqdSlot& slot = node.slots.front();
  EXPECT_EQ(slot.state, SlotState::active);
  const QueueImage& image = slot.image;
  EXPECT_EQ(image.mqd_base, 0x1700000u);
  EXPECT_EQ(image.vmid, 5);
  EXPECT_TRUE(image.has_cwsr);
  EXPECT_FALSE(image.is_restoring);
  EXPECT_EQ(image.pipe_priority, 1);
  EXPECT_EQ(image.queue_priority, 7);
  EXPECT_TRUE(image.quantum.is_enabled);
  EXPECT_EQ(image.quantum.scale, 1);
  EXPECT_EQ(image.quantum.duration, 1);
  EXPECT_EQ(image.ring_base, 0x7f4100000000u);
  EXPECT_EQ(image.ring_bytes(), 1u << 20);
  EXPECT_EQ(image.read_dword, 3u * 16);
  EXPECT_EQ(image.write_dword, (16384u + 10) * 16);
  EXPECT_EQ(image.backlog_dwords(), 7u * 16);
  EXPECT_EQ(image.doorbell, 0x1008u);
  EXPECT_TRUE(image.is_doorbell_enabled);
  EXPECT_TRUE(image.is_scheduler_hit);
  EXPECT_FALSE(image.is_doorbell_hit);
  EXPECT_TRUE(image.is_aql);
  EXPECT_EQ(image.save_bytes, 0xba6000u);
  EXPECT_EQ(image.was_preempted(), false);
}

// HIQ: 0x42 and 0x642 in 512 dwords is empty; the difference alone would be 1,536.
TEST(Hqds, the_ring_wraps) {
  const HqdFile file = parse_hqds(hqds_text(small_scene(Gfx::gfx9)), "hqds");
  ASSERT_EQ(file.nodes[0].hiqs.size(), 1u);
  const QueueImage& hiq = file.nodes[0].hiqs[0].image;
  EXPECT_EQ(file.nodes[0].hiqs[0].mec, 2);
  EXPECT_EQ(hiq.ring_dwords, 512u);
  EXPECT_TRUE(hiq.is_kernel_queue);
  EXPECT_EQ(hiq.backlog_dwords(), 0u);
}

TEST(Hqds, an_aql_ring_that_may_be_empty_or_full_has_no_backlog) {
  auto words = queue_words(small_scene(Gfx::gfx9).queues[0], 0, false);
  words[54] = words[10] + (1 << 18);  // one whole ring ahead, and PQ_EMPTY is not set
  EXPECT_EQ(decode_queue(words).backlog_dwords(), std::nullopt);
  words[17] |= 0x8000;
  EXPECT_EQ(decode_queue(words).backlog_dwords(), 0u);
  words[17] &= ~0x8000u;
  words[54] = words[10];  // exactly the same: nothing is one ring ahead of itself
  EXPECT_EQ(decode_queue(words).backlog_dwords(), 0u);
  words[55] = 1;  // the same in its low half only: many rings ahead
  EXPECT_EQ(decode_queue(words).backlog_dwords(), std::nullopt);
}

// The kernel's own conditions: never used, no stack, a stack that is none.
TEST(Hqds, preemption_needs_what_the_kernel_asks_for) {
  SceneQueue queue = small_scene(Gfx::gfx9).queues[0];
  queue.is_preempted = true;
  auto words = queue_words(queue, 0, true);
  EXPECT_EQ(decode_queue(words).was_preempted(), true);
  auto off = words;
  off[4] &= ~0x40000000u;
  EXPECT_EQ(decode_queue(off).was_preempted(), std::nullopt);
  auto fresh = words;
  fresh[10] = fresh[54] = fresh[55] = 0;
  EXPECT_EQ(decode_queue(fresh).was_preempted(), false);
  auto invalid = words;
  invalid[46] = 0xffffffff;
  EXPECT_EQ(decode_queue(invalid).was_preempted(), false);
  // Chips with many CUs have larger stacks than the kernel's test knows: not shown, unless nothing is in them.
  auto huge = words;
  huge[47] = 0xa000;
  EXPECT_EQ(decode_queue(huge).was_preempted(), std::nullopt);
  huge[46] = 0xa000;
  EXPECT_EQ(decode_queue(huge).was_preempted(), false);
}

TEST(Hqds, older_kernels_print_no_instance) {
  KfdTextOptions options;
  options.has_instances = false;
  const std::string text = hqds_text(small_scene(Gfx::gfx9), options);
  EXPECT_EQ(text.find("Inst"), std::string::npos);
  const HqdFile file = parse_hqds(text, "hqds");
  EXPECT_TRUE(file.unread.empty());
  EXPECT_FALSE(file.nodes[0].has_instances);
  EXPECT_EQ(file.nodes[0].slots.size(), 24u);
}

TEST(Hqds, stale_and_unused_slots_are_told_apart) {
  KfdTextOptions options;
  options.stale_slots = 5;
  const HqdFile file = parse_hqds(hqds_text(small_scene(Gfx::gfx10), options), "hqds");
  int active = 0, stale = 0, unused = 0;
  for (const HqdSlot& slot : file.nodes[0].slots)
    ++(slot.state == SlotState::active ? active : slot.state == SlotState::stale ? stale : unused);
  EXPECT_EQ(active, 1);
  EXPECT_EQ(stale, 5);
  EXPECT_EQ(unused, 18);
}

// A ring that was left behind has RB_ENABLE set and no doorbell.
TEST(Hqds, sdma_rings_of_queues_that_are_gone_are_stale) {
  KfdTextOptions options;
  options.stale_sdma_slots = 3;
  const HqdFile file = parse_hqds(hqds_text(small_scene(Gfx::gfx9_4_3), options), "hqds");
  int stale = 0;
  for (const SdmaSlot& slot : file.nodes[0].sdma) {
    EXPECT_NE(slot.state, SlotState::active);
    if (slot.state == SlotState::stale) {
      ++stale;
      EXPECT_TRUE(slot.image.is_enabled);
    }
  }
  EXPECT_EQ(stale, 3);
}

TEST(Hqds, a_stopped_device_has_no_slots) {
  const HqdFile file = parse_hqds("Node 2, gpu_id f7bc:\n Device is stopped\nNode 3, gpu_id f05b:\n", "hqds");
  ASSERT_EQ(file.nodes.size(), 2u);
  EXPECT_TRUE(file.nodes[0].is_stopped);
  EXPECT_FALSE(file.nodes[1].is_stopped);
  EXPECT_TRUE(file.unread.empty());
}

TEST(Hqds, another_number_of_registers_is_named) {
  std::string text = hqds_text(small_scene(Gfx::gfx9));
  // One row of the third slot is gone.
  std::size_t at = 0;
  for (int i = 0; i < 20; ++i) at = text.find('\n', at) + 1;
  text.erase(at, text.find('\n', at) + 1 - at);
  const HqdFile file = parse_hqds(text, "hqds");
  ASSERT_EQ(file.problems.size(), 1u);
  EXPECT_NE(file.problems[0].find("has 48"), std::string::npos) << file.problems[0];
  EXPECT_EQ(file.nodes[0].slots.size(), 23u);
  ASSERT_EQ(file.unread.size(), 1u);
  EXPECT_EQ(file.unread[0].count, 1u);
  EXPECT_EQ(file.unread[0].first_line, 18u);
}

TEST(Hqds, unknown_lines_are_counted_with_their_first_line) {
  std::string text = hqds_text(small_scene(Gfx::gfx9));
  text = replaced(text, "  CP Pipe 0, Queue 3", "  CP Pipe 0, Queue three") + "dmesg says hello\n";
  const HqdFile file = parse_hqds(text, "hqds");
  ASSERT_FALSE(file.unread.empty());
  EXPECT_EQ(file.unread[0].reason, "not a line of hqds");
  EXPECT_EQ(file.unread[0].count, 2u);
  EXPECT_EQ(file.unread[0].first_line, 18u);
}

// Eight GPUs of four XCCs with 24 slots, eight SDMA engines of eight queues: as an MI308X machine prints it.
TEST(Hqds, the_layout_of_a_real_machine_is_reproduced_to_the_byte) {
  Scene scene;
  for (int i = 0; i < 8; ++i)
    scene.gpus.push_back({.node = 2 + i, .gpu_id = 0xc000u + static_cast<std::uint32_t>(i), .sdma_engines = 8});
  scene.processes.push_back({});
  const std::string text = hqds_text(scene);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10'504);
  EXPECT_EQ(text.size(), 769'992u);
  EXPECT_TRUE(parse_hqds(text, "hqds").unread.empty());
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Hqds, a_real_capture_has_five_queues_on_four_xccs) {
  const char* const folder = std::getenv("WEIR_REAL_DATA");
  if (!folder) GTEST_SKIP() << "WEIR_REAL_DATA does not name the folder of real captures";
  const std::string base = std::string(folder) + "/amd/mi308x_16streams_";
  Snapshot snapshot;
  add_file(snapshot, read(base + "hqds.txt"), "hqds");
  add_file(snapshot, read(base + "mqds.txt"), "mqds");
  EXPECT_EQ(snapshot.hqds->lines, 10'504u);
  EXPECT_TRUE(snapshot.hqds->unread.empty() && snapshot.hqds->problems.empty());
  EXPECT_TRUE(snapshot.mqds->unread.empty() && snapshot.mqds->problems.empty());
  ASSERT_EQ(snapshot.hqds->nodes.size(), 8u);
  EXPECT_EQ(snapshot.hqds->nodes[0].generation, Generation::gfx9_4_3);
  int large = 0, small = 0;
  for (const Queue& queue : queues_of(snapshot)) {
    if (queue.kind == QueueKind::hiq) continue;
    EXPECT_EQ(queue.kind, QueueKind::compute);
    EXPECT_EQ(queue.slots.size(), 4u);
    EXPECT_EQ(queue.mqd_bases.size(), 4u);
    EXPECT_TRUE(queue.is_in_hqds && queue.is_in_mqds);
    EXPECT_EQ(queue.backlog_packets, 0u);
    EXPECT_EQ(queue.was_preempted, false);
    ++(queue.ring_bytes == 1 << 20 ? large : small);
    if (queue.ring_bytes != 1 << 20) {
      EXPECT_EQ(queue.ring_bytes, 4096u);
    }
  }
  EXPECT_EQ(large, 4);
  EXPECT_EQ(small, 1);
}

}  // namespace
}  // namespace weir::testing
