// weir watch as a user meets it: in a terminal with keys, resizes and signals, and without one.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "cli/terminal.h"
#include "support/amd_scene.h"
#include "support/kfd_text.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

// A folder in place of debugfs and sysfs, with so many queues of one process.
class WatchedMachine {
 public:
  explicit WatchedMachine(int queues) {
    scene.gpus.emplace_back();
    scene.gpus[0].xccs = 1;
    scene.processes.emplace_back();
    for (int i = 0; i < queues; ++i) {
      SceneQueue queue;
      queue.id = static_cast<std::uint32_t>(i);
      queue.ring_base = 0x7f0000000000 + static_cast<std::uint64_t>(i) * 0x400000;
      queue.mqd_base = 0x1000000 + static_cast<std::uint64_t>(i) * 0x10000;
      queue.doorbell = 0x1000 + static_cast<std::uint32_t>(i) * 2;
      queue.pipe = i % 4;
      queue.slot = 2 + i / 4 % 6;
      queue.is_mapped = i < 24;
      queue.written_packets = static_cast<std::uint64_t>(i);
      scene.queues.push_back(queue);
    }
    write();
  }
  void write() const {
    write_debugfs(scene, folder.path() / "debug");
    write_sysfs(scene, folder.path() / "sys");
  }
  std::vector<std::string> watch(std::vector<std::string> more) const {
    std::vector<std::string> words = {"watch", "--debugfs", folder / "debug", "--sysfs", folder / "sys"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Folder folder;
  Scene scene;
};

// How its rows begin: KFD's own numbers cannot be told from rings that are all of one size.
std::string label_of(int queue) {
  return fmt::format("4000 @{:x}", 0x7f0000000000 + static_cast<std::uint64_t>(queue) * 0x400000);
}

const std::vector<std::string> kDemo = {"watch", "--device", "sim", "--scale", "tiny", "--interval", "100ms"};

bool has_ncurses() { return weir({"info"}).out.find("ncurses            yes") != std::string::npos; }

#define NEEDS_NCURSES() \
  if (!has_ncurses()) GTEST_SKIP() << "built without ncurses"

TEST(Watch, a_demo_in_80x24_shows_queues_and_quits) {
  NEEDS_NCURSES();
  Terminal terminal(kDemo, 80, 24);
  ASSERT_TRUE(terminal.await("KERNELS/S")) << terminal.screen.text();
  ASSERT_TRUE(terminal.await("queue 0"));
  EXPECT_TRUE(terminal.screen.is_alternate());
  EXPECT_FALSE(terminal.screen.is_cursor_shown());
  EXPECT_TRUE(terminal.screen.line(0).starts_with("weir watch  sim")) << terminal.screen.line(0);
  EXPECT_TRUE(terminal.screen.line(23).starts_with("q quit")) << terminal.screen.text();
  EXPECT_TRUE(has(terminal.screen.text(), "A demo: "));
  EXPECT_TRUE(terminal.await("#3"));  // goes on by itself
  terminal.type("q");
  EXPECT_EQ(terminal.end(), 0);
  EXPECT_TRUE(terminal.is_cooked());
  EXPECT_FALSE(terminal.screen.is_alternate());
  EXPECT_TRUE(terminal.screen.is_cursor_shown());
  EXPECT_TRUE(terminal.screen.unknown().empty()) << terminal.screen.unknown()[0];
}

TEST(Watch, keys_sort_reverse_scroll_pause_and_help) {
  NEEDS_NCURSES();
  const WatchedMachine machine(40);
  Terminal terminal(machine.watch({"--interval", "100ms"}), 80, 24);
  ASSERT_TRUE(terminal.await(label_of(0))) << terminal.screen.text();
  EXPECT_TRUE(has(terminal.screen.text(), "PACKETS/S"));
  terminal.type("r");
  ASSERT_TRUE(terminal.await(label_of(39)));
  terminal.type("r");
  ASSERT_TRUE(terminal.await_gone(label_of(39)));
  terminal.type("\x1b[6~");  // PgDn
  ASSERT_TRUE(terminal.await_gone(label_of(0)));
  terminal.type("\x1bOF");  // End
  ASSERT_TRUE(terminal.await("-40 of 40"));
  terminal.type("\x1bOH");  // Home
  ASSERT_TRUE(terminal.await(label_of(0)));
  terminal.type("ss");  // by backlog, the most first
  ASSERT_TRUE(terminal.await(label_of(39)));
  ASSERT_TRUE(terminal.await_gone(label_of(0)));
  terminal.type("h");
  ASSERT_TRUE(terminal.await("weir watch: keys"));
  terminal.type("?");
  ASSERT_TRUE(terminal.await_gone("weir watch: keys"));
  terminal.type("p");
  ASSERT_TRUE(terminal.await("PAUSED"));
  terminal.type("p");
  ASSERT_TRUE(terminal.await_gone("PAUSED"));
  terminal.type("+");
  ASSERT_TRUE(terminal.await("every 200 ms"));
  terminal.type("--");
  ASSERT_TRUE(terminal.await("every 50 ms"));
  terminal.type("q");
  EXPECT_EQ(terminal.end(), 0);
}

TEST(Watch, survives_resizes_down_to_20x5_and_less) {
  NEEDS_NCURSES();
  const WatchedMachine machine(12);
  Terminal terminal(machine.watch({"--interval", "100ms"}), 80, 24);
  ASSERT_TRUE(terminal.await("PRIORITY"));
  terminal.resize(20, 5);
  terminal.type("\x0c");
  ASSERT_TRUE(terminal.await_gone("PRIORITY")) << terminal.screen.text();
  ASSERT_TRUE(terminal.await("QUEUE        BACKLOG")) << terminal.screen.text();
  for (const auto& [width, height] : {std::pair(1, 1), std::pair(300, 2), std::pair(5, 60), std::pair(2, 3)}) {
    terminal.resize(width, height);
    terminal.type("\x0cs\x1b[6~");
    terminal.rest();  // draws it, and does not end
  }
  terminal.resize(100, 30);
  terminal.type("\x0c");
  ASSERT_TRUE(terminal.await("PRIORITY")) << terminal.screen.text();
  ASSERT_TRUE(terminal.await("+- interval"));
  EXPECT_TRUE(terminal.screen.line(29).starts_with("q quit")) << terminal.screen.text();
  terminal.type("q");
  EXPECT_EQ(terminal.end(), 0);
  EXPECT_TRUE(terminal.is_cooked());
}

TEST(Watch, signals_leave_the_terminal_as_it_was) {
  NEEDS_NCURSES();
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGHUP}) {
    Terminal terminal(kDemo, 80, 24);
    ASSERT_TRUE(terminal.await("queue 0"));
    ::kill(terminal.process(), signal);
    EXPECT_EQ(terminal.end(), 128 + signal) << signal;
    EXPECT_TRUE(terminal.is_cooked()) << signal;
    EXPECT_FALSE(terminal.screen.is_alternate()) << signal;
    EXPECT_TRUE(terminal.screen.is_cursor_shown()) << signal;
  }
}

TEST(Watch, ctrl_c_ends_it) {
  NEEDS_NCURSES();
  Terminal terminal(kDemo, 80, 24);
  ASSERT_TRUE(terminal.await("queue 0"));
  terminal.type("\x03\x03");  // twice, as people do
  EXPECT_EQ(terminal.end(), 130);
  EXPECT_TRUE(terminal.is_cooked());
}

TEST(Watch, a_crash_leaves_the_terminal_as_it_was) {
  NEEDS_NCURSES();
  Terminal terminal(kDemo, 80, 24);
  ASSERT_TRUE(terminal.await("queue 0"));
  ::kill(terminal.process(), SIGABRT);
  EXPECT_EQ(terminal.end(), 128 + SIGABRT);
  EXPECT_TRUE(terminal.is_cooked());
  EXPECT_FALSE(terminal.screen.is_alternate());
  EXPECT_TRUE(terminal.screen.is_cursor_shown());
}

TEST(Watch, a_failure_on_the_way_is_said_on_a_terminal_that_works_again) {
  NEEDS_NCURSES();
  const Folder folder;
  fs::create_directory(folder / "metrics");
  std::vector<std::string> words = kDemo;
  words.insert(words.end(), {"--openmetrics", folder / "metrics/weir.prom"});
  Terminal terminal(words, 80, 24);
  ASSERT_TRUE(terminal.await("queue 0"));
  fs::remove_all(folder / "metrics");
  EXPECT_EQ(terminal.end(), 2);
  EXPECT_TRUE(terminal.is_cooked());
  EXPECT_FALSE(terminal.screen.is_alternate());
  EXPECT_TRUE(has(terminal.bytes(), "does not exist")) << terminal.screen.text();
}

TEST(Watch, a_terminal_that_nobody_knows_is_rejected) {
  NEEDS_NCURSES();
  Terminal terminal(kDemo, 80, 24, "no-such-terminal");
  EXPECT_EQ(terminal.end(), 2);
  EXPECT_TRUE(has(terminal.bytes(), "TERM=no-such-terminal")) << terminal.bytes();
}

TEST(Watch, samples_can_be_counted) {
  NEEDS_NCURSES();
  std::vector<std::string> words = kDemo;
  words.insert(words.end(), {"--iterations", "3"});
  Terminal terminal(words, 80, 24);
  EXPECT_EQ(terminal.end(), 0);
}

TEST(Watch, without_a_terminal_it_says_what_to_use) {
  const Outcome outcome = weir(kDemo);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(has(outcome.err, "--once")) << outcome.err;
}

TEST(Watch, once_gives_a_table_of_80_columns) {
  const WatchedMachine machine(5);
  const Outcome outcome = weir(machine.watch({"--once", "--interval", "50ms", "--sort", "backlog"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_narrow(outcome.out);
  ASSERT_TRUE(has(outcome.out, label_of(4))) << outcome.out;
  EXPECT_LT(outcome.out.find(label_of(4)), outcome.out.find(label_of(0)));
  EXPECT_FALSE(has(outcome.out, "\x1b"));
}

TEST(Watch, documents_are_as_the_schema_says) {
  const WatchedMachine machine(5);
  const Folder folder;
  const std::string kfd = folder / "kfd.json", demo = folder / "demo.json";
  ASSERT_EQ(weir(machine.watch({"--once", "--interval", "50ms", "--quiet", "-o", kfd})).code, 0);
  std::vector<std::string> words = kDemo;
  words.insert(words.end(), {"--once", "--json", "-o", demo});
  const Outcome outcome = weir(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_valid_as(kfd, "weir.watch.1.json");
  expect_valid_as(demo, "weir.watch.1.json");
  const Json document = read_json(kfd);
  ASSERT_EQ(document["queues"].size(), 5u);
  EXPECT_EQ(document["sample"], 2);  // rates need two looks
  for (const Json& queue : document["queues"]) {
    EXPECT_FALSE(queue["packets_per_s"].is_null());
    EXPECT_TRUE(queue["streams"].is_null());
    EXPECT_TRUE(queue["unavailable"].contains("streams"));
  }
  EXPECT_EQ(parse_json(outcome.out, "out")["clock"], "virtual");
}

TEST(Watch, a_document_per_line_where_several_are_asked_for) {
  std::vector<std::string> words = kDemo;
  words.insert(words.end(), {"--json", "--iterations", "3"});
  const Outcome outcome = weir(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_EQ(parse_json(line, "line")["sample"], count + 1);
  EXPECT_EQ(count, 3);
}

TEST(Watch, metrics_are_replaced_whole_and_nobody_else_s_file_is) {
  const WatchedMachine machine(3);
  const Folder folder;
  const std::string file = folder / "weir.prom";
  const auto words = machine.watch({"--openmetrics", file, "--iterations", "2", "--interval", "50ms"});
  ASSERT_EQ(weir(words).code, 0);
  EXPECT_TRUE(has(content(file), "weir_watch_samples_total 2\n")) << content(file);
  EXPECT_TRUE(content(file).ends_with("# EOF\n"));
  ASSERT_EQ(weir(words).code, 0);                                          // its own file
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);  // nothing is left over
  std::ofstream(file) << "mine\n";
  EXPECT_EQ(weir(words).code, 2);
  EXPECT_EQ(content(file), "mine\n");
}

TEST(Watch, metrics_do_not_go_through_a_link) {
  const WatchedMachine machine(1);
  const Folder folder;
  std::ofstream(folder / "target") << "mine\n";
  fs::create_symlink(folder / "target", folder / "weir.prom");
  EXPECT_EQ(weir(machine.watch({"--openmetrics", folder / "weir.prom", "--force", "--iterations", "1"})).code, 0);
  EXPECT_EQ(content(folder / "target"), "mine\n");
}

TEST(Watch, kfd_that_cannot_be_read_is_named_with_its_path) {
  const Folder folder;
  const Outcome outcome =
      weir({"watch", "--once", "--source", "kfd", "--debugfs", folder / "none", "--sysfs", folder / "none"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, folder / "none")) << outcome.err;
}

TEST(Watch, bad_flags_are_rejected_by_name) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--interval", "soon"}, "--interval soon"},
      {{"--interval", "1us"}, "--interval 1us"},
      {{"--interval", "0"}, "--interval 0"},
      {{"--iterations", "0"}, "--iterations 0"},
      {{"--iterations", "3", "--once"}, "--iterations 3"},
      {{"--sort", "color"}, "--sort color"},
      {{"--source", "nvml"}, "--source nvml"},
      {{"--source", "kfd", "--device", "cpu"}, "--source kfd"},
      {{"--device", "null"}, "--device null"},
      {{"hetero"}, "hetero"},
      {{"--quiet"}, "--quiet"},
      {{"-o", "x.json"}, "--output"}};
  for (const auto& [flags, message] : cases) {
    std::vector<std::string> words = {"watch", "--json"};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome outcome = weir(words);
    EXPECT_EQ(outcome.code, 2) << message;
    EXPECT_TRUE(has(outcome.err, message)) << outcome.err;
  }
}

}  // namespace
}  // namespace weir::testing
