"""Parameters are gathered on a stream of their own, which does not wait for the optimizer that writes them.
Like https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/1706 and https://github.com/pytorch/pytorch/pull/192141: a
side stream reads what the main stream has only just begun to write."""
# edge: CUDAFunctor_add@main -> MulFunctor@side, missing: wait_stream
from racing import *

main, gather = torch.cuda.current_stream(), torch.cuda.Stream()
shard, result = on_device(), torch.zeros(2 * COUNT, **KIND)
gathered = [torch.zeros(2 * COUNT, **KIND) for _ in range(STEPS + 1)]
updates = [on_device(1 + i) for i in range(STEPS + 1)]


def step(index):
    shard.add_(updates[index])  # the optimizer's step
    if FIXED:
        gather.wait_stream(main)
    with torch.cuda.stream(gather):
        work()  # the collective begins
        torch.mul(shard, 1, out=gathered[index][:COUNT])
        torch.mul(shard, 2, out=gathered[index][COUNT:])
    main.wait_stream(gather)
    result.add_(gathered[index])


run(step)
print_digest(result)
