// "Any CUDA program", on the fake driver: each word is something that such programs do. At the end it says what came of
// it. Words: run N US (kernels on a stream), streams N US (on four), threads N US (of four threads, each on its default
// stream), kinds (every kind of launch on the default stream), capture N (a graph, while others launch), fails, destroy
// (streams with work in them), reset (the device with work on it), second N US (on the other device), fork, exits
// (while a thread launches), copies N (that the host waits for), events N (a stream waits for another's event), hang (a
// kernel that does not end, and a stream that waits for it), faults (handles its own SIGSEGV), locks-up (from now on
// the kernel kills it where it opens a file or executes something), asks N (the driver for its functions, as the
// runtime does; linked, as the first word: asks by the function that it is linked with), across N US (on a stream of
// the other device), ordered N US (kernels, memsets and graphs on three streams and the threads' default streams, which
// have to keep their order; ordered-changes: a graph of them is changed), fork-thread (from a thread that goes on),
// fork-thread-stays (it does not end), small-stacks (threads with the smallest there are), say TEXT, sleep MS.
#include <dlfcn.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "fake_driver.h"

namespace {

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::printf("%s: error %d\n", what, static_cast<int>(result));
  std::fflush(stdout);
  std::_Exit(9);
}

sigjmp_buf g_before_fault;

void recover_from_a_fault() {
  struct sigaction action{};
  action.sa_handler = [](int) { siglongjmp(g_before_fault, 1); };
  ::sigaction(SIGSEGV, &action, nullptr);
  void* const page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (sigsetjmp(g_before_fault, 1) == 0) *static_cast<volatile char*>(page) = 1;
  std::puts("recovered");
}

// As the runtime does: before the driver is started.
struct Asked {
  using Give = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  explicit Asked(bool is_linked) {
    library = ::dlopen("libcuda.so.1", RTLD_NOW);
    give = is_linked ? cuGetProcAddress_v2 : reinterpret_cast<Give>(::dlsym(library, "cuGetProcAddress_v2"));
    check(give("cuLaunchKernel", &launch[0], 12000, 0, nullptr), "give");
    check(give("cuLaunchKernel", &launch[1], 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr), "give");
    launch[2] = ::dlsym(library, "cuLaunchKernel");
  }
  void* library;
  Give give;
  void* launch[3] = {};
};

void launch_what_was_asked_for(const Asked& asked, int count) {
  void* give_again = nullptr;
  check(asked.give("cuGetProcAddress", &give_again, 12000, 0, nullptr), "give");
  int us = 10;
  void* parameters[] = {&us};
  for (int n = 0; n < count; ++n)
    for (void* const function : asked.launch)
      check(reinterpret_cast<decltype(&cuLaunchKernel)>(function)(fake_driver_kernel(), 1, 1, 1, 1, 1, 1, 0, nullptr,
                                                                  parameters, nullptr),
            "launch");
  const bool is_same = give_again == reinterpret_cast<void*>(asked.give);
  std::printf("same %d, next %d, missing %d\n", is_same, fake_driver_knows_next(),
              ::dlsym(asked.library, "cuNoSuchThing") == nullptr);
}

// For all threads.
void lock_up() {
  constexpr unsigned kForbidden[] = {SYS_openat, SYS_socket, SYS_execve, SYS_prctl, SYS_memfd_create, SYS_ftruncate};
  std::vector<sock_filter> filter = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned number : kForbidden) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  const bool is_locked = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
  std::puts(is_locked ? "locked up" : "has no seccomp");
  std::fflush(stdout);
}

CUcontext context_on(int device) {
  CUcontext context = nullptr;
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  return context;
}

CUstream new_stream() {
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, 0), "cuStreamCreate");
  return stream;
}

void launch(CUstream stream, int us) {
  void* parameters[] = {&us};
  check(cuLaunchKernel(fake_driver_kernel(), 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), "cuLaunchKernel");
}

void kinds() {
  int us = 10;
  void* parameters[] = {&us};
  const CUfunction f = fake_driver_kernel();
  for (CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, new_stream()}) {
    launch(stream, us);
    check(cuLaunchKernel_ptsz(f, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), "cuLaunchKernel_ptsz");
    CUlaunchConfig config{};
    config.hStream = stream;
    check(cuLaunchKernelEx(&config, f, parameters, nullptr), "cuLaunchKernelEx");
    check(cuLaunchCooperativeKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, parameters), "cuLaunchCooperativeKernel");
    check(cuMemcpyHtoDAsync(0, nullptr, 1, stream), "cuMemcpyHtoDAsync");
    check(cuMemcpyHtoDAsync_v2_ptsz(0, nullptr, 1, stream), "cuMemcpyHtoDAsync_ptsz");
    check(cuMemsetD8Async(0, 0, 1, stream), "cuMemsetD8Async");
    check(cuMemsetD8Async_ptsz(0, 0, 1, stream), "cuMemsetD8Async_ptsz");
  }
}

// Another thread launches meanwhile, so that its marks are asked for during the capture.
void capture(CUcontext context, int count) {
  const CUstream stream = new_stream();
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    const CUstream own = new_stream();
    while (!is_over.load()) {
      launch(own, 50);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  for (int i = 0; i < count; ++i) {
    launch(stream, 10);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CUgraph graph = nullptr;
  check(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  is_over.store(true);
  other.join();
  std::size_t nodes = 0;
  check(cuGraphGetNodes(graph, nullptr, &nodes), "cuGraphGetNodes");
  std::printf("graph of %zu\n", nodes);
  CUgraphExec exec = nullptr;
  check(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
  for (int i = 0; i < 5; ++i) check(cuGraphLaunch(exec, stream), "cuGraphLaunch");
  for (int i = 0; i < 5; ++i) check(cuGraphLaunch_ptsz(exec, nullptr), "cuGraphLaunch_ptsz");
}

void on_threads(CUcontext context, int count, int us) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([=] {
      check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      void* parameters[] = {const_cast<int*>(&us)};
      for (int n = 0; n < count; ++n)
        check(cuLaunchKernel_ptsz(fake_driver_kernel(), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
              "cuLaunchKernel_ptsz");
    });
  for (std::thread& thread : threads) thread.join();
}

// The child is that thread alone, and ends with it.
void fork_in_a_thread(CUcontext context, bool stays) {
  std::thread([=] {
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    for (int n = 0; n < 5; ++n) launch(nullptr, 10);
    const pid_t child = ::fork();
    if (child == 0) ::pthread_exit(nullptr);
    int status = 0;
    ::waitpid(child, &status, 0);
    for (int n = 0; n < 5; ++n) launch(nullptr, 10);
    std::printf("child %d, forked\n", status);
    std::fflush(stdout);
    if (stays) std::this_thread::sleep_for(std::chrono::hours(1));
  }).join();
}

void on_small_stacks() {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, static_cast<std::size_t>(PTHREAD_STACK_MIN));
  pthread_t thread{};
  const auto body = [](void*) -> void* {
    volatile char room[4096];
    for (std::size_t i = 0; i < sizeof(room); i += 64) room[i] = 1;
    return nullptr;
  };
  if (::pthread_create(&thread, &attributes, body, nullptr) == 0 && ::pthread_join(thread, nullptr) == 0)
    std::puts("has small stacks");
  ::pthread_attr_destroy(&attributes);
}

void launch_ordered(CUstream stream, int us, FakeDriverOrder* order, int index, bool is_ex = false) {
  void* parameters[] = {&us, &order, &index};
  CUlaunchConfig config{};
  config.hStream = stream;
  if (is_ex)
    check(cuLaunchKernelEx(&config, fake_driver_ordered_kernel(), parameters, nullptr), "cuLaunchKernelEx");
  else
    check(cuLaunchKernel(fake_driver_ordered_kernel(), 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr),
          "cuLaunchKernel");
}

CUgraphExec graph_of(CUstream stream, int kernels, int us, FakeDriverOrder* order) {
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  for (int i = 0; i < kernels; ++i) launch_ordered(stream, us, order, -1);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  check(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  check(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
  check(cuGraphDestroy(graph), "cuGraphDestroy");
  return exec;
}

// Each thread has a stream of its own, and the default stream of its own; a graph wanders between streams, and one is
// changed where `changes`.
void ordered(CUcontext context, int count, int us, bool changes) {
  static FakeDriverOrder orders[8];
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([=] {
      check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      const CUstream stream = new_stream();
      for (int i = 0; i < count; ++i) {
        launch_ordered(stream, us, &orders[t], i, i % 2 == 0);
        if (i % 3 == 0) check(cuMemsetD8Async(0, 0, 1, stream), "cuMemsetD8Async");
        launch_ordered(CU_STREAM_PER_THREAD, us, &orders[3 + t], i);
        if (i % 16 == 15) check(cuStreamSynchronize(stream), "cuStreamSynchronize");
      }
      check(cuStreamSynchronize(stream), "cuStreamSynchronize");
      check(cuStreamSynchronize(CU_STREAM_PER_THREAD), "cuStreamSynchronize");
    });
  const CUstream streams[] = {new_stream(), new_stream()};
  const CUgraphExec wanders = graph_of(streams[0], 3, us, &orders[6]);
  const CUgraphExec stays = graph_of(streams[0], 1, us, &orders[7]);
  for (int i = 0; i < count; ++i) {
    check(cuGraphLaunch(wanders, streams[i / 3 % 2]), "cuGraphLaunch");
    check(cuGraphLaunch(stays, streams[0]), "cuGraphLaunch");
    if (changes && i == count / 2) check(cuGraphNodeSetEnabled(stays, nullptr, 0), "cuGraphNodeSetEnabled");
  }
  for (const CUstream stream : streams) check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  check(cuGraphExecDestroy(wanders), "cuGraphExecDestroy");
  for (std::thread& thread : threads) thread.join();
  bool is_broken = false, has_all = orders[6].next == 3 * count && orders[7].next == (changes ? count / 2 + 1 : count);
  for (const FakeDriverOrder& order : orders) is_broken |= order.is_broken;
  for (int t = 0; t < 6; ++t) has_all &= orders[t].next == count;
  std::printf("order %s\nall %s\n", is_broken ? "broken" : "kept", has_all ? "ran" : "did not run");
}

void report() {
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  std::printf("ended %llu\nmost %llu\nevents %s\nmisuse %s\n", static_cast<unsigned long long>(fake_driver_ended()),
              static_cast<unsigned long long>(fake_driver_most_on_device()), fake_driver_events() > 0 ? "some" : "none",
              *fake_driver_misuse() == '\0' ? "none" : fake_driver_misuse());
  std::printf("in part %llu\n", static_cast<unsigned long long>(fake_driver_in_part()));
}

}  // namespace

int main(int argc, char** argv) {
  const Asked asked(argc > 1 && std::strcmp(argv[1], "linked") == 0);
  check(cuInit(0), "cuInit");
  CUcontext context = context_on(0);
  const auto number = [&](int i) { return i < argc ? std::atoi(argv[i]) : 0; };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "run") {
      const CUstream stream = new_stream();
      for (int n = 0; n < number(i + 1); ++n) launch(stream, number(i + 2));
      i += 2;
    } else if (word == "streams") {
      CUstream streams[4];
      for (CUstream& stream : streams) stream = new_stream();
      for (int n = 0; n < number(i + 1); ++n) launch(streams[n % 4], number(i + 2));
      i += 2;
    } else if (word == "threads") {
      on_threads(context, number(i + 1), number(i + 2));
      i += 2;
    } else if (word == "ordered" || word == "ordered-changes") {
      ordered(context, number(i + 1), number(i + 2), word == "ordered-changes");
      i += 2;
    } else if (word == "copies") {
      for (int n = 0; n < number(i + 1); ++n) check(cuMemcpyHtoD(0, nullptr, 1), "cuMemcpyHtoD");
      ++i;
    } else if (word == "kinds") {
      kinds();
    } else if (word == "capture") {
      capture(context, number(++i));
    } else if (word == "fails") {
      for (int n = 0; n < 20; ++n)
        if (cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) != CUDA_ERROR_INVALID_HANDLE)
          return 8;
      std::puts("failed as they should");
    } else if (word == "destroy") {
      for (int n = 0; n < 10; ++n) {
        const CUstream stream = new_stream();
        launch(stream, 500);
        check(cuStreamDestroy(stream), "cuStreamDestroy");
      }
    } else if (word == "reset") {
      const CUstream stream = new_stream();
      launch(stream, 2000);
      check(cuDevicePrimaryCtxReset(0), "cuDevicePrimaryCtxReset");
      context = context_on(0);
    } else if (word == "second") {
      context_on(1);
      const CUstream stream = new_stream();
      for (int n = 0; n < number(i + 1); ++n) launch(stream, number(i + 2));
      check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      i += 2;
    } else if (word == "across") {
      const CUstream stream = new_stream();
      context_on(1);
      for (int n = 0; n < number(i + 1); ++n) launch(stream, number(i + 2));
      check(cuStreamDestroy(stream), "cuStreamDestroy");
      check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      i += 2;
    } else if (word == "fork-thread" || word == "fork-thread-stays") {
      fork_in_a_thread(context, word == "fork-thread-stays");
    } else if (word == "small-stacks") {
      on_small_stacks();
    } else if (word == "fork") {
      std::fflush(stdout);
      const pid_t child = ::fork();
      if (child == 0) {
        for (int n = 0; n < 20; ++n) launch(nullptr, 10);
        std::exit(0);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      std::printf("child %d\n", status);
    } else if (word == "events") {
      const CUstream first = new_stream(), second = new_stream();
      CUevent event = nullptr;
      check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
      for (int n = 0; n < number(i + 1); ++n) {
        launch(first, 20);
        check(cuEventRecord(event, first), "cuEventRecord");
        check(cuStreamWaitEvent(second, event, 0), "cuStreamWaitEvent");
        launch(second, 10);
      }
      check(cuStreamSynchronize(second), "cuStreamSynchronize");
      ++i;
    } else if (word == "hang") {
      const CUstream first = new_stream(), second = new_stream();
      CUevent event = nullptr;
      check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
      for (int n = 0; n < 3; ++n) launch(first, 10);
      launch(first, 1'000'000'000);
      check(cuEventRecord(event, first), "cuEventRecord");
      check(cuStreamWaitEvent(second, event, 0), "cuStreamWaitEvent");
      launch(second, 10);
      std::puts("hangs");
      std::fflush(stdout);
      check(cuStreamSynchronize(second), "cuStreamSynchronize");
    } else if (word == "faults") {
      recover_from_a_fault();
    } else if (word == "asks") {
      launch_what_was_asked_for(asked, number(++i));
    } else if (word == "locks-up") {
      lock_up();
    } else if (word == "say") {
      std::puts(argv[++i]);
      std::fflush(stdout);
    } else if (word == "sleep") {
      std::this_thread::sleep_for(std::chrono::milliseconds(number(++i)));
    } else if (word == "exits") {
      std::thread([context] {
        check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
        const CUstream stream = new_stream();
        for (;;) launch(stream, 100);
      }).detach();
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      std::puts("leaves");
      return 0;
    }
  }
  report();
  return 0;
}
