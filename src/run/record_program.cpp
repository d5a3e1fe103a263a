#include "run/record_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/user_program.h"
#include "run/children.h"
#include "trace/record_format.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCudaRecorder = "libweir_cupti.so";    // loaded by the CUDA driver, and before it for its hooks
constexpr const char* kHipRecorder = "libweir_hip_gate.so";  // loaded before HIP's runtime
constexpr std::uint64_t kRoomFor = 4;                        // recordings, where the user did not choose the folder

Variables recorder_variables(const RecordRequest& request, const RecordFolder& folder) {
  Variables variables = {{record::kFolderVariable, folder.path.string()},
                         {record::kBytesVariable, std::to_string(request.bytes)}};
  if (request.is_exact) variables.emplace_back(record::kExactVariable, "1");
  if (request.begins_off) variables.emplace_back(record::kOffVariable, "1");
  // Only then it is known of the last commands before a pause whether they have ended.
  if (request.triggers.hang_ns > 0 || request.triggers.stall_ns > 0) variables.emplace_back(record::kHangVariable, "1");
  if (const auto cuda = own_library(kCudaRecorder)) {
    if (request.cuda_injection && *request.cuda_injection != cuda->string())
      request.say(fmt::format("CUDA_INJECTION64_PATH was {}: that library is left out", *request.cuda_injection));
    variables.emplace_back("CUDA_INJECTION64_PATH", cuda->string());
    if (!request.has_nvtx_injection) variables.emplace_back("NVTX_INJECTION64_PATH", cuda->string());
  }
  // Without it calls come from CUPTI, which costs more. Exact times are CUPTI's, and then the calls are, too.
  std::string preload = preloaded(request.preload, {kHipRecorder});
  if (!request.is_exact) preload = preloaded(std::move(preload), {kCudaRecorder});
  if (preload != request.preload) variables.emplace_back("LD_PRELOAD", preload);
  return variables;
}

bool is_used(const fs::path& folder) {
  for (const RecordFile& file : recordings_in(folder)) {
    std::string ignored;
    const auto state = LiveRecording(file.path).read(ignored);
    if (state && is_alive(state->header)) return true;
  }
  return false;
}

}  // namespace

int record_program(const RecordRequest& request) {
  if (!own_library(kCudaRecorder) && !own_library(kHipRecorder))
    fail(fmt::format("{} is not beside the program, nor in ../lib/weir", kCudaRecorder),
         "It is built where CUPTI's headers are: `weir info` says whether they were.");
  if (!request.metrics.empty()) check_record_metrics(request.metrics);
  remove_old_recordings(request.roots);
  const RecordFolder folder = make_record_folder(request.roots, request.folder, request.bytes * kRoomFor);
  RecordWatch watch(folder, request.triggers, request.metrics, request.metrics_interval_ns, request.say);
  int code = 0;
  try {
    const Variables variables = recorder_variables(request, folder);
    if (!request.is_quiet)
      request.say(fmt::format("recording into {}\n  for a trace: weir record dump {} -o trace.json",
                              folder.path.string(), ::getpid()));
    const auto look = [&](pid_t program) {
      const std::int64_t next = watch.look(program);
      if (Forwarding::take_own()) watch.dump_all("asked for by a signal");
      return next;
    };
    // A program does not end with its recorder.
    code = Forwarding(request.triggers.signal).run(request.command, variables, look, 0);
  } catch (const Error&) {
    remove_recordings(folder);  // it was not started
    throw;
  }
  watch.end();
  if (watch.has_killed()) {
    watch.finish_kill();
    code = 1;
  }
  const bool is_asked_to_keep = request.keeps || request.folder;
  if (watch.recorded() == 0) {
    // Otherwise the library or the watch has said why.
    if (!request.is_quiet && !watch.has_found())
      request.say("nothing was recorded: no process of the program started CUDA or HIP");
    if (!is_asked_to_keep || !watch.has_found()) remove_recordings(folder);
  } else if (!is_asked_to_keep && code == 0 && !is_used(folder.path)) {
    remove_recordings(folder);
  } else if (!request.is_quiet) {
    request.say(fmt::format("the recording is kept: weir record dump {} -o trace.json", ::getpid()));
  }
  return code;
}

}  // namespace weir
