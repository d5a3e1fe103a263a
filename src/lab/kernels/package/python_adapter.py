# Serves a Python module with a benchmark function as the executable of a package: questions and answers are lines of
# JSON, as docs/bench_protocol.md has them. Knows how the function is called and how its result is read; measures
# nothing but the time of its calls. Runs as `python3 -c TEXT TASK` in the module's folder; Python 3.8 or later.
import importlib
import importlib.util
import inspect
import json
import math
import os
import platform
import random
import re
import sys
import time
import traceback

PRECISIONS = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16",
              "fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2"}
BACKENDS = {"rocm": "hip", "torch": "pytorch"}
GPU_LIBRARIES = ("torch", "jax", "cupy", "numba", "tensorflow", "triton", "pycuda")
CONFIGS = ("config", "cfg", "configuration", "params", "parameters", "options", "settings")
# What a function can be given besides its problem.
OFFERED = ("backend", "device", "precision", "dtype", "seed", "threads", "iterations", "iters", "warmup")
# Entries of a result that describe it.
NOT_OUTPUTS = OFFERED + ("success", "error", "expected", "reference", "accuracy", "timing", "memory", "energy", "flop",
                      "bytes", "items", "item_name", "problem_size", "kernel_name", "rmse", "max_error",
                      "relative_error")
TIMES = re.compile(r"(^|_)(time|latency|elapsed|duration|throughput|gflops|tflops)(_|$)|_(ms|us|ns|s|sec|seconds)$")
MOST_ELEMENTS = 100_000  # of an output that is shown; of larger ones every so many


class Refused(Exception):
    """Its words are the whole message."""


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_numbers(value):
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(is_number(each) for each in value)


def loaded(name):
    return sys.modules.get(name)


def quietly(ask, otherwise):
    try:
        return ask()
    except Exception:
        return otherwise


def words_of(error, file):
    if isinstance(error, Refused):
        return str(error)
    if isinstance(error, SystemExit):
        words = "it called sys.exit(%s)" % (error.code,)
    else:
        words = "%s: %s" % (type(error).__name__, error)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return words[:1500] + (" (%s:%d)" % (os.path.basename(file), lines[-1]) if lines else "")


def load(file):
    folder, name = os.path.split(os.path.splitext(file)[0])
    # A module of a package is imported as one, so that `from . import x` works.
    top = folder
    while os.path.exists(os.path.join(top, "__init__.py")):
        top, last = os.path.split(top)
        name = last + "." + name
    sys.path[0:1] = [folder] if top == folder else [top, folder]
    if top != folder:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def flattened(value):
    """The numbers in a scalar, a list of lists or an array; None where there is something else."""
    if hasattr(value, "detach"):  # torch
        value = value.detach().cpu()
        if "float8" in str(value.dtype) or "bfloat16" in str(value.dtype):
            value = value.float()
    elif hasattr(value, "get") and type(value).__module__.startswith("cupy"):
        value = value.get()
    if hasattr(value, "reshape") and hasattr(value, "shape"):
        value = value.reshape(-1)
        value = value[:: max(1, -(-len(value) // MOST_ELEMENTS))]
    if hasattr(value, "tolist"):
        value = value.tolist()
    found, pending = [], [value]
    while pending:
        each = pending.pop()
        if isinstance(each, (list, tuple)):
            if len(found) + len(pending) + len(each) > 100 * MOST_ELEMENTS:
                return None
            pending.extend(reversed(each))
        elif isinstance(each, complex):
            found.extend((each.real, each.imag))
        elif isinstance(each, (bool, int, float)):
            found.append(quietly(lambda: float(each), math.inf))
        else:
            return None
    return found[:: max(1, -(-len(found) // MOST_ELEMENTS))]


def outputs_of(result):
    """Names and numbers of what a function returned."""
    if not isinstance(result, dict):
        result = {} if result is None else {"result": result}
    found = {}
    for key, value in result.items():
        name = re.sub(r"[^!-~]", "_", str(key))[:100] or "_"
        if key in NOT_OUTPUTS or TIMES.search(name):
            continue
        numbers = flattened(value)
        if numbers:
            found[name] = numbers
    return found


def json_numbers(numbers):
    return [number if math.isfinite(number) else None for number in numbers]


def memory_kb(key):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(key + ":"):
                return int(line.split()[1])
    raise Refused("/proc/self/status has no " + key)


class Benchmark:
    def __init__(self, task):
        self.file, self.given, self.listed = task["file"], task["problem"], task["precision"]
        with open(self.file, encoding="utf-8", errors="replace") as text:
            source = text.read(1 << 20)
        module = load(self.file)
        self.function = getattr(module, task["function"], None)
        if not callable(self.function):
            raise Refused("%s has no function %s()" % (os.path.basename(self.file), task["function"]))
        if inspect.iscoroutinefunction(self.function):
            raise Refused("%s() is async: a benchmark is called, not awaited" % task["function"])
        self.reference = getattr(module, "reference", None)
        self.name = task["function"]
        self.libraries = [name for name in GPU_LIBRARIES
                          if loaded(name) or re.search(r"^\s*(import|from)\s+%s\b" % name, source, re.M)]
        words = inspect.getdoc(self.function) or inspect.getdoc(module) or ""
        self.summary = words.strip().split("\n")[0][:200]
        self.read_signature(inspect.signature(self.function))

    def read_signature(self, signature):
        self.takes = {}
        self.takes_any = self.config = None
        for name, parameter in signature.parameters.items():
            if parameter.kind == parameter.VAR_KEYWORD:
                self.takes_any = name
            elif parameter.kind == parameter.POSITIONAL_ONLY:
                raise Refused("%s(): '%s' is taken by position only, and arguments are given by name"
                              % (self.name, name))
            elif parameter.kind != parameter.VAR_POSITIONAL:
                self.takes[name] = parameter
        for name, parameter in self.takes.items():
            if name in CONFIGS and name not in self.given:
                self.config = self.config or name
        needed = [name for name, parameter in self.takes.items()
                  if parameter.default is parameter.empty and name not in self.given and name not in OFFERED
                  and name not in (self.config, "problem_size")]
        # def run_benchmark(what): one argument of any name is everything in one dict.
        if len(needed) == 1 and not self.config and "problem_size" not in self.takes and not self.given:
            self.config = needed.pop()
        if needed:
            raise Refused("%s() needs '%s', and bench.yaml does not give it: add it to problem_size"
                          % (self.name, needed[0]))

    def default(self, name):
        parameter = self.takes.get(name)
        return None if parameter is None or parameter.default is parameter.empty else parameter.default

    def wants_number(self):
        """Whether problem_size is a number: def run_benchmark(problem_size=1024)."""
        annotation = self.takes["problem_size"].annotation
        default = self.default("problem_size")
        return is_number(default) or is_numbers(default) or annotation in (int, float, "int", "float")

    def parameters(self):
        found = {}
        takes_rest = self.config or self.takes_any or "problem_size" in self.takes
        for name, value in self.given.items():
            default = self.default(name)
            found[name] = default if is_numbers(default) and not isinstance(value, list) else value
            if not (takes_rest or name in self.takes):
                raise Refused("%s() takes no '%s', which bench.yaml gives it" % (self.name, name))
        for holder in ("problem_size", self.config):
            entries = self.default(holder) if holder else None
            if isinstance(entries, dict):
                for name, value in entries.items():
                    if isinstance(name, str) and (is_number(value) or is_numbers(value)):
                        found.setdefault(name, value)
        rest = [name for name in self.given if name not in self.takes]
        for name in self.takes:
            default = self.default(name)
            if name in OFFERED or name == self.config or (name == "problem_size" and rest):
                continue
            if is_number(default) or is_numbers(default):
                found.setdefault(name, default)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    def can_tell(self, *names):
        return bool(self.config or self.takes_any or any(name in self.takes for name in names))

    def describe(self):
        backends = ["cpu"]
        if self.libraries:
            backends += ["cuda", "hip"]
        backends += [backend for backend, library in (("pytorch", "torch"), ("jax", "jax"))
                     if library in self.libraries]
        # A function without a parameter for the precision has one: the first that bench.yaml lists, or that of its library.
        own = self.listed or ("fp32" if "torch" in self.libraries or "jax" in self.libraries else "fp64")
        precisions = list(PRECISIONS) if self.can_tell("precision", "dtype") else [own]
        return {"summary": self.summary, "backends": backends, "precisions": precisions,
                "parameters": self.parameters(),
                "resolution_ns": max(1.0, time.get_clock_info("perf_counter").resolution * 1e9)}

    def arguments(self):
        offered, problem = dict(self.offered), dict(self.problem)
        named = {}
        for name in self.takes:
            if name in (self.config, "problem_size") and name not in problem:
                continue
            if name in problem:
                value = problem.pop(name)
                as_tuple = isinstance(value, list) and isinstance(self.default(name), tuple)
                named[name] = tuple(value) if as_tuple else value
            elif name in offered:
                named[name] = offered[name]
        if "problem_size" in self.takes and "problem_size" not in named:
            if problem and len(problem) == 1 and self.wants_number():
                named["problem_size"] = next(iter(problem.values()))
            elif problem or self.default("problem_size") is None:
                default = self.default("problem_size")
                named["problem_size"] = dict(default if isinstance(default, dict) else {}, **problem)
            if not self.config:
                problem = {}
        if self.config:
            default = self.default(self.config)
            named[self.config] = dict(default if isinstance(default, dict) else {}, **offered)
            named[self.config].update(self.problem, problem_size=dict(self.problem))
        elif self.takes_any:
            named.update(problem)
            named.update((name, value) for name, value in offered.items() if name not in named)
        return named

    def plant_seed(self):
        seed = self.offered["seed"]
        random.seed(seed)
        for name, plant in (("numpy", lambda m: m.random.seed(seed % 2**32)), ("torch", lambda m: m.manual_seed(seed)),
                            ("cupy", lambda m: m.random.seed(seed % 2**32))):
            if loaded(name):
                quietly(lambda: plant(loaded(name)), None)

    def synchronise(self, result):
        torch, jax, cupy = loaded("torch"), loaded("jax"), loaded("cupy")
        if torch and torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        if jax:
            jax.block_until_ready(result)
        if cupy:
            cupy.cuda.runtime.deviceSynchronize()

    def gpu(self):
        """The GPU backend that was used, as far as the libraries show; None for none."""
        torch, jax, cupy = loaded("torch"), loaded("jax"), loaded("cupy")
        if torch and quietly(lambda: torch.cuda.is_initialized() and torch.cuda.max_memory_allocated() > 0, False):
            return "hip" if quietly(lambda: torch.version.hip, None) else "cuda"
        if cupy and quietly(lambda: cupy.get_default_memory_pool().total_bytes() > 0, False):
            return "hip" if quietly(lambda: cupy.cuda.runtime.is_hip, False) else "cuda"
        if jax and quietly(lambda: jax.default_backend(), "cpu") in ("gpu", "cuda", "rocm"):
            return "hip" if "rocm" in quietly(lambda: jax.devices()[0].client.platform_version, "") else "cuda"
        if loaded("numba") and quietly(lambda: len(loaded("numba").cuda.cudadrv.devices.gpus.lst) > 0, False):
            return "cuda"
        return None

    def used_backend(self, asked, result):
        said = result.get("backend") if isinstance(result, dict) else None
        if isinstance(said, str):
            said = BACKENDS.get(said.lower(), said.lower())
            if said != "gpu":
                return said
        if asked in ("pytorch", "jax"):
            return asked if loaded("torch" if asked == "pytorch" else "jax") else "cpu"
        return self.gpu() or "cpu"

    def device(self):
        torch, jax = loaded("torch"), loaded("jax")
        if self.gpu() and torch and torch.cuda.is_initialized():
            return quietly(lambda: torch.cuda.get_device_name(), "")
        if self.gpu() and jax:
            return quietly(lambda: str(jax.devices()[0].device_kind), "")
        return "%s %s" % (platform.python_implementation(), platform.python_version())

    def call(self, arguments):
        result = self.function(**arguments)
        if isinstance(result, dict) and result.get("success") is False:
            raise Refused("%s() reports that it failed: %s" % (self.name, str(result.get("error", "no reason"))[:1000]))
        return result

    def setup(self, question):
        backend, precision = question["backend"], question["precision"]
        torch = loaded("torch")
        has_gpu = backend in ("cuda", "hip") or (
            backend == "pytorch" and torch and quietly(lambda: torch.cuda.is_available(), False))
        if has_gpu and torch and question["device_index"] > 0:
            torch.cuda.set_device(question["device_index"])
        self.problem = question["problem"]
        self.offered = {"backend": backend, "device": "cuda" if has_gpu else "cpu", "precision": precision,
                     "dtype": PRECISIONS[precision], "seed": question["seed"], "threads": question["threads"],
                     "iterations": 1, "iters": 1, "warmup": 0}
        quietly(lambda: open("/proc/self/clear_refs", "w").write("5"), None)  # the peak begins here
        self.before_kb = quietly(lambda: memory_kb("VmRSS"), 0)
        self.plant_seed()
        result = self.call(self.arguments())
        self.synchronise(result)
        answer = {"backend": self.used_backend(backend, result), "precision": precision, "device": self.device()}
        if isinstance(result, dict):
            said = result.get("precision")
            if isinstance(said, str):
                names = {name: ours for ours, name in PRECISIONS.items()}
                answer["precision"] = "fp8_e4m3" if said == "fp8" else names.get(said, said)
            for key in ("flop", "bytes", "items"):
                if is_number(result.get(key)) and math.isfinite(result[key]):
                    answer[key] = result[key]
            if isinstance(result.get("item_name"), str):
                answer["item_name"] = result["item_name"]
        return answer

    def run(self, question):
        arguments, count, result = self.arguments(), question["count"], None
        start = time.perf_counter_ns()
        for _ in range(count):
            result = self.function(**arguments)
        self.synchronise(result)
        return {"elapsed_ns": time.perf_counter_ns() - start}

    def expected(self, result, outputs):
        """What the module says is right: `expected` in its result, or its function reference()."""
        given = result.get("expected", result.get("reference")) if isinstance(result, dict) else None
        if given is None and callable(self.reference):
            self.plant_seed()
            takes = inspect.signature(self.reference).parameters
            any_name = any(each.kind == each.VAR_KEYWORD for each in takes.values())
            given = self.reference(**{name: value for name, value in self.arguments().items()
                                      if any_name or name in takes})
        if given is None:
            return {}
        if isinstance(given, dict):
            return outputs_of(given)
        name = "result" if "result" in outputs else "output" if "output" in outputs else next(iter(outputs), "result")
        numbers = flattened(given)
        return {name: numbers} if numbers else {}

    def check(self):
        self.plant_seed()
        result = self.call(self.arguments())
        self.synchronise(result)
        outputs = outputs_of(result)
        expected = self.expected(result, outputs)
        # Where some outputs have a reference, the others are figures about the run.
        names = [name for name in outputs if name in expected] or list(outputs)
        shown = [{"name": name, "actual": json_numbers(outputs[name]),
                  "expected": json_numbers(expected[name]) if name in expected else None, "whole": False}
                 for name in names[:1000]]
        answer = {"outputs": shown}
        if isinstance(result, dict) and not expected:
            own = result.get("accuracy") if isinstance(result.get("accuracy"), dict) else result
            errors = {key: own[key] for key in ("rmse", "max_error", "relative_error") if is_number(own.get(key))}
            if errors:
                answer["errors"] = {key: value if math.isfinite(value) else None for key, value in errors.items()}
        return answer

    def memory(self):
        torch = loaded("torch")
        if self.gpu() and torch and torch.cuda.is_initialized():
            return {"peak_bytes": torch.cuda.max_memory_allocated(), "allocated_bytes": torch.cuda.memory_allocated()}
        return {"peak_bytes": max(0, memory_kb("VmHWM") - self.before_kb) * 1024}


def main():
    task = json.loads(sys.argv[1])
    sys.argv = [task["file"]]
    # The module may print and read as it likes: its stdout is our stderr, and its stdin is empty.
    questions, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    benchmark = None
    for line in questions:
        question = json.loads(line)
        operation = question["op"]
        if operation == "exit":
            break
        try:
            if operation == "describe":
                benchmark = benchmark or Benchmark(task)
                answer = benchmark.describe()
            elif operation == "setup":
                answer = benchmark.setup(question)
            elif operation == "run":
                answer = benchmark.run(question)
            elif operation == "check":
                answer = benchmark.check()
            elif operation == "memory":
                answer = benchmark.memory()
            elif operation == "teardown":
                answer = {}
            else:
                raise Refused("no such operation: " + operation)
            text = json.dumps(dict(answer, ok=True), allow_nan=False)
        except BaseException as error:
            if not isinstance(error, Refused):
                traceback.print_exc()
            text = json.dumps({"ok": False, "error": words_of(error, task["file"])})
        sys.stdout.flush()
        answers.write(text + "\n")
        answers.flush()
    os._exit(0)  # without waiting for threads that the module has left behind


main()
