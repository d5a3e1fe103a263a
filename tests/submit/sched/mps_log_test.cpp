// What MPS prints, as an H200 with driver 580 does, and as nobody should.
#include "submit/sched/mps_log.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace weir::scheduler {
namespace {

using Ids = std::vector<int>;

// Two programs; 599 follows a bad pointer, and the server names 587.
constexpr const char* kFault =
    "[2026-11-19 14:21:30.247 Control   584] Starting new server 590 for user 0\n"
    "[2026-11-19 14:21:30.530 Control   584] NEW SERVER 590: Ready\n"
    "[2026-11-19 14:21:30.531 Server   590] Received new client request for {PID: -1333654781, Context ID: 0}\n"
    "[2026-11-19 14:21:30.531 Server   590] Client {PID: 587, Context ID: 0} connected\n"
    "[2026-11-19 14:21:30.568 Server   590] Client {PID: 587, Context ID: 1} connected\n"
    "[2026-11-19 14:21:31.049 Server   590] Client {PID: 599, Context ID: 0} connected\n"
    "[2026-11-19 14:21:32.299 Server   590] Client {PID: 587, Context: 1} encountered a fatal GPU error.\n"
    "[2026-11-19 14:21:32.299 Server   590] Server is handling a fatal GPU error.\n"
    "[2026-11-19 14:21:32.299 Server   590] Client {PID: 587, Context ID: 1} on device 0 to be torn down\n"
    "[2026-11-19 14:21:32.299 Server   590] Client {PID: 599, Context ID: 1} on device 0 to be torn down\n"
    "[2026-11-19 14:21:32.299 Server   590] All clients belonging to error trigging process 587 will be torn down\n"
    "[2026-11-19 14:21:32.918 Server   590] Client process 587 disconnected\n"
    "[2026-11-19 14:21:32.918 Server   590] Client process 599 disconnected\n";

TEST(MpsLog, a_fault_names_who_met_it_and_all_who_lost_their_work) {
  // In one piece, and byte by byte.
  for (const bool is_whole : {true, false}) {
    MpsLog log;
    const std::string text = kFault;
    if (is_whole) log.read(text, 7);
    if (!is_whole)
      for (const char c : text) log.read({&c, 1}, 7);
    EXPECT_EQ(log.servers(), Ids{590});
    EXPECT_EQ(log.clients(), Ids{});
    ASSERT_EQ(log.faults().size(), 1U);
    const MpsFault& fault = log.faults()[0];
    EXPECT_EQ(fault.kind, MpsFault::Kind::gpu_error);
    EXPECT_EQ(fault.at_ns, 7);
    EXPECT_EQ(fault.noticed_by, 587);
    EXPECT_EQ(fault.clients, (Ids{587, 599}));
  }
}

TEST(MpsLog, a_server_that_ends_under_its_clients_is_a_fault) {
  MpsLog log;
  log.read("[2026-11-19 14:19:04.240 Control   767] Starting new server 767 for user 0\n", 1);
  log.read("[2026-11-19 14:19:04.310 Server   767] Client {PID: 764, Context ID: 0} connected\n", 2);
  EXPECT_EQ(log.clients(), Ids{764});
  log.read("[2026-11-19 14:19:05.775 Control   760] Server 767 exited with status 0\n", 3);
  ASSERT_EQ(log.faults().size(), 1U);
  EXPECT_EQ(log.faults()[0].kind, MpsFault::Kind::server_ended);
  EXPECT_EQ(log.faults()[0].clients, Ids{764});
  EXPECT_EQ(log.clients(), Ids{});
  log.end_all(MpsFault::Kind::control_ended, 4);
  EXPECT_EQ(log.fault_count(), 1U) << "nobody was connected any more";
}

TEST(MpsLog, an_ordinary_end_is_none) {
  MpsLog log;
  log.read(
      "[x Control 1] Starting new server 9 for user 0\n[x Server 9] Client {PID: 5, Context ID: 0} connected\n"
      "[x Server 9] Client process 5 disconnected\n[x Control 1] Server 9 exited with status 0\n",
      1);
  EXPECT_TRUE(log.faults().empty());
  EXPECT_TRUE(log.servers().empty());
}

TEST(MpsLog, what_somebody_types_to_the_control_process_is_no_fault) {
  MpsLog log;
  log.read(
      "[x Control 1] Cmd:Client {PID: 5, Context: 1} encountered a fatal GPU error.\n"
      "Client {PID: 5, Context: 1} encountered a fatal GPU error.\n",
      1);
  EXPECT_TRUE(log.faults().empty());
}

TEST(MpsLog, anything_is_read_without_harm_and_with_bounds) {
  std::mt19937_64 random(3);
  const std::string source = kFault;
  MpsLog log;
  for (int i = 0; i < 3000; ++i) {
    std::string text = source;
    for (int change = 0; change < 4; ++change) text[random() % text.size()] = static_cast<char>(random());
    log.read(text.substr(random() % text.size()), i);
  }
  for (int i = 1; i < 5000; ++i) {
    log.read("[x Server 9] Client {PID: " + std::to_string(i) + ", Context ID: 0} connected\n", 1);
    log.read("[x Server 9] Client {PID: 99999999999999999999, Context ID: 0} encountered a fatal GPU error\n", 1);
    log.read("[x Control 9] Starting new server " + std::to_string(i) + " for user 0\n", 1);
  }
  log.read(std::string(10'000'000, 'x'), 1);
  EXPECT_LE(log.clients().size(), MpsLog::kMaxIds);
  EXPECT_LE(log.servers().size(), MpsLog::kMaxIds);
  EXPECT_LE(log.faults().size(), MpsLog::kMaxFaults);
}

}  // namespace
}  // namespace weir::scheduler
