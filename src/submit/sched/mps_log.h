// What the output of NVIDIA's MPS says of its servers and their clients. Reads it piece by piece; knows no process and
// no file. Anybody of this user may make the control process write lines, so ids are only numbers to show.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::scheduler {

// Clients that lost their work, because all clients of a server share its contexts on the device.
struct MpsFault {
  enum class Kind : std::uint8_t { gpu_error, server_ended, control_ended };
  Kind kind = Kind::gpu_error;
  std::int64_t at_ns = 0;
  // The client at which the server met the error; 0: unknown. It need not be the cause: on driver 580 the server named
  // the neighbour of the program with the bad pointer (H200, 2026-11-19).
  int noticed_by = 0;
  std::vector<int> clients;  // that were connected
};
std::string_view name_of(MpsFault::Kind kind);

class MpsLog {
 public:
  static constexpr std::size_t kMaxIds = 256, kMaxFaults = 16, kMaxLine = 1024;

  void read(std::string_view text, std::int64_t now_ns);
  // Everything ended at once. Clients that were connected are a fault.
  void end_all(MpsFault::Kind why, std::int64_t now_ns);

  const std::vector<int>& servers() const { return servers_; }
  const std::vector<int>& clients() const { return clients_; }
  const std::vector<MpsFault>& faults() const { return faults_; }  // the latest, in order
  std::uint64_t fault_count() const { return fault_count_; }

 private:
  void read_line(std::string_view line, std::int64_t now_ns);
  MpsFault& open_fault(std::int64_t now_ns);
  void add_fault(MpsFault fault);

  std::string rest_;          // of a line
  bool is_skipping_ = false;  // a line that is too long
  bool is_fault_open_ = false;
  std::vector<int> servers_, clients_;
  std::vector<MpsFault> faults_;
  std::uint64_t fault_count_ = 0;
};

}  // namespace weir::scheduler
