"""Weights are copied to the device on a transfer stream, and the forward pass does not wait for them.
Like https://github.com/ROCm/pytorch/issues/3194 and https://github.com/huggingface/diffusers/pull/13502: group
offloading onloads the next block on a stream of its own and returns without default_stream.wait_stream(transfer)."""
# edge: copy@side -> MulFunctor@main, missing: wait_stream
from racing import *

main, transfer = torch.cuda.current_stream(), torch.cuda.Stream()
blocks = [values(1 + i).pin_memory() for i in range(STEPS + 1)]
weights, x, result = torch.zeros(COUNT, **KIND), on_device(), torch.zeros(COUNT, **KIND)
y = torch.empty_like(x)


def step(index):
    transfer.wait_stream(main)
    with torch.cuda.stream(transfer):
        weights.copy_(blocks[index], non_blocking=True)
    work()  # the block before this one
    if FIXED:
        main.wait_stream(transfer)
    torch.mul(weights, x, out=y)
    result.add_(y)


run(step)
print_digest(result)
