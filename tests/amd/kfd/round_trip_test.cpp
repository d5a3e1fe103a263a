// What a scene describes is what is read back from the text that a kernel would show of it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "amd/kfd/document.h"
#include "base/error.h"
#include "support/kfd_text.h"

namespace weir::testing {
namespace {

using namespace kfd;

constexpr Gfx kGenerations[] = {Gfx::gfx9, Gfx::gfx9_4_3, Gfx::gfx10, Gfx::gfx11, Gfx::gfx12};
constexpr std::uint64_t kSeeds = 15;

Generation decoded(Gfx gfx) {
  switch (gfx) {
    case Gfx::gfx9:
      return Generation::gfx9;
    case Gfx::gfx9_4_3:
      return Generation::gfx9_4_3;
    case Gfx::gfx10:
      return Generation::gfx10;
    case Gfx::gfx11:
      return Generation::gfx11;
    case Gfx::gfx12:
      break;
  }
  return Generation::gfx12;
}

Snapshot snapshot_of(const Scene& scene, const KfdTextOptions& options) {
  Snapshot snapshot;
  add_file(snapshot, hqds_text(scene, options), "a");
  add_file(snapshot, mqds_text(scene, options), "b");
  add_file(snapshot, rls_text(scene, options), "c");
  return snapshot;
}

void expect_nothing_unread(const Snapshot& snapshot) {
  EXPECT_TRUE(snapshot.hqds->unread.empty() && snapshot.hqds->problems.empty());
  EXPECT_TRUE(snapshot.mqds->unread.empty() && snapshot.mqds->problems.empty());
  EXPECT_TRUE(snapshot.runlists->unread.empty() && snapshot.runlists->problems.empty());
}

const Queue* find(const std::vector<Queue>& queues, const Scene& scene, const SceneQueue& wanted) {
  const Queue* found = nullptr;
  for (const Queue& queue : queues) {
    if (queue.ring_base != wanted.ring_base) continue;
    EXPECT_EQ(found, nullptr) << "twice";
    found = &queue;
  }
  if (found) {
    EXPECT_EQ(found->gpu_id, scene.gpus[static_cast<std::size_t>(wanted.gpu)].gpu_id);
    EXPECT_EQ(found->node, scene.gpus[static_cast<std::size_t>(wanted.gpu)].node);
  }
  return found;
}

void expect_same(const Queue& queue, const Scene& scene, const SceneQueue& wanted) {
  const SceneGpu& gpu = scene.gpus[static_cast<std::size_t>(wanted.gpu)];
  EXPECT_EQ(queue.kind, wanted.is_sdma ? QueueKind::sdma : QueueKind::compute);
  EXPECT_EQ(queue.pid, scene.processes[static_cast<std::size_t>(wanted.process)].host_pid);
  EXPECT_EQ(queue.ring_bytes, wanted.ring_bytes);
  EXPECT_EQ(queue.doorbell, wanted.doorbell);
  EXPECT_EQ(queue.is_active, wanted.is_mapped);
  EXPECT_EQ(queue.is_backlog_least, !wanted.is_mapped);
  ASSERT_EQ(queue.slots.size(), !wanted.is_mapped ? 0u : wanted.is_sdma ? 1u : static_cast<std::size_t>(gpu.xccs));
  for (const Slot& slot : queue.slots) {
    EXPECT_EQ(slot.pipe, wanted.pipe);
    EXPECT_EQ(slot.queue, wanted.slot);
  }
  EXPECT_EQ(queue.vmid, wanted.is_mapped ? std::optional(wanted.vmid) : std::nullopt);
  const std::uint64_t backlog = wanted.written_packets - wanted.read_packets;
  if (wanted.is_sdma) {
    EXPECT_EQ(queue.backlog_bytes, backlog * 64);
    EXPECT_FALSE(queue.backlog_packets);
    return;
  }
  EXPECT_EQ(queue.backlog_packets, backlog);
  EXPECT_TRUE(queue.is_aql);
  EXPECT_EQ(queue.pipe_priority, wanted.priority);
  EXPECT_EQ(queue.mqd_bases.size(), static_cast<std::size_t>(gpu.xccs));
  EXPECT_EQ(queue.mqd_bases.front(), wanted.mqd_base);
  EXPECT_EQ(queue.was_preempted, wanted.is_preempted);
  EXPECT_EQ(queue.save_ticks, wanted.save_ticks ? std::optional(wanted.save_ticks) : std::nullopt);
  EXPECT_EQ(queue.restore_ticks, wanted.restore_ticks ? std::optional(wanted.restore_ticks) : std::nullopt);
  EXPECT_EQ(queue.quantum->duration, 1);
  EXPECT_EQ(queue.has_cwsr, true);
}

TEST(KfdRoundTrip, queues_of_all_generations_come_back) {
  for (const Gfx gfx : kGenerations) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Scene scene = random_scene(seed, gfx);
      KfdTextOptions options;
      options.seed = seed;
      options.stale_slots = static_cast<int>(seed % 7);
      options.has_real_pasid = seed % 2 == 0;
      options.has_instances = gfx == Gfx::gfx9_4_3 || seed % 3 != 0;
      SCOPED_TRACE(static_cast<int>(gfx) * 1000 + static_cast<int>(seed));
      const Snapshot snapshot = snapshot_of(scene, options);
      expect_nothing_unread(snapshot);
      const std::vector<Queue> queues = queues_of(snapshot);
      // One more of each GPU: the HIQ. Stale slots make none.
      ASSERT_EQ(queues.size(), scene.queues.size() + scene.gpus.size());
      for (const SceneQueue& wanted : scene.queues) {
        const Queue* const queue = find(queues, scene, wanted);
        ASSERT_NE(queue, nullptr);
        expect_same(*queue, scene, wanted);
      }
    }
  }
}

TEST(KfdRoundTrip, slots_and_generations_come_back) {
  for (const Gfx gfx : kGenerations) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Scene scene = random_scene(seed, gfx);
      const Snapshot snapshot = snapshot_of(scene, {});
      ASSERT_EQ(snapshot.hqds->nodes.size(), scene.gpus.size());
      const std::vector<Queue> queues = queues_of(snapshot);
      const std::vector<GpuOccupancy> gpus = occupancy_of(snapshot, queues);
      ASSERT_EQ(gpus.size(), scene.gpus.size());
      for (std::size_t i = 0; i < gpus.size(); ++i) {
        const SceneGpu& wanted = scene.gpus[i];
        const int slots = wanted.pipes * (wanted.last_slot - wanted.first_slot + 1);
        const auto mapped =
            static_cast<int>(std::count_if(scene.queues.begin(), scene.queues.end(), [&](const auto& queue) {
              return queue.gpu == static_cast<int>(i) && queue.is_mapped && !queue.is_sdma;
            }));
        const auto exist =
            static_cast<int>(std::count_if(scene.queues.begin(), scene.queues.end(), [&](const auto& queue) {
              return queue.gpu == static_cast<int>(i) && !queue.is_sdma;
            }));
        EXPECT_EQ(gpus[i].gpu_id, wanted.gpu_id);
        EXPECT_EQ(gpus[i].generation, decoded(gfx)) << gpus[i].generation_from;
        EXPECT_EQ(gpus[i].slots_per_xcc, slots);
        EXPECT_EQ(gpus[i].xccs, wanted.xccs);
        EXPECT_EQ(gpus[i].active_slots, mapped * wanted.xccs);
        EXPECT_EQ(gpus[i].stale_slots, std::min(3, slots - mapped) * wanted.xccs);
        EXPECT_EQ(*gpus[i].active_slots + *gpus[i].stale_slots + *gpus[i].unused_slots, slots * wanted.xccs);
        EXPECT_EQ(gpus[i].queues, exist);
        // Where the run list tells, its word counts; otherwise no verdict may contradict the scene.
        const bool is_over = is_oversubscribed(scene, static_cast<int>(i));
        const bool has_list = gfx != Gfx::gfx11 && gfx != Gfx::gfx12 && exist > 0;
        if (has_list) {
          EXPECT_EQ(gpus[i].is_oversubscribed, is_over) << gpus[i].why;
        }
        if (gpus[i].is_oversubscribed) {
          EXPECT_EQ(*gpus[i].is_oversubscribed, is_over) << gpus[i].why;
        }
        EXPECT_FALSE(gpus[i].why.empty());
      }
    }
  }
}

TEST(KfdRoundTrip, run_lists_come_back) {
  for (const Gfx gfx : {Gfx::gfx9, Gfx::gfx9_4_3, Gfx::gfx10}) {
    const Scene scene = random_scene(5, gfx);
    const RunlistFile file = parse_rls(rls_text(scene), "rls");
    ASSERT_EQ(file.lists.size(), scene.gpus.size());
    std::map<std::uint64_t, std::uint32_t> doorbells;
    for (const Runlist& list : file.lists) {
      EXPECT_EQ(list.broken_promises, 0u);
      EXPECT_EQ(list.other_packets, 0u);
      for (const RunlistProcess& process : list.processes) {
        EXPECT_EQ(process.quantum, 10);
        EXPECT_GE(process.pasid, 0x8001u);
        for (const RunlistQueue& queue : process.queues) doorbells[queue.mqd_base] = queue.doorbell;
      }
    }
    ASSERT_EQ(doorbells.size(), scene.queues.size());
    for (const SceneQueue& queue : scene.queues) EXPECT_EQ(doorbells[queue.mqd_base], queue.doorbell);
  }
}

class KfdFolders : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("weir_kfd_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(KfdFolders, ids_of_sysfs_are_paired_only_where_one_fits) {
  int paired = 0, open = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Scene scene = random_scene(seed, Gfx::gfx9_4_3);
    const auto at = folder_ / std::to_string(seed);
    write_snapshot(scene, at);
    const Snapshot snapshot = load_snapshot(at);
    EXPECT_TRUE(snapshot.missing.empty());
    ASSERT_TRUE(snapshot.sysfs);
    EXPECT_TRUE(snapshot.sysfs->problems.empty());
    EXPECT_EQ(snapshot.sysfs->parameter("hws_max_conc_proc"), "-1");
    const std::vector<Queue> queues = queues_of(snapshot);
    for (const SceneQueue& wanted : scene.queues) {
      const Queue* const queue = find(queues, scene, wanted);
      ASSERT_NE(queue, nullptr);
      const auto alike = std::count_if(scene.queues.begin(), scene.queues.end(), [&](const SceneQueue& other) {
        return other.process == wanted.process && other.gpu == wanted.gpu && other.is_sdma == wanted.is_sdma &&
               other.ring_bytes == wanted.ring_bytes;
      });
      if (alike == 1) {
        EXPECT_EQ(queue->queue_id, wanted.id);
        ++paired;
      } else {
        EXPECT_FALSE(queue->queue_id);
        EXPECT_FALSE(queue->queue_id_reason.empty());
        EXPECT_EQ(queue->queue_id_candidates.size(), static_cast<std::size_t>(alike));
        EXPECT_EQ(std::count(queue->queue_id_candidates.begin(), queue->queue_id_candidates.end(), wanted.id), 1);
        ++open;
      }
    }
  }
  EXPECT_GT(paired, 0);
  EXPECT_GT(open, 0);
}

TEST_F(KfdFolders, a_running_kernel_is_read_below_its_roots) {
  const Scene scene = random_scene(3, Gfx::gfx11);
  write_debugfs(scene, folder_ / "debug");
  write_sysfs(scene, folder_ / "sys");
  const Snapshot snapshot = read_snapshot({folder_ / "debug", folder_ / "sys"});
  EXPECT_TRUE(snapshot.missing.empty());
  EXPECT_GT(snapshot.taken_ns, 0);
  EXPECT_EQ(queues_of(snapshot).size(), scene.queues.size() + scene.gpus.size());
}

// Read on, they would claim that there are no queues.
TEST_F(KfdFolders, files_that_say_nothing_are_missing_parts) {
  const auto save = [&](const char* name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  };
  save("hqds", "");
  save("mqds", "");
  save("rls", "");
  const Snapshot empty = load_snapshot(folder_);
  EXPECT_FALSE(empty.hqds);
  EXPECT_TRUE(empty.mqds);  // no process has opened KFD
  EXPECT_FALSE(empty.runlists);
  ASSERT_EQ(empty.missing.size(), 3u);
  EXPECT_EQ(empty.missing[0].reason, "the file is empty");
  EXPECT_NE(empty.missing[0].hint.find("cat"), std::string::npos);
  for (const char* const name : {"hqds", "mqds", "rls"})
    save(name,
         "\x7f"
         "ELF\n");
  const Snapshot other = load_snapshot(folder_);
  EXPECT_FALSE(other.hqds || other.mqds || other.runlists);
  ASSERT_EQ(other.missing.size(), 4u);
  EXPECT_NE(other.missing[1].reason.find("not text of mqds"), std::string::npos);
}

TEST_F(KfdFolders, what_is_missing_is_named_with_its_cure) {
  const Snapshot nothing = read_snapshot({folder_ / "debug", folder_ / "sys"});
  ASSERT_EQ(nothing.missing.size(), 4u);
  EXPECT_EQ(nothing.missing[0].path, (folder_ / "debug/kfd/hqds").string());
  EXPECT_NE(nothing.missing[0].hint.find("mount -t debugfs none"), std::string::npos);
  EXPECT_EQ(nothing.missing[3].part, "sysfs");
  // A debugfs that has something else, and no KFD.
  std::filesystem::create_directories(folder_ / "debug/tracing");
  const Snapshot other = read_snapshot({folder_ / "debug", folder_ / "sys"});
  EXPECT_NE(other.missing[0].reason.find("amdgpu is not loaded"), std::string::npos);
  write_debugfs(random_scene(1, Gfx::gfx9), folder_ / "debug");
  std::filesystem::permissions(folder_ / "debug/kfd/hqds", std::filesystem::perms::none);
  // Root may read anything, so root reads as nobody.
  const bool is_root = ::geteuid() == 0;
  if (is_root && ::seteuid(65534) != 0) GTEST_SKIP() << "may not become another user";
  const Snapshot denied = read_snapshot({folder_ / "debug", folder_ / "sys"});
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(denied.missing[0].reason, "permission denied");
  EXPECT_EQ(denied.missing[0].path, (folder_ / "debug/kfd/hqds").string());
  EXPECT_NE(denied.missing[0].hint.find("root"), std::string::npos);
  EXPECT_TRUE(denied.mqds);
}

}  // namespace
}  // namespace weir::testing
