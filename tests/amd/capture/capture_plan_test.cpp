// What a capture plans on which machine, and what becomes of it on a kernel that refuses parts: a kernel of tables
// takes the place of tracefs.
#include "amd/capture/capture_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "amd/capture/capture_trace.h"

namespace weir::amd {
namespace {

using Stage = TraceStep::Stage;

// tracefs as tables: choices show themselves in brackets, buffers have an end, filters take nothing without a module.
class FakeTracefs final : public TraceFiles {
 public:
  explicit FakeTracefs(std::string root) : root_(std::move(root)) { fill(root_); }

  std::map<std::string, std::string> files;
  std::map<std::string, int> refused;  // by the end of a path: errno of writing
  std::set<std::string> folders;
  int max_buffer_kib = 1 << 20;
  bool has_module = true, is_folder_stuck = false;
  std::vector<std::string> writes;  // "path=text", in order

  void fill(const std::string& folder) {
    files[folder + "/tracing_on"] = "1";
    files[folder + "/trace_clock"] = "local";
    files[folder + "/buffer_size_kb"] = "1408";
    files[folder + "/options/overwrite"] = "1";
    files[folder + "/options/record-tgid"] = "0";
    files[folder + "/options/funcgraph-abstime"] = "0";
    files[folder + "/options/funcgraph-proc"] = "0";
    files[folder + "/trace"] = "# old\n";
    files[folder + "/set_ftrace_filter"] = "";
    files[folder + "/current_tracer"] = "nop";
    files[folder + "/events/sched/sched_process_exec/enable"] = "0";
    files[folder + "/events/amdkfd/enable"] = "0";
    files[folder + "/set_event"] = "";
    files[folder + "/per_cpu/cpu0/stats"] = "entries: 5\noverrun: 12\ndropped events: 3\n";
    files[folder + "/per_cpu/cpu1/stats"] = "entries: 5\noverrun: 0\ndropped events: 1\n";
    files[root_ + "/kprobe_events"];
  }

  int write(const std::string& path, std::string_view text, bool is_appended) override {
    writes.push_back(path + "=" + std::string(text));
    for (const auto& [end, error] : refused)
      if (path.ends_with(end)) return error;
    if (path.ends_with("/kprobe_events")) return write_probe(std::string(text), is_appended);
    if (!files.contains(path)) return ENOENT;
    std::string& file = files[path];
    if (path.ends_with("/buffer_size_kb") && std::stoi(std::string(text)) > max_buffer_kib) return ENOMEM;
    if (path.ends_with("/set_ftrace_filter")) {
      if (!is_appended) file.clear();
      if (text == ":mod:amdgpu") {
        if (has_module) file += "kfd_ioctl\nkfd_open\n";
      } else {
        file += text;
      }
      return 0;
    }
    if (path.ends_with("/set_event")) {
      file += std::string(text) + "\n";
      return 0;
    }
    if (path.ends_with("/events/amdkfd/enable")) {
      std::string& all = files[path.substr(0, path.rfind("/events/")) + "/set_event"];
      all = text == "1" ? "sched:sched_switch\namdkfd:a\namdkfd:b\n" : "sched:sched_switch\n";
      return 0;
    }
    file = text;
    return 0;
  }
  int read(const std::string& path, std::string& text) override {
    if (!files.contains(path)) return ENOENT;
    text = files[path];
    if (path.ends_with("/trace_clock"))
      text = text == "mono" ? "local global [mono] boot\n" : fmt::format("[{}] global mono boot\n", text);
    if (path.ends_with("/buffer_size_kb") && text == "7") text += " (expanded: 1408)\n";
    if (path.ends_with("/set_ftrace_filter") && text.empty()) text = "#### all functions enabled ####\n";
    return 0;
  }
  int make_folder(const std::string& path) override {
    if (!folders.insert(path).second) return EEXIST;
    fill(path);
    return 0;
  }
  int remove_folder(const std::string& path) override {
    if (is_folder_stuck) return EBUSY;
    if (folders.erase(path) == 0) return ENOENT;
    std::erase_if(files, [&](const auto& file) { return file.first.starts_with(path + "/"); });
    return 0;
  }
  // How often a file was written that ends so.
  long count(const std::string& end) const {
    return std::count_if(writes.begin(), writes.end(),
                         [&](const std::string& one) { return one.substr(0, one.find('=')).ends_with(end); });
  }

 private:
  int write_probe(const std::string& text, bool is_appended) {
    if (!is_appended) return EBUSY;  // would take everybody's probes away
    const std::string name = text.substr(2, text.find(' ') - 2);
    if (text[0] == '-') return probes_.erase(name) == 1 ? 0 : ENOENT;
    if (text.find("$arg") != std::string::npos && !can_fetch) return EINVAL;
    probes_.insert(name);
    const std::string group = name.substr(0, name.find('/'));
    for (const std::string& folder : folders) files[folder + "/events/" + group + "/enable"];
    files[root_ + "/events/" + group + "/enable"] = "0";
    return 0;
  }
  std::string root_;

 public:
  std::set<std::string> probes_;
  bool can_fetch = true;
};

CaptureRequest request() {
  CaptureRequest request;
  request.command = {"./a program", "it's", "$HOME"};
  request.folder = "/tmp/out dir";
  request.pid = 4711;
  request.roots.tracefs = "/t";
  return request;
}

CaptureFacts everything() {
  CaptureFacts facts;
  facts.is_root = facts.has_driver = facts.has_instances = facts.has_probes = facts.has_events = true;
  return facts;
}

const CapturePart* missing(const CapturePlan& plan, const std::string& name) {
  for (const CapturePart& part : plan.missing)
    if (part.name == name) return &part;
  return nullptr;
}

bool says(const std::vector<std::string>& notes, const std::string& part) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

TEST(CapturePlan, gives_the_program_a_log_for_queue_work) {
  const CapturePlan plan = plan_capture(request(), everything());
  const std::map<std::string, std::string> variables(plan.environment.begin(), plan.environment.end());
  EXPECT_EQ(variables.at("AMD_LOG_LEVEL"), "5");
  EXPECT_EQ(variables.at("AMD_LOG_MASK"), "0x21099b");
  EXPECT_EQ(variables.at("AMD_LOG_LEVEL_FILE"), "/tmp/out dir/log");
  // API, CMD, AQL, QUEUE, KERN, COPY, INIT, LOCATION, KERN2, and no other
  EXPECT_EQ(kQueueLogMask, 0x1U | 0x2U | 0x8U | 0x10U | 0x80U | 0x100U | 0x800U | 0x10000U | 0x200000U);
  EXPECT_TRUE(plan.missing.empty());
  EXPECT_EQ(plan.files.size(), 3U);
}

TEST(CapturePlan, traces_in_an_instance_of_its_own) {
  const CapturePlan plan = plan_capture(request(), everything());
  ASSERT_TRUE(plan.trace);
  EXPECT_EQ(plan.trace->folder, "/t/instances/weir-4711");
  for (const TraceStep& step : plan.trace->steps)
    EXPECT_TRUE(step.path.starts_with("/t/instances/weir-4711") || step.path == "/t/kprobe_events") << step.path;
  EXPECT_EQ(plan.trace->steps.front().action, TraceStep::Action::make_folder);
  EXPECT_EQ(plan.trace->steps.back().path, "/t/instances/weir-4711/tracing_on");
  EXPECT_EQ(plan.trace->steps.back().values, std::vector<std::string>{"1"});
}

TEST(CapturePlan, says_what_is_missing_why_and_what_helps) {
  CaptureFacts facts;
  facts.tracefs = facts.hqds = facts.mqds = facts.rls = EACCES;
  facts.sysfs = 0;
  facts.has_driver = true;
  facts.kmsg = EPERM;
  CapturePlan plan = plan_capture(request(), facts);
  EXPECT_FALSE(plan.trace);
  EXPECT_TRUE(plan.files.empty());
  for (const char* name : {"ftrace", "hqds", "mqds", "rls", "dmesg"}) {
    const CapturePart* part = missing(plan, name);
    ASSERT_NE(part, nullptr) << name;
    EXPECT_NE(part->reason.find(": "), std::string::npos) << part->reason;
    EXPECT_NE(part->hint.find("root"), std::string::npos) << part->hint;
  }
  EXPECT_NE(missing(plan, "hqds")->reason.find("/sys/kernel/debug/kfd/hqds: Permission denied"), std::string::npos);
  EXPECT_EQ(missing(plan, "sysfs"), nullptr);

  facts.is_root = true;
  plan = plan_capture(request(), facts);
  EXPECT_NE(missing(plan, "hqds")->hint.find("locked down"), std::string::npos) << "sudo would not help";

  facts = {};
  facts.is_root = true;
  facts.tracefs = facts.hqds = facts.mqds = facts.rls = facts.sysfs = ENOENT;
  plan = plan_capture(request(), facts);
  EXPECT_NE(missing(plan, "hqds")->hint.find("modprobe amdgpu"), std::string::npos);
  EXPECT_NE(missing(plan, "sysfs")->hint.find("modprobe amdgpu"), std::string::npos);
  facts.has_driver = true;
  plan = plan_capture(request(), facts);
  EXPECT_NE(missing(plan, "hqds")->hint.find("mount -t debugfs"), std::string::npos);
  EXPECT_NE(missing(plan, "ftrace")->hint.find("mount -t tracefs nodev /t"), std::string::npos);
}

TEST(CapturePlan, takes_the_top_instance_only_when_asked) {
  CaptureFacts facts = everything();
  facts.has_instances = false;
  CapturePlan plan = plan_capture(request(), facts);
  EXPECT_FALSE(plan.trace);
  EXPECT_NE(missing(plan, "ftrace")->hint.find("--top-instance"), std::string::npos);
  CaptureRequest top = request();
  top.uses_top_instance = true;
  plan = plan_capture(top, facts);
  ASSERT_TRUE(plan.trace);
  EXPECT_EQ(plan.trace->folder, "/t");
}

TEST(TraceSession, sets_all_up_in_order_and_leaves_nothing) {
  const CapturePlan plan = plan_capture(request(), everything());
  FakeTracefs kernel("/t");
  const auto before = kernel.files;
  {
    TraceSession session(*plan.trace, kernel);
    ASSERT_TRUE(session.arm()) << session.problem();
    const std::string folder = "/t/instances/weir-4711";
    EXPECT_EQ(session.clock(), "mono");
    EXPECT_EQ(session.method(), "function and events");
    EXPECT_EQ(kernel.files[folder + "/tracing_on"], "1");
    EXPECT_EQ(kernel.files[folder + "/trace_clock"], "mono");
    EXPECT_EQ(kernel.files[folder + "/buffer_size_kb"], "16384");
    EXPECT_EQ(kernel.files[folder + "/options/overwrite"], "0");
    EXPECT_EQ(kernel.files[folder + "/current_tracer"], "function");
    EXPECT_EQ(kernel.files["/t/trace_clock"], "local");
    EXPECT_TRUE(kernel.probes_.empty()) << "functions are traced already";
    EXPECT_TRUE(session.notes().empty()) << session.notes()[0];
    session.stop();
    EXPECT_EQ(kernel.files[folder + "/tracing_on"], "0");
    EXPECT_EQ(session.lost_events(), 16U);
    session.close();
    EXPECT_TRUE(session.left_behind().empty());
  }
  EXPECT_EQ(kernel.files, before);
  EXPECT_TRUE(kernel.folders.empty());
}

TEST(TraceSession, takes_a_smaller_buffer_where_memory_is_short) {
  const CapturePlan plan = plan_capture(request(), everything());
  for (const auto& [most, expected, tries] : {std::tuple(20000, "16384", 1), std::tuple(9000, "8192", 2),
                                              std::tuple(2048, "2048", 4), std::tuple(1500, "1024", 5)}) {
    FakeTracefs kernel("/t");
    kernel.max_buffer_kib = most;
    TraceSession session(*plan.trace, kernel);
    ASSERT_TRUE(session.arm());
    EXPECT_EQ(kernel.files["/t/instances/weir-4711/buffer_size_kb"], expected);
    EXPECT_EQ(kernel.count("/buffer_size_kb"), tries);
    EXPECT_EQ(says(session.notes(), "KiB per CPU"), tries > 1);
  }
  FakeTracefs kernel("/t");
  kernel.max_buffer_kib = 0;
  TraceSession session(*plan.trace, kernel);
  EXPECT_TRUE(session.arm()) << "the default buffer is better than none";
  EXPECT_EQ(kernel.count("/buffer_size_kb"), 5);
  EXPECT_TRUE(says(session.notes(), "Cannot allocate memory"));
}

TEST(TraceSession, probes_where_functions_may_not_be_traced) {
  const CapturePlan plan = plan_capture(request(), everything());
  for (const bool can_fetch : {true, false}) {
    for (const char* end : {"/current_tracer", "/set_ftrace_filter"}) {
      FakeTracefs kernel("/t");
      kernel.can_fetch = can_fetch;
      kernel.refused[end] = EPERM;
      TraceSession session(*plan.trace, kernel);
      ASSERT_TRUE(session.arm()) << session.problem();
      EXPECT_TRUE(kernel.probes_.contains("weir_4711/kfd_ioctl_create_queue"));
      EXPECT_TRUE(kernel.probes_.contains("weir_4711/kfd_ioctl_create_queue_ret"));
      EXPECT_TRUE(says(kernel.writes, "r:weir_4711/pqm_create_queue_ret amdgpu:pqm_create_queue ret=$retval:s32"));
      for (const char* no_status : {"allocate_mqd", "init_mqd", "init_mqd_v9_4_3"}) {
        EXPECT_TRUE(says(kernel.writes, fmt::format("_ret amdgpu:{}", no_status)));
        EXPECT_FALSE(says(kernel.writes, fmt::format("_ret amdgpu:{} ret", no_status))) << "no status to be read there";
      }
      EXPECT_EQ(kernel.files["/t/instances/weir-4711/events/weir_4711/enable"], "1");
      EXPECT_TRUE(says(session.notes(), end)) << "the reason names the file";
      EXPECT_TRUE(session.method().ends_with("probes and events")) << session.method();
      session.close();
      EXPECT_TRUE(kernel.probes_.empty()) << "probes are the whole kernel's";
      EXPECT_TRUE(kernel.folders.empty());
      EXPECT_TRUE(session.left_behind().empty()) << session.left_behind()[0];
    }
  }
}

TEST(TraceSession, never_traces_the_whole_kernel) {
  const CapturePlan plan = plan_capture(request(), everything());
  FakeTracefs kernel("/t");
  kernel.has_module = false;  // the filter takes nothing, and nothing means everything
  TraceSession session(*plan.trace, kernel);
  ASSERT_TRUE(session.arm());
  EXPECT_EQ(kernel.files["/t/instances/weir-4711/current_tracer"], "nop");
}

TEST(TraceSession, has_what_tracefs_says_of_the_clock) {
  const CapturePlan plan = plan_capture(request(), everything());
  FakeTracefs kernel("/t");
  kernel.refused["/trace_clock"] = EINVAL;
  TraceSession session(*plan.trace, kernel);
  ASSERT_TRUE(session.arm());
  EXPECT_EQ(session.clock(), "local");
  EXPECT_TRUE(says(session.notes(), "trace_clock"));
}

TEST(TraceSession, asks_for_a_graph_and_takes_functions) {
  CaptureRequest graph = request();
  graph.wants_graph = true;
  const CapturePlan plan = plan_capture(graph, everything());
  FakeTracefs kernel("/t");
  TraceSession session(*plan.trace, kernel);
  ASSERT_TRUE(session.arm());
  EXPECT_EQ(session.method(), "function_graph and events");
  EXPECT_EQ(kernel.files["/t/instances/weir-4711/options/funcgraph-abstime"], "1");
}

TEST(TraceSession, undoes_everything_where_nothing_can_be_traced) {
  CaptureFacts facts = everything();
  facts.has_events = false;
  const CapturePlan plan = plan_capture(request(), facts);
  FakeTracefs kernel("/t");
  const auto before = kernel.files;
  kernel.refused["/set_ftrace_filter"] = EPERM;
  kernel.refused["/kprobe_events"] = ENODEV;
  TraceSession session(*plan.trace, kernel);
  EXPECT_FALSE(session.arm());
  EXPECT_NE(session.problem().find("set_ftrace_filter: Operation not permitted"), std::string::npos);
  EXPECT_NE(session.problem().find("kprobe_events"), std::string::npos);
  EXPECT_FALSE(session.hint().empty());
  EXPECT_TRUE(session.method().empty());
  EXPECT_EQ(kernel.files, before);
  EXPECT_TRUE(kernel.folders.empty());
}

TEST(TraceSession, names_an_instance_that_is_left_from_before) {
  const CapturePlan plan = plan_capture(request(), everything());
  FakeTracefs kernel("/t");
  kernel.folders.insert("/t/instances/weir-4711");
  {
    TraceSession session(*plan.trace, kernel);
    EXPECT_FALSE(session.arm());
    EXPECT_NE(session.hint().find("rmdir /t/instances/weir-4711"), std::string::npos);
  }
  EXPECT_EQ(kernel.folders.size(), 1U) << "it is not ours to remove";
}

TEST(TraceSession, says_what_it_could_not_put_back) {
  const CapturePlan plan = plan_capture(request(), everything());
  FakeTracefs kernel("/t");
  kernel.is_folder_stuck = true;
  TraceSession session(*plan.trace, kernel);
  ASSERT_TRUE(session.arm());
  session.close();
  ASSERT_EQ(session.left_behind().size(), 1U);
  EXPECT_NE(session.left_behind()[0].find("/t/instances/weir-4711"), std::string::npos);
  EXPECT_EQ(kernel.files["/t/instances/weir-4711/tracing_on"], "0");
}

// Every setting of somebody else's tracing, as odd as it may be.
TEST(TraceSession, puts_the_top_instance_back_as_it_was) {
  CaptureRequest top = request();
  top.uses_top_instance = true;
  top.wants_graph = true;
  const CapturePlan plan = plan_capture(top, everything());
  for (const bool is_refused : {false, true}) {
    FakeTracefs kernel("/t");
    kernel.files["/t/tracing_on"] = "0";
    kernel.files["/t/trace_clock"] = "boot";
    kernel.files["/t/buffer_size_kb"] = "7";
    kernel.files["/t/current_tracer"] = "blk";
    kernel.files["/t/options/overwrite"] = "1";
    kernel.files["/t/set_event"] = "sched:sched_switch\namdkfd:b\n";
    for (int i = 0; i < 1000; ++i) kernel.files["/t/set_ftrace_filter"] += fmt::format("some_function_{}\n", i);
    if (is_refused) kernel.refused["/current_tracer"] = EPERM;
    auto before = kernel.files;
    TraceSession session(*plan.trace, kernel);
    ASSERT_TRUE(session.arm()) << session.problem();
    EXPECT_EQ(kernel.files["/t/trace_clock"], "mono");
    EXPECT_NE(kernel.files["/t/set_ftrace_filter"], before["/t/set_ftrace_filter"]);
    EXPECT_EQ(kernel.files["/t/trace"], "") << "what was there is not ours to keep";
    kernel.writes.clear();
    session.close();
    EXPECT_EQ(std::count(kernel.writes.begin(), kernel.writes.end(), "/t/set_ftrace_filter="), 0)
        << "an empty filter lets the whole kernel through";
    before["/t/trace"] = "";
    before["/t/buffer_size_kb"] = "1408";  // as its first use would have made it
    std::erase_if(kernel.files, [](const auto& file) { return file.first.find("/weir_") != std::string::npos; });
    for (const auto& [path, text] : before) EXPECT_EQ(kernel.files[path], text) << path;
    EXPECT_TRUE(kernel.probes_.empty());
    EXPECT_TRUE(session.left_behind().empty()) << session.left_behind()[0];
  }
}

TEST(TraceSession, leaves_a_setting_alone_that_it_could_not_put_back) {
  CaptureRequest top = request();
  top.uses_top_instance = true;
  const CapturePlan plan = plan_capture(top, everything());
  FakeTracefs kernel("/t");
  kernel.files["/t/buffer_size_kb"] = "X";  // each CPU has its own
  TraceSession session(*plan.trace, kernel);
  ASSERT_TRUE(session.arm());
  EXPECT_EQ(kernel.count("/buffer_size_kb"), 0);
}

TEST(TraceSession, reads_the_chosen_word) {
  EXPECT_EQ(chosen_word("local global [mono] boot\n"), "mono");
  EXPECT_EQ(chosen_word("mono\n"), "mono");
  EXPECT_EQ(chosen_word("local global\n"), "");
  EXPECT_EQ(chosen_word(""), "");
}

TEST(CaptureScript, is_a_script_that_a_shell_can_read) {
  for (const bool uses_top : {false, true}) {
    CaptureRequest wanted = request();
    wanted.uses_top_instance = uses_top;
    wanted.wants_graph = uses_top;
    const std::string script = capture_script(wanted, plan_capture(wanted, everything()));
    EXPECT_NE(script.find("'./a program' 'it'\\''s' '$HOME'"), std::string::npos) << script;
    EXPECT_NE(script.find("echo mono > "), std::string::npos);
    EXPECT_NE(script.find("16384 8192 4096 2048 1024"), std::string::npos);
    EXPECT_EQ(script.find("rmdir") == std::string::npos, uses_top);
    EXPECT_EQ(script.find("old_trace_clock") == std::string::npos, !uses_top);
    std::string name = (std::filesystem::temp_directory_path() / "weir_script_XXXXXX").string();
    const int file = ::mkstemp(name.data());
    ASSERT_GE(file, 0);
    std::ofstream(name) << script;
    EXPECT_EQ(std::system(("bash -n " + name).c_str()), 0) << script;
    std::filesystem::remove(name);
  }
}

// Each file that the session writes stands in the script as well.
TEST(CaptureScript, leaves_no_control_character_to_the_terminal) {
  CaptureRequest wanted = request();
  wanted.command = {"printf", "%s", "a\x1b[31m'\\b\n"};
  const std::string script = capture_script(wanted, plan_capture(wanted, everything()));
  EXPECT_EQ(script.find('\x1b'), std::string::npos);
  EXPECT_NE(script.find("printf %s $'a\\x1b[31m\\x27\\x5cb\\x0a'\n"), std::string::npos) << script;
}

TEST(CaptureScript, keeps_each_setting_in_a_variable_of_its_own) {
  CaptureRequest wanted = request();
  wanted.uses_top_instance = true;
  const std::string script = capture_script(wanted, plan_capture(wanted, everything()));
  std::map<std::string, int> saved;
  for (std::size_t at = 0; (at = script.find("\nold_", at)) != std::string::npos; ++at)
    ++saved[script.substr(at + 1, script.find('=', at) - at - 1)];
  EXPECT_GE(saved.size(), 8U);
  for (const auto& [name, count] : saved) EXPECT_EQ(count, 1) << name;
}

TEST(CaptureScript, has_every_step_of_the_plan) {
  const CapturePlan plan = plan_capture(request(), everything());
  const std::string script = capture_script(request(), plan);
  for (const TraceStep& step : plan.trace->steps) {
    EXPECT_NE(script.find(step.path), std::string::npos) << step.path;
    for (const std::string& value : step.values) EXPECT_NE(script.find(value), std::string::npos) << value;
  }
}

}  // namespace
}  // namespace weir::amd
