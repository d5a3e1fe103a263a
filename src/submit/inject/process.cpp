#include "submit/inject/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/secrets.h"

namespace weir::inject {

int create_file_of_process(const std::string& folder, const char* suffix, int mode) {
  for (int i = 0; i < 100; ++i) {
    const std::string name =
        folder + "/" + std::to_string(::getpid()) + (i == 0 ? "" : "." + std::to_string(i)) + suffix;
    const int descriptor = ::open(name.c_str(), mode | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

int open_own_file(const std::string& path, int mode) noexcept {
  return ::open(path.c_str(), mode | O_CLOEXEC | O_NOFOLLOW, 0600);
}

std::vector<std::string> own_words() {
  std::vector<std::string> words;
  std::FILE* const file = std::fopen("/proc/self/cmdline", "re");
  if (file == nullptr) return words;
  std::string word;
  for (int letter = std::fgetc(file); letter != EOF; letter = std::fgetc(file)) {
    if (letter != 0) {
      word += static_cast<char>(letter);
      continue;
    }
    words.push_back(word);
    word.clear();
  }
  std::fclose(file);
  return recorded_command(std::move(words));
}

// base/process.h knows this too, but brings libraries along that must not come into other people's programs.
std::uint64_t own_start() noexcept {
  std::FILE* const file = std::fopen("/proc/self/stat", "re");
  if (file == nullptr) return 0;
  char line[1024] = {};
  const std::size_t got = std::fread(line, 1, sizeof(line) - 1, file);
  std::fclose(file);
  // The name, in brackets, is field 2 and may have anything in it; this one is field 22.
  std::string_view rest(line, got);
  rest.remove_prefix(std::min(rest.rfind(')') + 1, rest.size()));
  for (int field = 3; field < 22 && !rest.empty(); ++field)
    rest.remove_prefix(std::min(rest.find(' ', 1), rest.size()));
  return std::strtoull(rest.data(), nullptr, 10);
}

void start_own_thread(void* (*body)(void*)) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  if (::pthread_create(&thread, nullptr, body, nullptr) == 0) ::pthread_detach(thread);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::string_view plain_function(std::string_view name) noexcept {
  const std::size_t version = name.rfind("_v");
  if (version != std::string_view::npos && version + 2 < name.size() &&
      name.find_first_not_of("0123456789", version + 2) == std::string_view::npos)
    name = name.substr(0, version);
  for (const std::string_view variant : {"_ptsz", "_ptds"})
    if (name.ends_with(variant)) name.remove_suffix(variant.size());
  return name;
}

}  // namespace weir::inject
