"""Two layers share one gradient bucket. The second layer's backward writes it while the reduction of the first one's
still reads it.
Like https://github.com/NVIDIA/Megatron-LM/pull/5222 and https://github.com/NVIDIA/Megatron-LM/pull/6060: wgrad
storage is used again while an asynchronous reduce-scatter reads it."""
# edge: CUDAFunctor_add@side -> MulFunctor@main, missing: wait_stream
from racing import *

main, communication = torch.cuda.current_stream(), torch.cuda.Stream()
x, bucket = on_device(), torch.zeros(COUNT, **KIND)
sums = [torch.zeros(COUNT, **KIND) for _ in range(2)]


def step(index):
    for layer in range(2):
        torch.mul(x, 1 + index + 7 * layer, out=bucket)  # backward of this layer
        communication.wait_stream(main)
        with torch.cuda.stream(communication):
            sums[layer].add_(bucket)
        work()  # activation gradients
        if FIXED or layer == 1:
            main.wait_stream(communication)


run(step)
print_digest(*sums)
