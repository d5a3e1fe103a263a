"""A training step whose batches come by copies on a stream of its own, one step ahead, through two staging buffers;
the loss goes back to the host by a copy on a third stream. All is ordered by events: there is nothing to find."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "programs"))
from racing import *

torch.manual_seed(2)
main, load, report = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
model = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
batches = [torch.randn(256, 128) for _ in range(STEPS + 2)]
staging = [torch.zeros(256, 128).pin_memory() for _ in range(2)]
inputs = [torch.zeros(256, 128, **KIND) for _ in range(2)]
losses = torch.zeros(STEPS + 1).pin_memory()
copied, used = [None, None], [None, None]


def prefetch(index):
    slot = index % 2
    if copied[slot] is not None:
        copied[slot].synchronize()  # the host may fill the staging buffer again
        load.wait_event(used[slot])  # and the copy may write the input
    staging[slot].copy_(batches[index])
    with torch.cuda.stream(load):
        inputs[slot].copy_(staging[slot], non_blocking=True)
        copied[slot] = load.record_event()


def step(index):
    slot = index % 2
    main.wait_event(copied[slot])
    optimizer.zero_grad(set_to_none=True)
    loss = model(inputs[slot]).square().mean()
    loss.backward()
    used[slot] = main.record_event()
    optimizer.step()
    report.wait_stream(main)
    with torch.cuda.stream(report):
        losses[index].copy_(loss.detach(), non_blocking=True)
    loss.record_stream(report)
    prefetch(index + 1)


prefetch(0)
run(step)
print_digest(losses, *model.parameters())
