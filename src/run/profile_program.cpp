#include "run/profile_program.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "base/private_folder.h"
#include "base/schemas.h"
#include "base/units.h"
#include "base/user_program.h"
#include "run/children.h"
#include "run/profile.h"
#include "run/profile_rocprof.h"
#include "trace/import/import.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInjection = "libweir_cupti.so";
constexpr std::uint64_t kImportGrowth = 4;  // memory that a timeline takes at most, relative to its capture

fs::path injection_library() {
  if (const auto library = own_library(kInjection)) return *library;
  fail(fmt::format("{} is not beside the program, nor in ../lib/weir", kInjection),
       "It is built where CUPTI's headers are: `weir info` says whether they were.");
}

bool has_cuda_driver() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library != nullptr) ::dlclose(library);
  return library != nullptr;
}

enum class Profiler : std::uint8_t { cupti, rocprof };

Profiler choose(const std::string& name, bool has_rocprof) {
  if (name == "cupti") return Profiler::cupti;
  if (name == kRocprof && !has_rocprof) reject_setting("profiler", name, "not found in PATH", kRocprofHint);
  if (name == kRocprof) return Profiler::rocprof;
  if (name != "auto") {
    const std::vector<std::string> names = {"auto", "cupti", kRocprof};
    reject_setting("profiler", name, "unknown profiler", suggestion(name, names));
  }
  if (has_cuda_driver()) return Profiler::cupti;
  if (has_rocprof) return Profiler::rocprof;
  std::error_code ignored;
  if (fs::exists("/dev/kfd", ignored))
    reject("this machine has an AMD GPU (/dev/kfd), but rocprofv3 is not in PATH", kRocprofHint);
  return Profiler::cupti;
}

// One trace per process that wrote one.
struct Captured {
  std::string process;  // pid, as in the name of the profiler's file
  std::string word;     // for the trace's name: "process4711", or "process4711.1" for a program that it executed
  Timeline timeline;
};

// A file that cannot be read causes a note, and is kept.
std::vector<Captured> import_all(const std::vector<fs::path>& files, const ImportOptions& options,
                                 PrivateFolder& folder, Json& notes) {
  std::vector<Captured> all;
  for (const fs::path& file : files) {
    const std::string stem = file.stem().string();
    const std::string process = stem.substr(0, stem.find_first_not_of("0123456789"));
    const std::size_t rest = stem.find_first_not_of("0123456789.");
    try {
      for (ImportedTrace& trace : import_traces({file}, options)) {
        for (const std::string& note : trace.timeline.notes) notes.push_back(note);
        all.push_back({process, "process" + stem.substr(0, rest), std::move(trace.timeline)});
      }
    } catch (const Error& error) {
      folder.keep();
      notes.push_back(fmt::format("a capture cannot be read, and is kept: {} {}", error.what(), error.hint));
    }
  }
  return all;
}

std::string files_of(const std::vector<fs::path>& files) {
  std::string text;
  for (const fs::path& file : files) text += (text.empty() ? "" : " ") + file.string();
  return text;
}

void add_dropped(Json& document, const Timeline& timeline) {
  for (const Dropped& dropped : timeline.dropped)
    document["dropped"].push_back({{"reason", dropped.reason}, {"count", dropped.count}});
}

std::string no_capture_reason(Profiler profiler, std::size_t captures) {
  if (profiler == Profiler::rocprof)
    return captures == 0 ? "rocprofv3 wrote no trace: did the program use the GPU?"
                         : "rocprofv3 saw no command on a GPU";
  if (captures > 0) return "the CUDA driver was started, but no command was captured; notes below say more";
  if (!has_cuda_driver()) return "nothing was captured: there is no CUDA driver (libcuda.so.1) on this machine";
  return "nothing was captured: no process of the program started the CUDA driver";
}

std::string end_words(int code, double ns) {
  const std::string after = format_duration(ns);
  if (code > 128) return fmt::format("ended by signal {} after {}", code - 128, after);
  return fmt::format("exit code {} after {}", code, after);
}

}  // namespace

ProgramProfile profile_program(const ProgramRequest& request) {
  const Profiler profiler = choose(request.profiler, request.rocprof.has_value());
  PrivateFolder folder;
  std::vector<std::string> command = request.command;
  Variables variables;
  Json notes = Json::array();
  std::string words;
  if (profiler == Profiler::cupti) {
    const fs::path library = injection_library();
    if (request.cuda_injection)
      notes.push_back(fmt::format("CUDA_INJECTION64_PATH was {}: that profiler was left out", *request.cuda_injection));
    variables = {{"CUDA_INJECTION64_PATH", library.string()},
                 {"WEIR_CAPTURE_FOLDER", folder.path().string()},
                 {"WEIR_CAPTURE_LIMIT", std::to_string(request.limit_mib << 20)}};
    if (request.nvtx_injection)
      notes.push_back(fmt::format("NVTX_INJECTION64_PATH is {}: ranges of NVTX go there", *request.nvtx_injection));
    else
      variables.emplace_back("NVTX_INJECTION64_PATH", library.string());
    if (request.has_latency) variables.emplace_back("WEIR_CAPTURE_LATENCY", "1");
    if (request.has_whole_graphs) variables.emplace_back("WEIR_CAPTURE_WHOLE_GRAPHS", "1");
    words = fmt::format("CUPTI, in the program by {}", library.filename().string());
  } else {
    const std::vector<std::string> prefix = rocprof_command(*request.rocprof, folder.path().string());
    command.insert(command.begin(), prefix.begin(), prefix.end());
    words = prefix[0];
  }
  const std::string created = wall_time();
  const std::int64_t begun = now_ns();
  ProgramProfile profile;
  profile.code = Forwarding().run(command, variables);
  const auto took = static_cast<double>(now_ns() - begun);

  const bool is_cupti = profiler == Profiler::cupti;
  const auto files = files_below(folder.path(), is_cupti ? ".weircap" : ".json");
  // From here on Ctrl-C is for Weir.
  const std::atomic<bool>& stop = request.stop();
  ImportOptions import;
  import.format = is_cupti ? "weir_capture" : "rocprof_json";
  import.limits.memory_bytes =
      std::max(import.limits.memory_bytes, static_cast<std::uint64_t>(request.limit_mib) * kImportGrowth << 20);
  import.progress = [&] {
    if (stop.load(std::memory_order_relaxed)) throw Interrupted{};
  };
  std::vector<Captured> captured;
  try {
    captured = import_all(files, import, folder, notes);
  } catch (const Interrupted&) {
    profile.is_interrupted = true;
    return profile;
  }
  Json& document = profile.document;
  document["schema"] = schemas::profile;
  document["created"] = created;
  document["command_line"] = request.command_line;
  document["workload"] = nullptr;
  document["program"] = {{"command", request.command},
                         {"code", profile.code},
                         {"end", end_words(profile.code, took)},
                         {"wall_ns", took},
                         {"profiler", words},
                         {"captures", files.size()}};
  document["devices"] = Json::array();
  document["files"] = Json::array();
  document["dropped"] = Json::array();
  document["warnings"] = Json::array();
  document["notes"] = notes;
  document["format"] = request.output.format;
  Json unavailable = Json::object();
  for (const Captured& one : captured) add_dropped(document, one.timeline);
  std::erase_if(captured, [](const Captured& one) { return one.timeline.spans.empty(); });
  ProfileOutput output = request.output;
  output.progress = import.progress;
  for (Captured& one : captured) {
    for (TraceProcess& process : one.timeline.processes)
      process.label = fmt::format("{} (process {})", fs::path(request.command[0]).filename().string(), one.process);
    for (Json device : describe_devices(one.timeline)) {
      device["process"] = "process " + one.process;
      document["devices"].push_back(std::move(device));
    }
    const fs::path path = output.named(captured.size() == 1 ? "" : one.word, one.timeline.spans.size());
    try {
      output.write(one.timeline, 0, parse_integer(one.process).value_or(0), 1, Json::object(), path, document);
    } catch (const Interrupted&) {
      profile.is_interrupted = true;
      return profile;
    } catch (const Error& error) {
      // Kept, because the program may have run for hours.
      folder.keep();
      throw Error(error.fault, error.what(),
                  fmt::format("{}{}What was captured is kept: weir analyze {}", error.hint,
                              error.hint.empty() ? "" : " ", files_of(files)));
    }
  }
  profile.has_timeline = !captured.empty();
  if (captured.empty()) unavailable["devices"] = no_capture_reason(profiler, files.size());
  document["unavailable"] = std::move(unavailable);
  return profile;
}

}  // namespace weir
