"""A training step: gradients are reduced on a communication stream (the peer is a tensor), and the optimizer, one
launch for all parameters, does not wait.
Like https://github.com/pytorch/pytorch/pull/181218 (post_backward leaves without waiting for the reduction's event)
and https://github.com/meta-pytorch/torchrec/pull/2071."""
# edge: CUDAFunctor_add@side -> multi_tensor_apply_kernel@main, missing: wait_stream
from racing import *

torch.manual_seed(1)
main, communication = torch.cuda.current_stream(), torch.cuda.Stream()
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
parameters = list(model.parameters())
x = torch.randn(64, 256).cuda()
peers = [torch.randn(parameter.shape).cuda() for parameter in parameters]


def step(index):
    for parameter in parameters:
        parameter.grad = None
    model(x).square().mean().backward()
    communication.wait_stream(main)
    with torch.cuda.stream(communication):
        for parameter, peer in zip(parameters, peers):
            parameter.grad.add_(peer)
    work()  # the metrics of the step
    if FIXED:
        main.wait_stream(communication)
    sgd(parameters)
    weir.checkpoint("weights", model[0].weight)
    main.wait_stream(communication)


run(step)
print_digest(*parameters)
