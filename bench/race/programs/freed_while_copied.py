"""An activation is stashed into host memory on a copy stream and freed at once; without record_stream() the
allocator gives its block to the next tensor of the main stream while the copy still reads it.
Like https://github.com/meta-pytorch/torchrec/pull/4231 and https://github.com/NVIDIA/Megatron-LM/issues/5788."""
# edge: copy@side -> FillFunctor@main, missing: record_stream
from racing import *

main, offload = torch.cuda.current_stream(), torch.cuda.Stream()
x, result = on_device(), torch.zeros(COUNT, **KIND)
stash = [torch.zeros(COUNT).pin_memory() for _ in range(STEPS + 1)]


def step(index):
    activation = torch.mul(x, index + 1)
    offload.wait_stream(main)
    with torch.cuda.stream(offload):
        stash[index].copy_(activation, non_blocking=True)
    if FIXED:
        activation.record_stream(offload)
    address = activation.data_ptr()
    del activation
    work()  # the next layers
    following = torch.empty(COUNT, **KIND)
    same_block(following, address)
    following.fill_(-1.0 - index)
    result.add_(following)


run(step)
print_digest(result, *stash)
