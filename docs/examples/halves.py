def run_benchmark(problem_size=1024, iterations=1):
    total = sum(0.5 * i for i in range(problem_size))
    return {"result": total, "expected": problem_size * (problem_size - 1) / 4}
