// hipRTC without a GPU: compiles a source for the host with the system's compiler, as a library whose functions the
// fake HIP runtime (kernels.cpp) can launch. Threads of a launch run one after the other, so there is no
// __syncthreads().
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#define WEIR_FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

namespace fs = std::filesystem;

// hiprtcResult
constexpr int kSuccess = 0, kInvalidInput = 3, kCompilation = 6;

struct Program {
  std::string name, source, log, code;
  std::vector<std::pair<std::string, std::string>> headers;
};

// What device code finds built in.
constexpr const char* kBefore = R"~(
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>
#define __HIPCC_RTC__ 1
#define __device__
#define __global__
#define __forceinline__ inline
namespace weir_fake {
struct Index { unsigned x, y, z; };
inline std::uint32_t bits_of(float value) { std::uint32_t bits; std::memcpy(&bits, &value, 4); return bits; }
inline float float_of(std::uint32_t bits) { float value; std::memcpy(&value, &bits, 4); return value; }
// _Float16, which not every compiler for hosts has in C++.
struct Half {
  std::uint16_t bits;
  Half() = default;
  explicit Half(float value) {
    const std::uint32_t all = bits_of(value), size = all & 0x7fffffffu;
    std::uint32_t half;
    if (size > 0x7f800000u) half = 0x7e00;
    else if (size >= 0x477ff000u) half = 0x7c00;
    else if (size < 0x38800000u) half = bits_of(float_of(size) + 0.5f) - bits_of(0.5f);
    else half = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
    bits = (std::uint16_t)(half | (all >> 16 & 0x8000u));
  }
  explicit operator float() const {
    const std::uint32_t size = bits & 0x7fffu, sign = (std::uint32_t)(bits & 0x8000u) << 16;
    if (size >= 0x7c00u) return float_of(sign | 0x7f800000u | (size & 0x3ffu) << 13);
    if (size >= 0x400u) return float_of(sign | ((size << 13) + 0x38000000u));
    return float_of(sign | bits_of((float)size * 5.9604644775390625e-8f));
  }
};
}  // namespace weir_fake
#define _Float16 weir_fake::Half
static thread_local weir_fake::Index threadIdx, blockIdx, blockDim, gridDim;
inline unsigned __float_as_uint(float value) { return weir_fake::bits_of(value); }
inline float __uint_as_float(unsigned bits) { return weir_fake::float_of(bits); }
inline float __int_as_float(int bits) { return weir_fake::float_of((unsigned)bits); }
)~";

// How the fake runtime launches a function of any signature.
constexpr const char* kAfter = R"~(
namespace weir_fake {
template <class... A, std::size_t... I>
void* pack_each(void** from, std::index_sequence<I...>) { return new std::tuple<A...>(*(A*)from[I]...); }
template <class... A>
void* pack(void (*)(A...), void** from) { return pack_each<A...>(from, std::index_sequence_for<A...>()); }
template <class... A>
void drop(void (*)(A...), void* packed) { delete (std::tuple<A...>*)packed; }
template <class... A>
void run(void (*function)(A...), void* packed, const unsigned* grid, const unsigned* block) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  for (unsigned b = 0; b < grid[0] * grid[1] * grid[2]; ++b)
    for (unsigned t = 0; t < block[0] * block[1] * block[2]; ++t) {
      blockIdx = {b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1]};
      threadIdx = {t % block[0], t / block[0] % block[1], t / block[0] / block[1]};
      std::apply(function, *(std::tuple<A...>*)packed);
    }
}
}  // namespace weir_fake
)~";

std::string launchers(const std::string& source) {
  // extern "C" __global__ void scale(const weir_real* x, ...
  static const std::regex kFunction(R"(__global__\s+void\s+(\w+)\s*\()");
  std::set<std::string> names;
  for (std::sregex_iterator i(source.begin(), source.end(), kFunction), end; i != end; ++i) names.insert((*i)[1]);
  std::ostringstream text;
  for (const std::string& name : names)
    text << "extern \"C\" void* weir_pack_" << name << "(void** from) { return weir_fake::pack(" << name
         << ", from); }\nextern \"C\" void weir_drop_" << name << "(void* packed) { weir_fake::drop(" << name
         << ", packed); }\nextern \"C\" void weir_run_" << name
         << "(void* packed, const unsigned* grid, const unsigned* block) { weir_fake::run(" << name
         << ", packed, grid, block); }\n";
  return text.str();
}

std::string read(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char each : word) text += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return text + "'";
}

int compile(Program& program, int count, const char* const* options) {
  std::string folder_name = (fs::temp_directory_path() / "weir_fake_hiprtc_XXXXXX").string();
  if (mkdtemp(folder_name.data()) == nullptr) return kInvalidInput;
  const fs::path folder = folder_name;
  for (const auto& [name, text] : program.headers) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
  std::ofstream(folder / "source.cpp") << kBefore << "#line 1 \"" << program.name << "\"\n"
                                       << program.source << kAfter << launchers(program.source);
  std::string command = "c++ -std=c++17 -O1 -w -shared -fPIC -I" + quoted(folder.string());
  for (int i = 0; i < count; ++i)
    if (std::strncmp(options[i], "-D", 2) == 0 || std::strncmp(options[i], "-I", 2) == 0)
      command += " " + quoted(options[i]);
  command += " " + quoted((folder / "source.cpp").string()) + " -o " + quoted((folder / "code.so").string()) + " 2> " +
             quoted((folder / "log").string());
  const bool is_compiled = std::system(command.c_str()) == 0;
  program.log = read(folder / "log");
  if (is_compiled) program.code = read(folder / "code.so");
  fs::remove_all(folder);
  return is_compiled ? kSuccess : kCompilation;
}

}  // namespace

WEIR_FAKE_EXPORT int hiprtcVersion(int* major, int* minor) { return *major = 6, *minor = 4, kSuccess; }
WEIR_FAKE_EXPORT const char* hiprtcGetErrorString(int result) {
  return result == kCompilation ? "HIPRTC_ERROR_COMPILATION" : "HIPRTC_ERROR";
}
WEIR_FAKE_EXPORT int hiprtcCreateProgram(Program** made, const char* source, const char* name, int count,
                                         const char* const* texts, const char* const* names) {
  *made = new Program{name, source, {}, {}, {}};
  for (int i = 0; i < count; ++i) (*made)->headers.emplace_back(names[i], texts[i]);
  return kSuccess;
}
WEIR_FAKE_EXPORT int hiprtcDestroyProgram(Program** program) { return delete *program, *program = nullptr, kSuccess; }
WEIR_FAKE_EXPORT int hiprtcCompileProgram(Program* program, int count, const char* const* options) {
  return compile(*program, count, options);
}
WEIR_FAKE_EXPORT int hiprtcGetProgramLogSize(Program* program, std::size_t* size) {
  return *size = program->log.size() + 1, kSuccess;
}
WEIR_FAKE_EXPORT int hiprtcGetProgramLog(Program* program, char* text) {
  return std::strcpy(text, program->log.c_str()), kSuccess;
}
WEIR_FAKE_EXPORT int hiprtcGetCodeSize(Program* program, std::size_t* size) {
  return *size = program->code.size(), kSuccess;
}
WEIR_FAKE_EXPORT int hiprtcGetCode(Program* program, char* code) {
  return std::memcpy(code, program->code.data(), program->code.size()), kSuccess;
}
