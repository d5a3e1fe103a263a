// How a client that has to wait is kept from the device, beyond the gate, which holds what has not been launched yet.
// One file per mechanism in mechanism/, listed in mechanism/list.h. Knows no policy, no socket and no driver.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "submit/sched/mps_server.h"
#include "submit/sched/policy.h"

namespace weir::scheduler {

// What a mechanism does with one client.
struct MechanismUse {
  bool is_in_use = false;  // false: the gate alone holds this client
  std::string reason;      // why not; empty where it is in use
  bool is_off = false;     // its work is off the device now
  std::uint64_t times_off = 0;
  std::int64_t off_ns = 0;   // in total
  std::int64_t cost_ns = 0;  // spent on taking it off and putting it back
};

// A mechanism at work, for the clients of one daemon. No call blocks, or throws but for lack of memory; all come from
// one thread. Whatever happens to it or to the daemon, no client stays off the device.
class Enforcer {
 public:
  virtual ~Enforcer() = default;  // lets go of every client
  // `pid`: 0 where the process is not visible from here.
  virtual void join(int seat, int pid) = 0;
  virtual void leave(int seat) = 0;
  // The clients that have work and must wait for others now, one bit per seat. Called again and again while there are
  // any; one that is not renewed for kSilentNs is forgotten.
  virtual void hold(std::uint64_t waiting, std::int64_t now_ns) = 0;
  virtual MechanismUse use(int seat) const = 0;

  // False: it takes no running work off the device, so nobody has to be heard of at once, and clients are not traced.
  virtual bool acts_on_running() const { return true; }
  // A descriptor to be polled for input, and when to call attend() if there is none before; -1 and kNever: never.
  virtual int wake_file() const { return -1; }
  virtual std::int64_t attends_again_ns() const { return kNever; }
  virtual void attend(std::int64_t /*now_ns*/) {}
  // The MPS that clients are to use, for the status document; null: none.
  virtual Json mps(std::int64_t /*now_ns*/) const { return nullptr; }
  // Why it does less than its name says, for all clients; empty: it does not.
  virtual std::string reason() const { return {}; }
};

// What a mechanism is opened with.
struct MechanismSetup : Settings {
  std::filesystem::path socket;  // of the daemon; what belongs to the daemon lies beside it
  MpsSetup mps;
};

struct Mechanism {
  std::string_view name;
  std::string_view summary;
  std::string_view notice;  // what users must know before they start it; empty: nothing
  // Rejects where the machine lacks what it needs. Empty: the gate alone is this mechanism.
  std::function<std::unique_ptr<Enforcer>(const MechanismSetup&)> open;
  bool uses_mps = false;
  bool confines = false;         // clients' kernels can run in a part of the device beside others'
  bool lowers_priority = false;  // clients of priority below 0 are of low priority in the MPS as well
  int low_share_percent = 0;     // of the device's threads, for clients of priority below 0 in the MPS; 0: all
  bool holds_launches = true;    // false: the gate lets everybody pass
};

}  // namespace weir::scheduler
