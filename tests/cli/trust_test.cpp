// What must not happen to people who run weir: a folder's git configuration is run, or a secret ends up in a file.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/json.h"
#include "cli/bench_packages.h"
#include "cli/program.h"
#include "weir_build.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

constexpr const char* kSecret = "hunter2";

std::string content_of(const fs::path& file) {
  std::ifstream from(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(from), {}};
}

// In no file below the folder, as bytes: reading documents would clean them.
void expect_no_secret(const fs::path& folder, const std::string& except = "") {
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename() != except) {
      const std::string text = content_of(entry.path());
      const std::size_t at = text.find(kSecret);
      EXPECT_EQ(at, std::string::npos) << entry.path() << ": " << text.substr(at < 80 ? 0 : at - 80, 120);
    }
}

// As somebody whose environment is full of secrets.
Outcome with_secrets(const Arguments& arguments, const fs::path& folder) {
  Arguments all = {"env"};
  for (const char* name :
       {"NVIDIA_API_KEY", "SLURM_JWT", "TORCH_TOKEN", "NCCL_PASSWORD", "CUDA_SECRET_THING", "HIP_CREDENTIAL",
        "WEIR_auth", "OMPI_MCA_cookie", "HSA_SOMETHING_NEW", "SLURM_JOB_USER", "UCX_MYPASS"})
    all.push_back(std::string(name) + "=" + kSecret);
  all.push_back(std::string("UCX_TLS=https://me:") + kSecret + "@host");
  all.emplace_back(WEIR_BINARY);
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program(all, folder);
}

Json old_result() {
  Json result = read_json(fs::path(WEIR_SOURCE_DIR) / "tests/data/v0.1/result.json");
  result["command_line"] = Json::array({"weir", "run", "x", "--api-key", kSecret, "/home/somebody/x.json"});
  result["environment"]["variables"]["NVIDIA_API_KEY"] = kSecret;
  return result;
}

TEST(Trust, no_command_writes_a_secret) {
  const Folder folder;
  std::ofstream(folder / "p") << "#!/bin/sh\necho value 1\n";
  fs::permissions(folder / "p", fs::perms::owner_all);
  const std::string flag = std::string("--token=") + kSecret;
  const std::vector<Arguments> commands = {
      {"run", "tiny_kernel_stress", "--device", "cpu", "--scale", "tiny", "--iterations", "2", "-o", "run.json"},
      {"sweep", "tiny_kernel_stress", "--device", "cpu", "--scale", "tiny", "--iterations", "2", "--streams", "1,2",
       "-o", "sweep.json"},
      {"profile", "tiny_kernel_stress", "--device", "cpu", "--scale", "tiny", "-o", "profile.json"},
      {"queues", "map", "--device", "sim:toy", "-o", "map.json"},
      {"conformance", "--device", "null", "-o", "conformance.json"},
      {"overlap", "default", "--device", "cpu", "--set", "run.scale=tiny", "--set", "run.iterations=2", "-o",
       "overlap"},
      {"analyze", "profile.json", "--json", "-o", "analysis.json"},
      {"try", "--env", std::string("HF_TOKEN=") + kSecret + ",b", "--trials", "2", "-o", "try", "--", "./p", flag,
       "--password", kSecret},
      {"try", "--env", std::string("HF_TOKEN=") + kSecret + ",b", "--trials", "3", "--resume", "-o", "try", "--", "./p",
       flag, "--password", kSecret},
      {"try", "--trials", "2", "-o", "two", "./p 1 " + flag, "./p 2 " + flag},
#if WEIR_HAVE_HTML
      {"report", ".", "-o", "page.html", "-o", "page.json"},
#endif
      {"history", "add", "run.json", "--db", "h.db"},
      {"export", "run.json", "-o", "run.prom"},
  };
  for (const Arguments& command : commands) {
    const Outcome outcome = with_secrets(command, folder.path());
    EXPECT_NE(outcome.code, 2) << command[0] << ": " << outcome.err;
    EXPECT_LE(outcome.code, 4) << command[0] << ": " << outcome.err;
    EXPECT_EQ(outcome.out.find(kSecret), std::string::npos) << outcome.out;
  }
  expect_no_secret(folder.path());
  const Json variables = Json::parse(content_of(folder / "run.json"))["environment"]["variables"];
  EXPECT_EQ(variables["NVIDIA_API_KEY"], "(redacted)");
  EXPECT_EQ(variables["SLURM_JOB_USER"], "(not recorded)");
  EXPECT_EQ(variables["UCX_TLS"], "https://(redacted)@host");
}

// Results of 0.1 have them.
TEST(Trust, secrets_of_an_old_result_go_no_further) {
  const Folder folder;
  std::ofstream(folder / "old.json") << old_result().dump();
  Json other = old_result();
  other["environment"]["variables"]["NVIDIA_API_KEY"] = std::string(kSecret) + "b";
  std::ofstream(folder / "old.json.b") << other.dump();
  ASSERT_NE(content_of(folder / "old.json").find(kSecret), std::string::npos);
  fs::create_directories(folder.path() / "out");
  const std::vector<Arguments> commands = {
#if WEIR_HAVE_HTML
      {"report", "old.json", "-o", "out/page.html", "-o", "out/page.json"},
      {"report", "old.json", "--baseline", "old.json.b", "-o", "out/page2.html"},
#endif
      {"history", "add", "old.json", "--db", "out/h.db"},
      {"history", "export", "--db", "out/h.db", "-o", "out/h.csv"},
      {"export", "old.json", "--format", "csv", "-o", "out/x.csv"},
      {"compare", "old.json", "old.json.b", "--json", "--output", "out/c.json"},
      {"compare", "old.json", "old.json.b"}};
  for (const Arguments& command : commands) {
    const Outcome outcome = weir(command, folder.path());
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 3) << command[0] << ": " << outcome.err;
    EXPECT_EQ((outcome.out + outcome.err).find(kSecret), std::string::npos) << outcome.out << outcome.err;
  }
  expect_no_secret(folder.path() / "out");
  EXPECT_EQ(content_of(folder / "out/page.html").find("/home/somebody"), std::string::npos);
  EXPECT_EQ(content_of(folder / "out/page.json").find("/home/somebody"), std::string::npos);
}

// The repository is the folder that somebody works in; base/git_test.cpp tries every way.
TEST(Trust, history_and_bench_run_nothing_of_a_repository) {
  const Folder folder;
  const auto git = [&](Arguments words) {
    words.insert(words.begin(), {"git", "-c", "user.name=n", "-c", "user.email=e@example.org"});
    return run_program(words, folder.path()).code;
  };
  if (git({"init", "-q"}) != 0) GTEST_SKIP() << "git is not installed";
  make_package(folder.path(), "doubles", "precisions: [fp32]\n");
  std::ofstream(folder / "old.json") << old_result().dump();
  ASSERT_EQ(git({"add", "-A"}), 0);
  ASSERT_EQ(git({"commit", "-q", "-m", "first"}), 0);
  std::ofstream(folder / "git") << "#!/bin/sh\ntouch " << folder / "marker" << "\ncat\n";
  fs::permissions(folder / "git", fs::perms::owner_all);
  for (const char* name : {"filter.x.clean", "filter.x.process", "core.fsmonitor", "core.pager"})
    ASSERT_EQ(git({"config", name, folder / "git"}), 0);
  std::ofstream(folder / ".git/info/attributes") << "* filter=x\n";
  fs::last_write_time(folder / "old.json", fs::file_time_type::clock::now() + std::chrono::hours(1));
  // A folder in PATH that is whatever folder one works in must not provide git either.
  const std::string path = std::string("PATH=.::") + std::getenv("PATH");
  for (const Arguments& command : {Arguments{"history", "add", "old.json", "--db", "h.db"},
                                   {"history", "add", "old.json", "--db", "i.db", "--git-changes"},
                                   {"bench", "--iterations", "2", "--processes", "1", "--no-roofline", "--device",
                                    "cpu", "--git-changes", "-q"}}) {
    Arguments all = {"env", path, WEIR_BINARY};
    all.insert(all.end(), command.begin(), command.end());
    const Outcome outcome = run_program(all, folder.path());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_FALSE(fs::exists(folder / "marker")) << command[0];
  }
  const Json environment = read_json(folder / "reports/env.json");
  EXPECT_TRUE(environment["git"]["commit"].is_string()) << environment["git"];
  EXPECT_TRUE(environment["git"]["is_changed"].is_boolean()) << environment["git"];
}

}  // namespace
}  // namespace weir::testing
