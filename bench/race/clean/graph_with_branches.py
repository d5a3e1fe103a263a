"""A graph that is captured over two streams, forked and joined, and eager copies into its static input that it waits
for and that wait for it. There is nothing to find."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "programs"))
from racing import *

main, load, branch = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
batches = [on_device(1 + i) for i in range(STEPS + 1)]
static, left, right, result = [torch.zeros(COUNT, **KIND) for _ in range(4)]


def body():
    stream = torch.cuda.current_stream()
    branch.wait_stream(stream)
    torch.mul(static, 3, out=left)
    with torch.cuda.stream(branch):
        torch.neg(static, out=right)
    stream.wait_stream(branch)
    result.add_(left).add_(right)


body()  # loads the kernels: a capture must not
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    body()


def step(index):
    load.wait_stream(main)
    with torch.cuda.stream(load):
        static.copy_(batches[index], non_blocking=True)
    main.wait_stream(load)
    graph.replay()


run(step)
print_digest(result)
