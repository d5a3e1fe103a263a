#include "docs/examples.h"

#include <cstdint>
#include <fstream>

#include "support/amd_capture.h"
#include "support/amd_log_text.h"
#include "support/kfd_text.h"

namespace weir::testing {

namespace fs = std::filesystem;

namespace {

// What the driver knows of the streams that the log shows, and a queue of the runtime's own.
Scene example_scene(int number, const char* kernel, int streams, int queues, int rounds) {
  Scene scene = sequential_scene(streams, queues, rounds);
  scene.processes[0] = {4000 + number, 17 + number, "python3"};
  for (SceneQueue& queue : scene.queues) queue.ring_base += static_cast<std::uint64_t>(number) << 32;
  scene.gpus[0].xccs = 2;  // a slot more is a kilobyte more in every snapshot
  scene.gpus[0].last_slot = 4;
  // The program works long enough for a snapshot that has all of its queues, and takes them down when it ends.
  for (SceneLaunch& launch : scene.launches) {
    launch.kernel = kernel;
    for (std::int64_t* ns : {&launch.called_ns, &launch.written_ns, &launch.returned_ns}) *ns += 200'000'000;
  }
  SceneQueue own = scene.queues.front();
  own.swq = 0;
  own.ring_base += 0x2000000;
  scene.queues.push_back(own);
  for (std::size_t i = 0; i < scene.queues.size(); ++i) {
    SceneQueue& queue = scene.queues[i];
    const int index = static_cast<int>(i);
    queue.id = static_cast<std::uint32_t>(i);
    queue.mqd_base = 0x7f7000000000 + static_cast<std::uint64_t>(10 * number + index) * 0x10000;
    queue.doorbell = 0x800 + static_cast<std::uint32_t>(100 * number + 2 * index);
    queue.pipe = index % 4;
    queue.slot = 2 + index / 4;
    queue.ioctl_ns = queue.asked_ns + (queue.created_ns - queue.asked_ns) / 2 - (queue.swq == 0 ? 400'000 : 0);
    queue.ioctl_end_ns = queue.ioctl_ns + 150'000;
    queue.deleted_ns = scene.launches.back().returned_ns + 1'000'000 + 200'000 * index;
    queue.read_packets = queue.written_packets = 40 + i;
  }
  scene.queues[1].written_packets += 9;
  return scene;
}

}  // namespace

void write_amd_examples(const fs::path& folder) {
  CaptureShape shape;
  shape.has_sysfs = false;
  shape.during = 1;
  for (const auto& [name, scene] : {std::pair("a", example_scene(0, "conv_fwd(float*, int)", 16, 4, 2)),
                                    std::pair("b", example_scene(1, "attention_fwd(half*, int)", 8, 2, 6))}) {
    const fs::path capture = folder / name;
    fs::create_directories(capture);
    for (const amd::CaptureSnapshot& snapshot : write_capture(scene, capture, shape).snapshots)
      std::ofstream(capture / snapshot.folder / "rls") << rls_text(scene_at(scene, snapshot.taken_ns));
  }
}

}  // namespace weir::testing
