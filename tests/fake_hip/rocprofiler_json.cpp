// The fake rocprofv3's tool: writes what was recorded as rocprofv3 of ROCm 7 does, one file per process.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "rocprofiler.h"

namespace weir::fake_rocprofiler {
namespace {

// By kind, as in the lists of names: places that nothing here refers to are empty.
constexpr int kHipRuntime = 5, kCopy = 10, kDispatch = 11, kKinds = 12;

// Numbers for names, in the order of their first use.
class Names {
 public:
  std::size_t operator()(const std::string& name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
    names_.push_back(name);
    return names_.size() - 1;
  }
  const std::vector<std::string>& all() const { return names_; }

 private:
  std::vector<std::string> names_;
};

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ",\"") + name + "\"";
  return "[" + text + "]";
}

std::string head(int size, int kind, std::size_t operation, std::uint64_t thread, std::uint64_t correlation,
                 std::int64_t started, std::int64_t ended) {
  const auto member = [](const char* name, auto value) {
    return "\"" + std::string(name) + "\":" + std::to_string(value);
  };
  return "{" + member("size", size) + "," + member("kind", kind) + "," + member("operation", operation) + "," +
         member("thread_id", thread) + ",\"correlation_id\":{" + member("internal", correlation) + ",\"external\":0}," +
         member("start_timestamp", started) + "," + member("end_timestamp", ended);
}

std::string handle(const char* name, std::int64_t number) {
  return ",\"" + std::string(name) + "\":{\"handle\":" + std::to_string(number) + "}";
}

void join(std::string& text, const std::string& record) { text += (text.empty() ? "" : ",") + record; }

}  // namespace

void write_json() {
  const char* const folder = std::getenv("WEIR_FAKE_ROCPROF_FOLDER");
  if (folder == nullptr || setting("silent") != 0) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const std::int64_t drop = setting("drop");
  std::vector<Work> works;
  for (std::size_t i = 0; i < s.works.size(); ++i)
    if (s.works[i].ended != 0 && (drop == 0 || static_cast<std::int64_t>(i) % drop != 0)) works.push_back(s.works[i]);
  if (setting("shuffle") != 0) std::reverse(works.begin(), works.end());
  Names calls, kernels;
  kernels("");  // number 0 is no kernel
  std::string dispatches, copies, api;
  for (const Work& work : works) {
    if (work.kind == FakeHipWork::kernel) {
      std::string record = head(184, kDispatch, 2, work.thread, work.correlation, work.started, work.ended) +
                           ",\"dispatch_info\":{\"size\":72,\"agent_id\":{\"handle\":13}" +
                           handle("queue_id", work.queue) + ",\"kernel_id\":" + std::to_string(kernels(work.name)) +
                           "}";
      if (setting("streams", 1) != 0) record += handle("stream_id", work.stream);
      join(dispatches, record + "}");
    } else {
      std::string record = head(88, kCopy, 2, work.thread, work.correlation, work.started, work.ended) +
                           handle("dst_agent_id", 13) + handle("src_agent_id", 10) +
                           ",\"bytes\":" + std::to_string(work.bytes);
      if (setting("streams", 1) != 0) record += handle("stream_id", work.stream);
      join(copies, record + "}");
    }
  }
  for (const Call& call : s.calls)
    if (setting("calls", 1) != 0)
      join(api, head(56, kHipRuntime, calls(call.name), call.thread, call.correlation, call.started, call.ended) + "}");
  std::string names, symbols;
  for (int kind = 0; kind < kKinds; ++kind)
    join(names,
         "{\"kind\":\"K" + std::to_string(kind) + "\",\"operations\":" +
             (kind == kHipRuntime ? list_of(calls.all())
              : kind == kCopy ? list_of({"MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE"})
                              : "[]") +
             "}");
  for (std::size_t i = 0; i < kernels.all().size(); ++i)
    join(symbols,
         "{\"size\":0,\"kernel_id\":" + std::to_string(i) + ",\"formatted_kernel_name\":\"" + kernels.all()[i] + "\"}");
  char host[256] = "host";
  ::gethostname(host, sizeof host - 1);
  const std::filesystem::path to = std::filesystem::path(folder) / host;
  std::filesystem::create_directories(to);
  std::ofstream file(to / (std::to_string(::getpid()) + "_results.json"));
  file << "{\"rocprofiler-sdk-tool\":[{\"metadata\":{\"pid\":" << ::getpid()
       << "},\"agents\":[{\"size\":312,\"id\":{\"handle\":10},\"type\":1,\"name\":\"CPU\"},{\"size\":312,\"id\":{"
          "\"handle\":13},"
          "\"type\":2,\"name\":\"gfx942\",\"product_name\":\"AMD Instinct MI300X (fake)\",\"logical_node_type_id\":0}],"
       << "\"strings\":{\"buffer_records\":[" << names << "]},\"kernel_symbols\":[" << symbols
       << "],\"buffer_records\":{\"kernel_dispatch\":[" << dispatches << "],\"hip_api\":[" << api
       << "],\"hsa_api\":[],\"memory_copy\":[" << copies << "]}}]}\n";
  file.close();
  const std::filesystem::path name = to / (std::to_string(::getpid()) + "_results.json");
  // For tests, which compare with it what was made of it.
  if (const char* const kept = std::getenv("WEIR_FAKE_ROCPROF_KEEP"))
    std::filesystem::copy_file(name, kept, std::filesystem::copy_options::overwrite_existing);
  if (setting("cut") != 0) std::filesystem::resize_file(name, 10);
}

}  // namespace weir::fake_rocprofiler
