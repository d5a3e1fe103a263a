"""The event that the consumer waits for is recorded before the producer is submitted: it orders nothing.
Like https://github.com/huggingface/trl/pull/7195: the clone of a saved tensor is submitted after the transfer stream
has taken its snapshot of the compute stream."""
# edge: neg_kernel@side -> CUDAFunctor_add@main, missing: wait_event
from racing import *

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, y, result = on_device(), torch.zeros(COUNT, **KIND), torch.zeros(COUNT, **KIND)


def step(index):
    x.add_(1)
    side.wait_stream(main)
    with torch.cuda.stream(side):
        if not FIXED:
            ready = side.record_event()
        torch.neg(x, out=y)
        if FIXED:
            ready = side.record_event()
    work()
    main.wait_event(ready)
    result.add_(y)
    weir.checkpoint("result", result)
    main.wait_stream(side)


run(step)
print_digest(result)
