// mqds, rls and the choice of what a file is: odd variants and bad input.
#include <gtest/gtest.h>

#include <cstdio>

#include "amd/kfd/debugfs.h"
#include "amd/kfd/document.h"
#include "base/error.h"
#include "support/kfd_text.h"

namespace weir::testing {
namespace {

using namespace kfd;

std::string image(int words) {
  std::string text;
  for (int i = 0; i < words; ++i) {
    char part[32];
    if (i % 8 == 0) {
      std::snprintf(part, sizeof part, "    %08x:", static_cast<unsigned>(i * 4));
      text += part;
    }
    text += i == 128 + 8 ? " 41b52000" : i == 128 + 9 ? " 0000007f" : " 00000000";
    if (i % 8 == 7 || i + 1 == words) text += '\n';
  }
  return text;
}

TEST(Mqds, images_begin_again_at_offset_zero) {
  const std::string text = "Process 17 PASID 0x8003:\n  Compute queue on device f7bc\n" + image(512) + image(512) +
                           "  SDMA queue on device f7bc\n" + image(128) + image(128) + "  DIQ on device f7bc\n" +
                           image(512) + "  Bad user queue type 9 on device f7bc\n" +
                           "  Weird: Queue node with neither kernel nor user queue\nProcess 18 PASID 18:\n";
  const MqdFile file = parse_mqds(text, "mqds");
  ASSERT_EQ(file.processes.size(), 2u);
  EXPECT_TRUE(file.processes[0].is_pasid_real);
  EXPECT_EQ(file.processes[0].pasid, 0x8003u);
  EXPECT_FALSE(file.processes[1].is_pasid_real);
  const auto& queues = file.processes[0].queues;
  ASSERT_EQ(queues.size(), 4u);
  EXPECT_EQ(queues[0].images.size(), 2u);
  EXPECT_EQ(queues[0].images[1].queue.ring_base, 0x7f41b5200000u);
  EXPECT_EQ(queues[0].images[0].save_ticks, std::nullopt);
  EXPECT_EQ(queues[1].kind, MqdKind::sdma);
  EXPECT_TRUE(queues[1].sdma);
  EXPECT_EQ(queues[2].kind, MqdKind::diq);
  EXPECT_EQ(queues[3].kind, MqdKind::other);
  ASSERT_EQ(file.unread.size(), 1u);
  EXPECT_EQ(file.unread[0].reason, "a queue that KFD itself calls weird");
}

TEST(Mqds, an_image_of_another_size_is_named) {
  const MqdFile file = parse_mqds("Process 17 PASID 17:\n  Compute queue on device f7bc\n" + image(500), "mqds");
  ASSERT_EQ(file.problems.size(), 1u);
  EXPECT_NE(file.problems[0].find("has 2000"), std::string::npos) << file.problems[0];
  EXPECT_TRUE(file.processes[0].queues[0].images.empty());
}

// Rings of two processes may have the same address: what is theirs alone decides.
TEST(Mqds, queues_with_the_same_ring_address_stay_apart) {
  Scene scene = random_scene(2, Gfx::gfx9);
  scene.gpus.resize(1);
  scene.processes = {{1000, 1, "a"}, {2000, 2, "b"}};
  SceneQueue queue;
  queue.ring_base = 0x7f4100000000;
  scene.queues.clear();
  for (int process = 0; process < 2; ++process) {
    queue.process = process;
    queue.mqd_base = 0x1600000 + 0x20000u * static_cast<unsigned>(process);
    queue.doorbell = 2048u * static_cast<unsigned>(process + 1);
    queue.vmid = 8 + process;
    queue.slot = 2 + process;
    queue.read_packets = 0;
    queue.written_packets = process == 0 ? 5 : 9;
    scene.queues.push_back(queue);
  }
  Snapshot snapshot;
  add_file(snapshot, hqds_text(scene), "hqds");
  add_file(snapshot, mqds_text(scene), "mqds");
  std::vector<Queue> queues = queues_of(snapshot);
  std::erase_if(queues, [](const Queue& each) { return each.kind == QueueKind::hiq; });
  ASSERT_EQ(queues.size(), 2u);
  EXPECT_EQ(queues[0].pid, 1000);
  EXPECT_EQ(queues[0].vmid, 8);
  EXPECT_EQ(queues[0].backlog_packets, 5u);
  EXPECT_EQ(queues[1].pid, 2000);
  EXPECT_EQ(queues[1].vmid, 9);
  EXPECT_EQ(queues[1].backlog_packets, 9u);
}

TEST(Mqds, without_hqds_there_is_no_backlog) {
  Snapshot snapshot;
  add_file(snapshot, mqds_text(random_scene(1, Gfx::gfx9)), "mqds");
  for (const Queue& queue : queues_of(snapshot)) {
    EXPECT_FALSE(queue.backlog_packets);
    EXPECT_FALSE(queue.backlog_reason.empty());
    EXPECT_FALSE(queue.is_active);
  }
  const Json document = hqd_document(snapshot);
  for (const Json& queue : document["queues"]) EXPECT_TRUE(queue["is_active"].is_null());
}

std::string refusal(std::string_view text) {
  Snapshot snapshot;
  try {
    add_file(snapshot, text, "some.txt");
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_FALSE(error.hint.empty());
    return error.what();
  }
  return "";
}

TEST(KfdFiles, what_is_none_of_them_is_refused) {
  EXPECT_NE(refusal("").find("empty"), std::string::npos);
  EXPECT_NE(refusal(std::string_view("\x7f"
                                     "ELF\0\0\0",
                                     7))
                .find("binary"),
            std::string::npos);
  EXPECT_NE(refusal("CP_HQD_ACTIVE = 0x1\nCP_HQD_VMID = 0x8\n").find("no kernel prints"), std::string::npos);
  EXPECT_NE(refusal("hello\n").find("neither hqds nor mqds nor rls"), std::string::npos);
}

TEST(KfdFiles, a_second_file_of_a_kind_is_refused) {
  const Scene scene = random_scene(1, Gfx::gfx9);
  Snapshot snapshot;
  add_file(snapshot, hqds_text(scene), "a");
  EXPECT_THROW(add_file(snapshot, hqds_text(scene), "b"), Error);
}

TEST(Rls, words_that_begin_no_packet_are_named) {
  const RunlistFile file = parse_rls("Node 2, gpu_id f7bc:\n  00000000: 12345678 00000000\n", "rls");
  ASSERT_EQ(file.problems.size(), 1u);
  EXPECT_NE(file.problems[0].find("0x12345678"), std::string::npos);
  const RunlistFile cut = parse_rls("Node 2, gpu_id f7bc:\n  00000000: c013a100 14008001\n", "rls");
  EXPECT_EQ(cut.problems.size(), 1u);
  EXPECT_TRUE(cut.lists[0].processes.empty());
}

// Each XCC's scheduler gives VMIDs, and may give another one with each turn.
TEST(KfdQueues, images_with_other_vmids_are_one_queue) {
  Scene scene = random_scene(2, Gfx::gfx9_4_3);
  scene.gpus = {{.xccs = 2}};
  scene.processes.resize(1);
  SceneQueue queue;
  queue.ring_base = 0x7f4100000000;
  queue.mqd_base = 0x1600000;
  queue.doorbell = 0x1008;
  queue.vmid = 8;
  scene.queues = {queue};
  std::string text = hqds_text(scene);
  const std::size_t second = text.rfind(" 00000808 ");
  ASSERT_NE(second, text.find(" 00000808 "));
  text.replace(second, 10, " 00000909 ");
  Snapshot snapshot;
  add_file(snapshot, text, "hqds");
  add_file(snapshot, mqds_text(scene), "mqds");
  std::vector<Queue> queues = queues_of(snapshot);
  std::erase_if(queues, [](const Queue& each) { return each.kind == QueueKind::hiq; });
  ASSERT_EQ(queues.size(), 1u);
  EXPECT_EQ(queues[0].slots.size(), 2u);
  EXPECT_FALSE(queues[0].vmid);
  EXPECT_EQ(queues[0].slots[0].vmid, 8);
  EXPECT_EQ(queues[0].slots[1].vmid, 9);
}

TEST(KfdQueues, commands_of_pm4_are_no_packets_of_64_bytes) {
  Scene scene = random_scene(2, Gfx::gfx9);
  scene.gpus = {{.gfx = Gfx::gfx9, .xccs = 1}};
  scene.processes.resize(1);
  scene.queues.clear();
  // HIQ: 0x42 read, 0x642 written; now 0x652 are.
  std::string text = hqds_text(scene);
  const std::size_t at = text.find(" 00000642 ");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 10, " 00000652 ");
  Snapshot snapshot;
  add_file(snapshot, text, "hqds");
  const std::vector<Queue> queues = queues_of(snapshot);
  ASSERT_EQ(queues.size(), 1u);
  EXPECT_FALSE(queues[0].backlog_packets);
  EXPECT_EQ(queues[0].backlog_bytes, 0x10u * 4);
  EXPECT_NE(queues[0].backlog_reason.find("PM4"), std::string::npos);
}

// What hqds does not show is not "not mapped".
TEST(KfdQueues, slots_that_were_not_read_leave_mapping_open) {
  Scene scene = random_scene(2, Gfx::gfx9);
  scene.gpus = {{.gfx = Gfx::gfx9, .xccs = 1}};
  scene.processes.resize(1);
  SceneQueue queue;
  queue.ring_base = 0x7f4100000000;
  queue.mqd_base = 0x1600000;
  scene.queues = {queue};
  std::string cut = hqds_text(scene);
  const std::size_t slot = cut.find('\n', cut.find("CP Pipe 0, Queue 2")) + 1;
  cut.erase(slot, cut.find('\n', slot) + 1 - slot);
  for (const std::string& text : {std::string("Node 2, gpu_id f7bc:\n Device is stopped\n"), cut}) {
    Snapshot snapshot;
    add_file(snapshot, text, "hqds");
    add_file(snapshot, mqds_text(scene), "mqds");
    const Json document = hqd_document(snapshot);
    ASSERT_EQ(document["queues"].size(), 1u);
    EXPECT_TRUE(document["queues"][0]["is_active"].is_null());
    EXPECT_TRUE(document["queues"][0]["backlog"]["packets"].is_null());
    EXPECT_NE(document["verdict"][0].get<std::string>().find("Of 1 it is not known"), std::string::npos)
        << document["verdict"][0];
  }
}

// Registers at an address of no chip that we know: SDMA's layout follows from its own count.
TEST(KfdQueues, an_sdma_queue_of_an_unknown_chip_is_not_told_twice) {
  Scene scene = random_scene(2, Gfx::gfx10);
  scene.gpus = {{.gfx = Gfx::gfx10, .xccs = 1}};
  scene.processes.resize(1);
  SceneQueue queue;
  queue.is_sdma = true;
  queue.ring_base = 0x7f4200000000;
  queue.ring_bytes = 1 << 17;
  queue.doorbell = 0x100a;
  queue.pipe = queue.slot = 0;
  scene.queues = {queue};
  std::string text = hqds_text(scene);
  for (std::size_t at; (at = text.find("    0000c8")) != std::string::npos;) text.replace(at, 10, "    0000a8");
  for (std::size_t at; (at = text.find("    0000c9")) != std::string::npos;) text.replace(at, 10, "    0000a9");
  Snapshot snapshot;
  add_file(snapshot, text, "hqds");
  add_file(snapshot, mqds_text(scene), "mqds");
  EXPECT_EQ(snapshot.hqds->nodes[0].generation, Generation::unknown);
  std::vector<Queue> queues = queues_of(snapshot);
  std::erase_if(queues, [](const Queue& each) { return each.kind != QueueKind::sdma; });
  ASSERT_EQ(queues.size(), 1u);
  EXPECT_TRUE(queues[0].is_active && queues[0].pid);
}

// A chain is the last packet: of a list that was not understood to its end nobody knows.
TEST(Rls, a_list_that_breaks_off_is_no_verdict) {
  Snapshot snapshot;
  add_file(snapshot, "Node 2, gpu_id f7bc:\n  00000000: c013a100 14008001\n", "rls");
  const Json document = hqd_document(snapshot);
  EXPECT_TRUE(document["gpus"][0]["is_oversubscribed"].is_null());
  EXPECT_TRUE(document["gpus"][0]["is_runlist_chained"].is_null());
  EXPECT_TRUE(document["runlists"][0]["is_chained"].is_null());
  EXPECT_EQ(document["verdict"].dump().find("Not oversubscribed"), std::string::npos);
}

// KFD counts processes on a GPU with or without queues there.
TEST(KfdOccupancy, more_processes_than_fit_are_no_verdict) {
  Scene scene = random_scene(2, Gfx::gfx9);
  scene.gpus = {{.gfx = Gfx::gfx9, .xccs = 1}};
  scene.queues.clear();
  SceneQueue queue;
  queue.ring_base = 0x7f4100000000;
  queue.mqd_base = 0x1600000;
  scene.queues = {queue};
  for (const int count : {8, 9}) {
    scene.processes.assign(static_cast<std::size_t>(count), {});
    for (int i = 0; i < count; ++i) scene.processes[static_cast<std::size_t>(i)].host_pid = 1000 + i;
    Snapshot snapshot;
    add_file(snapshot, hqds_text(scene), "hqds");
    add_file(snapshot, mqds_text(scene), "mqds");
    const Json document = hqd_document(snapshot);
    if (count == 8)
      EXPECT_EQ(document["gpus"][0]["is_oversubscribed"], false);
    else
      EXPECT_TRUE(document["gpus"][0]["is_oversubscribed"].is_null()) << document["gpus"][0];
  }
}

TEST(Rls, no_run_list_is_no_verdict) {
  const RunlistFile file = parse_rls("Node 2, gpu_id f7bc:\n  No active runlist\n", "rls");
  ASSERT_EQ(file.lists.size(), 1u);
  EXPECT_FALSE(file.lists[0].is_there);
}

TEST(KfdDocument, verdict_and_numbers_agree) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Scene scene = random_scene(seed, Gfx::gfx9_4_3);
    Snapshot snapshot;
    add_file(snapshot, hqds_text(scene), "hqds");
    add_file(snapshot, mqds_text(scene), "mqds");
    add_file(snapshot, rls_text(scene), "rls");
    const Json document = hqd_document(snapshot);
    EXPECT_EQ(document["queues"].size(), scene.queues.size());
    EXPECT_EQ(document["hiqs"].size(), scene.gpus.size());
    ASSERT_FALSE(document["verdict"].empty());
    std::string verdict;
    for (const Json& sentence : document["verdict"]) verdict += sentence.get<std::string>() + "\n";
    for (std::size_t gpu = 0; gpu < scene.gpus.size(); ++gpu) {
      const std::string name = document["gpus"][gpu]["gpu_id"].string();
      EXPECT_EQ(verdict.find("GPU " + name + " is oversubscribed") != std::string::npos,
                is_oversubscribed(scene, static_cast<int>(gpu)));
    }
  }
}

}  // namespace
}  // namespace weir::testing
