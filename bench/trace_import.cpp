// How fast Kineto's JSON becomes a timeline: GB/s of unpacked JSON on one core's time, and the memory of a process that
// does nothing else. The bars are 0.8 GB/s and 0.35 of the raw size; with operators, too, the latter. Reads the
// captures under WEIR_REAL_DATA, or generated ones where that is not set.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "measure/statistics.h"
#include "trace/import/byte_source.h"
#include "trace/import/import.h"

namespace {

using namespace weir;
namespace fs = std::filesystem;

std::int64_t core_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// One kernel and its call for every so many events of the host: 23 of them make the text as dense as the large real
// capture (a command in 8.6 kB), 3 as dense as the densest (in 2 to 4 kB).
void generate(const fs::path& path, std::size_t min_bytes, int operations) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) std::abort();
  std::size_t bytes = 0;
  const auto put = [&](const std::string& text) { bytes += std::fwrite(text.data(), 1, text.size(), file); };
  put("{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [\n");
  const std::string kernel(200, 'k');
  const auto is_large = [&] { return bytes >= min_bytes; };
  for (std::int64_t i = 0; !is_large(); ++i) {
    const double at = 1106964728033.0 + static_cast<double>(i) * 10;
    for (int op = 0; op < operations; ++op)
      put(fmt::format(
          "  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add_{0}\", \"pid\": 1, \"tid\": 1,\n"
          "    \"ts\": {1:.3f}, \"dur\": 2.125,\n    \"args\": {{\n      \"External id\": {2},\n"
          "      \"Input Dims\": [[32, 1024, 1024], [32, 1024, 1024], []],\n"
          "      \"Input type\": [\"c10::BFloat16\", \"c10::BFloat16\", \"Scalar\"], \"Ev Idx\": {2}\n    }}\n  }},\n",
          op, at, i));
    put(fmt::format(
        "  {{\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 1, \"tid\": 1,\n"
        "    \"ts\": {:.3f}, \"dur\": 4.5,\n    \"args\": {{\n      \"cbid\": 211, \"correlation\": {}\n    }}\n  "
        "}},\n",
        at, i + 1));
    put(fmt::format(
        "  {{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{}{}\", \"pid\": 0, \"tid\": {},\n    \"ts\": "
        "{:.3f}, "
        "\"dur\": 8.25,\n    \"args\": {{\n      \"device\": 0, \"context\": 1, \"stream\": {}, \"correlation\": {},\n"
        "      \"grid\": [64, 1, 1], \"block\": [128, 1, 1]\n    }}\n  }},\n",
        kernel, i % 40, 7 + i % 3, at + 6, 7 + i % 3, i + 1));
  }
  put("  {}\n  ]\n}\n");
  std::fclose(file);
}

std::uint64_t raw_size(const fs::path& path) {
  const auto bytes = open_bytes(path);
  std::vector<char> buffer(1 << 18);
  while (bytes->read(buffer.data(), buffer.size()) > 0) {
  }
  return bytes->position();
}

void unpack(const fs::path& packed, const fs::path& plain) {
  const auto bytes = open_bytes(packed);
  std::FILE* const file = std::fopen(plain.c_str(), "wb");
  if (file == nullptr) std::abort();
  std::vector<char> buffer(1 << 18);
  for (std::size_t got; (got = bytes->read(buffer.data(), buffer.size())) > 0;)
    std::fwrite(buffer.data(), 1, got, file);
  std::fclose(file);
}

// Of a process that imports this file and nothing else.
long peak_kib(const fs::path& path, const ImportOptions& options) {
  const pid_t child = fork();
  if (child == 0) {
    import_traces({path}, options);
    _exit(0);
  }
  rusage usage{};
  int status = 0;
  if (child < 0 || wait4(child, &status, 0, &usage) != child) return 0;
  return usage.ru_maxrss;
}

void report(const fs::path& path, bool has_operations) {
  constexpr int kRounds = 15;
  ImportOptions options;
  options.has_operations = has_operations;
  const long peak = peak_kib(path, options);
  const std::uint64_t raw = raw_size(path);
  std::vector<double> seconds;
  std::size_t commands = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t begun = core_ns();
    commands = import_traces({path}, options).front().timeline.spans.size();
    seconds.push_back(static_cast<double>(core_ns() - begun) / 1e9);
  }
  const double best = *std::min_element(seconds.begin(), seconds.end());
  const auto speed = [&](double s) { return static_cast<double>(raw) / s / 1e9; };
  fmt::print("{:<36}{:>9.1f}{:>10}{:>9.3f}{:>9.3f}{:>9.2f}{:>9.2f}{:>10.1f}{:>8.3f}\n",
             has_operations ? "  with operators" : path.filename().string(), static_cast<double>(raw) / 1e6, commands,
             best, median(seconds), speed(best), speed(median(seconds)), static_cast<double>(peak) / 1024,
             static_cast<double>(peak) * 1024 / static_cast<double>(raw));
}

void report(const fs::path& path) {
  for (const bool has_operations : {false, true}) report(path, has_operations);
}

}  // namespace

int main(int argc, char** argv) {
  fmt::print("{:<36}{:>9}{:>10}{:>9}{:>9}{:>9}{:>9}{:>10}{:>8}\n", "Kineto JSON", "raw MB", "commands", "best s",
             "median", "GB/s", "median", "peak MiB", "/ raw");
  if (argc > 1) {
    for (int i = 1; i < argc; ++i) report(argv[i]);
    return 0;
  }
  const fs::path folder = fs::temp_directory_path() / fmt::format("weir_bench_{}", getpid());
  fs::create_directories(folder);
  if (const char* const data = std::getenv("WEIR_REAL_DATA"); data != nullptr && *data != '\0') {
    std::vector<fs::path> captures;
    for (const auto& entry : fs::directory_iterator(fs::path(data) / "kineto")) captures.push_back(entry.path());
    std::sort(captures.begin(), captures.end(),
              [](const fs::path& a, const fs::path& b) { return fs::file_size(a) > fs::file_size(b); });
    for (const fs::path& packed : captures) {
      report(packed);
      // Unpacked as well, or zlib is what is measured.
      if (packed.extension() != ".gz") continue;
      const fs::path plain = folder / packed.stem();
      unpack(packed, plain);
      report(plain);
      fs::remove(plain);
    }
  } else {
    for (const auto& [name, operations] : {std::pair("typical.json", 23), std::pair("dense.json", 3)}) {
      generate(folder / name, std::size_t{96} << 20, operations);
      report(folder / name);
    }
  }
  fs::remove_all(folder);
  return 0;
}
