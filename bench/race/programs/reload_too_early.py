"""An activation is offloaded into pinned memory on one stream and reloaded on another, which does not wait for the
first.
Like https://github.com/NVIDIA/Megatron-LM/issues/7398: the inline reload races its own device-to-host copy."""
# edge: copy@side -> copy@side, missing: wait_event
from racing import *

main, offload, reload = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
x, staging = on_device(), torch.zeros(COUNT).pin_memory()
back, result = torch.zeros(COUNT, **KIND), torch.zeros(COUNT, **KIND)


def step(index):
    x.add_(1 + index)
    offload.wait_stream(main)
    with torch.cuda.stream(offload):
        staging.copy_(x, non_blocking=True)
        done = offload.record_event()
    reload.wait_stream(main)
    with torch.cuda.stream(reload):
        work()  # what is reloaded before it
        if FIXED:
            reload.wait_event(done)
        back.copy_(staging, non_blocking=True)
    main.wait_stream(reload)
    result.add_(back)
    main.wait_stream(offload)


run(step)
print_digest(result)
