// weir.sched_status/1: clients with a seat, who is waiting for whom, what each used.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr double kSecond = 1e9;

// Numbers come from clients and may be anything.
std::string quantity(const Json& json, std::initializer_list<const char*> keys) {
  const auto value = number(json, keys);
  return value ? format_quantity(*value) : "-";
}

// Only the term that the policy uses: all three would not leave room for the rest.
struct Term {
  const char* heading;
  std::string (*text)(const Json& client);
};

std::optional<Term> term_of(const std::string& policy) {
  if (policy == "fifo") return std::nullopt;
  if (policy == "weighted_fair" || policy == "time_slice")
    return Term{"weight", [](const Json& client) { return text(client, {"weight"}); }};
  if (policy == "earliest_deadline")
    return Term{"deadline", [](const Json& client) { return duration(client, {"deadline_ns"}, "-"); }};
  return Term{"priority", [](const Json& client) { return text(client, {"priority"}); }};
}

std::string state_of(const Json& client) {
  const std::string off = is_true(client, {"is_suspended"}) ? "off, " : "";
  const Json& waits_for = at(client, {"waits_for"});
  if (waits_for.is_array() && !waits_for.empty()) {
    std::string others;
    for (const Json& other : waits_for) {
      const std::string pid = text(other, {"pid"});
      others += (others.empty() ? "" : ",") + (pid == "-" ? "seat " + text(other, {"seat"}) : pid);
    }
    return off + "waits for " + others;
  }
  const Json& is_active = at(client, {"is_active"});
  if (!is_active.is_boolean()) return "alone";
  return is_active.get<bool>() ? "active" : "idle";
}

// The same client in an earlier status: its seat may have gone to another one since.
const Json* same_client(const Json& before, const Json& client) {
  const Json& clients = at(before, {"clients"});
  if (!clients.is_array()) return nullptr;
  for (const Json& other : clients)
    if (text(other, {"seat"}) == text(client, {"seat"}) && text(other, {"pid"}) == text(client, {"pid"}) &&
        number(other, {"joined_ns_ago"}).value_or(0) <= number(client, {"joined_ns_ago"}).value_or(0))
      return &other;
  return nullptr;
}

std::optional<double> growth(const Json& now, const Json& before, const char* key) {
  const auto from = number(before, {key}), to = number(now, {key});
  if (!from || !to || *to < *from) return std::nullopt;
  return *to - *from;
}

std::string share(std::optional<double> ns, double of_ns) {
  return ns && of_ns > 0 ? fmt::format("{:.1f} %", 100 * *ns / of_ns) : "-";
}

// Whether the daemon does more than to hold launches.
bool has_mechanism(const Json& status) {
  const std::string name = string(status, {"mechanism"});
  return !name.empty() && name != "gate";
}

// Whether clients' kernels run in a part of the device beside others'.
bool has_parts(const Json& status) { return is_true(status, {"confines"}); }

// "85 % always", "gate": how a client makes way for others.
std::string way_of(const Json& client) {
  const auto percent = number(client, {"part_percent"});
  if (percent) return fmt::format("{:.0f} % {}", *percent, text(client, {"confine"}));
  const std::string choice = string(client, {"choice"});
  return choice.empty() || choice == "alone" || choice == "comes_first" || choice == "nobody_about" ? "-" : "gate";
}

// Columns beyond those of every daemon. 80 columns leave no room for the launches beside them.
struct Extra {
  const char* heading;
  bool is_text;
  std::string (*value)(const Json& client);
};

std::vector<Extra> extras_of(const Json& status) {
  if (has_parts(status))
    return {{"confined by", true, way_of},
            {"command", false, [](const Json& client) { return duration(client, {"command_ns"}, "-"); }}};
  if (has_mechanism(status))
    return {{"held by", true, [](const Json& client) { return text(client, {"mechanism"}); }},
            {"off", false, [](const Json& client) { return count(client, {"suspensions"}); }}};
  return {};
}

ReportTable clients_table(const Json& status, const Json& before) {
  const auto now_ns = number(status, {"uptime_ns"}), then_ns = number(before, {"uptime_ns"});
  const bool is_same_daemon = text(status, {"pid"}) == text(before, {"pid"}) && now_ns && then_ns && *now_ns > *then_ns;
  const double since_ns = is_same_daemon ? *now_ns - *then_ns : 0;
  const auto term = term_of(text(status, {"policy"}));
  ReportTable table{{{"pid"}, {"program", true}}};
  if (term) table.columns.push_back({term->heading});
  table.columns.push_back({"state", true});
  const std::vector<Extra> extras = extras_of(status);
  for (const Extra& extra : extras) table.columns.push_back({extra.heading, extra.is_text});
  table.columns.push_back({since_ns > 0 ? "device" : "used"});
  if (extras.empty()) table.columns.push_back({since_ns > 0 ? "launch/s" : "launches"});
  table.columns.push_back({"waited"});
  const Json& clients = at(status, {"clients"});
  if (!clients.is_array()) return table;
  for (const Json& client : clients) {
    std::vector<std::string> row = {text(client, {"pid"}), text(client, {"program"})};
    if (term) row.push_back(term->text(client));
    row.push_back(state_of(client));
    for (const Extra& extra : extras) row.push_back(extra.value(client));
    if (since_ns > 0) {
      const Json* const old = same_client(before, client);
      const auto of = [&](const char* key) { return old != nullptr ? growth(client, *old, key) : std::nullopt; };
      const auto launches = of("launches");
      row.push_back(share(of("used_ns"), since_ns));
      if (extras.empty()) row.push_back(launches ? format_quantity(*launches / since_ns * kSecond) : "-");
      row.push_back(share(of("held_ns"), since_ns));
    } else {
      row.push_back(duration(client, {"used_ns"}, "-"));
      if (extras.empty()) row.push_back(quantity(client, {"launches"}));
      row.push_back(duration(client, {"held_ns"}, "-"));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Why a client is treated as it is, and whether its bound is kept: one line each.
void remark_on(ReportSection& section, const Json& status, const Json& client) {
  const std::string pid = text(client, {"pid"});
  const std::string name = pid == "-" ? "seat " + text(client, {"seat"}) : pid;
  if (const std::string why = string(client, {"mechanism_reason"});
      !why.empty() && why != string(status, {"mechanism_reason"}))
    section.remark("{}: the gate alone, because {}", name, why);
  const std::string bound = string(client, {"bound_reason"});
  const std::string why = string(client, {"choice_reason"});
  if (has_parts(status) && !why.empty()) {
    const bool has_run_so = number(client, {"confined"}).value_or(0) > 0;
    section.remark("{}: {}{}", name, why,
                   has_run_so ? fmt::format(" ({} of {} launches so far)", quantity(client, {"confined"}),
                                            quantity(client, {"launches"}))
                              : "");
  }
  if (!bound.empty()) section.remark("{}: {}", name, bound);
}

// "MPS fault 3.00 s ago: an error on the GPU, met first by 587 (not always its cause); lost their work there: 587, 599"
std::string fault_line(const Json& fault) {
  const std::string kind = string(fault, {"kind"});
  const std::string what = kind == "gpu_error"      ? "an error on the GPU"
                           : kind == "server_ended" ? "its server ended"
                                                    : "its control process ended";
  std::string who;
  for (const Json& client : list(fault, {"clients"}))
    if (client.is_number()) who += (who.empty() ? "" : ", ") + fmt::format("{}", client.get<double>());
  const bool is_noticed = number(fault, {"noticed_by"}).has_value();
  return fmt::format(
      "MPS fault {} ago: {}{}; lost their work there: {}", duration(fault, {"ns_ago"}, "some time"), what,
      is_noticed ? fmt::format(", met first by {} (not always its cause)", text(fault, {"noticed_by"})) : "",
      who.empty() ? "nobody" : who);
}

}  // namespace

std::vector<std::string> mechanism_lines(const Json& status) {
  std::vector<std::string> lines;
  if (const std::string why = string(status, {"mechanism_reason"}); !why.empty())
    lines.push_back(fmt::format("{}: the gate alone, because {}", string(status, {"mechanism"}), why));
  const Json& mps = at(status, {"mps"});
  if (!mps.is_object()) return lines;
  const bool is_own = is_true(mps, {"is_own"});
  const auto restarts = number(mps, {"restarts"}).value_or(0);
  const auto counted = [](std::size_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  lines.push_back(fmt::format(
      "MPS: {}{}, {}, {}{}", is_own ? "its own" : "somebody else's",
      is_own ? fmt::format(", process {}", text(mps, {"pid"})) : "", counted(list(mps, {"servers"}).size(), "server"),
      counted(list(mps, {"clients"}).size(), "client"), restarts > 0 ? fmt::format(", restarts: {}", restarts) : ""));
  lines.push_back(fmt::format("  logs: {}", string(mps, {"log_folder"})));
  return lines;
}

TextReport sched_status_report(const Json& status, const Json& before) {
  TextReport report{fmt::format("Scheduler, process {}, up for {}", text(status, {"pid"}),
                                duration(status, {"uptime_ns"}, "some time"))};
  report.open("policy {}, slice {}, ageing {}, {} in flight", text(status, {"policy"}),
              duration(status, {"slice_ns"}, "-"), duration(status, {"ageing_ns"}, "never"),
              number(status, {"in_flight"}) ? text(status, {"in_flight"}) : "auto");
  if (has_mechanism(status)) report.open("mechanism {}", text(status, {"mechanism"}));
  for (const std::string& line : mechanism_lines(status)) report.open("{}", line);
  ReportTable table = clients_table(status, before);
  ReportSection& section =
      report.section(table.rows.size() == 1 ? "1 client" : fmt::format("{} clients", table.rows.size()));
  if (table.rows.empty()) {
    section.remark("Run a program under it: weir sched run --priority high -- ./program");
  } else {
    const bool is_shared = at(status, {"is_shared"}) == true;
    section.tables.push_back(std::move(table));
    for (const Json& client : list(status, {"clients"})) remark_on(section, status, client);
    if (!is_shared) section.remark("Alone on the device: nothing is held, and nothing is counted.");
  }
  constexpr std::size_t kShownFaults = 3;
  const Json& faults = list(status, {"mps", "faults"});
  for (std::size_t i = faults.size() - std::min(kShownFaults, faults.size()); i < faults.size(); ++i)
    section.remark("{}", fault_line(faults[i]));
  return report;
}

DocumentText text_list::sched_status(const Json& document) { return sched_status_report(document); }

}  // namespace weir
