"""PyTorch programs whose steps depend on hardware queues, on the host or on neither; each function returns one step."""
import os
import torch
import torch.distributed


def mlp(width, depth, **kind):
    return [torch.randn(width, width, **kind) / width**0.5 for _ in range(depth)]


def through(weights, x):
    for weight in weights:
        x = torch.relu(x @ weight)
    return x


def sampling(requests=16, words=1 << 19, depth=6, in_turns=False):
    """Many streams with kernels of few blocks: each request is sampled on a stream of its own, then all are joined. The host
    launches one request after the other, or a kernel of each in turn."""
    torch.manual_seed(1)
    streams = [torch.cuda.Stream() for _ in range(requests)]
    logits = [torch.randn(4, words, device="cuda") for _ in range(requests)]

    def step():
        main = torch.cuda.current_stream()
        begun = main.record_event()
        for stream in streams:
            stream.wait_event(begun)
        rows = list(logits)
        places = [(i, k) for i in range(requests) for k in range(depth + 1)]
        for i, k in sorted(places, key=lambda place: place[1]) if in_turns else places:
            with torch.cuda.stream(streams[i]):
                rows[i] = torch.softmax(rows[i], -1) if k < depth else rows[i].amax(-1)
        for stream in streams:
            main.wait_stream(stream)
        result = torch.stack(rows)
        torch.cuda.synchronize()
        return result
    return step


def towers(width=2048, tokens=2048, is_deep_urgent=False):
    """Four streams with towers of different depth, as in recommendation models, joined at the end."""
    torch.manual_seed(1)
    kind = dict(device="cuda", dtype=torch.bfloat16)
    depths = (4, 8, 12, 24)
    streams = [torch.cuda.Stream(priority=-1 if is_deep_urgent and depth == max(depths) else 0) for depth in depths]
    weights = [mlp(width, depth, **kind) for depth in depths]
    x = torch.randn(tokens, width, **kind)

    def step():
        main = torch.cuda.current_stream()
        begun = main.record_event()
        outputs = []
        for stream, weight in zip(streams, weights):
            with torch.cuda.stream(stream):
                stream.wait_event(begun)
                outputs.append(through(weight, x))
        for stream in streams:
            main.wait_stream(stream)
        result = sum(outputs)
        torch.cuda.synchronize()
        return result
    return step


def pipeline(lanes=12, count=1 << 21, width=1024, is_chained=False):
    """Copies in, computes and copies out on a stream per lane; if chained, each computes after the one before it."""
    torch.manual_seed(1)
    streams = [torch.cuda.Stream() for _ in range(lanes)]
    host_in = [torch.randn(count).pin_memory() for _ in range(lanes)]
    host_out = [torch.empty(count).pin_memory() for _ in range(lanes)]
    device = [torch.empty(count, device="cuda") for _ in range(lanes)]
    weight = torch.randn(width, width, device="cuda") / width**0.5

    def step():
        last = None
        for lane, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                device[lane].copy_(host_in[lane], non_blocking=True)
                x = device[lane].view(-1, width)
                if last is not None:
                    stream.wait_event(last)
                for _ in range(4):
                    x = torch.relu(x @ weight)
                host_out[lane].copy_(x.reshape(-1), non_blocking=True)
                last = stream.record_event() if is_chained else None
        last.synchronize() if is_chained else torch.cuda.synchronize()
        return host_out[-1]
    return step


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.first(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(torch.nn.functional.gelu(self.up(self.second(x))))


def training(batch=4, length=64, width=256, layers=6, parallel=False, reads_loss=False, loader=None):
    """A training step of a small GPT: about 440 small commands, so the host is what it waits for."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Embedding(512, width), *[Block(width, 4) for _ in range(layers)],
                                torch.nn.Linear(width, 512)).cuda()
    called = model
    if parallel:
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("nccl", init_method=f"file:///tmp/advise_{os.getpid()}", rank=0, world_size=1)
        called = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 512, (batch, length), device="cuda")

    def step():
        data = next(loader).cuda(non_blocking=True) if loader is not None else tokens
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(called(data).flatten(0, 1), data.flatten())
        loss.backward()
        if reads_loss:
            loss.item()  # the host waits for the device in the middle of the step
        optimizer.step()
        return loss
    return step


def ddp():
    """The training step with the collectives of data parallelism, on one rank, with layers that the device needs time for."""
    return training(batch=8, length=512, width=1024, layers=8, parallel=True)


class Slow(torch.utils.data.IterableDataset):
    def __iter__(self):
        import time
        while True:
            end = time.perf_counter() + 0.004  # a row that takes the processor 4 ms to decode
            while time.perf_counter() < end:
                pass
            yield torch.randint(0, 512, (64,))


def loading():
    """The training step behind a data loader that is slower than it."""
    return training(batch=8, loader=iter(torch.utils.data.DataLoader(Slow(), batch_size=8, num_workers=2, pin_memory=True)))


def tokens(width=2048, layers=24, length=512, is_graph=True):
    """One token at a time, as a language model is served: all layers, eagerly or as one CUDA graph, then the host reads."""
    torch.manual_seed(1)
    kind = dict(device="cuda", dtype=torch.bfloat16)
    heads = width // 128
    weights = [[torch.randn(a, b, **kind) / a**0.5 for a, b in ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))]
               for _ in range(layers)]
    keys = [torch.randn(1, heads, length, 128, **kind) for _ in range(layers)]
    values = [torch.randn(1, heads, length, 128, **kind) for _ in range(layers)]
    token = torch.zeros(1, width, **kind)
    host = torch.zeros(1, width, dtype=torch.bfloat16).pin_memory()
    result = torch.zeros(1, width, dtype=torch.bfloat16).pin_memory()

    def forward():
        x = token
        for layer, (qkv, out, up, down) in enumerate(weights):
            q, k, v = (torch.nn.functional.layer_norm(x, (width,)) @ qkv).view(3, 1, heads, 1, 128).unbind(0)
            keys[layer][:, :, -1:], values[layer][:, :, -1:] = k, v
            y = torch.nn.functional.scaled_dot_product_attention(q, keys[layer], values[layer])
            x = x + y.reshape(1, width) @ out
            x = x + torch.nn.functional.gelu(torch.nn.functional.layer_norm(x, (width,)) @ up) @ down
        return x

    run, graph = forward, None
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        forward()
    torch.cuda.current_stream().wait_stream(side)
    if is_graph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = forward()

        def run():
            graph.replay()
            return out

    def step():
        token.copy_(host, non_blocking=True)
        result.copy_(run(), non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return result
    return step


# The device's own time is as long as the host's, so that reading the loss in the middle costs something.
BALANCED = dict(batch=16, length=256, width=512, layers=6)
# What bench/advise measures: with different numbers of queues, and in two ways to do the same, of which `weir advise` has to
# predict the second from the first.
QUEUES = {"sampling": sampling, "towers": towers, "pipeline": pipeline, "tokens": tokens, "loading": loading, "ddp": ddp}
PAIRS = {"eager": (lambda: tokens(is_graph=False), lambda: tokens()),
         "item": (lambda: training(**BALANCED, reads_loss=True), lambda: training(**BALANCED)),
         "turns": (sampling, lambda: sampling(in_turns=True)),
         "urgent": (towers, lambda: towers(is_deep_urgent=True))}
# What bench/record measures: they launch in different ways.
PROGRAMS = {"training": training, "decoding": tokens, "pipeline": lambda: pipeline(4, 1 << 18, 512, is_chained=True)}
