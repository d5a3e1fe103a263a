"""A graph is captured over two streams. The branch that makes y is joined at the end of the capture, after the
kernel that reads y: the edge inside the graph is missing, in every replay.
Like https://github.com/NVIDIA/Megatron-LM/pull/6060 (side streams of captured graphs) and
https://github.com/pytorch/pytorch/pull/185627 (a wait between streams that is moved before what it should wait for)."""
# edge: neg_kernel@side -> CUDAFunctor_add@main, missing: wait_stream
from racing import *

side = torch.cuda.Stream()
x, y, result = on_device(), torch.zeros(COUNT, **KIND), torch.zeros(COUNT, **KIND)


def body():
    stream = torch.cuda.current_stream()
    x.add_(1)
    side.wait_stream(stream)
    with torch.cuda.stream(side):
        torch.neg(x, out=y)
    work()
    if FIXED:
        stream.wait_stream(side)
    result.add_(y)
    stream.wait_stream(side)


body()  # loads the kernels: a capture must not
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    body()


run(lambda index: graph.replay())
print_digest(result)
