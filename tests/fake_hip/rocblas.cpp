// The part of rocBLAS that Weir calls, on the fake HIP runtime. rocBLAS's headers are not packaged by Debian; these are
// its prototypes and numbers (rocblas-types.h, rocblas-functions.h, rocBLAS 2 to 5): rocblas_int is 32 bits,
// rocblas_stride 64; rocblas_operation none 111, transpose 112; rocblas_datatype f16_r 150, f32_r 151, bf16_r 168;
// rocblas_gemm_algo_standard 0; rocblas_status success 0, invalid_handle 1, not_implemented 2, invalid_pointer 3,
// invalid_size 4, memory_error 5, internal_error 6, invalid_value 11. Matrices are column-major: D = alpha op(A) op(B)
// + beta C.
#include <cstdint>
#include <cstring>

#include "fake_hip.h"

#define WEIR_FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Handle {
  hipStream_t stream = nullptr;
};

constexpr int kSuccess = 0, kInvalidHandle = 1, kNotImplemented = 2, kInvalidPointer = 3, kInvalidSize = 4,
              kInternalError = 6, kInvalidValue = 11;
constexpr int kPlain = 111, kTransposed = 112;
constexpr int kF16 = 150, kF32 = 151, kBf16 = 168;

// Leading dimensions and strides have to be those of dense matrices: it is all that the host's body knows.
int multiply(Handle* handle, int order_a, int order_b, int m, int n, int k, const void* alpha, const void* a,
             int a_type, int lda, const void* b, int b_type, int ldb, const void* beta, const void* c, int c_type,
             int ldc, void* d, int d_type, int ldd, int batch, int compute_type) {
  if (handle == nullptr) return kInvalidHandle;
  if (alpha == nullptr || beta == nullptr || a == nullptr || b == nullptr || d == nullptr) return kInvalidPointer;
  for (const int order : {order_a, order_b})
    if (order != kPlain && order != kTransposed) return kInvalidValue;
  if (m < 0 || n < 0 || k < 0 || batch < 1) return kInvalidSize;
  if (lda != (order_a == kPlain ? m : k) || ldb != (order_b == kPlain ? k : n) || ldc != m || ldd != m)
    return kInvalidSize;
  if (a_type != b_type || a_type != c_type || a_type != d_type || c != d || compute_type != kF32)
    return kNotImplemented;
  if (a_type != kF16 && a_type != kF32 && a_type != kBf16) return kNotImplemented;
  // A column-major C = A B is a row-major C' = B' A': the operands change places and nothing moves.
  const FakeHipGemm gemm{a_type,
                         order_b == kTransposed,
                         order_a == kTransposed,
                         n,
                         m,
                         k,
                         batch,
                         *static_cast<const float*>(alpha),
                         *static_cast<const float*>(beta),
                         b,
                         a,
                         d};
  return weir_fake_hip_gemm(handle->stream, &gemm) == hipSuccess ? kSuccess : kInternalError;
}

}  // namespace

WEIR_FAKE_EXPORT int rocblas_create_handle(Handle** handle) {
  if (handle == nullptr) return kInvalidPointer;
  *handle = new Handle;
  return kSuccess;
}

WEIR_FAKE_EXPORT int rocblas_destroy_handle(Handle* handle) {
  delete handle;
  return kSuccess;
}

WEIR_FAKE_EXPORT int rocblas_set_stream(Handle* handle, hipStream_t stream) {
  if (handle == nullptr) return kInvalidHandle;
  handle->stream = stream;
  return kSuccess;
}

WEIR_FAKE_EXPORT int rocblas_set_workspace(Handle* handle, void*, size_t) {
  return handle == nullptr ? kInvalidHandle : kSuccess;
}

WEIR_FAKE_EXPORT int rocblas_gemm_ex(Handle* handle, int order_a, int order_b, int m, int n, int k, const void* alpha,
                                     const void* a, int a_type, int lda, const void* b, int b_type, int ldb,
                                     const void* beta, const void* c, int c_type, int ldc, void* d, int d_type, int ldd,
                                     int compute_type, int, std::int32_t, std::uint32_t) {
  return multiply(handle, order_a, order_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, d,
                  d_type, ldd, 1, compute_type);
}

WEIR_FAKE_EXPORT int rocblas_gemm_strided_batched_ex(Handle* handle, int order_a, int order_b, int m, int n, int k,
                                                     const void* alpha, const void* a, int a_type, int lda,
                                                     std::int64_t stride_a, const void* b, int b_type, int ldb,
                                                     std::int64_t stride_b, const void* beta, const void* c, int c_type,
                                                     int ldc, std::int64_t stride_c, void* d, int d_type, int ldd,
                                                     std::int64_t stride_d, int batch, int compute_type, int,
                                                     std::int32_t, std::uint32_t) {
  const std::int64_t rows = m, columns = n, depth = k;
  if (batch > 1 &&
      (stride_a != rows * depth || stride_b != depth * columns || stride_c != rows * columns || stride_d != stride_c))
    return kInvalidSize;
  return multiply(handle, order_a, order_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, d,
                  d_type, ldd, batch, compute_type);
}

WEIR_FAKE_EXPORT int rocblas_get_version_string(char* text, size_t size) {
  constexpr char kVersion[] = "4.4.1.fake-0";
  if (text == nullptr) return kInvalidPointer;
  if (size < sizeof kVersion) return kInvalidSize;
  std::memcpy(text, kVersion, sizeof kVersion);
  return kSuccess;
}

WEIR_FAKE_EXPORT const char* rocblas_status_to_string(int status) {
  switch (status) {
    case kSuccess:
      return "rocblas_status_success";
    case kInvalidHandle:
      return "rocblas_status_invalid_handle";
    case kNotImplemented:
      return "rocblas_status_not_implemented";
    case kInvalidPointer:
      return "rocblas_status_invalid_pointer";
    case kInvalidSize:
      return "rocblas_status_invalid_size";
    case kInternalError:
      return "rocblas_status_internal_error";
    case kInvalidValue:
      return "rocblas_status_invalid_value";
    default:
      return "<undefined rocblas_status value>";
  }
}
