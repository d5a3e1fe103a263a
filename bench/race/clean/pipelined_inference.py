"""Inference in three stages on three streams: copies to the device, the model, copies back. Tensors that pass from
one stream to another are recorded on it, so the allocator may have them at once. There is nothing to find."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "programs"))
from racing import *

torch.manual_seed(4)
into, compute, out = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Stream()
weights = [torch.randn(256, 256).cuda() / 16 for _ in range(3)]
requests = [torch.randn(128, 256).pin_memory() for _ in range(STEPS + 1)]
answers = [torch.zeros(128, 256).pin_memory() for _ in range(STEPS + 1)]
torch.cuda.synchronize()


def step(index):
    with torch.cuda.stream(into):
        x = requests[index].to("cuda", non_blocking=True)
        arrived = into.record_event()
    with torch.cuda.stream(compute):
        compute.wait_event(arrived)
        x.record_stream(compute)
        y = x
        for weight in weights:
            y = torch.relu(y @ weight)
        made = compute.record_event()
    del x
    with torch.cuda.stream(out):
        out.wait_event(made)
        y.record_stream(out)
        answers[index].copy_(y, non_blocking=True)
    del y


run(step)
print_digest(*answers)
