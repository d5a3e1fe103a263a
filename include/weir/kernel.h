/* The C interface between `weir bench` and a kernel package. A package exports one function, weir_kernel(), that
 * describes its kernel; everything else is called through that table. The harness owns all memory: it draws inputs from
 * the seed, poisons outputs before a checked run, and hands out pointers of the backend that runs. So a kernel cannot
 * run elsewhere than asked, nor pass with an output that it never wrote. docs/bench.md shows a package step by step.
 *
 * One source may hold both halves. Host code goes under #if WEIR_HOST_CODE, device code under #if WEIR_DEVICE_CODE;
 * compilers for GPUs see the second one alone, the system's C++ compiler the first. */
#ifndef WEIR_KERNEL_H
#define WEIR_KERNEL_H

#if defined(__CUDACC_RTC__) || defined(__HIPCC_RTC__) || defined(__OPENCL_C_VERSION__)
#define WEIR_HOST_CODE 0
#define WEIR_DEVICE_CODE 1
#elif defined(__CUDACC__) || defined(__HIPCC__)
#define WEIR_HOST_CODE 1
#define WEIR_DEVICE_CODE 1
#else
#define WEIR_HOST_CODE 1
#define WEIR_DEVICE_CODE 0
#endif

#if WEIR_HOST_CODE
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A table of another version is refused by name of both versions. */
#define WEIR_KERNEL_ABI 1u

/* Sets of bits. */
enum { WEIR_CPU = 1, WEIR_CUDA = 2, WEIR_HIP = 4, WEIR_OPENCL = 8 };
enum { WEIR_FP64 = 1, WEIR_FP32 = 2, WEIR_FP16 = 4, WEIR_BF16 = 8 };
/* One byte each, as of the Open Compute Project: 4 + 3 bits of exponent and mantissa up to 448, without infinities; and
 * 5 + 2 bits up to 57344. What is larger becomes the largest number. */
enum { WEIR_FP8_E4M3 = 32, WEIR_FP8_E5M2 = 64 };

/* Types of elements. REAL is the precision that is measured. */
enum { WEIR_REAL = 0, WEIR_F64 = 1, WEIR_F32 = 2, WEIR_I32 = 3, WEIR_U32 = 4, WEIR_I64 = 5, WEIR_U8 = 6 };

/* Inputs are filled once and must not be written. Outputs are compared with the reference. Scratch is neither; it is
 * poisoned like an output. */
enum { WEIR_INPUT = 0, WEIR_OUTPUT = 1, WEIR_SCRATCH = 2 };

/* How an input is filled: uniform in [low, high); normal with mean `low` and deviation `high`; whole numbers from
 * `low` up to but not including `high`; by the kernel's own fill(). */
enum { WEIR_UNIFORM = 0, WEIR_NORMAL = 1, WEIR_WHOLE = 2, WEIR_OWN = 3 };

typedef struct WeirBuffer {
  const char* name;
  uint32_t role;
  uint32_t type;
  uint64_t count; /* elements */
  uint32_t fill;
  double low, high;
} WeirBuffer;

/* A parameter of the problem. describe gives defaults; bench.yaml's problem_size overrides them. */
typedef struct WeirParameter {
  const char* name;
  uint32_t count; /* 1, or more for a value such as grid: [64, 64, 64] */
  const double* values;
} WeirParameter;

typedef struct WeirProblem {
  uint32_t size; /* of this struct: later versions append */
  uint32_t backend, precision;
  uint32_t threads; /* on the CPU: as many as the kernel may use */
  uint64_t seed;
  uint32_t parameter_count; /* all that the kernel described, in its order */
  const WeirParameter* parameters;
} WeirProblem;

/* What setup() declares. It lives until teardown(). */
typedef struct WeirSetup {
  uint32_t size;
  uint32_t buffer_count;
  const WeirBuffer* buffers;
  double flop;  /* of one run; 0: not told */
  double bytes; /* that one run has to move between memory and cores at the least; 0: not told */
  double items; /* of one run, for throughput: rows, cells, elements; 0: not told */
  const char* item_name;
} WeirSetup;

/* Arguments of a launch. */
enum {
  WEIR_ARGUMENT_BUFFER = 0,
  WEIR_ARGUMENT_I32 = 1,
  WEIR_ARGUMENT_I64 = 2,
  WEIR_ARGUMENT_F32 = 3,
  WEIR_ARGUMENT_F64 = 4
};
typedef struct WeirArgument {
  uint32_t kind;
  uint32_t buffer; /* index as declared */
  union {
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
  } value;
} WeirArgument;

typedef struct WeirLaunch {
  const char* function;       /* in the package's kernel.cu, kernel.hip or kernel.cl; a literal is fastest */
  uint32_t grid[3], block[3]; /* blocks, and threads per block; 0 counts as 1 */
  uint32_t shared_bytes;      /* CUDA and HIP: dynamic shared memory */
  uint32_t argument_count;
  const WeirArgument* arguments; /* copied before launch() returns */
} WeirLaunch;

/* Where a run goes. */
typedef struct WeirStream WeirStream;
struct WeirStream {
  uint32_t size;
  uint32_t backend, precision;
  void* native;         /* CUstream, hipStream_t or cl_command_queue; null on the CPU */
  void* const* buffers; /* by index as declared: host pointers on the CPU, device pointers (CUDA, HIP), cl_mem */
  /* Launches a function of the package's device source. 0 for success. Null on the CPU and where the package is a
   * library with device code of its own, which then launches on `native`. */
  int (*launch)(WeirStream* stream, const WeirLaunch* launch);
  void* harness;
};

typedef struct WeirKernel {
  uint32_t abi;  /* WEIR_KERNEL_ABI */
  uint32_t size; /* sizeof(WeirKernel) */
  const char* summary;
  uint32_t backends;   /* that run() serves */
  uint32_t precisions; /* that setup() accepts */
  uint32_t parameter_count;
  const WeirParameter* parameters; /* with default values */

  /* All return 0 for success; after another value error(), where there is one, says what is wrong. */
  int (*setup)(const WeirProblem* problem, WeirSetup* setup, void** state);
  /* For inputs of WEIR_OWN: `values` has as many as the buffer has elements; they are rounded to its type. Optional. */
  int (*fill)(void* state, uint32_t buffer, uint64_t seed, double* values);
  /* One run: on the CPU it is done when this returns, elsewhere it is on the stream. It is called thousands of times
   * and must give the same result each time. */
  int (*run)(void* state, WeirStream* stream);
  /* The result in double precision. Both arrays are indexed as buffers were declared: `inputs` has what the kernel was
   * given, after rounding; `outputs` is to be written. Others are null. Optional; without it nothing is checked. */
  int (*reference)(void* state, const double* const* inputs, double* const* outputs);
  void (*teardown)(void* state);
  const char* (*error)(void); /* optional */
} WeirKernel;

#if defined(__GNUC__)
#define WEIR_EXPORT __attribute__((visibility("default")))
#else
#define WEIR_EXPORT
#endif

/* The one symbol of a package. */
WEIR_EXPORT const WeirKernel* weir_kernel(void);

static inline WeirArgument weir_buffer(uint32_t index) {
  WeirArgument argument;
  argument.kind = WEIR_ARGUMENT_BUFFER;
  argument.buffer = index;
  argument.value.i64 = 0;
  return argument;
}
static inline WeirArgument weir_i32(int32_t value) {
  WeirArgument argument = weir_buffer(0);
  argument.kind = WEIR_ARGUMENT_I32;
  argument.value.i32 = value;
  return argument;
}
static inline WeirArgument weir_i64(int64_t value) {
  WeirArgument argument = weir_buffer(0);
  argument.kind = WEIR_ARGUMENT_I64;
  argument.value.i64 = value;
  return argument;
}
static inline WeirArgument weir_f32(float value) {
  WeirArgument argument = weir_buffer(0);
  argument.kind = WEIR_ARGUMENT_F32;
  argument.value.f32 = value;
  return argument;
}
static inline WeirArgument weir_f64(double value) {
  WeirArgument argument = weir_buffer(0);
  argument.kind = WEIR_ARGUMENT_F64;
  argument.value.f64 = value;
  return argument;
}

#ifdef __cplusplus
}
#endif
#endif /* WEIR_HOST_CODE */
#endif
