// --submit channel, --producers and --submitters from the command line to the result, the table and the comparison.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/json.h"
#include "cli/program.h"
#include "support/text.h"

namespace weir::testing {
namespace {

// What `more` does not say otherwise.
std::vector<std::string> tiny_submitted(const char* command, const std::vector<std::string>& more) {
  std::vector<std::string> words = {command, "tiny_kernel_stress", "--scale", "tiny", "--iterations", "5"};
  for (const auto& [flag, value] : {std::pair("--device", "cpu"), std::pair("--streams", "8")})
    if (std::find(more.begin(), more.end(), flag) == more.end()) words.insert(words.end(), {flag, value});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string submit_of(const std::vector<std::string>& flags) {
  const Folder folder;
  std::vector<std::string> words = {"--no-trace", "-o", folder / "r.json"};
  words.insert(words.end(), flags.begin(), flags.end());
  const Outcome outcome = weir(tiny_submitted("run", words));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "passed")) << outcome.out;
  return outcome.code == 0 ? read_json(folder / "r.json")["submit"].get<std::string>() : "";
}

TEST(Submit, FlagsNameTheWayInFull) {
  EXPECT_EQ(submit_of({"--submit", "channel"}), "channel:mpsc:4");
  EXPECT_EQ(submit_of({"--submit", "channel", "--streams", "3"}), "channel:mpsc:3");
  EXPECT_EQ(submit_of({"--submit", "channel:mpsc", "--producers", "2"}), "channel:mpsc:2");
  EXPECT_EQ(submit_of({"--submit", "channel:lanes:3"}), "channel:lanes:3");
  EXPECT_EQ(submit_of({"--submit", "channel", "--producers", "4", "--submitters", "2"}), "channel:mpsc:4x2");
  EXPECT_EQ(submit_of({"--submit", "channel:spsc", "--submitters", "2"}), "channel:spsc:1x2");
  EXPECT_EQ(submit_of({"--submit", "channel:mutex_deque:2x2"}), "channel:mutex_deque:2x2");
}

TEST(Submit, SaysWhatIsWrong) {
  struct Refused {
    std::vector<std::string> flags;
    const char* said;
  };
  for (const Refused& refused : {
           Refused{{"--submit", "channel:spsc", "--producers", "4"}, "takes 1 producer, not 4"},
           Refused{{"--submit", "channel:spsc", "--producers", "4"}, "--producers 1"},
           Refused{{"--submit", "chanel"}, "channel"},
           Refused{{"--submit", "channel:mspc"}, "mpsc"},
           Refused{{"--submit", "channel", "--producers", "0"}, "--producers 0"},
           Refused{{"--submit", "channel", "--producers", "many"}, "--producers many"},
           Refused{{"--submit", "channel", "--submitters", "129"}, "--submitters 129"},
           Refused{{"--producers", "4"}, "--submit inline has no channel"},
           Refused{{"--submit", "threads:2", "--submitters", "4"}, "--submit threads:2 has no channel"},
           Refused{{"--submit", "graph", "--producers", "4"}, "A graph is one launch"},
           Refused{{"--submit", "channel:mpsc:2", "--producers", "4"}, "has its counts already"},
           Refused{{"--submit", "channel:mpsc:2", "--submitters", "4"}, "Give them in one place"},
           Refused{{"--submit", "channel:mpsc:0"}, "'0' is not a number of producers"},
           Refused{{"--submit", "channel:mpsc:2x0"}, "'0' is not a number of submitters"},
           Refused{{"--submit", "channel", "--device", "sim:h200"}, "virtual time"},
       }) {
    std::string typed;
    for (const std::string& flag : refused.flags) typed += flag + " ";
    for (const char* command : {"run", "profile"}) {
      const Folder folder;
      const Outcome outcome = weir(tiny_submitted(command, refused.flags), folder.path());
      EXPECT_EQ(outcome.code, 2) << typed << outcome.out;
      EXPECT_TRUE(has(outcome.err, refused.said)) << typed << "\n" << outcome.err;
    }
  }
}

TEST(Submit, SweepsKeepChannelsApart) {
  const Folder folder;
  const std::string file = folder / "s.json";
  std::vector<std::string> words = {"sweep",
                                    "tiny_kernel_stress",
                                    "--device",
                                    "cpu",
                                    "--scale",
                                    "tiny",
                                    "--streams",
                                    "2,4",
                                    "--iterations",
                                    "3",
                                    "--no-trace",
                                    "-o",
                                    file,
                                    "--submit",
                                    "inline,channel:mpsc,channel:lanes",
                                    "--producers",
                                    "3"};
  const Outcome outcome = weir(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json sweep = read_json(file);
  std::set<std::string> names, curves;
  for (const Json& result : sweep["results"]) names.insert(result["submit"].get<std::string>());
  for (const auto& [name, curve] : sweep["scaling"].items()) curves.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"inline", "channel:mpsc:2", "channel:mpsc:3", "channel:lanes:2",
                                          "channel:lanes:3"}));
  EXPECT_EQ(curves, (std::set<std::string>{"inline", "channel:mpsc", "channel:lanes"}));
  // Nothing is run again, and the counts are part of what is compared.
  words.push_back("--resume");
  EXPECT_TRUE(has(weir(words).out, "kept"));
  const Outcome compared = weir({"compare", file, file});
  EXPECT_TRUE(has(compared.out, "channel:mpsc:3")) << compared.out;
}

TEST(Submit, ComparesOnlyEqualProducers) {
  const Folder folder;
  for (const char* producers : {"2", "4"})
    ASSERT_EQ(weir(tiny_submitted("run", {"--submit", "channel", "--producers", producers, "--no-trace", "-o",
                                          folder / (std::string(producers) + ".json")}))
                  .code,
              0);
  const Outcome same = weir({"compare", folder / "2.json", folder / "2.json"});
  EXPECT_EQ(same.code, 0) << same.err;
  const Outcome other = weir({"compare", folder / "2.json", folder / "4.json"});
  EXPECT_NE(other.code, 0);
  EXPECT_TRUE(has(other.out + other.err, "channel:mpsc:4")) << other.out << other.err;
}

TEST(Submit, ProfilesShowTheChannel) {
  const Folder folder;
  const Outcome made = weir(tiny_submitted(
      "profile", {"--submit", "channel:mpsc", "--producers", "4", "-o", folder / "t.csv", "--trace-format", "csv"}));
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(has(made.out, "enqueued -> submitted")) << made.out;
  std::ifstream lines(folder / "t.csv");
  std::string line;
  std::getline(lines, line);
  int rows = 0;
  while (std::getline(lines, line)) {
    // rank,device,stream,queue,kind,name,iteration,enqueued_ns,submitted_ns,...
    std::vector<std::string> fields;
    for (std::size_t from = 0; from != std::string::npos;) {
      const std::size_t comma = line.find(',', from);
      fields.push_back(line.substr(from, comma == std::string::npos ? comma : comma - from));
      from = comma == std::string::npos ? comma : comma + 1;
    }
    ASSERT_GT(fields.size(), 8u) << line;
    ASSERT_FALSE(fields[7].empty()) << line;
    EXPECT_LE(std::stoll(fields[7]), std::stoll(fields[8])) << line;
    ++rows;
  }
  EXPECT_GT(rows, 0);
  const Outcome json = weir(tiny_submitted("profile", {"--submit", "channel", "-o", folder / "t.json", "--json"}));
  ASSERT_EQ(json.code, 0) << json.err;
  const Json hops = parse_json(json.out, "profile")["devices"][0]["waterfall"][0]["hops"];
  EXPECT_EQ(hops[0]["from"], "enqueued");
  EXPECT_EQ(hops[0]["to"], "submitted");
  EXPECT_EQ(hops[0]["negative"], 0);
  EXPECT_GT(hops[0]["duration_ns"]["p50"].get<double>(), 0);
  // And it comes back from the trace.
  const Outcome analysed = weir({"analyze", folder / "t.json"});
  EXPECT_EQ(analysed.code, 0) << analysed.err;
}

TEST(Submit, AnInterruptEndsProducersToo) {
  const Folder folder;
  const pid_t child =
      start_weir({"run", "tiny_kernel_stress", "--device", "cpu", "--scale", "tiny", "--streams", "8", "--submit",
                  "channel", "--iterations", "10000000", "--no-trace", "-o", folder / "r.json"},
                 folder.path());
  await_handler(child, SIGINT);
  const timespec pause{0, 300'000'000};
  nanosleep(&pause, nullptr);
  kill(child, SIGINT);
  EXPECT_EQ(wait_for(child), 130);
  EXPECT_EQ(read_json(folder / "r.json")["status"], "interrupted");
}

}  // namespace
}  // namespace weir::testing
