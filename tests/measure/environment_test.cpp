#include "measure/environment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace weir {
namespace {

namespace fs = std::filesystem;

// A machine described by files.
class FakeRoot : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("weir_root_" + std::to_string(::getpid()) + "_" +
                                         ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  fs::path root_;
};

TEST_F(FakeRoot, ReadsWhatThereIs) {
  put("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  put("proc/meminfo", "MemTotal:       24659532 kB\nMemFree: 1 kB\n");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  const std::vector<std::string> variables = {"CUDA_VISIBLE_DEVICES=0", "HOME=/root", "GPU_MAX_HW_QUEUES=8", "broken",
                                              "NCCL_DEBUG=a=b"};
  const Json json = describe_environment(variables, root_);
  EXPECT_EQ(json["system"], "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(json["memory_bytes"], 24659532LL * 1024);
  EXPECT_EQ(json["governor"], "performance");
  EXPECT_EQ(json["variables"].size(), 3u);
  EXPECT_EQ(json["variables"]["NCCL_DEBUG"], "a=b");
}

TEST_F(FakeRoot, RecordsVariablesByExactNameAndNoSecrets) {
  const std::vector<std::string> variables = {"NVIDIA_API_KEY=s",           "SLURM_JWT=s",         "TORCH_TOKEN=s",
                                              "NCCL_NOT_KNOWN=s",           "SLURM_JOB_USER=ann",  "CUDA_=x",
                                              "UCX_NET_DEVICES=mlx5_0:1",   "OMPI_MCA_btl=self",   "MY_API_KEY=s",
                                              "NCCL_ALGO=https://u:s@host", "KMP_AFFINITY=compact"};
  const Json kept = describe_environment(variables, root_)["variables"];
  EXPECT_EQ(kept.dump(), R"x({"NVIDIA_API_KEY":"(redacted)","SLURM_JWT":"(redacted)","TORCH_TOKEN":"(redacted)",)x"
                         R"x("NCCL_NOT_KNOWN":"(not recorded)","SLURM_JOB_USER":"(not recorded)",)x"
                         R"x("UCX_NET_DEVICES":"mlx5_0:1","OMPI_MCA_btl":"self",)x"
                         R"x("NCCL_ALGO":"https://(redacted)@host","KMP_AFFINITY":"compact"})x");
}

TEST_F(FakeRoot, MissingFilesAreNull) {
  const Json json = describe_environment({}, root_);
  for (const char* key : {"system", "memory_bytes", "governor", "load_average"})
    EXPECT_TRUE(json[key].is_null()) << key;
  EXPECT_FALSE(rapl_energy_j(root_ / "sys"));
}

TEST_F(FakeRoot, EnergyIsThePackagesSumWithoutTheirParts) {
  put("sys/class/powercap/intel-rapl:0/energy_uj", "1500000\n");
  put("sys/class/powercap/intel-rapl:0:0/energy_uj", "700000\n");
  put("sys/class/powercap/intel-rapl:1/energy_uj", "2500000\n");
  put("sys/class/powercap/intel-rapl/enabled", "1\n");
  ASSERT_TRUE(rapl_energy_j(root_ / "sys"));
  EXPECT_DOUBLE_EQ(*rapl_energy_j(root_ / "sys"), 4.0);
}

}  // namespace
}  // namespace weir
