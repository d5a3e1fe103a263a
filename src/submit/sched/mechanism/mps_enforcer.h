// What the mechanisms over NVIDIA's MPS share: the server that their clients use. What each does with it is set in the
// clients' environments by `weir sched run`, and on the board.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "submit/sched/mechanism.h"

namespace weir::scheduler {

// Null server: the gate alone, for that reason.
class MpsEnforcer final : public Enforcer {
 public:
  MpsEnforcer(std::unique_ptr<MpsServer> server, std::string reason);

  void join(int seat, int pid) override;
  void leave(int seat) override;
  void hold(std::uint64_t, std::int64_t) override {}
  MechanismUse use(int seat) const override;
  bool acts_on_running() const override { return false; }
  int wake_file() const override { return server_ != nullptr ? server_->wake_file() : -1; }
  std::int64_t attends_again_ns() const override { return server_ != nullptr ? server_->attends_again_ns() : kNever; }
  void attend(std::int64_t now_ns) override;
  Json mps(std::int64_t now_ns) const override;
  std::string reason() const override;

 private:
  const std::unique_ptr<MpsServer> server_;
  const std::string reason_;
  std::array<int, kMaxClients> pids_{};
};

inline constexpr std::string_view kMpsNotice =
    "programs in an MPS share faults: when one makes an error on the GPU, all of them lose their work there. "
    "`weir sched run --isolate` keeps a program out of it.";

// Rejects, by the mechanism's name, where there is no MPS and none can be started.
std::unique_ptr<Enforcer> open_mps(std::string_view mechanism, const MechanismSetup& setup);

}  // namespace weir::scheduler
