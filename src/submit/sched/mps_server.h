// The MPS (NVIDIA's Multi-Process Service) that the clients of a daemon share: its own, which it starts in private
// folders, watches and ends, or one that somebody else runs, which it only looks at. Knows no policy and no client.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/json.h"
#include "submit/sched/mps_guardian.h"
#include "submit/sched/mps_log.h"
#include "submit/sched/policy.h"

namespace weir::scheduler {

enum class MpsChoice : std::uint8_t { own, theirs, none };

// What a machine has for it, and what the user chose.
struct MpsSetup {
  MpsChoice choice = MpsChoice::own;
  std::string program;                // the path of nvidia-cuda-mps-control; empty: it is not installed
  std::string no_driver;              // why there is no NVIDIA driver; empty: there is one
  std::string other_pipe, other_log;  // folders of an MPS that somebody else runs; empty: there is none
};

// Whether a control process listens in that pipe folder.
bool is_mps_live(const std::string& pipe_folder);

class MpsServer {
 public:
  // Starts one, or uses the other one. Null with a reason where it cannot; `hint` then says what to do. Waits for the
  // control process to listen, so call it before anybody is served.
  static std::unique_ptr<MpsServer> open(const std::filesystem::path& socket, const MpsSetup& setup,
                                         std::string* reason, std::string* hint);
  // Ends its own one and waits for that. Programs that still work in it keep it: then it ends with the last of them.
  ~MpsServer();
  MpsServer(const MpsServer&) = delete;
  MpsServer& operator=(const MpsServer&) = delete;

  // To be polled for input: attend() then has something to do. -1: nothing.
  int wake_file() const { return guardian_.channel.get(); }
  // Reads what was reported and printed, and replaces a guardian that died. Never waits.
  void attend(std::int64_t now_ns);
  // When attend() should be called if nothing happens before.
  std::int64_t attends_again_ns() const { return attends_ns_; }

  bool is_up() const { return is_up_; }
  // Why it is not; empty where it is.
  const std::string& reason() const { return reason_; }
  bool has_client(int pid) const;
  // "mps" of the status document.
  Json document(std::int64_t now_ns) const;

 private:
  MpsServer() = default;
  void make_places(const std::filesystem::path& socket);
  void launch();
  bool await_ready(std::string* reason);
  void hear(const MpsEvent& event, std::int64_t now_ns);
  void lose_guardian(std::int64_t now_ns);
  void read_output(std::int64_t now_ns);
  std::string last_line() const;

  bool is_own_ = false;
  MpsPlaces places_;
  Descriptor lock_;    // of the root folder, shared with the guardian: one that nobody locks is stale
  Descriptor output_;  // read end of the log file
  std::uint64_t read_bytes_ = 0;
  MpsGuardian guardian_;
  MpsLog log_;
  bool is_up_ = false, has_ended_ = false, lingers_ = false;
  std::string reason_ = "it has not started yet";
  int control_ = 0;
  std::uint64_t starts_ = 0;
  int guardians_lost_ = 0;
  std::vector<pid_t> zombies_;  // guardians that have ended
  std::int64_t attends_ns_ = 0, launches_ns_ = kNever;
};

}  // namespace weir::scheduler
