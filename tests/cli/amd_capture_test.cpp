// Drives `weir amd capture` against a kernel of plain files: what is captured, what is said about the rest, and what is
// left of it when programs fail, are killed or are interrupted.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "amd/capture/manifest.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

// A machine with an AMD GPU, as files. Its tracefs has the top instance alone: folders do not fill themselves here.
class Machine {
 public:
  explicit Machine(bool has_gpu = true) {
    put_file(root() / "kmsg", "6,1,100,-;amdgpu of an earlier time\n");
    if (!has_gpu) return;
    for (const char* name : {"hqds", "mqds", "rls"}) put_file(root() / "debug/kfd" / name, "Node 2, gpu_id f7bc:\n");
    const fs::path kfd = root() / "sys/class/kfd/kfd";
    put_file(kfd / "topology/system_properties", "platform_oem 1\n");
    put_file(kfd / "topology/nodes/2/gpu_id", "63420\n");
    put_file(kfd / "topology/nodes/2/caches/0/size", "not wanted\n");
    put_file(kfd / "proc/4711/queues/0/size", "1048576\n");
    put_file(kfd / "proc/4711/pasid", "32788\n");
    put_file(root() / "sys/module/amdgpu/parameters/num_kcq", "8\n");
    put_file(root() / "secret", "of root\n");
    fs::create_symlink(root() / "secret", kfd / "proc/4711/link");
    const std::map<std::string, std::string> settings = {
        {"tracing_on", "1"},
        {"trace_clock", "[local] mono"},
        {"buffer_size_kb", "1408"},
        {"options/overwrite", "1"},
        {"options/record-tgid", "0"},
        {"events/sched/sched_process_exec/enable", "0"},
        {"trace", "what somebody traced"},
        {"set_ftrace_filter", "vfs_read\nvfs_write"},
        {"current_tracer", "nop"},
    };
    for (const auto& [name, text] : settings) put_file(root() / "tracing" / name, text + "\n");
  }

  fs::path root() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return folder_ / name; }

  std::vector<std::string> words(const std::vector<std::string>& flags, const std::vector<std::string>& program) const {
    std::vector<std::string> all = {"amd",           "capture", "--tracefs",   *this / "tracing", "--debugfs",
                                    *this / "debug", "--sysfs", *this / "sys", "--kmsg",          *this / "kmsg"};
    if (std::find(flags.begin(), flags.end(), "-o") == flags.end()) all.insert(all.end(), {"-o", *this / "out"});
    all.insert(all.end(), flags.begin(), flags.end());
    all.push_back("--");
    all.insert(all.end(), program.begin(), program.end());
    return all;
  }
  Outcome capture(const std::vector<std::string>& flags, const std::vector<std::string>& program) const {
    return weir(words(flags, program), root());
  }
  amd::CaptureManifest manifest() const { return amd::load_manifest(root() / "out"); }
  // Captures what runs already.
  Outcome watch(std::vector<std::string> flags) const {
    std::vector<std::string> all = words({}, {});
    all.pop_back();
    all.insert(all.end(), {"--root", root().string(), "--no-ftrace"});
    all.insert(all.end(), flags.begin(), flags.end());
    return weir(all, root());
  }
  // A process of files: alive as long as they are there. The host's number, and the container's.
  void add_process(int pid, int inner, const std::string& cgroup, const std::string& environment = "") const {
    const fs::path proc = root() / "proc" / std::to_string(pid);
    put_file(proc / "stat", fmt::format("{} (python3) S 1 1 1 0 -1 0 0 0 0 0 10 5 0 0 20 0 1 0 {}", pid, 100 + pid));
    put_file(proc / "status", fmt::format("Name:\tpython3\nNSpid:\t{}\t{}\nThreads:\t1\n", pid, inner));
    put_file(proc / "comm", "python3\n");
    put_file(proc / "cmdline", std::string("python3\0serve.py\0--token=hush\0", 31));
    put_file(proc / "cgroup", "0::" + cgroup + "\n");
    put_file(proc / "environ", environment);
    put_file(proc / "task" / std::to_string(pid) / "children", "");
    fs::create_directories(proc / "root");
  }
  // What tracefs says, but for the buffer.
  std::map<std::string, std::string> settings() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(root() / "tracing"))
      if (entry.is_regular_file() && entry.path().filename() != "trace")
        all[entry.path().string()] = content(entry.path());
    return all;
  }

 private:
  Folder folder_;
};

const amd::CapturePart& part(const amd::CaptureManifest& manifest, const std::string& name) {
  for (const amd::CapturePart& one : manifest.parts)
    if (one.name == name) return one;
  throw std::runtime_error("no part " + name);
}

TEST(AmdCapture, writes_one_folder_with_all_that_there_is) {
  const Machine machine;
  const Outcome outcome = machine.capture(
      {"--no-ftrace", "--interval", "50ms", "--snapshots", "2"},
      {"bash", "-c",
       fmt::format(
           "echo to stdout; echo ':3: a log' > \"$AMD_LOG_LEVEL_FILE\"; echo ':3: b' > "
           "\"${{AMD_LOG_LEVEL_FILE}}_$$\"; echo '6,2,177770879589,-;amdgpu 0000:05:00.0: ring timeout' >> {0}; "
           "echo '6,3,177770879590,-;something else' >> {0}; sleep 0.4",
           machine / "kmsg")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "to stdout\n") << "standard output is the program's";
  const fs::path out = machine.root() / "out";
  struct stat facts{};
  ASSERT_EQ(::stat(out.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700U);
  const amd::CaptureManifest manifest = machine.manifest();
  EXPECT_EQ(manifest.exit_code, 0);
  EXPECT_EQ(part(manifest, "log").files.size(), 2U);
  EXPECT_EQ(part(manifest, "log").files[0], "log");
  EXPECT_EQ(part(manifest, "ftrace").reason, "left out by --no-ftrace");
  EXPECT_EQ(manifest.trace_clock, "");
  EXPECT_EQ(content(out / "dmesg.txt"), "[177770.879589] amdgpu 0000:05:00.0: ring timeout\n");
  ASSERT_EQ(manifest.snapshots.size(), 4U);
  const std::vector<std::string> when = {"before", "during-01", "during-02", "after"};
  for (std::size_t i = 0; i < when.size(); ++i) {
    EXPECT_EQ(manifest.snapshots[i].when, when[i]);
    EXPECT_EQ(manifest.snapshots[i].folder, "snapshots/" + when[i]);
    const fs::path folder = out / manifest.snapshots[i].folder;
    EXPECT_EQ(content(folder / "hqds"), "Node 2, gpu_id f7bc:\n");
    EXPECT_EQ(content(folder / "rls"), "Node 2, gpu_id f7bc:\n");
    EXPECT_EQ(content(folder / "sysfs/class/kfd/kfd/proc/4711/queues/0/size"), "1048576\n");
    EXPECT_EQ(content(folder / "sysfs/class/kfd/kfd/topology/nodes/2/gpu_id"), "63420\n");
    EXPECT_EQ(content(folder / "sysfs/module/amdgpu/parameters/num_kcq"), "8\n");
    EXPECT_FALSE(fs::exists(folder / "sysfs/class/kfd/kfd/proc/4711/link")) << "links are not followed";
    EXPECT_FALSE(fs::exists(folder / "sysfs/class/kfd/kfd/topology/nodes/2/caches"));
  }
  EXPECT_LE(manifest.snapshots[0].taken_ns, manifest.started_ns);
  EXPECT_GE(manifest.snapshots[3].taken_ns, manifest.ended_ns);
  expect_valid_as((out / "manifest.json").string(), "weir.amd_capture.1.json");
  for (const char* word : {"Captured", "hqds", "Missing", "ftrace", "weir amd join", "weir amd log", "weir amd hqd"})
    EXPECT_TRUE(has(outcome.err, word)) << word << "\n" << outcome.err;
}

TEST(AmdCapture, knows_the_processes_of_the_program) {
  const Machine machine;
  const Outcome outcome =
      machine.capture({"--no-ftrace", "--quiet"}, {"bash", "-c", "bash -c 'sleep 0.5; true' & wait; exit 0"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  std::map<std::string, int> names;
  for (const amd::CapturedProcess& process : machine.manifest().processes) {
    ++names[process.name];
    EXPECT_GE(process.pids.size(), 1U);
  }
  EXPECT_EQ(names["bash"], 2);
  EXPECT_EQ(names["sleep"], 1);
}

TEST(AmdCapture, says_what_is_missing_and_runs_the_program_all_the_same) {
  const Machine machine(false);
  fs::remove(machine.root() / "kmsg");
  const Outcome outcome = machine.capture({}, {"sh", "-c", "echo ran; exit 3"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "ran\n");
  const amd::CaptureManifest manifest = machine.manifest();
  EXPECT_EQ(manifest.exit_code, 3);
  EXPECT_TRUE(manifest.snapshots.empty());
  for (const amd::CapturePart& one : manifest.parts) {
    EXPECT_TRUE(one.files.empty()) << one.name;
    EXPECT_NE(one.reason, "") << one.name;
    if (one.name == "hqds") {
      EXPECT_TRUE(has(one.reason, machine / "debug/kfd/hqds")) << one.reason;
      EXPECT_TRUE(has(one.hint, "modprobe amdgpu")) << one.hint;
    }
  }
  EXPECT_TRUE(has(outcome.err, "Nothing about queues could be captured")) << outcome.err;
}

TEST(AmdCapture, takes_the_top_instance_when_asked_and_puts_it_back) {
  const Machine machine;
  const auto before = machine.settings();
  const std::string t = machine / "tracing";
  const Outcome outcome = machine.capture(
      {"--top-instance"}, {"bash", "-c",
                           fmt::format("cat {0}/tracing_on {0}/trace_clock {0}/current_tracer {0}/set_ftrace_filter "
                                       "{0}/buffer_size_kb; echo 'traced' >> {0}/trace; exit 5",
                                       t)});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(outcome.out, "1\nmono\nfunction\n:mod:amdgpu\n16384\n");
  EXPECT_EQ(content(machine.root() / "out/ftrace.txt"), "traced\n") << "what was there before is not ours";
  const amd::CaptureManifest manifest = machine.manifest();
  EXPECT_EQ(manifest.trace_clock, "mono");
  EXPECT_EQ(part(manifest, "ftrace").files, std::vector<std::string>{"ftrace.txt"});
  // A plain file keeps the word that was chosen, not the list around it.
  auto expected = before;
  expected[t + "/trace_clock"] = "local\n";
  EXPECT_EQ(machine.settings(), expected);
}

TEST(AmdCapture, puts_tracing_back_when_the_program_is_killed) {
  const Machine machine;
  const auto before = machine.settings();
  const Outcome outcome = machine.capture({"--top-instance"}, {"sh", "-c", "kill -SEGV $$"});
  EXPECT_EQ(outcome.code, 128 + SIGSEGV);
  EXPECT_EQ(machine.manifest().exit_code, 128 + SIGSEGV);
  auto expected = before;
  expected[machine / "tracing/trace_clock"] = "local\n";
  EXPECT_EQ(machine.settings(), expected);
  EXPECT_TRUE(has(outcome.err, "signal 11")) << outcome.err;
}

TEST(AmdCapture, is_interrupted_with_its_program_and_leaves_all_in_order) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Machine machine;
    const auto before = machine.settings();
    const pid_t process = start_weir(
        machine.words({"--top-instance"}, {"sh", "-c", fmt::format("touch {}; exec sleep 60", machine / "started")}),
        machine.root());
    for (int i = 0; i < 60'000 && !fs::exists(machine.root() / "started"); ++i) ::usleep(1000);
    ::kill(process, signal);
    EXPECT_EQ(wait_for(process), 128 + signal) << "the program's end is ours";
    EXPECT_EQ(machine.manifest().exit_code, 128 + signal);
    EXPECT_EQ(machine.manifest().snapshots.back().when, "after");
    auto expected = before;
    expected[machine / "tracing/trace_clock"] = "local\n";
    EXPECT_EQ(machine.settings(), expected);
  }
}

TEST(AmdCapture, makes_nothing_for_a_program_that_is_not_there) {
  const Machine machine;
  const auto before = machine.settings();
  for (const char* name : {"./nowhere", "no_such_program_anywhere", "/tmp"}) {
    const Outcome outcome = machine.capture({"--top-instance"}, {name});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(has(outcome.err, std::string(name) + ": no such program")) << outcome.err;
  }
  EXPECT_EQ(weir({"amd", "capture"}).code, 2);
  EXPECT_EQ(weir({"amd", "capture", "--"}).code, 2);
  EXPECT_FALSE(fs::exists(machine.root() / "out"));
  EXPECT_EQ(machine.settings(), before);
}

TEST(AmdCapture, puts_tracing_back_for_a_program_that_cannot_be_executed) {
  const Machine machine;
  const auto before = machine.settings();
  put_file(machine.root() / "script", "#!/no/such/interpreter\n");
  fs::permissions(machine.root() / "script", fs::perms::owner_all);
  const Outcome outcome = machine.capture({"--top-instance"}, {machine / "script"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "cannot be executed")) << outcome.err;
  EXPECT_FALSE(machine.manifest().exit_code) << "it never ran";
  auto expected = before;
  expected[machine / "tracing/trace_clock"] = "local\n";
  EXPECT_EQ(machine.settings(), expected);
}

TEST(AmdCapture, refuses_a_folder_that_is_not_empty) {
  const Machine machine;
  put_file(machine.root() / "out/mine", "precious");
  Outcome outcome = machine.capture({}, {"true"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "is not empty")) << outcome.err;
  outcome = machine.capture({"--force"}, {"true"});
  EXPECT_EQ(outcome.code, 2) << "--force replaces captures only";
  EXPECT_EQ(content(machine.root() / "out/mine"), "precious");
}

// The capture folders of a machine whose name begins so.
std::vector<fs::path> captures_of(const Machine& machine, const std::string& stem) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(machine.root()))
    if (entry.path().filename().string().starts_with(stem) && entry.path().extension() == ".capture")
      found.push_back(entry.path());
  return found;
}

TEST(AmdCapture, names_the_folder_by_program_and_time_where_none_was_named) {
  const Machine machine;
  std::vector<std::string> words = machine.words({"--no-ftrace"}, {"true"});
  const auto flag = std::find(words.begin(), words.end(), "-o");
  words.erase(flag, flag + 2);
  for (std::size_t count = 1; count <= 2; ++count) {
    const Outcome outcome = weir(words, machine.root());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto found = captures_of(machine, "true-");
    ASSERT_EQ(found.size(), count) << "an earlier one stays, also of the same second";
    for (const fs::path& one : found) {
      // true-20260131-120000.capture, true-20260131-120000-2.capture
      const std::string name = one.filename().string();
      EXPECT_TRUE(name.size() >= 28 && name[13] == '-' && std::isdigit(name[5]) && std::isdigit(name[19])) << name;
      EXPECT_TRUE(fs::exists(one / "manifest.json"));
    }
  }
}

TEST(AmdCapture, replaces_a_capture_by_force_and_follows_no_link) {
  const Machine machine;
  ASSERT_EQ(machine.capture({"--no-ftrace"}, {"sh", "-c", "echo one > $AMD_LOG_LEVEL_FILE"}).code, 0);
  EXPECT_EQ(machine.capture({"--no-ftrace"}, {"true"}).code, 2) << "without --force it stays";
  const fs::path out = machine.root() / "out";
  put_file(machine.root() / "victim/keep", "untouched");
  put_file(out / "mine", "stays");
  for (const char* name : {"log_7", "ftrace.txt", "manifest.json.1.tmp"})
    fs::create_symlink(machine.root() / "victim/keep", out / name);
  fs::remove_all(out / "snapshots");
  fs::create_directory_symlink(machine.root() / "victim", out / "snapshots");
  const Outcome outcome = machine.capture({"--no-ftrace", "--force"}, {"sh", "-c", "echo two > $AMD_LOG_LEVEL_FILE"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(content(machine.root() / "victim/keep"), "untouched");
  EXPECT_EQ(std::distance(fs::directory_iterator(machine.root() / "victim"), fs::directory_iterator()), 1);
  EXPECT_EQ(content(out / "log"), "two\n");
  EXPECT_EQ(content(out / "mine"), "stays");
  EXPECT_FALSE(fs::is_symlink(out / "snapshots"));
  EXPECT_EQ(part(machine.manifest(), "log").files, std::vector<std::string>{"log"});
}

// The program, or anybody else who may write there meanwhile.
TEST(AmdCapture, writes_through_no_link_that_is_planted_while_it_runs) {
  const Machine machine;
  put_file(machine.root() / "victim", "untouched");
  const Outcome outcome = machine.capture(
      {"--top-instance", "--snapshots", "0"},
      {"bash", "-c",
       fmt::format("cd {0}/out; for f in ftrace.txt dmesg.txt log_1 manifest.json; do ln -sf {0}/victim $f; "
                   "done; rm -r snapshots; ln -s {0} snapshots",
                   machine.root().string())});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(content(machine.root() / "victim"), "untouched");
  EXPECT_FALSE(fs::exists(machine.root() / "after"));
  EXPECT_FALSE(fs::is_symlink(machine.root() / "out/manifest.json"));
  const Json manifest = read_json(machine.root() / "out/manifest.json");
  std::map<std::string, Json> parts;
  for (const Json& one : manifest["parts"]) parts[one["name"].string()] = one;
  EXPECT_TRUE(parts["ftrace"]["files"].empty());
  EXPECT_TRUE(has(parts["ftrace"]["reason"].string(), "ftrace.txt: File exists")) << parts["ftrace"];
  EXPECT_TRUE(has(parts["dmesg"]["reason"].string(), "dmesg.txt: File exists")) << parts["dmesg"];
  EXPECT_TRUE(parts["log"]["files"].empty()) << "a link is nobody's log";
}

// The program writes the log by a name, and whoever owns the folder above may put another folder there meanwhile.
TEST(AmdCapture, gives_the_program_a_name_for_its_log_that_nobody_can_lead_elsewhere) {
  const Machine machine;
  put_file(machine.root() / "victim", "untouched");
  fs::create_directory(machine.root() / "open");
  fs::permissions(machine.root() / "open", fs::perms::all);
  const Outcome outcome = machine.capture(
      {"-o", machine / "open/out", "--no-ftrace"},
      {"bash", "-c",
       fmt::format("cd {0}/open; mv out moved; mkdir out; ln -s {0}/victim out/log; echo x > \"$AMD_LOG_LEVEL_FILE\"",
                   machine.root().string())});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(content(machine.root() / "victim"), "untouched");
  EXPECT_EQ(content(machine.root() / "open/moved/log"), "x\n");
  EXPECT_EQ(part(amd::load_manifest(machine.root() / "open/moved"), "log").files, std::vector<std::string>{"log"});
}

TEST(AmdCapture, says_that_there_is_no_snapshot_of_a_short_program) {
  const Machine machine;
  EXPECT_EQ(machine.capture({"--no-ftrace", "--interval", "60s"}, {"true"}).code, 0);
  EXPECT_TRUE(has(part(machine.manifest(), "hqds").reason, "no snapshot while the program ran"));
  EXPECT_TRUE(has(part(machine.manifest(), "hqds").hint, "--interval"));
}

TEST(AmdCapture, puts_tracing_back_where_files_may_not_grow) {
  const Machine machine;
  put_file(machine.root() / "debug/kfd/hqds", std::string(200'000, 'x'));
  auto expected = machine.settings();
  expected[machine / "tracing/trace_clock"] = "local\n";
  std::vector<std::string> words = {"bash", "-c", "ulimit -f 32; exec \"$@\"", "bash", WEIR_BINARY};
  for (const std::string& word : machine.words({"--top-instance"}, {"true"})) words.push_back(word);
  const Outcome outcome = run_program(words, machine.root());
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(machine.settings(), expected);
  EXPECT_TRUE(has(part(machine.manifest(), "hqds").reason, "File too large"));
}

TEST(AmdCapture, refuses_folders_that_others_could_lead_elsewhere) {
  const Machine machine;
  fs::create_directory(machine.root() / "real");
  fs::create_directory_symlink(machine.root() / "real", machine.root() / "out");
  for (const char* end : {"", "/"}) {
    const Outcome outcome = machine.capture({"-o", machine / (std::string("out") + end)}, {"true"});
    EXPECT_EQ(outcome.code, 2) << end;
    EXPECT_TRUE(has(outcome.err, "is a file or a link")) << outcome.err;
  }
  fs::remove(machine.root() / "out");
  put_file(machine.root() / "out", "a file");
  EXPECT_TRUE(has(machine.capture({}, {"true"}).err, "not a folder"));
  fs::remove(machine.root() / "out");
  fs::create_directory(machine.root() / "out");
  fs::permissions(machine.root() / "out", fs::perms::all);
  EXPECT_TRUE(has(machine.capture({}, {"true"}).err, "others may write to it"));
}

TEST(AmdCapture, prints_what_it_would_do_and_does_nothing) {
  const Machine machine;
  const auto before = machine.settings();
  const Outcome outcome = machine.capture({"--dry-run", "--top-instance"}, {"sh", "-c", "echo never"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(fs::exists(machine.root() / "out"));
  EXPECT_EQ(machine.settings(), before);
  EXPECT_TRUE(has(outcome.out, "AMD_LOG_LEVEL=5"));
  EXPECT_FALSE(has(outcome.out, "never\n"));
  // What it prints does the same by hand.
  put_file(machine.root() / "by_hand.sh", outcome.out);
  const Outcome by_hand = run_program({"bash", machine / "by_hand.sh"}, machine.root());
  EXPECT_TRUE(has(by_hand.out, "never\n")) << by_hand.out << by_hand.err;
  EXPECT_EQ(content(machine.root() / "out/snapshots/after/hqds"), "Node 2, gpu_id f7bc:\n");
  EXPECT_EQ(content(machine.root() / "out/snapshots/before/sysfs/module/amdgpu/parameters/num_kcq"), "8\n");
  EXPECT_TRUE(fs::exists(machine.root() / "out/ftrace.txt"));
  auto expected = before;
  expected[machine / "tracing/trace_clock"] = "local\n";
  EXPECT_EQ(machine.settings(), expected);
  EXPECT_NE(run_program({"bash", machine / "by_hand.sh"}, machine.root()).code, 0) << "the folder is there already";
  EXPECT_EQ(by_hand.code, 0) << by_hand.err;
}

TEST(AmdCapture, prints_a_script_that_puts_tracing_back_however_it_ends) {
  const Machine machine;
  auto expected = machine.settings();
  expected[machine / "tracing/trace_clock"] = "local\n";
  const std::string t = machine / "tracing";
  const Outcome printed = machine.capture(
      {"--dry-run", "--top-instance"},
      {"sh", "-c", fmt::format("cp {0}/tracing_on {1}; kill -TERM $PPID; sleep 0.3", t, machine / "was_on")});
  put_file(machine.root() / "by_hand.sh", printed.out);
  EXPECT_NE(run_program({"bash", machine / "by_hand.sh"}, machine.root()).code, 0);
  EXPECT_EQ(content(machine.root() / "was_on"), "1\n");
  EXPECT_EQ(machine.settings(), expected);
}

TEST(AmdCapture, rejects_values_that_make_no_sense) {
  const Machine machine;
  for (const auto& [flag, value] :
       {std::pair("--log-level", "6"), std::pair("--log-level", "x"), std::pair("--log-mask", "0xzz"),
        std::pair("--log-mask", "-1"), std::pair("--log-mask", "0x1ffffffff"), std::pair("--interval", "0s"),
        std::pair("--interval", "nan"), std::pair("--snapshots", "-1"), std::pair("--buffer", "0M"),
        std::pair("--keep", "all"), std::pair("--format", "html"), std::pair("--log-size", "0M")}) {
    const Outcome outcome = machine.capture({fmt::format("{}={}", flag, value)}, {"true"});
    EXPECT_EQ(outcome.code, 2) << flag << ' ' << value;
    EXPECT_TRUE(has(outcome.err, flag)) << outcome.err;
  }
  EXPECT_FALSE(fs::exists(machine.root() / "out"));
}

TEST(AmdCapture, prints_the_manifest_as_json_and_the_summary_within_80_columns) {
  const Machine machine;
  Outcome outcome = machine.capture({"--json", "--no-ftrace"}, {"true"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, content(machine.root() / "out/manifest.json"));
  outcome = machine.capture({"--force", "--format", "markdown"}, {"true"});
  EXPECT_TRUE(has(outcome.err, "## Captured")) << outcome.err;
}

const std::string kId = "4f1c9a6e02b7d3584f1c9a6e02b7d3584f1c9a6e02b7d3584f1c9a6e02b7d358";
// What kfd_smi_events writes: hexadecimal event, ns, process, GPU, and why.
TEST(AmdCapture, keeps_what_the_driver_says_of_evictions) {
  const Machine machine;
  put_file(machine.root() / "smi/f7bc", "");
  const Outcome outcome = machine.capture(
      {"--no-ftrace", "--smi", machine / "smi"},
      {"bash", "-c",
       fmt::format(
           "echo '9 1000000 -4711 f7bc 2' >> {0}; echo 'a 4000000 -4711 f7bc ' >> {0}; echo '9 9000000 -4712 f7bc 0' "
           ">> {0}; echo '1 3a2f:python' >> {0}",
           machine / "smi/f7bc")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const amd::CaptureManifest manifest = machine.manifest();
  EXPECT_EQ(part(manifest, "smi").files, std::vector<std::string>{"smi.txt"});
  EXPECT_TRUE(has(content(machine.root() / "out/smi.txt"), "9 9000000 -4712 f7bc 0\n"));
  ASSERT_TRUE(manifest.queue_events);
  EXPECT_EQ(manifest.queue_events->evictions, 2U);
  EXPECT_EQ(manifest.queue_events->restores, 1U);
  EXPECT_EQ(manifest.queue_events->longest_eviction_ns, 3'000'000);
  EXPECT_TRUE(has(outcome.err, "2 of queues, of all programs; the longest took 3.00 ms")) << outcome.err;
  expect_valid_as((machine.root() / "out/manifest.json").string(), "weir.amd_capture.1.json");
}

TEST(AmdCapture, says_why_there_are_no_events) {
  const Machine machine;
  ASSERT_EQ(machine.capture({"--no-ftrace", "--smi", machine / "none"}, {"true"}).code, 0);
  EXPECT_TRUE(has(part(machine.manifest(), "smi").reason, "none/f7bc: No such file"))
      << part(machine.manifest(), "smi").reason;
  EXPECT_FALSE(machine.manifest().queue_events);
}

const std::string kScope = "/system.slice/docker-" + kId + ".scope";

std::set<std::vector<int>> numbers_in(const amd::CaptureManifest& manifest) {
  std::set<std::vector<int>> all;
  for (const amd::CapturedProcess& process : manifest.processes) all.insert(process.pids);
  return all;
}

TEST(AmdCapture, watches_a_process_that_runs_already) {
  const Machine machine;
  machine.add_process(4711, 17, kScope);
  machine.add_process(4712, 18, kScope);
  machine.add_process(4800, 4800, "/user.slice");
  put_file(machine.root() / "proc/4711/task/4711/children", "4712 ");
  const Outcome outcome = machine.watch({"--pid", "4711", "--seconds", "300ms", "--interval", "50ms"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const amd::CaptureManifest manifest = machine.manifest();
  EXPECT_EQ(numbers_in(manifest), (std::set<std::vector<int>>{{4711, 17}, {4712, 18}})) << "not the one beside it";
  ASSERT_TRUE(manifest.target);
  EXPECT_EQ(manifest.target->pid, 4711);
  EXPECT_EQ(manifest.target->container_id, kId) << "where its numbers come from";
  EXPECT_EQ(manifest.command[0], "python3");
  EXPECT_FALSE(manifest.exit_code) << "it was not ours";
  EXPECT_TRUE(manifest.environment.empty()) << "nothing was set for it";
  EXPECT_GE(manifest.snapshots.size(), 3U);
  EXPECT_TRUE(has(part(manifest, "log").reason, "ROCm was not asked for a log")) << part(manifest, "log").reason;
  EXPECT_TRUE(has(outcome.err, "watched for")) << outcome.err;
  EXPECT_FALSE(has(content(machine.root() / "out/manifest.json"), "hush")) << "secrets of a command line";
  expect_valid_as((machine.root() / "out/manifest.json").string(), "weir.amd_capture.1.json");
}

TEST(AmdCapture, ends_with_the_process_that_it_watches) {
  const Machine machine;
  machine.add_process(4711, 17, kScope);
  std::vector<std::string> words = machine.words({}, {});
  words.pop_back();
  words.insert(words.end(), {"--root", machine.root().string(), "--no-ftrace", "--pid", "4711", "--interval", "20ms"});
  const pid_t process = start_weir(words, machine.root());
  for (int i = 0; i < 60'000 && !fs::exists(machine.root() / "out/snapshots/during-01"); ++i) ::usleep(1000);
  fs::remove_all(machine.root() / "proc/4711");
  EXPECT_EQ(wait_for(process), 0);
  EXPECT_EQ(machine.manifest().snapshots.back().when, "after");
  EXPECT_EQ(numbers_in(machine.manifest()), (std::set<std::vector<int>>{{4711, 17}}));
}

TEST(AmdCapture, is_ended_by_an_interrupt_and_is_whole) {
  const Machine machine;
  machine.add_process(4711, 17, kScope);
  std::vector<std::string> words = machine.words({}, {});
  words.pop_back();
  words.insert(words.end(), {"--root", machine.root().string(), "--top-instance", "--pid", "4711"});
  const auto before = machine.settings();
  const pid_t process = start_weir(words, machine.root());
  for (int i = 0; i < 60'000 && !has(content(machine.root() / "tracing/current_tracer"), "function"); ++i)
    ::usleep(1000);
  ::usleep(20'000);
  ::kill(process, SIGINT);
  EXPECT_EQ(wait_for(process), 0) << "Ctrl-C is how it is ended";
  EXPECT_TRUE(fs::exists(machine.root() / "out/ftrace.txt"));
  auto expected = before;
  expected[machine / "tracing/trace_clock"] = "local\n";
  EXPECT_EQ(machine.settings(), expected);
}

// A machine with a docker container and a podman container that has the same short name as nothing else.
void add_containers(const Machine& machine, bool has_cgroup_files) {
  machine.add_process(4711, 1, kScope);
  machine.add_process(4712, 18, kScope);
  machine.add_process(5000, 5000, "/user.slice");
  put_file(machine.root() / "var/lib/docker/containers" / kId / "config.v2.json",
           R"({"ID": ")" + kId + R"(", "Name": "/vllm_server", "State": {"Running": true, "Pid": 4711}})");
  const std::string other(64, 'a'), stopped(64, 'b');
  machine.add_process(6000, 1, "/machine.slice/libpod-" + other + ".scope/container");
  put_file(machine.root() / "var/lib/containers/storage/overlay-containers/containers.json",
           R"([{"id": ")" + other + R"(", "names": ["web"]}, {"id": ")" + stopped + R"(", "names": ["off"]}])");
  if (!has_cgroup_files) return;
  // The cgroup knows a process that /proc did not have when the container was found.
  put_file(machine.root() / "sys/fs/cgroup" / kScope.substr(1) / "cgroup.procs", "4711\n0\n");
  put_file(machine.root() / "sys/fs/cgroup" / kScope.substr(1) / "below/cgroup.procs", "4712\n");
}

TEST(AmdCapture, watches_a_container_by_name_and_by_id) {
  for (const bool has_cgroup_files : {true, false})
    for (const std::string& name : {std::string("vllm_server"), kId.substr(0, 12), kId}) {
      const Machine machine;
      add_containers(machine, has_cgroup_files);
      const Outcome outcome = machine.watch({"--container", name, "--seconds", "50ms"});
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      const amd::CaptureManifest manifest = machine.manifest();
      EXPECT_EQ(numbers_in(manifest), (std::set<std::vector<int>>{{4711, 1}, {4712, 18}}));
      ASSERT_TRUE(manifest.target);
      EXPECT_FALSE(manifest.target->pid);
      EXPECT_EQ(manifest.target->container, name);
      EXPECT_EQ(manifest.target->container_id, kId);
      EXPECT_EQ(manifest.target->runtime, "docker");
      EXPECT_TRUE(has(outcome.err, kId.substr(0, 12))) << outcome.err;
    }
  const Machine machine;
  add_containers(machine, false);
  EXPECT_EQ(machine.watch({"--container", "web", "--seconds", "50ms"}).code, 0);
  EXPECT_EQ(numbers_in(machine.manifest()), (std::set<std::vector<int>>{{6000, 1}}));
  EXPECT_EQ(machine.manifest().target->runtime, "podman");
}

TEST(AmdCapture, rejects_containers_and_processes_that_do_not_run) {
  const Machine machine;
  add_containers(machine, true);
  Outcome outcome = machine.watch({"--container", "zhen"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "no such container")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "vllm_server (docker)") && has(outcome.err, "web (podman)")) << outcome.err;
  outcome = machine.watch({"--container", "off"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "no process of it is visible")) << outcome.err;
  put_file(machine.root() / "var/lib/containers/storage/vfs-containers/containers.json",
           R"([{"id": ")" + std::string(64, 'a') + R"(", "names": ["vllm_server"]}])");
  outcome = machine.watch({"--container", "vllm_server"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "2 containers have that name") && has(outcome.err, "aaaaaaaaaaaa")) << outcome.err;
  outcome = machine.watch({"--pid", "99"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "--pid 99: no such process")) << outcome.err;
  EXPECT_EQ(machine.watch({"--pid", "4711", "--container", "web"}).code, 2);
  EXPECT_EQ(machine.watch({"--pid", "4711", "--", "true"}).code, 2);
  EXPECT_EQ(machine.watch({"--seconds", "1s", "--", "true"}).code, 2);
  EXPECT_FALSE(fs::exists(machine.root() / "out"));
}

TEST(AmdCapture, takes_the_log_of_a_process_through_its_root) {
  const Machine machine;
  const std::string environment("A=1\0AMD_LOG_LEVEL_FILE=/tmp/rocm.log\0B=2\0", 42);
  machine.add_process(4711, 17, kScope, environment);
  put_file(machine.root() / "proc/4711/root/tmp/rocm.log_17", ":3: a line\n");
  ASSERT_EQ(machine.watch({"--pid", "4711", "--seconds", "50ms"}).code, 0);
  EXPECT_EQ(part(machine.manifest(), "log").files, std::vector<std::string>{"log"});
  EXPECT_EQ(content(machine.root() / "out/log"), ":3: a line\n");
}

// Root reads what a container prepared: a link there is one of the container, not of the machine.
TEST(AmdCapture, follows_no_link_out_of_a_container) {
  const Machine machine;
  machine.add_process(4711, 17, kScope, std::string("AMD_LOG_LEVEL_FILE=/tmp/rocm.log\0", 33));
  fs::create_directories(machine.root() / "proc/4711/root/tmp");
  fs::create_symlink(machine.root() / "secret", machine.root() / "proc/4711/root/tmp/rocm.log");
  fs::create_symlink("../../../../secret", machine.root() / "proc/4711/root/tmp/rocm.log_17");
  ASSERT_EQ(machine.watch({"--pid", "4711", "--seconds", "50ms"}).code, 0);
  EXPECT_TRUE(part(machine.manifest(), "log").files.empty());
  EXPECT_TRUE(has(part(machine.manifest(), "log").reason, "no such file exists"));
  EXPECT_FALSE(fs::exists(machine.root() / "out/log"));
}

TEST(AmdCapture, prints_a_script_that_watches_a_process) {
  const Machine machine;
  const std::string own = std::to_string(::getpid());
  machine.add_process(::getpid(), 17, kScope);
  const Outcome printed = machine.watch({"--pid", own, "--seconds", "200ms", "--dry-run"});
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_FALSE(has(printed.out, "AMD_LOG_LEVEL=")) << printed.out;
  put_file(machine.root() / "by_hand.sh", printed.out);
  const Outcome by_hand = run_program({"bash", machine / "by_hand.sh"}, machine.root());
  EXPECT_EQ(by_hand.code, 0) << by_hand.err;
  EXPECT_EQ(content(machine.root() / "out/snapshots/after/hqds"), "Node 2, gpu_id f7bc:\n");
}

}  // namespace
}  // namespace weir::testing
