#include "submit/sched/mps_log.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/plain_text.h"

namespace weir::scheduler {
namespace {

void add_id(std::vector<int>& ids, int id) {
  if (id > 0 && ids.size() < MpsLog::kMaxIds && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

// The number after a mark; 0 where there is none.
int number_after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + mark.size());
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  return parse_as<int>(text.substr(0, digits)).value_or(0);
}

// "{PID: 587, Context ID: 1}" of driver 580, "process 587" of older ones
int client_in(std::string_view message) {
  const int id = number_after(message, "PID: ");
  return id != 0 ? id : number_after(message, "process ");
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

std::string_view name_of(MpsFault::Kind kind) {
  switch (kind) {
    case MpsFault::Kind::gpu_error:
      return "gpu_error";
    case MpsFault::Kind::server_ended:
      return "server_ended";
    case MpsFault::Kind::control_ended:
      break;
  }
  return "control_ended";
}

void MpsLog::read(std::string_view text, std::int64_t now_ns) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view part = text.substr(0, end);
    if (rest_.size() + part.size() > kMaxLine) is_skipping_ = true;
    if (!is_skipping_) rest_ += part;
    if (end == std::string_view::npos) return;
    if (!is_skipping_) read_line(rest_, now_ns);
    rest_.clear();
    is_skipping_ = false;
    text.remove_prefix(end + 1);
  }
}

// [2026-11-19 14:21:30.247 Control   584] Starting new server 590 for user 0
// [2026-11-19 14:19:05.775 Control   760] Server 767 exited with status 0
// [2026-11-19 14:21:30.531 Server   590] Client {PID: 587, Context ID: 0} connected
// [2026-11-19 14:21:32.299 Server   590] Client {PID: 587, Context: 1} encountered a fatal GPU error.
// [2026-11-19 14:21:32.299 Server   590] Server is handling a fatal GPU error.
// [2026-11-19 14:21:32.299 Server   590] Client {PID: 599, Context ID: 1} on device 0 to be torn down
// [2026-11-19 14:21:32.918 Server   590] Client process 587 disconnected
// What the control process is asked comes as "Cmd:..." from Control, so it is none of these.
void MpsLog::read_line(std::string_view line, std::int64_t now_ns) {
  const std::size_t bracket = line.find("] ");
  if (!line.starts_with('[') || bracket == std::string_view::npos) return;
  const std::string_view head = line.substr(0, bracket), message = line.substr(bracket + 2);
  if (contains(head, " Control ")) {
    if (message.starts_with("Starting new server ")) {
      add_id(servers_, number_after(message, "server "));
    } else if (message.starts_with("Server ") && contains(message, " exited with status")) {
      std::erase(servers_, number_after(message, "Server "));
      if (servers_.empty() && !clients_.empty()) {
        add_fault({MpsFault::Kind::server_ended, now_ns, 0, clients_});
        clients_.clear();
      }
    }
    return;
  }
  if (!contains(head, "Server ")) return;
  if (contains(message, "encountered a fatal")) {
    MpsFault& fault = open_fault(now_ns);
    const int client = client_in(message);
    if (fault.noticed_by == 0) fault.noticed_by = client;
    add_id(fault.clients, client);
  } else if (message.starts_with("Server is handling a fatal")) {
    open_fault(now_ns);
  } else if (message.starts_with("Client {PID: ") && contains(message, " to be torn down")) {
    add_id(open_fault(now_ns).clients, client_in(message));
  } else if (message.starts_with("Client {PID: ") && message.ends_with(" connected")) {
    is_fault_open_ = false;
    add_id(clients_, client_in(message));
  } else if (message.starts_with("Client process ") && contains(message, "disconnected")) {
    is_fault_open_ = false;
    std::erase(clients_, client_in(message));
  }
}

// One error comes as many lines. All who are connected have lost their work: the list of those that are torn down may
// be cut short by what is read next.
MpsFault& MpsLog::open_fault(std::int64_t now_ns) {
  if (!is_fault_open_ || faults_.empty()) {
    add_fault({MpsFault::Kind::gpu_error, now_ns, 0, clients_});
    is_fault_open_ = true;
  }
  return faults_.back();
}

void MpsLog::add_fault(MpsFault fault) {
  is_fault_open_ = false;
  ++fault_count_;
  if (faults_.size() == kMaxFaults) faults_.erase(faults_.begin());
  faults_.push_back(std::move(fault));
}

void MpsLog::end_all(MpsFault::Kind why, std::int64_t now_ns) {
  if (!clients_.empty()) add_fault({why, now_ns, 0, clients_});
  clients_.clear();
  servers_.clear();
  rest_.clear();
  is_skipping_ = is_fault_open_ = false;
}

}  // namespace weir::scheduler
