"""Three PyTorch programs that launch in different ways; each is a function that returns one step."""
import torch


def training(batch=4, length=64, width=256, layers=6):
    """A training step of a small GPT: about 440 small commands, so the host is what it waits for."""
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
            self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = self.qkv(self.first(x)).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(torch.nn.functional.gelu(self.up(self.second(x))))

    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Embedding(512, width), *[Block() for _ in range(layers)],
                                torch.nn.Linear(width, 512)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 512, (batch, length), device="cuda")

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        return loss
    return step


def decoding(width=2048, layers=24, length=512):
    """One token at a time, as a language model is served: a CUDA graph of all layers with their attention over what came
    before is replayed, and its result is read by the host."""
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

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        forward()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = forward()

    def step():
        token.copy_(host, non_blocking=True)
        graph.replay()
        result.copy_(out, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return result
    return step


def pipeline(count=1 << 18, width=512, lanes=4):
    """Four streams, each of which copies in, computes and copies out, tied by events."""
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
                last = torch.cuda.Event()
                last.record(stream)
        last.synchronize()
        return host_out[lanes - 1]
    return step


PROGRAMS = {"training": training, "decoding": decoding, "pipeline": pipeline}
