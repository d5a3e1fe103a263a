// What the cpu device says about its host, and the options and steps that it refuses.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "device/cpu/host.h"
#include "device/cpu_testing.h"

namespace weir::device_list {
DeviceType cpu();
}

namespace weir {
namespace {

class FakeHost {
 public:
  FakeHost() : root_(std::filesystem::temp_directory_path() / ("weir_cpu_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(root_);
  }
  ~FakeHost() { std::filesystem::remove_all(root_); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  cpu::HostRoots roots() const { return {(root_ / "proc").string(), (root_ / "sys").string()}; }
  std::unique_ptr<Device> open() const {
    return cpu::open_cpu({.hardware_queues = 3, .workers = 5}, {.roots = roots()});
  }

 private:
  std::filesystem::path root_;
};

TEST(CpuInfo, names_the_model) {
  const FakeHost host;
  EXPECT_EQ(cpu::host_model(host.roots()), "unknown CPU");
  host.write(
      "proc/cpuinfo",
      "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9654 96-Core Processor\n");
  EXPECT_EQ(cpu::host_model(host.roots()), "AMD EPYC 9654 96-Core Processor");
  host.write("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd40\n");
  EXPECT_EQ(cpu::host_model(host.roots()), "ARM Neoverse-V1");
  host.write("proc/cpuinfo", "CPU implementer\t: 0x7f\nCPU part\t: 0x001\n");
  EXPECT_EQ(cpu::host_model(host.roots()), "arm64 CPU (implementer 0x7f, part 0x001)");
  host.write("proc/cpuinfo", "CPU implementer\t: ?\nCPU part\t: \n");
  EXPECT_EQ(cpu::host_model(host.roots()), "unknown CPU");
}

TEST(CpuInfo, says_what_it_has) {
  const FakeHost host;
  host.write("proc/meminfo", "MemTotal:       16 kB\nMemFree:    1 kB\nMemAvailable:    8 kB\n");
  const DeviceInfo info = host.open()->info();
  EXPECT_EQ(info.name, "cpu");
  EXPECT_FALSE(info.is_gpu);
  EXPECT_EQ(info.hardware_queues.value, 3);
  EXPECT_EQ(info.multiprocessors.value, 5);
  EXPECT_EQ(info.copy_engines.value, 1);
  EXPECT_EQ(info.memory_bytes.value, 16u * 1024);
  EXPECT_EQ(info.lowest_priority, -1);
  EXPECT_EQ(info.highest_priority, 2);
  EXPECT_EQ(info.precisions.size(), 5u);
}

TEST(CpuInfo, reads_clocks_where_there_are_any) {
  const FakeHost host;
  EXPECT_FALSE(host.open()->telemetry().clock_mhz);
  host.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2600000\n");
  host.write("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3500000\n");
  EXPECT_EQ(host.open()->telemetry().clock_mhz, 2600.0);
  EXPECT_EQ(host.open()->telemetry().max_clock_mhz, 3500.0);
}

TEST(CpuInfo, refuses_a_step_that_does_not_fit) {
  const FakeHost host;
  ActionStep step;
  step.builder().uniform(ElementType::f32, 1 << 20);
  step.add({}, [](std::uint32_t) {});
  const Step sealed = step.seal();
  const Placement placement = natural(sealed);
  const auto message = [&]() -> std::string {
    try {
      host.open()->prepare(sealed, placement, {});
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::input);
      EXPECT_FALSE(error.hint.empty());
      return error.what();
    }
    return {};
  };
  host.write("proc/meminfo", "MemAvailable:    1024 kB\n");
  EXPECT_EQ(message(), "device 'cpu': the step needs 4.00 MiB of memory and 1.00 MiB are available");
  host.write("proc/meminfo", "MemAvailable:    8192 kB\n");
  EXPECT_EQ(message(), "");
  host.write("sys/fs/cgroup/memory.max", "max\n");
  host.write("sys/fs/cgroup/memory.current", "1048576\n");
  EXPECT_EQ(message(), "");
  host.write("sys/fs/cgroup/memory.max", "3145728\n");
  EXPECT_EQ(message(), "device 'cpu': the step needs 4.00 MiB of memory and 2.00 MiB are available");
}

TEST(CpuInfo, refuses_options_out_of_range) {
  EXPECT_THROW(cpu::open_cpu({.hardware_queues = -1, .workers = 0}), Error);
  EXPECT_THROW(cpu::open_cpu({.hardware_queues = 128, .workers = 0}), Error);
  EXPECT_THROW(cpu::open_cpu({.hardware_queues = 0, .workers = -2}), Error);
  const DeviceType type = device_list::cpu();
  EXPECT_EQ(type.name, "cpu");
  EXPECT_EQ(type.find().names, std::vector<std::string>{"cpu"});
  EXPECT_THROW(type.open("1", {}), Error);
  EXPECT_EQ(*type.open("0", {})->info().hardware_queues.value, 8);
}

}  // namespace
}  // namespace weir
