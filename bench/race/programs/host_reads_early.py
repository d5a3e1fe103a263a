"""The host reads a pinned tensor that a non-blocking copy still writes.
Like https://github.com/pytorch/pytorch/issues/174695, https://github.com/pytorch/pytorch/issues/86264 and
https://github.com/sgl-project/sglang/pull/16493: to("cpu", non_blocking=True) without a synchronisation."""
# edge: copy@main -> host, missing: host
from racing import *

COUNT = 1 << 14
main = torch.cuda.current_stream()
x, landed = torch.zeros(COUNT, **KIND), torch.zeros(COUNT).pin_memory()
seen = [torch.zeros(COUNT) for _ in range(STEPS + 1)]


def step(index):
    torch.cuda.synchronize()
    x.add_(1 + index)
    landed.copy_(x, non_blocking=True)
    host_work(200)  # something else of the host
    if FIXED:
        main.synchronize()
    seen[index].copy_(landed)


run(step)
print_digest(*seen)
