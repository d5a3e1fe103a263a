"""The host fills a pinned staging buffer with the next batch while the copy of the last one may still read it.
Like https://github.com/pytorch/tutorials/pull/3261: after a non-blocking copy from pinned memory, changing the
original may corrupt what the device gets."""
# edge: copy@side -> host, missing: host
from racing import *

COUNT = 1 << 14
main, transfer = torch.cuda.current_stream(), torch.cuda.Stream()
batches = [torch.full((COUNT,), 1.0 + i) for i in range(STEPS + 1)]
staging = torch.zeros(COUNT).pin_memory()
device = [torch.zeros(COUNT, **KIND) for _ in range(STEPS + 1)]
result = torch.zeros(COUNT, **KIND)


def step(index):
    if FIXED:
        transfer.synchronize()
    staging.copy_(batches[index])
    with torch.cuda.stream(transfer):
        device[index].copy_(staging, non_blocking=True)
    main.wait_stream(transfer)
    result.add_(device[index])
    host_work(200)  # the data loader makes the next batch


run(step)
print_digest(result, *device)
