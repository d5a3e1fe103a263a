#include "docs/samples.h"

#include <fmt/format.h>

#include <fstream>
#include <regex>
#include <string>

#include "support/amd_capture.h"
#include "support/amd_log_text.h"
#include "support/kfd_text.h"
#include "trace/importer_testing.h"

namespace weir::testing {

namespace fs = std::filesystem;

namespace {

// The driver's own calls, so that nothing has to be installed: a context, some memory, and memsets to record.
const char* const kTrain = R"(import ctypes
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    cuda = None
if cuda is not None and cuda.cuInit(0) == 0:
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    cuda.cuCtxSetCurrent(context)
    cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20))
    for i in range(100):
        cuda.cuMemsetD8Async(memory, ctypes.c_ubyte(i), ctypes.c_size_t(1 << 20), None)
    cuda.cuCtxSynchronize()
)";

}  // namespace

void put_program(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
  fs::permissions(path, fs::perms::owner_all);
}

void write_programs(const fs::path& folder) {
  for (const char* name : {"train", "serve", "program"}) {
    put_program(folder / name, fmt::format("#!/usr/bin/env python3\n{}", kTrain));
    put_program(folder / (std::string(name) + ".py"), kTrain);
  }
}

void write_small_packages(const fs::path& from, const fs::path& to) {
  fs::copy(from, to, fs::copy_options::recursive);
  // count: [1048576, 33554432]
  static const std::regex kLarge(R"(([0-9]{4,})([\],]|$))");
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(to)) {
    if (entry.path().filename() != "bench.yaml") continue;
    std::ifstream file(entry.path());
    std::string made;
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      std::string rest = line;
      while (line.find('#') == std::string::npos && std::regex_search(rest, match, kLarge)) {
        const long size = std::stol(match[1]);
        made += match.prefix().str() + std::to_string(size >= 8192 ? size / 64 : size) + match[2].str();
        rest = match.suffix();
      }
      made += rest + "\n";
    }
    file.close();
    std::ofstream(entry.path()) << made;
  }
}

void write_samples(const fs::path& folder) {
  for (const int number : {1, 2}) {
    const fs::path capture = folder / fmt::format("run{}", number);
    fs::create_directories(capture);
    write_capture(random_scene(static_cast<std::uint64_t>(number + 2), Gfx::gfx9_4_3), capture);
  }
  fs::create_directories(folder / "snapshot");
  write_snapshot(random_scene(3, Gfx::gfx9_4_3), folder / "snapshot");
  std::ofstream(folder / "a.log") << amd_log_text(sequential_scene(16, 4, 3), {});
  std::ofstream(folder / "b.log") << amd_log_text(sequential_scene(8, 2, 5), {});
#if WEIR_HAVE_SQLITE
  std::string nsys =
      "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
      "INSERT INTO StringIds VALUES (1, 'gemm');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT "
      "NULL,"
      "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
      "demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);";
  std::string rpd =
      "CREATE TABLE rocpd_string (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, string varchar(4096) NOT NULL);"
      "CREATE TABLE rocpd_op (id integer NOT NULL PRIMARY KEY, gpuId integer, queueId integer, sequenceId integer, "
      "start"
      " integer, end integer, description_id integer, opType_id integer);"
      "CREATE TABLE rocpd_api (id integer NOT NULL PRIMARY KEY, pid integer, tid integer, start integer, end integer,"
      " apiName_id integer, args_id integer);"
      "CREATE TABLE rocpd_api_ops (id integer PRIMARY KEY, api_id integer, op_id integer);"
      "INSERT INTO rocpd_string VALUES (1, 'KernelExecution'), (2, 'gemm');";
  for (int i = 0; i < 40; ++i) {
    const int start = 1000 + 5000 * i;
    nsys += fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({},{},0,1,{},{},281477392629760,1,1);", start,
                        start + 3000, 7 + i % 2, i);
    rpd += fmt::format("INSERT INTO rocpd_op VALUES ({}, 2, {}, 0, {}, {}, 2, 1);", i, i % 2, start, start + 3000);
  }
  std::ofstream(folder / "nsys.sqlite", std::ios::binary) << database_of(nsys);
  std::ofstream(folder / "trace.rpd", std::ios::binary) << database_of(rpd);
#else
  // A program without SQLite says so as soon as it sees how these files begin.
  for (const char* name : {"nsys.sqlite", "trace.rpd"})
    std::ofstream(folder / name, std::ios::binary) << std::string("SQLite format 3\0", 16) << std::string(84, '\0');
#endif
}

}  // namespace weir::testing
