# A small CUDA program to try `weir profile` and `weir sched run` on. It needs nothing but Python and the driver: it
# fills a buffer on the GPU a hundred times. On a machine without a CUDA driver it does nothing.
import ctypes

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
    for step in range(100):
        cuda.cuMemsetD8Async(memory, ctypes.c_ubyte(step), ctypes.c_size_t(1 << 20), None)
    cuda.cuCtxSynchronize()
