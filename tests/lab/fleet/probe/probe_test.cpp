// A node's probe on devices that can be had anywhere, and on devices that compute wrongly, fail, or never answer. No
// test looks at how long anything takes.
#include "lab/fleet/probe/probe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "lab/fleet/figures.h"
#include "lab/fleet/probe/state.h"
#include "support/programs.h"

namespace weir::fleet {
namespace {

// What goes wrong with a device. Shared, because a device that never answers outlives its probe.
struct Trouble {
  std::size_t spoiled_bytes = 0;  // the size of the buffers whose reads are changed
  int spoil_from = 0;             // from this read on (counted from 0) ...
  int spoil_to = INT32_MAX;       // ... to before this one
  int fail_finish = -1;           // this finish() (counted from 0) throws
  bool never_finishes = false;

  std::atomic<int> reads = 0, finishes = 0;
  std::atomic<bool> is_gone = false;  // the device
  std::mutex mutex;
  std::condition_variable changed;
  bool is_released = false;

  void release() {
    const std::lock_guard lock(mutex);
    is_released = true;
    changed.notify_all();
  }
};

class TroubledSession final : public Session {
 public:
  TroubledSession(std::unique_ptr<Session> inner, std::shared_ptr<Trouble> trouble)
      : inner_(std::move(inner)), trouble_(std::move(trouble)) {}
  void begin_iteration() noexcept override { inner_->begin_iteration(); }
  void submit(std::span<const CommandId> commands) noexcept override { inner_->submit(commands); }
  void finish() override {
    inner_->finish();
    if (trouble_->finishes++ == trouble_->fail_finish) fail("the device is lost");
    if (!trouble_->never_finishes) return;
    std::unique_lock lock(trouble_->mutex);
    trouble_->changed.wait(lock, [&] { return trouble_->is_released; });
    fail("the device came back too late");
  }
  std::vector<IterationSpan> take_spans() override { return inner_->take_spans(); }
  Timeline timeline() override { return inner_->timeline(); }
  void reset() override { inner_->reset(); }
  void read(BufferId buffer, std::span<std::byte> bytes) override {
    inner_->read(buffer, bytes);
    if (bytes.size() != trouble_->spoiled_bytes) return;
    const int read = trouble_->reads++;
    if (read < trouble_->spoil_from || read >= trouble_->spoil_to) return;
    bytes[bytes.size() / 2 + 3] ^= std::byte{0x40};  // an exponent's
  }
  MemoryUse memory() const override { return inner_->memory(); }
  std::int64_t now_ns() noexcept override { return inner_->now_ns(); }
  void pause(std::int64_t ns) noexcept override { inner_->pause(ns); }

 private:
  std::unique_ptr<Session> inner_;
  std::shared_ptr<Trouble> trouble_;
};

class TroubledDevice final : public Device {
 public:
  TroubledDevice(std::unique_ptr<Device> inner, std::shared_ptr<Trouble> trouble)
      : inner_(std::move(inner)), trouble_(std::move(trouble)) {}
  ~TroubledDevice() override { trouble_->is_gone = true; }
  DeviceInfo info() const override { return inner_->info(); }
  std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                   const SessionOptions& options) override {
    return std::make_unique<TroubledSession>(inner_->prepare(step, placement, options), trouble_);
  }

 private:
  std::unique_ptr<Device> inner_;
  std::shared_ptr<Trouble> trouble_;
};

// With few rounds: nobody compares their numbers.
ProbeOptions options_for(std::vector<std::string> devices) {
  ProbeOptions options;
  options.devices = std::move(devices);
  options.open = [](const std::string& name, Communicator* communicator) {
    return open_device(name, {.communicator = communicator});
  };
  options.most_rounds = 3;
  options.patience_ns = 3'600'000'000'000;
  return options;
}

ProbeOptions options_for(const std::shared_ptr<Trouble>& trouble) {
  ProbeOptions options = options_for({"cpu"});
  options.open = [trouble](const std::string& name, Communicator*) {
    return std::make_unique<TroubledDevice>(open_device(name, {}), trouble);
  };
  return options;
}

constexpr std::size_t kProductBytes = 256 * 256 * 4;  // of the fp32 product on small devices

// Every figure is there, with a value or with a reason, and its samples agree with its value.
void expect_whole(const NodeDevice& device, std::size_t rounds) {
  for (const FigureKind& kind : figure_kinds()) {
    const Figure* const figure = device.figure(kind.name);
    ASSERT_NE(figure, nullptr) << kind.name;
    EXPECT_NE(figure->value.has_value(), !figure->reason.empty()) << kind.name << ": " << figure->reason;
    if (kind.goal == Goal::none || !figure->value) continue;
    EXPECT_EQ(figure->samples.size(), rounds) << kind.name;
    ASSERT_TRUE(figure->range) << kind.name;
    EXPECT_LT(figure->range->low, *figure->value) << kind.name;
    EXPECT_GT(figure->range->high, *figure->value) << kind.name;
  }
}

TEST(FleetProbe, MeasuresEveryFigureOfACpuOrSaysWhyNot) {
  const ProbedDevices probed = probe_devices(options_for({"cpu"}));
  ASSERT_EQ(probed.devices.size(), 1u);
  const NodeDevice& cpu = probed.devices[0];
  EXPECT_EQ(cpu.name, "cpu");
  EXPECT_EQ(cpu.failure, "");
  EXPECT_EQ(cpu.wrong, std::vector<std::string>());
  EXPECT_EQ(probed.rounds, 3u);
  EXPECT_FALSE(probed.is_stuck);
  expect_whole(cpu, 3);
  for (const char* const figure : {"launch", "launch_threads", "launch_graph", "round_trip", "copy_to_device",
                                   "copy_to_host", "memory", "gemm_fp32", "gemm_bf16"})
    EXPECT_TRUE(cpu.figure(figure)->value) << figure << ": " << cpu.figure(figure)->reason;
  EXPECT_EQ(cpu.figure("all_reduce")->reason, "there is one device");
}

TEST(FleetProbe, MeasuresASimulatedGpuInVirtualTime) {
  const ProbedDevices one = probe_devices(options_for({"sim:h200"})), other = probe_devices(options_for({"sim:h200"}));
  const NodeDevice &first = one.devices[0], &second = other.devices[0];
  EXPECT_EQ(first.failure, "");
  expect_whole(first, 3);
  // Nothing disturbs virtual time, so another probe sees the same.
  for (const FigureKind& kind : figure_kinds()) {
    if (kind.name == "launch_threads") continue;  // its threads are the host's, in any order
    EXPECT_EQ(first.figure(kind.name)->value, second.figure(kind.name)->value) << kind.name;
  }
  EXPECT_EQ(first.figure("gemm_fp8")->reason, "the device does not offer this precision");
}

TEST(FleetProbe, ASlowDownForTestsIsRealTime) {
  ProbeOptions options = options_for({"sim:h200"});
  const NodeDevice before = probe_devices(options).devices[0];
  options.slow_down = {{"gemm_bf16", 0.25}, {"launch", 0.5}};
  const NodeDevice after = probe_devices(options).devices[0];
  EXPECT_NEAR(*after.figure("gemm_bf16")->value / *before.figure("gemm_bf16")->value, 1 / 1.25, 0.01);
  EXPECT_NEAR(*after.figure("launch")->value / *before.figure("launch")->value, 1.5, 0.01);
  EXPECT_NEAR(*after.figure("gemm_fp32")->value / *before.figure("gemm_fp32")->value, 1, 0.01);
}

TEST(FleetProbe, FindsAWrongProduct) {
  const auto trouble = std::make_shared<Trouble>();
  trouble->spoiled_bytes = kProductBytes;
  const NodeDevice device = probe_devices(options_for(trouble)).devices[0];
  ASSERT_EQ(device.wrong.size(), 1u);
  EXPECT_NE(device.wrong[0].find("GEMM fp32: "), std::string::npos) << device.wrong[0];
  EXPECT_TRUE(device.figure("gemm_fp32")->value) << "it was measured all the same";
}

TEST(FleetProbe, FindsAProductThatIsNotAlwaysTheSame) {
  const auto trouble = std::make_shared<Trouble>();
  trouble->spoiled_bytes = kProductBytes;
  // One read warms up, three are of the rounds, and the check is right again.
  trouble->spoil_from = 2;
  trouble->spoil_to = 3;
  const NodeDevice device = probe_devices(options_for(trouble)).devices[0];
  ASSERT_EQ(device.wrong.size(), 1u);
  EXPECT_EQ(device.wrong[0], "GEMM fp32: the same operands gave other bits in repetition 3 than in the first");
}

TEST(FleetProbe, ADeviceThatCannotBeOpenedDoesNotLoseTheOthers) {
  ProbeOptions options = options_for({"lost", "cpu"});
  options.open = [](const std::string& name, Communicator*) {
    if (name == "lost") fail("it has fallen off the bus");
    return open_device(name, {});
  };
  const ProbedDevices probed = probe_devices(options);
  ASSERT_EQ(probed.devices.size(), 2u);
  EXPECT_EQ(probed.devices[0].name, "lost");
  EXPECT_NE(probed.devices[0].failure.find("it has fallen off the bus"), std::string::npos);
  EXPECT_EQ(probed.devices[0].figure("memory")->reason, "the device could not be opened");
  EXPECT_EQ(probed.devices[1].failure, "");
  expect_whole(probed.devices[1], 3);
}

TEST(FleetProbe, ADeviceThatFailsOnItsWayKeepsWhatWasMeasured) {
  const auto trouble = std::make_shared<Trouble>();
  trouble->fail_finish = 250;  // after launches of the round that warms up
  const NodeDevice device = probe_devices(options_for(trouble)).devices[0];
  EXPECT_NE(device.failure.find("the device is lost"), std::string::npos) << device.failure;
  std::size_t without = 0;
  for (const FigureKind& kind : figure_kinds()) {
    const Figure* const figure = device.figure(kind.name);
    if (kind.goal != Goal::none && figure->reason == "the device is lost") ++without;
  }
  EXPECT_EQ(without, 1u) << "the others were measured";
}

TEST(FleetProbe, ADeviceThatNeverAnswersIsGivenUp) {
  const auto trouble = std::make_shared<Trouble>();
  trouble->never_finishes = true;
  ProbeOptions options = options_for(trouble);
  options.patience_ns = 100'000'000;
  const ProbedDevices probed = probe_devices(options);
  EXPECT_TRUE(probed.is_stuck);
  ASSERT_EQ(probed.devices.size(), 1u);
  EXPECT_NE(probed.devices[0].failure.find("it does not answer"), std::string::npos) << probed.devices[0].failure;
  // Its thread has been left behind: it must be gone before this process is.
  trouble->release();
  while (!trouble->is_gone) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(FleetProbe, KeepsToItsBudget) {
  ProbeOptions options = options_for({"sim:h200"});
  options.most_rounds = 7;
  std::atomic<std::int64_t> now = 0;
  options.now_ns = [&] { return now.load(); };
  EXPECT_EQ(probe_devices(options).rounds, 7u) << "no time passes";
  options.now_ns = [&] { return now += 20'000'000'000; };
  EXPECT_EQ(probe_devices(options).rounds, 3u) << "the fewest, although there is no time for any";
  now = 0;
  options.budget_ns = 400'000'000'000;
  const std::size_t rounds = probe_devices(options).rounds;
  EXPECT_GT(rounds, 3u);
  EXPECT_LT(rounds, 7u);
}

TEST(FleetProbe, StopsWhereItIsInterrupted) {
  ProbeOptions options = options_for({"sim:h200"});
  const std::atomic<bool> stop = true;
  options.stop = &stop;
  const ProbedDevices probed = probe_devices(options);
  EXPECT_TRUE(probed.is_interrupted);
  EXPECT_EQ(probed.rounds, 0u);
}

TEST(FleetProbe, TheStateOfABoardBecomesFiguresAndFacts) {
  DeviceInfo info;
  info.model = "NVIDIA H200";
  info.driver = "580.65.06";
  DeviceBoard board;
  board.serial = "1650123456789";
  board.uuid = "GPU-1";
  board.bus = "0000:ff:1f.7";
  board.facts = {{"ecc", "on"}, {"vbios", "96.00"}};
  board.pcie_width = 8;
  board.ecc_uncorrected = 2;
  NodeDevice device;
  add_board(info, board, device);
  const std::vector<Telemetry> loads = {{.clock_mhz = 1700, .power_w = 690, .throttle = {"power cap"}},
                                        {.clock_mhz = 1500, .power_w = 700, .throttle = {"power cap", "power brake"}},
                                        {.clock_mhz = 1600}};
  add_telemetry({.max_clock_mhz = 1980, .other_processes = 1}, loads, device);
  EXPECT_EQ(device.serial, "1650123456789");
  EXPECT_EQ(device.facts.at("ecc"), "on");
  EXPECT_EQ(device.facts.at("driver"), "580.65.06");
  EXPECT_EQ(device.figure("pcie_width")->value, 8);
  EXPECT_EQ(device.figure("ecc_uncorrected")->value, 2);
  EXPECT_EQ(device.figure("nvlink_links")->value, std::nullopt);
  EXPECT_EQ(device.figure("nvlink_links")->reason, "the device does not report it");
  EXPECT_EQ(device.figure("clock")->value, 1600);
  EXPECT_EQ(device.figure("power")->value, 695);
  EXPECT_EQ(device.figure("temperature")->value, std::nullopt);
  EXPECT_EQ(device.figure("other_processes")->value, 1);
  EXPECT_EQ(device.throttle, (std::vector<std::string>{"power cap", "power brake"}));
}

TEST(FleetProbe, SettingsOfTheMachineBecomeFacts) {
  const testing::Folder root;
  const auto put = [&](const std::string& path, const char* text) {
    const std::filesystem::path file = root.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  put("proc/sys/vm/nr_hugepages", "512\n");
  put("sys/devices/system/node/online", "0-1\n");
  put("proc/self/status", "Name:\tweir\nMems_allowed_list:\t0\nThreads:\t1\n");
  NodeReport node;
  node.environment = {{"governor", "performance"},
                      {"cpus", 96},
                      {"variables", {{"CUDA_DEVICE_MAX_CONNECTIONS", "1"}, {"CUDA_TOKEN", "(not recorded)"}}}};
  describe_node(node, root.path().string() + "/");
  EXPECT_EQ(node.facts.at("governor"), "performance");
  EXPECT_EQ(node.facts.at("cpus"), "96");
  EXPECT_EQ(node.facts.at("huge_pages"), "madvise");
  EXPECT_EQ(node.facts.at("reserved_huge_pages"), "512");
  EXPECT_EQ(node.facts.at("numa"), "0 of 0-1");
  EXPECT_EQ(node.facts.at("CUDA_DEVICE_MAX_CONNECTIONS"), "1");
  EXPECT_EQ(node.facts.at("GPU_MAX_HW_QUEUES"), "not set");
  EXPECT_FALSE(node.facts.contains("CUDA_TOKEN"));
  EXPECT_FALSE(node.facts.contains("numa_balancing"));
}

}  // namespace
}  // namespace weir::fleet
