#!/usr/bin/env python3
"""Prints the expected values of statistics_test.cpp and scaling_test.cpp, computed by numpy and scipy.

Run it by hand when a sample or a formula changes, and copy the values into the tests:
    python3 tests/measure/reference/statistics_reference.py
"""
import numpy as np
import scipy
from scipy import optimize, stats

print(f"numpy {np.__version__}, scipy {scipy.__version__}")

SKEWED = [12.1, 11.8, 12.4, 11.9, 12.0, 35.2, 12.2, 11.7, 12.3, 12.0, 13.9, 12.1, 11.9, 12.6, 12.0, 18.4, 12.2]
FIRST = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
SECOND = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06001, 3.14, 1.295]
TIED_A = [1, 2, 2, 3, 3, 3, 4, 5, 5, 6, 7, 7]
TIED_B = [2, 3, 3, 4, 4, 5, 6, 6, 7, 8, 8, 9, 9, 9]
WAVE_A = [100 + (i * 37 % 101) / 10 for i in range(60)]
WAVE_B = [101.5 + (i * 53 % 97) / 10 for i in range(45)]
RAMP = [50 + 0.3 * i + (i * 29 % 17) * 0.5 for i in range(40)]

print("mean", repr(np.mean(SKEWED)), "std", repr(np.std(SKEWED, ddof=1)))
for q in (0, 0.01, 0.25, 0.5, 0.75, 0.95, 0.99, 1):
    print("quantile", q, repr(np.quantile(SKEWED, q)))
print("ranks tied", stats.rankdata(TIED_A).tolist())

for name, a, b in (("small", FIRST, SECOND), ("tiny", FIRST[:3], SECOND[:4]), ("tied", TIED_A, TIED_B),
                   ("large", WAVE_A, WAVE_B)):
    exact = name in ("small", "tiny")
    r = stats.mannwhitneyu(a, b, alternative="two-sided", method="exact" if exact else "asymptotic")
    print("mann_whitney", name, repr(r.statistic), repr(r.pvalue))
r = stats.mannwhitneyu(FIRST, SECOND, alternative="two-sided", method="asymptotic")
print("mann_whitney small asymptotic", repr(r.pvalue))


def holm(p):
    p = np.asarray(p)
    order = np.argsort(p)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


print("holm", holm([0.01, 0.04, 0.03, 0.005, 0.6]).tolist())

slope, _, _, _ = stats.theilslopes(RAMP)
print("theil-sen", repr(slope), "relative change", repr(slope * (len(RAMP) - 1) / np.median(RAMP)))
# kendalltau's normal approximation uses the same variance, without the continuity correction of Mann-Kendall.
n = len(RAMP)
score = sum(np.sign(RAMP[j] - RAMP[i]) for i in range(n) for j in range(i + 1, n))
_, groups = np.unique(RAMP, return_counts=True)
variance = (n * (n - 1) * (2 * n + 5) - sum(g * (g - 1) * (2 * g + 5) for g in groups)) / 18
print("mann-kendall", score, variance, repr(2 * stats.norm.sf((abs(score) - 1) / np.sqrt(variance))))

rng = np.random.default_rng(1)
for name, statistic in (("mean", np.mean), ("median", np.median)):
    r = stats.bootstrap((WAVE_A,), statistic, n_resamples=99999, method="percentile", random_state=rng)
    print("bootstrap", name, r.confidence_interval)
resampled = rng.choice(WAVE_B, (99999, len(WAVE_B))), rng.choice(WAVE_A, (99999, len(WAVE_A)))
print("bootstrap ratio of medians",
      np.percentile(np.median(resampled[0], axis=1) / np.median(resampled[1], axis=1), [2.5, 97.5]))


def usl(n, gamma, alpha, beta):
    return gamma * n / (1 + alpha * (n - 1) + beta * n * (n - 1))


STREAMS = np.array([1, 2, 4, 8, 16, 32, 64], dtype=float)
for name, x in (("peaked", [955.16, 1878.91, 3688.02, 6531.08, 9897.24, 10811.05, 8101.3]),
                ("saturating", [100, 190, 345, 590, 890, 1195, 1440]),
                ("linear", [10.1, 19.9, 40.3, 79.8, 160.4, 319.0, 641.0])):
    x = np.array(x, dtype=float)
    best = None
    for start in ([x[0], 0.01, 1e-4], [x[0], 0.1, 1e-3], [x[0], 0.5, 1e-6]):
        fit = optimize.least_squares(lambda p: (usl(STREAMS, *p) - x) / x.max(), start, bounds=([0, 0, 0], np.inf),
                                     x_scale=[x[0], 0.1, 1e-3], xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=20000)
        best = fit if best is None or fit.cost < best.cost else best
    g, a, b = best.x
    r2 = 1 - ((usl(STREAMS, g, a, b) - x)**2).sum() / ((x - x.mean())**2).sum()
    peak = np.sqrt((1 - a) / b) if b > 1e-9 else None
    print("usl", name, repr(g), repr(a), repr(b), "r2", repr(r2), "peak", peak, usl(peak, g, a, b) if peak else None)
