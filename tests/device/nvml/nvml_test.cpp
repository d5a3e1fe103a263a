// NVML's board through the table, with a library that stands in for it (tests/fake_nvml). Opened once per process, so
// each variant is a process of its own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "device/gpu/libraries.h"

namespace weir {
namespace {

// Drivers are found by LD_LIBRARY_PATH, which is read before main(): CMake starts these tests with it.
class Nvml : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const variant = std::getenv("WEIR_FAKE_NVML");
    if (variant == nullptr) GTEST_SKIP() << "there is no stand-in: ctest -R nvml starts this with one";
    is_old_ = std::string_view(variant) == "old";
    std::string reason;
    management_ = open_nvml(&reason);
    ASSERT_NE(management_, nullptr) << reason;
    board_ = management_->find("00000000:C1:00.0");
    ASSERT_NE(board_, nullptr);
  }
  bool is_old_ = false;
  const GpuManagement* management_ = nullptr;
  void* board_ = nullptr;
};

TEST_F(Nvml, says_what_the_board_is_and_how_it_is_set) {
  EXPECT_EQ(management_->find("00000000:C2:00.0"), nullptr);
  const DeviceBoard board = management_->read_board(board_);
  EXPECT_EQ(board.serial, "1650123456789");
  EXPECT_EQ(board.uuid, "GPU-00000000-1111-2222-3333-444444444444");
  const auto fact = [&](const char* name) {
    const auto found = board.facts.find(name);
    return found == board.facts.end() ? "-" : found->second;
  };
  EXPECT_EQ(fact("vbios"), "96.00.A5.00.01");
  EXPECT_EQ(fact("persistence"), "on");
  EXPECT_EQ(fact("ecc"), "on");
  EXPECT_EQ(fact("compute_mode"), "exclusive process");
  EXPECT_EQ(fact("default_power_limit"), "700 W");
  EXPECT_EQ(fact("max_pcie_width"), "16");
  EXPECT_EQ(fact("inforom"), "-") << "no library of this variant has it";
  EXPECT_EQ(fact("mig"), is_old_ ? "-" : "off");
  EXPECT_EQ(fact("firmware"), is_old_ ? "-" : "580.65.06");
  EXPECT_EQ(fact("row_remapping_pending"), is_old_ ? "-" : "yes");
  EXPECT_EQ(fact("row_remapping_failed"), is_old_ ? "-" : "no");
  EXPECT_EQ(board.power_limit_w, is_old_ ? 600 : 550);
  EXPECT_EQ(board.memory_clock_mhz, 3201);
}

TEST_F(Nvml, counts_links_and_errors) {
  const DeviceBoard board = management_->read_board(board_);
  EXPECT_EQ(board.pcie_generation, 5);
  EXPECT_EQ(board.pcie_width, 8);
  EXPECT_EQ(board.pcie_replays, 4);
  EXPECT_EQ(board.ecc_corrected, 12);
  EXPECT_EQ(board.ecc_uncorrected, 1);
  EXPECT_EQ(board.retired_pages, is_old_ ? std::optional<double>(3) : std::nullopt);
  EXPECT_EQ(board.remapped_rows, is_old_ ? std::nullopt : std::optional<double>(3));
  EXPECT_EQ(board.nvlink_links, is_old_ ? std::nullopt : std::optional<double>(17));
  EXPECT_EQ(board.nvlink_errors, is_old_ ? std::nullopt : std::optional<double>(72));
}

TEST_F(Nvml, reads_the_state_of_this_moment) {
  const Telemetry telemetry = management_->read(board_);
  EXPECT_EQ(telemetry.clock_mhz, 1710);
  EXPECT_EQ(telemetry.max_clock_mhz, 1980);
  EXPECT_EQ(telemetry.power_w, 690.5);
  EXPECT_EQ(telemetry.temperature_c, 61);
}

}  // namespace
}  // namespace weir
