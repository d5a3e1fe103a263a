// config/fleet for Slurm and Kubernetes: what the prolog makes of exit codes, and manifests against Kubernetes'
// published types, the Dockerfile and the program's own flags. scripts/slurm_smoke.sh has the same prolog under a real
// Slurm.
#include <gtest/gtest.h>
#include <signal.h>
#include <yaml-cpp/yaml.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "base/process.h"
#include "cli/program.h"
#include "support/openmetrics_check.h"
#include "support/text.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kDeployment = fs::path(WEIR_SOURCE_DIR) / "config/fleet";

void put_script(const fs::path& path, const std::string& text) {
  put_file(path, "#!/bin/sh\n" + text);
  fs::permissions(path, fs::perms::owner_all);
}

// A node's prolog, whose `weir` ends as it is told and whose `scontrol` keeps what it was asked.
class Prolog {
 public:
  explicit Prolog(const std::string& settings, const std::string& weir) {
    for (const char* name : {"prolog.sh", "epilog.sh"}) fs::copy_file(kDeployment / name, folder_ / name);
    put_file(folder_ / "fleet.conf", "WEIR='" + (folder_ / "weir") + "'\n" + settings);
    put_script(folder_ / "weir", "echo \"$@\" > '" + (folder_ / "asked") + "'\n" + weir);
    put_script(folder_ / "bin/scontrol", "echo \"$@\" > '" + (folder_ / "drained") + "'\n");
    put_script(folder_ / "bin/logger", "exit 0\n");
  }
  Outcome run(const std::string& script = "prolog.sh", std::vector<std::string> variables = {}) const {
    std::vector<std::string> command = {"env", "-i", "PATH=" + (folder_ / "bin") + ":/usr/bin:/bin",
                                        "SLURMD_NODENAME=n7", "SLURM_JOB_ID=12"};
    command.insert(command.end(), variables.begin(), variables.end());
    command.push_back(folder_ / script);
    return run_program(command);
  }
  std::string asked() const { return content(folder_ / "asked"); }      // of weir
  std::string drained() const { return content(folder_ / "drained"); }  // what scontrol was asked

 private:
  Folder folder_;
};

TEST(FleetProlog, a_fit_node_gets_the_job) {
  const Prolog prolog("WEIR_DEVICE=cpu\nWEIR_BUDGET=3s\nWEIR_PEERS=/peers\n", "exit 0\n");
  EXPECT_EQ(prolog.run().code, 0);
  EXPECT_EQ(prolog.asked(), "fleet probe --alone --budget 3s --quiet --device cpu --peers /peers\n");
  EXPECT_EQ(prolog.drained(), "");
}

TEST(FleetProlog, an_unfit_node_is_drained_with_the_reason) {
  const std::string unfit =
      "echo progress >&2\necho \"weir: n7 is unfit: cuda:3: GEMM bf16 6.1 % below; \\$(touch x) 'y'\" >&2\nexit 5\n";
  const Prolog prolog("WEIR_DEVICE=cpu\n", unfit);
  const Outcome outcome = prolog.run();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(prolog.drained(),
            "update nodename=n7 state=drain reason=weir: cuda:3: GEMM bf16 6.1 % below; $(touch x) 'y'\n");
  EXPECT_TRUE(has(outcome.err, "job 12 does not start on n7: cuda:3: GEMM bf16")) << outcome.err;
  const Prolog silent("WEIR_DEVICE=cpu\nWEIR_SET_REASON=no\nWEIR_IF_FAILED=run\n", unfit);
  EXPECT_EQ(silent.run().code, 1);
  EXPECT_EQ(silent.drained(), "");
}

TEST(FleetProlog, a_probe_that_fails_lets_the_job_start_unless_it_is_told_otherwise) {
  for (const std::string failing : {"echo 'no driver' >&2\nexit 1\n", "exit 2\n", "kill -9 $$\n"}) {
    const Prolog lenient("WEIR_DEVICE=cpu\n", failing);
    EXPECT_EQ(lenient.run().code, 0) << failing;
    EXPECT_EQ(lenient.drained(), "");
    const Prolog strict("WEIR_DEVICE=cpu\nWEIR_IF_FAILED=drain\n", failing);
    EXPECT_EQ(strict.run().code, 1) << failing;
    EXPECT_TRUE(has(strict.drained(), "could not be examined")) << strict.drained();
  }
  const Prolog gone("WEIR_DEVICE=cpu\nWEIR=/nowhere/weir\n", "");
  EXPECT_EQ(gone.run().code, 0) << "a node without the program is no bad node";
}

TEST(FleetProlog, only_the_jobs_own_devices_are_examined) {
  const Prolog prolog("", "echo \"$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER\" >&2\nexit 5\n");
  EXPECT_EQ(prolog.run().code, 0);
  EXPECT_EQ(prolog.asked(), "") << "a job without GPUs";
  EXPECT_EQ(prolog.run("prolog.sh", {"SLURM_JOB_GPUS=2,3"}).code, 1);
  EXPECT_TRUE(has(prolog.drained(), "reason=weir: 2,3 PCI_BUS_ID")) << prolog.drained();
}

TEST(FleetProlog, the_epilog_keeps_documents) {
  const Prolog prolog("WEIR_DEVICE=cpu\nWEIR_KEEP=/kept\n", "exit 0\n");
  EXPECT_EQ(prolog.run("epilog.sh").code, 0);
  EXPECT_TRUE(has(prolog.asked(), "--force -o /kept/n7-12.json")) << prolog.asked();
  EXPECT_EQ(prolog.run("prolog.sh").code, 0);
  EXPECT_FALSE(has(prolog.asked(), "/kept")) << prolog.asked();
}

// Quoted scalars are texts; others are what YAML's core schema says.
Json json_of(const YAML::Node& node) {
  if (node.IsNull()) return nullptr;
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const auto& each : node) list.push_back(json_of(each));
    return list;
  }
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& each : node) object[each.first.as<std::string>()] = json_of(each.second);
    return object;
  }
  const std::string text = node.Scalar();
  if (node.Tag() == "!") return text;
  if (text == "true" || text == "false") return text == "true";
  if (std::regex_match(text, std::regex("-?[0-9]+"))) return std::stol(text);
  return text;
}

struct Manifest {
  std::string file, type;
  Json document;
};
std::vector<Manifest> manifests() {
  std::vector<Manifest> found;
  for (const auto& [file, type] : {std::pair{"job.yaml", "batch/v1.Job"}, std::pair{"report.yaml", "batch/v1.Job"},
                                   std::pair{"daemonset.yaml", "apps/v1.DaemonSet"}})
    found.push_back({file, type, json_of(YAML::LoadFile(kDeployment / file))});
  return found;
}

// What TypeScript says of documents as values of Kubernetes' types: unknown and missing fields, and those of another
// type.
Outcome checked_types(const std::vector<Manifest>& documents, const fs::path& modules) {
  std::string program;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::string& type = documents[i].type;
    const std::size_t dot = type.rfind('.');
    program += "import type { " + type.substr(dot + 1) + " as T" + std::to_string(i) + " } from 'kubernetes-types/" +
               type.substr(0, dot) + "';\nexport const d" + std::to_string(i) + ": T" + std::to_string(i) + " = " +
               documents[i].document.dump(1) + ";\n";
  }
  const Folder folder;
  put_file(folder / "manifests.ts", program);
  fs::create_directory_symlink(modules, folder / "node_modules");
  return run_program({"node", (modules / "typescript/bin/tsc").string(), "--noEmit", "--strict", "--skipLibCheck",
                      "--moduleResolution", "node10", "manifests.ts"},
                     folder.path());
}

TEST(FleetManifests, are_what_kubernetes_publishes) {
  const fs::path modules = fs::path(WEIR_BINARY).parent_path() / "web/node_modules";
  if (!fs::exists(modules / "kubernetes-types")) GTEST_SKIP() << "npm did not install kubernetes-types";
  const Outcome fine = checked_types(manifests(), modules);
  EXPECT_EQ(fine.code, 0) << fine.out << fine.err;
  Manifest misspelt = manifests()[0];
  misspelt.document["spec"]["podFailurePolicies"] = misspelt.document["spec"]["podFailurePolicy"];
  EXPECT_TRUE(has(checked_types({misspelt}, modules).out, "podFailurePolicies")) << "the check finds nothing";
  Manifest mistaken = manifests()[2];
  mistaken.document["spec"]["template"]["spec"]["containers"][0]["env"][1]["value"] = 86400;
  EXPECT_NE(checked_types({mistaken}, modules).code, 0) << "values of variables are texts";
}

TEST(FleetManifests, hold_together) {
  for (const auto& [file, type, document] : manifests()) {
    SCOPED_TRACE(file);
    EXPECT_EQ(document["apiVersion"].get<std::string>() + "." + document["kind"].get<std::string>(), type);
    const Json& spec = document["spec"];
    const Json& pod = spec["template"]["spec"];
    const Json& labels = spec["template"]["metadata"]["labels"];
    if (spec.contains("selector")) {
      EXPECT_EQ(spec["selector"]["matchLabels"], labels);
    } else {
      EXPECT_EQ(pod["restartPolicy"], "Never") << "a job's default is not allowed";
    }
    if (pod.contains("affinity")) {
      const Json& apart =
          pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"];
      EXPECT_EQ(apart["matchLabels"], labels) << "one pod per node";
    }
    std::set<std::string> volumes, mounted;
    for (const Json& volume : pod["volumes"]) volumes.insert(volume["name"].get<std::string>());
    for (const Json& container : pod["containers"])
      for (const Json& mount : container["volumeMounts"]) mounted.insert(mount["name"].get<std::string>());
    EXPECT_EQ(volumes, mounted);
    if (spec.contains("podFailurePolicy")) {
      EXPECT_EQ(spec["podFailurePolicy"]["rules"][0]["onExitCodes"]["containerName"], pod["containers"][0]["name"]);
    }
  }
}

// The words of each call of weir in a container: its arguments, or the lines of its shell.
std::vector<std::vector<std::string>> calls_of(const Json& container) {
  if (!container.contains("command")) return {container["args"].get<std::vector<std::string>>()};
  std::vector<std::vector<std::string>> calls;
  for (const std::string& line : lines_of(container["args"][0].get<std::string>())) {
    std::istringstream words(line);
    std::vector<std::string> call;
    bool is_call = false;
    for (std::string word; words >> word && word != "&&";) {
      if (is_call) call.push_back(word);
      is_call = is_call || word == "weir";
    }
    if (is_call) calls.push_back(call);
  }
  return calls;
}

TEST(FleetManifests, use_the_image_as_it_is_meant) {
  const std::string image = content(fs::path(WEIR_SOURCE_DIR) / "Dockerfile");
  ASSERT_TRUE(has(image, "\nENTRYPOINT [\"weir\"]\n"));
  ASSERT_TRUE(has(image, "--uid 1001 weir"));
  std::size_t calls = 0;
  for (const auto& [file, type, document] : manifests()) {
    SCOPED_TRACE(file);
    const Json& pod = document["spec"]["template"]["spec"];
    if (pod.contains("securityContext")) {
      EXPECT_EQ(pod["securityContext"]["runAsUser"], 1001);
    }
    for (const Json& container : pod["containers"])
      for (const std::vector<std::string>& call : calls_of(container)) {
        ++calls;
        std::vector<std::string> command;
        for (const std::string& word : call) {
          if (word.starts_with("-") || command.size() == (call[0] == "fleet" ? 2U : 1U)) break;
          command.push_back(word);
        }
        command.push_back("--help");
        const Outcome help = weir(command);
        EXPECT_EQ(help.code, 0) << help.err;
        for (const std::string& word : call) {
          if (word.starts_with("--")) {
            EXPECT_TRUE(has(help.out, word)) << word << " is no flag of weir " << call[0] << ":\n" << help.out;
          }
        }
      }
  }
  EXPECT_EQ(calls, 4U);
}

// The DaemonSet's own shell text, with folders of the test instead of the pod's.
TEST(FleetManifests, the_daemon_set_examines_exports_and_ends_when_it_is_told_to) {
  const Json container = manifests()[2].document["spec"]["template"]["spec"]["containers"][0];
  std::string script = container["args"][0].get<std::string>();
  const Folder folder;
  for (const char* name : {"results", "state", "textfile"}) {
    fs::create_directory(folder / name);
    script = std::regex_replace(script, std::regex(std::string("/") + name + "\\b"), folder / name);
  }
  ASSERT_TRUE(has(script, "--budget 45s"));
  script = std::regex_replace(script, std::regex("--budget 45s"), "--budget 2s --device cpu");
  fs::create_symlink(WEIR_BINARY, folder / "weir");
  const pid_t process = start_program({"env", "PATH=" + folder.path().string() + ":/usr/bin:/bin", "NODE_NAME=n1",
                                       "INTERVAL=infinity", "/bin/sh", "-c", script},
                                      folder.path(), folder / "out", folder / "err");
  const auto has_both = [&] {
    return fs::exists(folder / "textfile/weir_fleet.prom") && fs::exists(folder / "state/fit");
  };
  while (!has_both() && !has_ended(process)) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(has_both()) << content(folder / "err");
  ::kill(process, SIGTERM);
  EXPECT_EQ(wait_for(process), 0);
  const Exposition read = check_openmetrics(content(folder / "textfile/weir_fleet.prom"));
  EXPECT_EQ(read.find("weir_fleet_probe_failed")->value, 0);
  EXPECT_NE(read.find("weir_fleet_probe_device_flop_per_second"), nullptr);
}

}  // namespace
}  // namespace weir::testing
