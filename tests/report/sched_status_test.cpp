#include <gtest/gtest.h>

#include <sstream>

#include "report/text/documents.h"
#include "support/text.h"

namespace weir {
namespace {

Json client(int seat, const std::string& program) {
  return {{"seat", seat},
          {"pid", 4'000'000 + seat},
          {"program", program},
          {"priority", -10},
          {"weight", 99.25},
          {"deadline_ns", 12'300'000},
          {"joined_ns_ago", 5'000'000'000},
          {"is_active", true},
          {"active_ns", 1'000},
          {"waits_for", Json::array()},
          {"in_flight", 2},
          {"used_ns", 1.5e9},
          {"launches", 1000},
          {"held", 100},
          {"held_ns", 250'000'000},
          {"paced_ns", 0}};
}

Json status(Json clients, std::int64_t uptime_ns = 10'000'000'000) {
  return {{"schema", "weir.sched_status/1"},
          {"pid", 4711},
          {"policy", "earliest_deadline"},
          {"uptime_ns", uptime_ns},
          {"slice_ns", 2'000'000},
          {"ageing_ns", nullptr},
          {"in_flight", 2},
          {"is_shared", clients.size() > 1},
          {"most_clients", 64},
          {"clients", std::move(clients)}};
}

std::string text(const Json& now, const Json& before = nullptr) {
  return report_text(sched_status_report(now, before));
}

// Remarks are wrapped.
std::string without_breaks(const std::string& lines) {
  std::string all;
  for (const char c : lines)
    if (c != '\n' && c != ' ')
      all += c;
    else if (!all.empty() && all.back() != ' ')
      all += ' ';
  return all;
}

TEST(SchedStatusText, says_who_waits_for_whom) {
  Json waits = client(7, "training"), idle = client(9, "served");
  waits["waits_for"] = {{{"seat", 3}, {"pid", 12}}, {{"seat", 9}, {"pid", nullptr}}};
  idle["is_active"] = false;
  const std::string printed = text(status({client(3, "batch"), waits, idle}));
  EXPECT_TRUE(has(printed, "Scheduler, process 4711, up for 10.0 s")) << printed;
  EXPECT_TRUE(has(printed, "policy earliest_deadline, slice 2.00 ms, ageing never, 2 in flight")) << printed;
  EXPECT_TRUE(has(printed, "3 clients"));
  EXPECT_TRUE(has(printed, "waits for 12,seat 9"));
  EXPECT_TRUE(has(printed, "idle"));
  EXPECT_TRUE(has(printed, "active"));
  EXPECT_FALSE(has(printed, "counted"));
}

TEST(SchedStatusText, shows_the_term_that_the_policy_looks_at) {
  const std::vector<std::pair<const char*, const char*>> kTerms = {
      {"priority", "-10"}, {"weighted_fair", "99.25"}, {"time_slice", "99.25"}, {"earliest_deadline", "12.3 ms"}};
  for (const auto& [policy, shown] : kTerms) {
    Json document = status(Json::array({client(0, "a")}));
    document["policy"] = policy;
    const std::string printed = text(document);
    for (const auto& [other, value] : kTerms)
      EXPECT_EQ(has(printed, value), std::string(value) == shown) << policy << printed;
  }
}

TEST(SchedStatusText, one_that_is_alone_is_not_told_as_idle) {
  Json alone = client(0, "only");
  alone["is_active"] = nullptr;
  const std::string printed = text(status(Json::array({alone})));
  EXPECT_TRUE(has(printed, "1 client\n"));
  EXPECT_TRUE(has(printed, "alone"));
  EXPECT_TRUE(has(printed, "nothing is counted"));
  EXPECT_FALSE(has(printed, "idle"));
}

TEST(SchedStatusText, without_clients_says_how_to_become_one) {
  EXPECT_TRUE(has(text(status(Json::array())), "weir sched run"));
}

TEST(SchedStatusText, says_which_mechanism_holds_a_client_and_why_not) {
  Json held = client(1, "training"), refused = client(2, "other");
  for (Json* one : {&held, &refused}) {
    (*one)["mechanism"] = "gate";
    (*one)["mechanism_reason"] = nullptr;
    (*one)["is_suspended"] = false;
    (*one)["suspensions"] = 0;
  }
  Json document = status({held, refused});
  document["mechanism"] = "gate";
  EXPECT_FALSE(has(text(document), "held by")) << "there is nothing to say: " << text(document);
  held["mechanism"] = "kfd_suspend";
  held["is_suspended"] = true;
  held["suspensions"] = 12;
  held["waits_for"] = {{{"seat", 2}, {"pid", 77}}};
  refused["mechanism_reason"] = "attaching of process 4000002 was refused: it may not be traced";
  document = status({held, refused});
  document["mechanism"] = "kfd_suspend";
  const std::string printed = text(document);
  EXPECT_TRUE(has(printed, "mechanism kfd_suspend")) << printed;
  EXPECT_TRUE(has(printed, "held by") && has(printed, "off, w") && has(printed, "  12  ")) << printed;
  EXPECT_TRUE(has(printed, "4000002: the gate alone, because attaching")) << printed;
  expect_narrow(printed);
}

Json with_choice(Json client, const char* confine, const Json& percent, const char* choice, const char* reason) {
  client["confine"] = confine;
  client["part_percent"] = percent;
  client["choice"] = choice;
  client["choice_reason"] = reason;
  client["confined"] = percent.is_null() ? 0 : 900;
  client["command_ns"] = 1'600'000;
  client["request_ns"] = {{"p99", 450'000}};
  client["bound_reason"] = nullptr;
  return client;
}

TEST(SchedStatusText, says_how_each_client_makes_way_and_whether_bounds_are_kept) {
  Json served = with_choice(client(1, "served"), "never", nullptr, "comes_first", "makes way for nobody");
  served["bound_reason"] = "p99 450 us <= 1.00 ms: kept";
  const Json loop = with_choice(client(2, "training"), "always", 85, "long_commands",
                                "its commands take 1.60 ms, longer than 400 us: they use 85 % of the device while "
                                "process 4000001 is about");
  const Json old = with_choice(client(3, "an_old_one"), "never", nullptr, "not_confinable",
                               "held at the gate with 1 in flight: its driver cannot confine kernels");
  Json document = status({served, loop, old});
  document["mechanism"] = "partition";
  document["confines"] = true;
  document["in_flight"] = nullptr;
  document["policy"] = "priority";
  for (const std::string& printed : {text(document), text(document, document)}) {
    EXPECT_TRUE(has(printed, "auto in flight")) << printed;
    EXPECT_TRUE(has(printed, "mechanism partition")) << printed;
    EXPECT_TRUE(has(printed, "confined by")) << printed;
    EXPECT_TRUE(has(printed, "85 % always  1.60 ms  ")) << printed;
    EXPECT_TRUE(has(printed, "4000002: its commands take 1.60 ms, longer than 400 us")) << printed;
    EXPECT_TRUE(has(printed, "(900 of 1.00 k")) << printed;
    EXPECT_TRUE(has(printed, "4000003: held at the gate with 1 in flight")) << printed;
    EXPECT_TRUE(has(printed, "4000001: makes way for nobody")) << printed;
    EXPECT_TRUE(has(printed, "4000001: p99 450 us <= 1.00 ms: kept")) << printed;
    expect_narrow(printed);
  }
  // With the gate alone there is nothing to choose, but a bound is worth a line.
  document["mechanism"] = "gate";
  document["confines"] = false;
  const std::string printed = text(document);
  EXPECT_FALSE(has(printed, "confined by") || has(printed, "85 %")) << printed;
  EXPECT_TRUE(has(printed, "4000001: p99 450 us <= 1.00 ms: kept")) << printed;
}

TEST(SchedStatusText, tells_of_the_mps_and_of_those_who_lost_their_work_there) {
  Json document = status(Json::array());
  document["mechanism"] = "auto";
  document["mps"] = {{"is_own", true},
                     {"pid", 584},
                     {"servers", Json::array({590})},
                     {"clients", Json::array({587, 599})},
                     {"restarts", 2},
                     {"log_folder", "/run/user/1000/weir/sched.sock.mps-580/log"}};
  const Json met = {
      {"kind", "gpu_error"}, {"ns_ago", 3'000'000'000}, {"noticed_by", 587}, {"clients", Json::array({587, 599})}};
  const Json ended = {
      {"kind", "server_ended"}, {"ns_ago", 1'000}, {"noticed_by", nullptr}, {"clients", Json::array({7})}};
  document["mps"]["faults"] = Json::array({met, ended});
  const std::string printed = without_breaks(text(document));
  EXPECT_TRUE(has(printed, "MPS: its own, process 584, 1 server, 2 clients, restarts: 2")) << printed;
  EXPECT_TRUE(has(printed, "met first by 587 (not always its cause)")) << printed;
  EXPECT_TRUE(has(printed, "587, 599")) << printed;
  EXPECT_TRUE(has(printed, "its server ended; lost their work there: 7")) << printed;
  for (const char* odd : {"1", "[]", R"({"faults":[1,null,{"clients":["x",null]}],"clients":3,"restarts":"x"})"}) {
    document["mps"] = Json::parse(odd);
    EXPECT_FALSE(text(document).empty()) << odd;
  }
  document["mps"] = nullptr;
  document["mechanism_reason"] = "there is no nvidia-cuda-mps-control in PATH";
  EXPECT_TRUE(has(text(document), "auto: the gate alone, because there is no"));
}

TEST(SchedStatusText, fits_80_columns_and_no_name_moves_the_cursor) {
  Json clients = Json::array();
  for (int seat = 0; seat < 64; ++seat) {
    clients.push_back(client(seat, std::string(64, 'x') + "\x1b[2J"));
    for (int other = 0; other < seat; ++other) clients.back()["waits_for"].push_back({{"seat", other}, {"pid", 1}});
  }
  for (const std::string& printed : {text(status(clients)), text(status(clients), status(clients, 1))}) {
    EXPECT_EQ(printed.find('\x1b'), std::string::npos);
    std::istringstream lines(printed);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(SchedStatusText, with_an_earlier_one_columns_say_what_happened_since) {
  const Json before = status(Json::array({client(0, "a"), client(1, "b"), client(2, "c")}));
  Json a = client(0, "a"), b = client(1, "b"), c = client(2, "c");
  for (Json* one : {&a, &b, &c}) (*one)["joined_ns_ago"] = 7'000'000'000;
  a["used_ns"] = 2.5e9;            // half of two seconds
  a["launches"] = 5000;            // 2000 each second
  a["held_ns"] = 750'000'000;      // a quarter of the time
  b["pid"] = 5;                    // another one on that seat
  c["joined_ns_ago"] = 1'000'000;  // the same number, but it came later
  const std::string printed = text(status({a, b, c}, 12'000'000'000), before);
  std::istringstream lines(printed);
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);)
    if (has(line, "12.3 ms")) rows.push_back(line);
  ASSERT_EQ(rows.size(), 3U) << printed;
  EXPECT_TRUE(has(rows[0], "50.0 %")) << printed;
  EXPECT_TRUE(has(rows[0], "2.00 k")) << printed;
  EXPECT_TRUE(has(rows[0], "25.0 %")) << printed;
  EXPECT_FALSE(has(rows[1], "%")) << printed;
  EXPECT_FALSE(has(rows[2], "%")) << printed;
  // Of another daemon: nothing since.
  Json other = before;
  other["pid"] = 1;
  EXPECT_FALSE(has(text(status({a}, 12'000'000'000), other), "%"));
}

TEST(SchedStatusText, a_document_of_anything_is_told_without_harm) {
  for (const char* odd : {"null", "[]", "{}", R"({"clients":7})", R"({"clients":[1,null,{"waits_for":{}}]})"})
    EXPECT_FALSE(text(Json::parse(odd)).empty()) << odd;
}

}  // namespace
}  // namespace weir
