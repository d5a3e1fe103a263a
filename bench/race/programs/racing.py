"""What the programs with known races share: their switch, work of a known length, and the digest of a result. Knows
nothing of weir: each program is an ordinary PyTorch program, and runs without it.

Conventions: a program runs STEPS steps after one that warms up. Undisturbed, a step's racing commands lie about
GAP_US apart, so the result is right every time; `--fixed` adds the missing call. It prints one line, `digest HEX`."""
import ctypes
import hashlib
import os
import pathlib
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))
import weir

FIXED = "--fixed" in sys.argv[1:]
STEPS = 6
GAP_US = 150
COUNT = 1 << 18  # floats: 1 MiB, which a copy over PCIe takes 20 us for and a kernel 3 us
KIND = dict(device="cuda", dtype=torch.float32)


def values(scale=1):
    """Small whole numbers: sums of them do not depend on their order."""
    return torch.arange(COUNT, dtype=torch.float32).remainder_(97).mul_(scale)


def on_device(scale=1):
    return values(scale).cuda()


def work(microseconds=GAP_US):
    """A computation of about this long that keeps one multiprocessor busy and touches no memory (at 1.8 GHz)."""
    torch.cuda._sleep(int(microseconds * 1800))


def host_work(microseconds=GAP_US):
    """The host computes for this long."""
    end = time.perf_counter() + microseconds * 1e-6
    while time.perf_counter() < end:
        pass


def sgd(parameters, rate=1e-3):
    """As torch.optim.SGD does it with foreach=True, but without the imports of that, which take longer than the steps."""
    with torch.no_grad():
        torch._foreach_add_(parameters, [parameter.grad for parameter in parameters], alpha=-rate)


def run(step):
    """The steps; step 0 warms up: kernels are loaded and memory is allocated, with the device idle around it."""
    torch.cuda.synchronize()
    for index in range(STEPS + 1):
        step(index)
        if index == 0:
            torch.cuda.synchronize()
    torch.cuda.synchronize()


def bytes_of(tensor):
    held = tensor.detach().to("cpu").contiguous()
    return ctypes.string_at(held.data_ptr(), held.numel() * held.element_size())


def print_digest(*tensors):
    """Of the results, with the device idle: printing races with nothing."""
    torch.cuda.synchronize()
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(bytes_of(tensor))
    print("digest", digest.hexdigest()[:32], flush=True)


def same_block(tensor, address):
    """The race needs the allocator to give a freed block away at once."""
    if not FIXED and tensor.data_ptr() != address:
        sys.exit("the allocator gave another block, so nothing can race here: report this with the version of PyTorch")
