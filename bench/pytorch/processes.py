"""Work in forked processes, for programs that have imported PyTorch and have not touched the GPU."""
import atexit, ctypes, json, os, sys


def run_as_program(body):
    """In a forked process: exit handlers run, as at the end of any program."""
    code = 0
    try:
        body()
    except BaseException as error:
        print("child:", repr(error), file=sys.stderr, flush=True)
        code = 1
    sys.stdout.flush()
    atexit._run_exitfuncs()
    ctypes.CDLL(None).exit(code)


def run_and_leave(body):
    """In a forked process: nothing runs at its end, which workers of data loaders and of NCCL could hold up."""
    try:
        body()
    except BaseException as error:
        print("child:", repr(error), file=sys.stderr, flush=True)
    os._exit(0)


def in_child(body, run=run_as_program):
    """Runs body() in a forked process; its result comes back as JSON."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        run(lambda: os.write(writer, json.dumps(body()).encode()))
    os.close(writer)
    text = b""
    while part := os.read(reader, 65536):
        text += part
    os.close(reader)
    os.waitpid(child, 0)
    return json.loads(text) if text else None
