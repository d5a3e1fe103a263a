#include "submit/sched/mechanism/mps_enforcer.h"

#include <utility>

#include "base/error.h"

namespace weir::scheduler {

MpsEnforcer::MpsEnforcer(std::unique_ptr<MpsServer> server, std::string reason)
    : server_(std::move(server)), reason_(std::move(reason)) {}

void MpsEnforcer::join(int seat, int pid) { pids_[static_cast<std::size_t>(seat)] = pid; }

void MpsEnforcer::leave(int seat) { pids_[static_cast<std::size_t>(seat)] = 0; }

MechanismUse MpsEnforcer::use(int seat) const {
  MechanismUse use;
  const int pid = pids_[static_cast<std::size_t>(seat)];
  if (server_ == nullptr)
    use.reason = reason_;
  else if (!server_->is_up())
    use.reason = "the MPS is down: " + server_->reason();
  else if (pid == 0)
    use.reason = "its process is not visible from here: it has another pid namespace";
  else if (!server_->has_client(pid))
    use.reason = "it is no client of the MPS";
  else
    use.is_in_use = true;
  return use;
}

void MpsEnforcer::attend(std::int64_t now_ns) {
  if (server_ != nullptr) server_->attend(now_ns);
}

Json MpsEnforcer::mps(std::int64_t now_ns) const {
  return server_ != nullptr ? server_->document(now_ns) : Json(nullptr);
}

std::string MpsEnforcer::reason() const {
  if (server_ == nullptr) return reason_;
  return server_->is_up() ? std::string() : "the MPS is down: " + server_->reason();
}

std::unique_ptr<Enforcer> open_mps(std::string_view mechanism, const MechanismSetup& setup) {
  std::string reason, hint;
  auto server = MpsServer::open(setup.socket, setup.mps, &reason, &hint);
  if (server == nullptr) reject_setting("mechanism", mechanism, reason, hint);
  return std::make_unique<MpsEnforcer>(std::move(server), "");
}

}  // namespace weir::scheduler
