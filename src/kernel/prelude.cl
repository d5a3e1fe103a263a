// Shared by every OpenCL body: the one signature, element types, loops and sums of a work-group, the clock. Precedes
// each body; knows none. OpenCL C 1.2, without subgroups and without cl_khr_fp16.
#pragma OPENCL FP_CONTRACT OFF

// KernelArguments for devices without addresses of their own: operand i begins offsets[i] bytes into o<i>.
typedef struct {
  ulong offsets[6];
  long dims[4];
  float scalars[4];
} weir_arguments;

#define WEIR_KERNEL(kernel)                                                                                           \
  __kernel void weir_##kernel(__global uchar* o0, __global uchar* o1, __global uchar* o2, __global uchar* o3,         \
                              __global uchar* o4, __global uchar* o5, const weir_arguments a)
#define WEIR_OPERAND(type, index) ((__global type*)(o##index + a.offsets[index]))

// Stored elements. Bodies compute in float and round once, to nearest even, as src/kernel/numeric.h does.
#if defined(WEIR_F32)
typedef float weir_element;
static float load(__global const weir_element* from, long index) { return from[index]; }
static void store(__global weir_element* to, long index, float value) { to[index] = value; }
#elif defined(WEIR_F16)
typedef ushort weir_element;
static float load(__global const weir_element* from, long index) {
  return vload_half((size_t)index, (__global const half*)from);
}
static void store(__global weir_element* to, long index, float value) {
  vstore_half_rte(value, (size_t)index, (__global half*)to);
}
#elif defined(WEIR_BF16)
typedef ushort weir_element;
static float load(__global const weir_element* from, long index) { return as_float((uint)from[index] << 16); }
static void store(__global weir_element* to, long index, float value) {
  const uint bits = as_uint(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  to[index] = (ushort)(is_nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
#elif defined(WEIR_I32)
typedef int weir_element;
// Integers are rounded towards zero.
static void store(__global weir_element* to, long index, float value) { to[index] = (int)value; }
#endif

// a * b + c, with one rounding instead of two only if that is faster.
static float multiply_add(float a, float b, float c) {
#if defined(FP_FAST_FMAF)
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}

#define WEIR_LEAST(a, b) ((a) < (b) ? (a) : (b))

static long global_thread(void) { return (long)get_global_id(0); }
static long global_threads(void) { return (long)get_global_size(0); }
static int local_thread(void) { return (int)get_local_id(0); }
static int local_threads(void) { return (int)get_local_size(0); }
static long group(void) { return (long)get_group_id(0); }
static long groups(void) { return (long)get_num_groups(0); }

// A 64-bit division takes a GPU about 70 instructions, a 32-bit one a third of that. Neither operand may be negative.
static long divide(long a, long b) { return ((a | b) >> 32) == 0 ? (long)((uint)a / (uint)b) : a / b; }

// Loops over a work-item's elements of a matrix: adjacent work-items along a row, several rows per work-group if rows
// are short.
#define WEIR_FOR_ROWS(row, rows, column, width)                                                                       \
  const int weir_shift = row_shift(width);                                                                            \
  const int weir_lane = local_thread() & ((1 << weir_shift) - 1);                                                     \
  const long weir_rows = local_threads() >> weir_shift;                                                               \
  for (long row = group() * weir_rows + (local_thread() >> weir_shift); row < (rows); row += groups() * weir_rows)    \
    for (long column = weir_lane; column < (width); column += 1 << weir_shift)
static int row_shift(long width) {
  int shift = 0;
  while ((1 << shift) < local_threads() && (1 << shift) < width) ++shift;
  return shift;
}

// For functions that receive local memory: if PoCL 3.1 does not inline one, work-groups that run at the same time share
// that memory.
#define WEIR_INLINE static __attribute__((always_inline))

// Returns the same result to every work-item of the group, combined in a fixed order. All of them must call it, with
// room for one float each; group sizes are powers of two.
WEIR_INLINE float sum_of_group(float value, __local float* room) {
  const int thread = local_thread();
  room[thread] = value;
  for (int half_of = local_threads() / 2; half_of > 0; half_of /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (thread < half_of) room[thread] = room[thread] + room[thread + half_of];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float result = room[0];
  barrier(CLK_LOCAL_MEM_FENCE);  // before the next call's values are written
  return result;
}
WEIR_INLINE float largest_of_group(float value, __local float* room) {
  const int thread = local_thread();
  room[thread] = value;
  for (int half_of = local_threads() / 2; half_of > 0; half_of /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (thread < half_of) room[thread] = fmax(room[thread], room[thread + half_of]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float result = room[0];
  barrier(CLK_LOCAL_MEM_FENCE);  // as above
  return result;
}
#define WEIR_MOST_THREADS 1024

// Kahan sum, as in src/kernel/running_sum.h.
typedef struct {
  float sum, lost;
} running_sum;
static running_sum empty_sum(void) {
  const running_sum empty = {0.0f, 0.0f};
  return empty;
}
static void add_to(running_sum* to, float value) {
  const float corrected = value - to->lost;
  const float next = to->sum + corrected;
  to->lost = (next - to->sum) - corrected;
  to->sum = next;
}
static float value_of(const running_sum* sum) { return sum->sum - sum->lost; }

// The random values of src/kernel/random.h, bit for bit.
static uint random_bits(ulong seed, ulong index) {
  ulong z = seed * 0x9E3779B97F4A7C15ul + index;
  z = (z ^ (z >> 33)) * 0xff51afd7ed558ccdul;
  z = (z ^ (z >> 33)) * 0xc4ceb9fe1a85ec53ul;
  z ^= z >> 33;
  return (uint)(z >> 16);
}

// Floats as integers with the same order, as in src/kernel/ranked.h: NaN is below everything, both zeros are equal, and
// of equal values the one with the lower index is larger. Never 0.
static ulong ranked(float value, long index) {
  const uint bits = as_uint(value + 0.0f);
  const uint rank = value != value ? 0u : (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return (ulong)rank << 32 | (0xffffffffu - (uint)index);
}
static int index_of(ulong ranked) { return (int)(0xffffffffu - (uint)(ranked & 0xffffffffu)); }

// The device's clock. Only the host knows the rate of a CPU's counter: WEIR_TICKS_PER_SECOND.
#if defined(__NV_CL_C_VERSION)
static ulong weir_time_ns(void) {
  ulong now;
  __asm__ __volatile__("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
#elif defined(__AMDGCN__)
// 25 MHz on Vega, MI100 and MI200, 100 MHz since. gfx11 and later have no s_memrealtime, but answer a message instead.
static ulong weir_time_ns(void) {
#if defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__)
  return __builtin_amdgcn_s_memrealtime() * 40;
#elif defined(__GFX11__) || defined(__GFX12__)
  return __builtin_amdgcn_s_sendmsg_rtnl(0x83) * 10;
#else
  return __builtin_amdgcn_s_memrealtime() * 10;
#endif
}
#elif defined(WEIR_TICKS_PER_SECOND) && (defined(__aarch64__) || defined(__x86_64__) || defined(cl_khr_kernel_clock))
static ulong weir_time_ns(void) {
#if defined(__aarch64__)
  ulong ticks;
  __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks));
#elif defined(__x86_64__)
  const ulong ticks = __builtin_ia32_rdtsc();
#else
  const ulong ticks = clock_read_device();
#endif
  const ulong seconds = ticks / WEIR_TICKS_PER_SECOND;
  return seconds * 1000000000ul + (ticks - seconds * WEIR_TICKS_PER_SECOND) * 1000000000ul / WEIR_TICKS_PER_SECOND;
}
#else
#define WEIR_NO_CLOCK
#endif

// Orders writes to memory that the host reads while a kernel runs: those before this call come first.
static void order_for_host(void) {
#if defined(__NV_CL_C_VERSION)
  __asm__ __volatile__("membar.sys;" : : : "memory");
#elif defined(__AMDGCN__)
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
#elif defined(__aarch64__)
  __asm__ __volatile__("dmb ish" : : : "memory");
#else
  mem_fence(CLK_GLOBAL_MEM_FENCE);
#endif
}
// Both moments of src/kernel/moment.h: a host that sees the end also sees the start. In one store where possible,
// because waiting for host memory would make a kernel longer than it reports.
static void write_ended(__global volatile long* at, long started_ns, long ended_ns) {
#if defined(__NV_CL_C_VERSION)
  __asm__ __volatile__("st.volatile.global.v2.s64 [%0], {%1, %2};"
                       :
                       : "l"(at), "l"(started_ns), "l"(ended_ns)
                       : "memory");
#else
  at[0] = started_ns;
  order_for_host();
  at[1] = ended_ns;
#endif
}
