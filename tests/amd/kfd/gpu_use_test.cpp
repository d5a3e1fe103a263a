// What a GPU and a process's open files show of its use, from the text that the kernel writes.
#include "amd/kfd/gpu_use.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace weir::kfd {
namespace {

namespace fs = std::filesystem;

class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "weir_use_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(GpuUse, is_read_from_the_render_node_of_the_topology) {
  const auto node = parse_node(2, "63420\n", "gfx942\n", "drm_render_minor 128\nlocation_id 1280\ndomain 1\n");
  ASSERT_TRUE(node);
  EXPECT_EQ(pci_name(*node), "0001:05:00.0");
  const Scratch sysfs;
  const std::string device = "class/drm/renderD128/device/";
  sysfs.write(device + "gpu_busy_percent", "87\n");
  sysfs.write(device + "mem_info_vram_used", "1048576\n");
  sysfs.write(device + "hwmon/hwmon5/power1_input", "250000000\n");
  const GpuUse use = read_gpu_use(sysfs.path(), *node);
  EXPECT_DOUBLE_EQ(use.busy.value.value(), 0.87);
  EXPECT_EQ(use.memory_used_bytes.value, 1048576);
  EXPECT_DOUBLE_EQ(use.power_w.value.value(), 250);
  EXPECT_FALSE(use.memory_bytes.value);
  EXPECT_NE(use.memory_bytes.reason.find("mem_info_vram_total: No such file"), std::string::npos);
  sysfs.write(device + "hwmon/hwmon5/power1_average", "240000000\n");
  EXPECT_DOUBLE_EQ(read_gpu_use(sysfs.path(), *node).power_w.value.value(), 240);
  sysfs.write(device + "gpu_busy_percent", "\n");
  EXPECT_FALSE(read_gpu_use(sysfs.path(), *node).busy.value);
  EXPECT_NE(read_gpu_use(sysfs.path(), *parse_node(2, "1", "", "")).busy.reason.find("render node"), std::string::npos);
}

TEST(GpuUse, clients_of_one_process_are_added_up_and_each_counts_once) {
  const auto text = [](const char* client, const char* driver = "amdgpu") {
    return std::string("pos:\t0\nflags:\t02\ndrm-driver:\t") + driver + "\ndrm-pdev:\t0000:05:00.0\ndrm-client-id:\t" +
           client +
           "\ndrm-memory-vram:\t2 KiB\ndrm-memory-gtt:\t9 KiB\ndrm-engine-compute:\t500 ns\ndrm-engine-gfx:\t20 ns\n"
           "drm-engine-capacity-dec:\t2\n";
  };
  std::vector<std::string> clients;
  DrmUses uses;
  for (const std::string& each : {text("1"), text("1"), text("2"), text("3", "i915"), std::string("pos:\t0\n")})
    add_fdinfo(each, clients, uses);
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses["0000:05:00.0"].memory_bytes, 4096U);
  EXPECT_EQ(uses["0000:05:00.0"].engine_ns, (std::map<std::string, std::uint64_t>{{"compute", 1000}, {"gfx", 40}}));
}

}  // namespace
}  // namespace weir::kfd
