"""A reduced gradient is allocated on the reduce-scatter stream and offloaded by a copy on the all-reduce stream. Its
last reference goes before the copy has run, and the next allocation of the reduce-scatter stream gets its block.
Like https://github.com/pytorch/pytorch/pull/180665 (HSDP with CPUOffloadPolicy) and
https://github.com/NVIDIA/Megatron-LM/pull/6187."""
# edge: copy@side -> FillFunctor@side, missing: record_stream
from racing import *

reduce_scatter, all_reduce = torch.cuda.Stream(), torch.cuda.Stream()
gradients = [on_device(1 + i) for i in range(STEPS + 1)]
offloaded = [torch.zeros(COUNT).pin_memory() for _ in range(STEPS + 1)]
kept = [torch.zeros(COUNT, **KIND) for _ in range(STEPS + 1)]
torch.cuda.synchronize()


def step(index):
    with torch.cuda.stream(reduce_scatter):
        reduced = torch.mul(gradients[index], 3)
    all_reduce.wait_stream(reduce_scatter)
    with torch.cuda.stream(all_reduce):
        offloaded[index].copy_(reduced, non_blocking=True)
    if FIXED:
        reduced.record_stream(all_reduce)
    address = reduced.data_ptr()
    del reduced
    with torch.cuda.stream(reduce_scatter):
        work()  # the next layer's collective
        following = torch.empty(COUNT, **KIND)
        same_block(following, address)
        following.fill_(-1.0 - index)
        kept[index].add_(following)
    del following
    reduce_scatter.wait_stream(all_reduce)


run(step)
print_digest(*offloaded, *kept)
