"""Runs programs of bench/race without a GPU: a stand-in for the part of PyTorch that they use, whose streams run in
virtual time and whose tensors hold one number. Each program must give the same digest plainly and with --fixed. Then
every single command is delayed once, as `weir race` does it: a delay before the first command of the known edge must
change the digest, and no delay may after the last of them; in corrected and clean programs no delay may at all.
usage: virtual_time.py PROGRAM...    exit 1: a program is not what its header says"""
import collections
import contextlib
import io
import os
import pathlib
import re
import runpy
import struct
import sys
import time
import types

LAUNCH_US, KERNEL_US, COPY_US, DELAY_US = 5.0, 3.0, 25.0, 400.0
Command = collections.namedtuple("Command", "name stream microseconds read write")


class Device:
    """Commands read when they begin and write when they end; the host runs ahead of them."""

    def __init__(self, delayed=0):
        self.host, self.delayed = 0.0, delayed
        self.names = []  # of the commands, in the order in which they were submitted
        self.due, self.count = [], 0  # reads and writes that have not happened yet
        self.capture = None

    def run(self, command, begin):
        self.names.append(f"{command.name}@{command.stream.number}")
        if len(self.names) == self.delayed:
            begin += DELAY_US
        read = []
        self.at(begin, lambda: read.append(command.read()))
        self.at(begin + command.microseconds, lambda: command.write(read[0]))
        return begin + command.microseconds

    def at(self, when, what):
        self.count += 1
        self.due.append((when, self.count, what))

    def wait(self, until):
        """The host has come to this time, and with it the device."""
        self.host = max(self.host, until)
        happens = sorted(each[:2] + (each[2],) for each in self.due if each[0] <= self.host)
        self.due = [each for each in self.due if each[0] > self.host]
        for _, _, what in happens:
            what()

    def submit(self, name, microseconds, read, write):
        command = Command(name, current[-1], microseconds, read, write)
        if self.capture is not None:
            self.capture.append(command)
            return
        self.wait(self.host + LAUNCH_US)
        command.stream.free = self.run(command, max(self.host, command.stream.free))


class Event:
    def __init__(self):
        self.when = 0.0

    def synchronize(self):
        device.wait(self.when)


class Stream:
    all = []

    def __init__(self):
        self.number, self.free, self.cuda_stream = len(Stream.all), 0.0, 0
        Stream.all.append(self)

    def record_event(self):
        event = Event()
        if device.capture is not None:
            device.capture.append(lambda free: setattr(event, "when", free[self]))
        else:
            event.when = self.free
        return event

    def wait_event(self, event):
        if device.capture is not None:
            device.capture.append(lambda free: free.__setitem__(self, max(free[self], event.when)))
        else:
            self.free = max(self.free, event.when)

    def wait_stream(self, other):
        self.wait_event(other.record_event())

    def synchronize(self):
        device.wait(self.free)


class Graph:
    def replay(self):
        device.wait(device.host + LAUNCH_US)
        stream = current[-1]
        begin = max(device.host, stream.free)
        device.names.append(f"graph@{stream.number}")
        begin += DELAY_US if len(device.names) == device.delayed else 0
        free = collections.defaultdict(lambda: begin)
        for node in self.nodes:
            if isinstance(node, Command):
                free[node.stream] = device.run(node, free[node.stream])
            else:
                node(free)
        stream.free = max([begin, *free.values()])


@contextlib.contextmanager
def capturing(graph):
    synchronize()
    device.capture = []
    with on_stream(Stream()):
        yield
    graph.nodes, device.capture = device.capture, None


@contextlib.contextmanager
def on_stream(stream):
    current.append(stream)
    yield
    current.pop()


def synchronize():
    device.wait(max([device.host] + [stream.free for stream in Stream.all]))


class Tensor:
    """Memory of the device comes from an allocator that gives a freed block to the next tensor of the same stream."""
    freed = collections.defaultdict(list)
    addresses = iter(range(1 << 20, 1 << 40, 1 << 20))

    def __init__(self, is_cuda, value=None, cell=None):
        self.is_cuda, self.home, self.is_shared = is_cuda, current[-1], cell is not None or not is_cuda
        if not self.is_shared and Tensor.freed[self.home]:
            self.address, self.cell = Tensor.freed[self.home].pop()
        else:
            self.address, self.cell = next(Tensor.addresses), cell or [0.0]
        if value is not None:
            self.cell[0] = value

    def __del__(self):
        if not self.is_shared:
            Tensor.freed[self.home].append((self.address, self.cell))

    def record_stream(self, stream):
        self.is_shared = True  # never given away here

    def __getitem__(self, part):
        return Tensor(self.is_cuda, cell=self.cell)

    def data_ptr(self):
        return self.address

    def numel(self):
        return 1

    def element_size(self):
        return 8

    def detach(self):
        return self

    contiguous = pin_memory = detach

    def to(self, where):
        return self

    def cuda(self):
        return Tensor(True, self.cell[0])

    def remainder_(self, number):
        return self

    def _becomes(self, name, function, *others, microseconds=KERNEL_US):
        cells, target = [other.cell if isinstance(other, Tensor) else [other] for other in others], self.cell
        device.submit(name, microseconds, lambda: function(*[cell[0] for cell in cells]),
                      lambda value: target.__setitem__(0, value))
        return self

    def mul_(self, other):
        if not self.is_cuda:
            self.cell[0] *= other
            return self
        return self._becomes("MulFunctor", lambda a, b: a * b, self, other)

    def add_(self, other):
        name = "CUDAFunctor_add" if isinstance(other, Tensor) else "CUDAFunctorOnSelf_add"
        return self._becomes(name, lambda a, b: a + b, self, other)

    def fill_(self, value):
        return self._becomes("FillFunctor", lambda a: a, value)

    def copy_(self, other, non_blocking=False):
        if not self.is_cuda and not other.is_cuda:
            device.wait(device.host)
            self.cell[0] = other.cell[0]
            return self
        return self._becomes("copy", lambda a: a, other,
                             microseconds=KERNEL_US if self.is_cuda and other.is_cuda else COPY_US)


def operator(name, function):
    return lambda *inputs, out=None: (out if out is not None else Tensor(True))._becomes(name, function, *inputs)


def host_clock():
    """A look at the clock takes the host a microsecond."""
    device.host += 1.0
    return device.host * 1e-6


def stand_in():
    torch, cuda = types.ModuleType("torch"), types.ModuleType("torch.cuda")
    torch.float32, torch.cuda = "float32", cuda
    made = lambda *shape, device="cpu", **_: Tensor(device == "cuda", 0.0)
    torch.zeros = made
    torch.empty = lambda *shape, device="cpu", **_: Tensor(device == "cuda")
    torch.empty_like = lambda tensor: Tensor(tensor.is_cuda)
    torch.full = lambda shape, value: Tensor(False, value)
    torch.arange = lambda count, **_: Tensor(False, 1.0)
    torch.mul, torch.add = operator("MulFunctor", lambda a, b: a * b), operator("CUDAFunctor_add", lambda a, b: a + b)
    torch.neg = operator("neg_kernel", lambda a: -a)
    cuda.Stream, cuda.CUDAGraph, cuda.graph, cuda.stream = Stream, Graph, capturing, on_stream
    cuda.synchronize, cuda.current_stream = synchronize, lambda: current[-1]
    cuda._sleep = lambda cycles: device.submit("spin", cycles / 1800, lambda: None, lambda value: None)
    sys.modules.update({"torch": torch, "torch.cuda": cuda})
    time.perf_counter = host_clock


def run(path, is_fixed, delayed=0):
    """The digest and the names of the commands, of a run in a child."""
    global device, current
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            device, current = Device(delayed), []
            current.append(Stream())
            stand_in()
            sys.argv = [str(path)] + ["--fixed"] * is_fixed
            sys.path.insert(0, str(path.resolve().parents[1] / "programs"))
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                import racing
                racing.STEPS = 3
                racing.bytes_of = lambda tensor: struct.pack("d", tensor.cell[0])
                runpy.run_path(str(path), run_name="__main__")
            with os.fdopen(write, "w") as answer:
                answer.write(said.getvalue() + "\n".join(device.names))
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as answer:
        said = answer.read()
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        sys.exit(f"{path.name}{' --fixed' * is_fixed}: failed")
    digest, *names = said.splitlines()
    return digest, names


def complaints(path):
    edge = re.search(r"^# edge: (\S+)@\w+ -> ", path.read_text(), re.M)
    right, names = run(path, True)
    for number in range(1, len(names) + 1):
        if run(path, True, number)[0] != right:
            yield f"the corrected program changes with a delay before command {number}, {names[number - 1]}"
    if edge is None:
        return
    plain, names = run(path, False)
    if plain != right:
        yield "it is wrong when nobody disturbs it"
    firsts = {name for name in names if name.startswith(edge.group(1) + "@")}
    changing = [number for number in range(1, len(names) + 1) if run(path, False, number)[0] != plain]
    if not any(names[number - 1] in firsts for number in changing):
        yield f"no delay before {edge.group(1)} changes it; it has {', '.join(sorted(set(names)))}"
    for number in changing:
        # What a delay holds up, too, is what waits for its stream: that may be the first command of the edge.
        if not any(name in firsts for name in names[number - 1:]):
            yield f"a delay before command {number}, {names[number - 1]}, changes it; no first command comes after it"


def main():
    wrong = 0
    for path in map(pathlib.Path, sys.argv[1:]):
        found = list(complaints(path))
        wrong += len(found)
        print("\n".join(f"{path.name}: {each}" for each in found) or f"{path.name}: as its header says")
    return wrong > 0


device, current = None, []
sys.exit(main())
