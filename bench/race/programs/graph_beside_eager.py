"""A captured graph reads a static input that an eager kernel of another stream writes; the launch does not wait for
it.
Like the static inputs and gradients of https://github.com/pytorch/pytorch/issues/181723 and of
https://github.com/NVIDIA/Megatron-LM/pull/6060: replay and eager work share storage, and nothing orders them."""
# edge: CUDAFunctor_add@side -> graph|MulFunctor@main, missing: wait_stream
from racing import *

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
batches = [on_device(1 + i) for i in range(STEPS + 1)]
static, y, result = torch.zeros(COUNT, **KIND), torch.zeros(COUNT, **KIND), torch.zeros(COUNT, **KIND)
torch.mul(static, 2, out=y)  # loads the kernels: a capture must not
result.add_(y)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    torch.mul(static, 2, out=y)
    result.add_(y)


def step(index):
    side.wait_stream(main)
    with torch.cuda.stream(side):
        static.add_(batches[index])
    work()
    if FIXED:
        main.wait_stream(side)
    graph.replay()
    main.wait_stream(side)


run(step)
print_digest(result)
