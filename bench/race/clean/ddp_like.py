"""Gradients are gathered into buckets and reduced on a communication stream as backward makes them, as DDP does;
each bucket has an event, and the optimizer waits for all of them. There is nothing to find."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "programs"))
from racing import *

torch.manual_seed(3)
main, communication = torch.cuda.current_stream(), torch.cuda.Stream()
model = torch.nn.Sequential(*[torch.nn.Linear(192, 192) for _ in range(4)]).cuda()
parameters = list(model.parameters())
x = torch.randn(64, 192).cuda()
buckets = [torch.zeros(192 * 192 + 192, **KIND) for _ in model]
peers = [torch.randn(192 * 192 + 192).cuda() for _ in model]
reduced = []


def reduce(layer, bucket, peer):
    ready = torch.cuda.current_stream().record_event()
    with torch.cuda.stream(communication):
        communication.wait_event(ready)
        torch.cat([layer.weight.grad.view(-1), layer.bias.grad], out=bucket)
        bucket.add_(peer).mul_(0.5)
        layer.weight.grad.copy_(bucket[:192 * 192].view(192, 192))
        layer.bias.grad.copy_(bucket[192 * 192:])
        reduced.append(communication.record_event())


def on_gradient(layer, bucket, peer):
    made = []

    def hook(parameter):
        made.append(parameter)
        if len(made) == 2:  # weight and bias
            made.clear()
            reduce(layer, bucket, peer)
    return hook


for each in zip(model, buckets, peers):
    hook = on_gradient(*each)
    each[0].weight.register_post_accumulate_grad_hook(hook)
    each[0].bias.register_post_accumulate_grad_hook(hook)


def step(index):
    for parameter in parameters:
        parameter.grad = None
    model(x).square().mean().backward()
    for event in reduced:
        main.wait_event(event)
    reduced.clear()
    sgd(parameters)


run(step)
print_digest(*parameters)
