// How this program is stopped, for every command. SIGINT, SIGTERM and SIGHUP ask it to finish the iteration and save; a
// second one ends it within a second, without its children and temporary files. Knows no command.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <filesystem>

namespace weir {

// From here on the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 sets the flag. The second leaves the process most of a
// second to save, because a closed terminal and timeout(1) send theirs twice; the third ends it at once. SIGUSR1 may
// repeat: it only asks to stop, and launchers forward it in addition to the original sender. An ignored SIGHUP (nohup)
// stays ignored. Call it again after loading libraries that install handlers of their own.
const std::atomic<bool>& catch_interrupts();
// The same, but later signals are only counted, for a caller that must end other processes first. Returns the count.
const std::atomic<int>& count_interrupts();
// Thrown where a request to stop leaves nothing to return, and caught by the command. No std::exception: what handles
// errors on the way must not take it for one.
struct Interrupted {};
// The first of these signals; 0: none yet.
int first_interrupt() noexcept;
// Called by the handler for each of these signals, so only async-signal-safe calls. Null: nothing is called.
void on_interrupt(void (*call)() noexcept) noexcept;

// Ends the process as a second signal does, without waiting for its threads: for a run that hangs.
[[noreturn]] void end_at_once(int code) noexcept;

// Called before a second signal ends the process, from now on. Only async-signal-safe calls; at most 4 functions.
void call_when_cut(void (*call)() noexcept) noexcept;

// A file or a folder that a second signal removes. Threads may make them at once. One that has no room left in the
// list, or a name above 1 KB, is forgotten.
class RemovedWhenCut {
 public:
  explicit RemovedWhenCut(const std::filesystem::path& path) noexcept;
  ~RemovedWhenCut();
  RemovedWhenCut(const RemovedWhenCut&) = delete;
  RemovedWhenCut& operator=(const RemovedWhenCut&) = delete;

 private:
  int place_ = -1;
};

// A process group that gets SIGTERM by a second signal, and SIGKILL when that ends this process.
void remember_group(pid_t group) noexcept;
void forget_group(pid_t group) noexcept;

}  // namespace weir
