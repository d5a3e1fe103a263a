#include "amd/log/log_line.h"

#include <gtest/gtest.h>

namespace weir::amd {
namespace {

TEST(LogLine, heads_of_all_versions) {
  struct Case {
    const char* line;
    int level;
    std::uint64_t us;
    int pid;  // -1: none
    std::uint64_t tid;
    const char* message;
  };
  const Case cases[] = {
      {":3:rocdevice.cpp            :480 : 6306213494 us:  Initalizing", 3, 6306213494, -1, 0, "Initalizing"},
      {":4:command.cpp              :357 : 20161701357 us: [pid:459769 tid: 0x7f8edc1c4400] Command", 4, 20161701357,
       459769, 0x7f8edc1c4400, "Command"},
      {":3:                         :0   : 418551158102 us: [pid:1 tid: 0x2] x", 3, 418551158102, 1, 2, "x"},
      {":3:rocvirtual.cpp           :807 : 7270505882d us: [pid:21983 tid: 7f316f4006c0] Arg0", 3, 7270505882, 21983,
       0x7f316f4006c0, "Arg0"},
      {":3:hip_memory.cpp           :652 : 0298671349 us: [pid:16    tid:0x7f54f7603280]  hipMemcpy", 3, 298671349, 16,
       0x7f54f7603280, "hipMemcpy"},
      {":1:memory.cpp               :347 : 9616777840 us: 4277 : [tid:0x7f2accbfe6c0] Video", 1, 9616777840, 4277,
       0x7f2accbfe6c0, "Video"},
      {":0:/long/src/clr/rocclr/device/device.cpp:321 : 12074 us: [pid:123 tid:0x1] Memobj", 0, 12074, 123, 1,
       "Memobj"},
      {":3:rocdevice.cpp            :480 : 6306213494 us:  \x1b[32m hipInit ( 0 ) \x1b[0m\r", 3, 6306213494, -1, 0,
       "hipInit ( 0 )"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.line);
    const auto head = parse_head(each.line);
    ASSERT_TRUE(head.has_value());
    EXPECT_EQ(head->level, each.level);
    EXPECT_EQ(head->time_us, each.us);
    EXPECT_EQ(head->pid.value_or(-1), each.pid);
    EXPECT_EQ(head->tid, each.tid);
    EXPECT_EQ(trimmed(std::string_view(each.line).substr(head->message_at)), each.message);
    // The same behind a program's output.
    const std::string glued = std::string("left: 3 ms: 12 us: ...") + each.line;
    EXPECT_EQ(find_glued(glued), glued.size() - std::string_view(each.line).size());
  }
}

TEST(LogLine, what_is_no_head) {
  for (const char* line : {"", ":", ":3:", ":3:file:12: us: x", "3:file:12: 5 us: x", ":x:file:12: 5 us: x",
                           ":3:file:12: 5us: x", ":3:file: 5 us: x", ":3:file:12: 99999999999999999999 us: x"})
    EXPECT_FALSE(parse_head(line).has_value()) << line;
  const auto without_time = parse_head(":1:hip_fatbin.cpp:117: message");
  ASSERT_TRUE(without_time.has_value());
  EXPECT_FALSE(without_time->time_us.has_value());
}

TEST(LogLine, addresses_with_and_without_grouping) {
  const auto value = [](std::string_view text) { return take_hex(text); };
  EXPECT_EQ(value("0x7fb,bb5,821,380, 12"), 0x7fbbb5821380u);
  EXPECT_EQ(value("0x20, 0x30"), 0x20u);
  EXPECT_EQ(value("ffffffffffffffff"), UINT64_MAX);
  EXPECT_FALSE(value("0x1ffffffffffffffff").has_value());
  EXPECT_FALSE(value("0x").has_value());
  EXPECT_FALSE(value("<null>").has_value());
}

}  // namespace
}  // namespace weir::amd
