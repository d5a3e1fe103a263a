"""A gradient hook scales the bucket on a stream of its own; the communication stream waits for the main stream only,
and reduces what the hook has not scaled yet.
Like https://github.com/NVIDIA/Megatron-LM/issues/3670: the post-hook inherits a side stream, and the reduce-scatter
starts without waiting for it."""
# edge: MulFunctor@side -> CUDAFunctor_add@side, missing: wait_stream
from racing import *

main, hook, communication = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
gradients = [on_device(1 + i) for i in range(STEPS + 1)]
peer, bucket = on_device(5), torch.zeros(COUNT, **KIND)
totals = [torch.zeros(COUNT, **KIND) for _ in range(STEPS + 1)]


def step(index):
    bucket.copy_(gradients[index])  # backward
    hook.wait_stream(main)
    with torch.cuda.stream(hook):
        bucket.mul_(3)
    communication.wait_stream(main)
    if FIXED:
        communication.wait_stream(hook)
    with torch.cuda.stream(communication):
        work()  # peers join
        torch.add(bucket, peer, out=totals[index])
    main.wait_stream(hook)
    main.wait_stream(communication)


run(step)
print_digest(*totals)
