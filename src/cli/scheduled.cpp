#include "cli/scheduled.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/console.h"
#include "base/error.h"
#include "base/plain_text.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "device/rank/communicator.h"
#include "report/text/fields.h"
#include "submit/gated.h"
#include "submit/sched/connection.h"
#include "submit/sched/server.h"

namespace weir::cli {
namespace {

constexpr const char* kInjectionVariable = "CUDA_INJECTION64_PATH";
constexpr const char* kInjectionFile = "libweir_cupti.so";

struct Asked {
  std::string socket;
  scheduler::Terms terms;
};

// For results; read and written by the thread that opens devices.
Json g_facts = nullptr;

// The libraries that hold other programs' launches must not hold these a second time: commands from the first gate
// would wait at the second, and every client of the device would stall. So they must find no socket in this process;
// they look for it when a driver is loaded, which happens later.
std::optional<Asked> take_request() {
  static const std::optional<Asked> kAsked = []() -> std::optional<Asked> {
    const auto socket = environment_variable(scheduler::kSocketVariable);
    if (!socket || socket->empty()) return std::nullopt;
    Asked asked{*socket, {}};
    const std::string text = environment_variable(scheduler::kTermsVariable).value_or("");
    if (!text.empty() && !scheduler::read_terms(text, &asked.terms))
      reject(fmt::format("{}: '{}' are not terms", scheduler::kTermsVariable, text),
             "`weir sched run` writes it: start the run with that.");
    ::unsetenv(scheduler::kSocketVariable);
    if (std::filesystem::path(environment_variable(kInjectionVariable).value_or("")).filename() == kInjectionFile)
      ::unsetenv(kInjectionVariable);
    return asked;
  }();
  return kAsked;
}

Json terms_json(const scheduler::Terms& terms) {
  return {{"priority", terms.priority},
          {"weight", terms.weight},
          {"deadline_ns", terms.deadline_ns == 0 ? Json(nullptr) : Json(terms.deadline_ns)}};
}

Json policy_of(const std::string& socket) {
  try {
    const Json status = scheduler::ask_status(socket);
    return fields::at(status, {"policy"});
  } catch (const Error&) {
    return nullptr;  // gone between two requests
  }
}

// The name shown in the daemon's list of clients: "weir run large_gemm_only".
std::string own_name() {
  std::string name = "weir";
  const auto& words = own_arguments();
  for (std::size_t i = 1; i < std::min<std::size_t>(3, words.size()) && !words[i].starts_with('-'); ++i)
    name += " " + words[i];
  return name;
}

void note_unscheduled(const std::string& reason, bool is_quiet) {
  g_facts["is_scheduled"] = false;
  g_facts["reason"] = reason;
  if (!is_quiet && is_first_rank()) print_err("weir: {}: this runs unscheduled\n", without_controls(reason, ' '));
}

// Lives as long as the device.
class SchedulerClient {
 public:
  explicit SchedulerClient(std::unique_ptr<scheduler::Connection> connection)
      : work_(connection->gate()), connection_(std::move(connection)) {
    connection_->attend([](void* work) { static_cast<GatedWork*>(work)->look(); }, &work_);
  }
  ~SchedulerClient() {
    g_facts["is_alive_at_end"] = connection_->is_alive();
    g_facts["launches"] = connection_->gate().launches();
    g_facts["held"] = connection_->gate().held();
    g_facts["held_ns"] = connection_->gate().held_ns();
  }
  SchedulerClient(const SchedulerClient&) = delete;
  SchedulerClient& operator=(const SchedulerClient&) = delete;
  GatedWork& work() { return work_; }

 private:
  GatedWork work_;
  std::unique_ptr<scheduler::Connection> connection_;  // after work_: its thread uses that until destroyed
};

}  // namespace

std::unique_ptr<Device> open_scheduled(const std::function<std::unique_ptr<Device>()>& open,
                                       const Communicator* communicator, bool is_quiet) {
  const std::optional<Asked> asked = take_request();
  std::unique_ptr<Device> device = open();
  if (!asked) return device;
  g_facts = {
      {"is_scheduled", true},       {"reason", nullptr},   {"policy", nullptr}, {"terms", terms_json(asked->terms)},
      {"is_alive_at_end", nullptr}, {"launches", nullptr}, {"held", nullptr},   {"held_ns", nullptr}};
  if (communicator != nullptr && communicator->ranks().count > 1) {
    note_unscheduled("ranks wait for each other, so none of them may be held", is_quiet);
    return device;
  }
  if (const DeviceInfo info = device->info(); !info.runs() || info.is_virtual) {
    g_facts["is_scheduled"] = false;
    g_facts["reason"] = fmt::format("device '{}' is not shared with other processes", info.name);
    return device;
  }
  std::string reason;
  auto connection = scheduler::Connection::open(asked->socket, asked->terms, own_name(), &reason);
  if (connection == nullptr) {
    note_unscheduled(reason, is_quiet);
    return device;
  }
  g_facts["policy"] = policy_of(asked->socket);
  const auto client = std::make_shared<SchedulerClient>(std::move(connection));
  return gated_device(std::move(device), std::shared_ptr<GatedWork>(client, &client->work()));
}

Json scheduling_facts() { return g_facts; }

}  // namespace weir::cli
