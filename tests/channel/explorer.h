// Runs a small program in every way it can go: all orders of its threads' steps, and for each load all stores that it
// may read (explored_memory.h says what memory may do). Threads are fibers of one thread; the program is the real code,
// over the `Explored` machine (explored.h).
//
// How it ends, and why nothing is left out:
// - Executions are repeated from the beginning and differ in their choices (depth first). A step that commutes with all
//   steps of other threads is no choice: stores (they may go anywhere in the modification order), acquiring fences,
//   contents. Every other step is taken at once, for each store that it may read, or put off until another thread did
//   something that makes a difference to it (sleep sets); a load that was put off reads only what is new.
// - A state is everything that decides what can happen next: stacks and registers of the threads, the scenario and the
//   cells byte by byte, and memory as those who live can still see it. An execution that comes to a state again is
//   given up: what follows has been seen. (States are kept as 64-bit hashes: that two of ten million are taken for each
//   other has a probability of 3 in a million.) So a scenario tells of what it keeps
//   on the heap (remember()); cells tell of themselves.
// - A round of a spinning loop, from relax() to relax(), that reads the values of the round before is given up: it
//   leaves the thread where it was, and can only narrow what it may read later.
// - Sleeping: wait() compares with any store that is not older than what the last wake() of that word knew; wake() may
//   choose any sleepers. A deadline may pass at any time. A compare_exchange_weak does not fail for no reason, and
//   wait() does not return for none.
// Bounds: steps per execution, executions, stores per location (255), locations, threads. A report is complete only if
// none was met.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <string_view>

namespace weir::explored {

// A program: made anew for each execution.
class Scenario {
 public:
  virtual ~Scenario() = default;
  virtual int threads() const = 0;
  // What a thread does. It must hold nothing that has to be destroyed: executions are given up in the middle.
  virtual void run(int thread) = 0;
  // All threads have ended: is everything as it should be? Calls fail() where not.
  virtual void judge() {}
  static void* operator new(std::size_t bytes);
  static void* operator new(std::size_t bytes, std::align_val_t) { return operator new(bytes); }
  static void operator delete(void*) {}
  static void operator delete(void*, std::align_val_t) {}
};

// Memory on the heap that belongs to the scenario and is no cell: part of the state. Said when the scenario is made.
void remember(const void* memory, std::size_t bytes);

// A thread that spins (relax()) has got what it wanted.
void settle();

// A place in the code that asks for more than relaxed, and the thread that is there.
struct Site {
  std::string_view what;  // acquire, release, light_fence ...
  std::string_view file;
  unsigned line = 0;
  unsigned column = 0;
  int thread = 0;
  auto operator<=>(const Site&) const = default;
};

enum class Model : std::uint8_t {
  weak,        // all that C++ allows, but for what explored_memory.h names
  sequential,  // every load reads the last store: far fewer behaviours, so larger programs. Races are still seen.
};

// The others check that what the first leaves out makes no difference.
enum class Search : std::uint8_t {
  reduced,
  all_orders,  // every order of all steps; states are still seen only once
  everything,  // nothing is left out
};

struct Options {
  Model model = Model::weak;
  Search search = Search::reduced;
  std::uint64_t executions = 20'000'000;
  int steps = 2'000;
  std::set<Site>* sites = nullptr;  // gets those that were met
  const Site* weakened = nullptr;   // what is asked for there is relaxed instead, or no fence at all
};

struct Report {
  std::uint64_t executions = 0;
  std::uint64_t states = 0;
  bool is_complete = false;  // all behaviours were seen (or the failure below ended the search)
  std::string failure;       // empty: none
  std::string schedule;      // of the failure, step by step
  std::string text() const;
};

Report explore(const std::function<std::unique_ptr<Scenario>()>& make, const Options& options = {});

// Says that this execution went wrong. In a thread it does not return.
void fail(const std::string& what);

// Whether fibers can run here: ThreadSanitizer loses track of stacks that are switched by hand.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kCanExplore = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kCanExplore = false;
#else
inline constexpr bool kCanExplore = true;
#endif
#else
inline constexpr bool kCanExplore = true;
#endif

}  // namespace weir::explored
