// On NVIDIA GPUs: the driver alternates between processes by itself; this makes its slices short, and nobody is held.
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/plain_text.h"
#include "base/process.h"
#include "submit/sched/mechanism/list.h"

namespace weir::scheduler {
namespace {

constexpr const char* kSmi = "nvidia-smi";
constexpr std::array<std::string_view, 4> kSlices = {"Default", "Short", "Medium", "Long"};
constexpr int kShort = 1;

// |   0   Timeslice       Default       |
std::optional<int> slice_in(std::string_view text) {
  const std::size_t at = text.find(" Timeslice ");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = trimmed(text.substr(at + 11, 32));
  const std::string_view word = rest.substr(0, rest.find_first_of(" |"));
  for (std::size_t i = 0; i < kSlices.size(); ++i)
    if (kSlices[i] == word) return static_cast<int>(i);
  return std::nullopt;
}

bool set_slice(int slice) {
  return printed_by({kSmi, "compute-policy", "--set-timeslice=" + std::to_string(slice)}).has_value();
}

class DriverSlices final : public Enforcer {
 public:
  explicit DriverSlices(int before) : before_(before) {}
  ~DriverSlices() override { set_slice(before_); }
  DriverSlices(const DriverSlices&) = delete;
  DriverSlices& operator=(const DriverSlices&) = delete;

  void join(int, int) override {}
  void leave(int) override {}
  void hold(std::uint64_t, std::int64_t) override {}
  MechanismUse use(int) const override { return {.is_in_use = true, .reason = {}}; }
  bool acts_on_running() const override { return false; }

 private:
  const int before_;
};

std::unique_ptr<Enforcer> open_time_slice(const MechanismSetup&) {
  const auto refuse = [](const char* why, const char* hint) { reject_setting("mechanism", "time_slice", why, hint); };
  const auto listed = printed_by({kSmi, "compute-policy", "--list"});
  if (!listed) refuse("nvidia-smi does not list compute policies", "It needs an NVIDIA GPU and its driver.");
  if (::geteuid() != 0)
    refuse("only root may change the time slices of an NVIDIA GPU", "--mechanism gate needs no rights.");
  const auto before = slice_in(*listed);
  if (!before) refuse("the time slice that is set now cannot be read", "See `nvidia-smi compute-policy --list`.");
  if (!set_slice(kShort)) refuse("nvidia-smi does not set it", "See `nvidia-smi compute-policy --set-timeslice=1`.");
  return std::make_unique<DriverSlices>(*before);
}

}  // namespace

Mechanism mechanism_list::time_slice() {
  return {.name = "time_slice",
          .summary = "NVIDIA, as root: nobody is held, and the driver's own time slices of processes are short",
          .notice = "the time slice is that of all programs on all NVIDIA GPUs of this machine, until the daemon ends",
          .open = open_time_slice,
          .holds_launches = false};
}

}  // namespace weir::scheduler
