// The parts of libweir_cupti.so. CUPTI itself is opened at run time, because the copy that a program brings is the one
// that fits it.
#pragma once

#include <dlfcn.h>

#include <string>

namespace weir::inject {

// Null, with the loader's message, if there is none. WEIR_CUPTI_LIBRARY can name it.
void* open_cupti(std::string& reason);

// The loader's dlsym(), which never gives one of our functions (cuda_hooks.h).
void* find_symbol(void* library, const char* name) noexcept;

// Looks up entry points of an open library. Not base/vendor_library.h, which formats its messages with a library that
// other people's programs must not be given, and would load a library of its own instead of the program's.
class EntryPoints {
 public:
  explicit EntryPoints(void* library) noexcept : library_(library) {}
  template <class Function>
  bool want(Function*& entry, const char* symbol) const noexcept {
    entry = reinterpret_cast<Function*>(find_symbol(library_, symbol));
    return entry != nullptr;
  }
  void need(auto& entry, const char* symbol) noexcept {
    if (!want(entry, symbol) && missing_ == nullptr) missing_ = symbol;
  }
  // The first that need() did not find, or null.
  const char* missing() const noexcept { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

// Records a program's commands, for `weir profile --`, if WEIR_CAPTURE_FOLDER names a folder; call once. Throws only
// when memory runs out.
void start_capture();

// Keeps a program's last commands and calls in a file, for `weir record`, if WEIR_RECORD_FOLDER names a folder; call
// once. Throws only when memory runs out.
void start_record();

// Follows the plan of `weir race` if WEIR_RACE_FOLDER names a folder; call once. Throws only when memory runs out.
void start_race();

// Holds a program's launches, for `weir sched run`, if WEIR_SCHED_SOCKET names a scheduler; call once. If anything is
// missing, the program runs unscheduled, with a message on stderr.
void start_gate() noexcept;

}  // namespace weir::inject
