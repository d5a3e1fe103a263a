#!/bin/bash
# Builds fuzz/*.cpp with libFuzzer, ASan and UBSan and runs each for a while, from seeds of our own making.
# usage: fuzz.sh SECONDS
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
out=build/fuzz
mkdir -p "$out"

flags=(-std=c++20 -g1 -O1 -Isrc -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
for source in fuzz/*.cpp; do
  name=$(basename "$source" .cpp)
  echo "== $name: build"
  sources=(src/base/*.cpp src/run/load.cpp)
  libraries=(-lfmt)
  if [ "$name" = yaml ]; then
    sources=(src/base/*.cpp src/kernel/*.cpp src/step/*.cpp src/workload/*.cpp)
    libraries=(-lfmt -lyaml-cpp -lopenblas $(pkg-config --cflags openblas 2> /dev/null || true))
  fi
  if [ "$name" = profile ]; then
    sources=(src/base/*.cpp src/kernel/*.cpp src/device/sim_profile.cpp)
    libraries=(-lfmt -lyaml-cpp -lopenblas $(pkg-config --cflags openblas 2> /dev/null || true))
  fi
  clang++-19 "${flags[@]}" "$source" "${sources[@]}" "${libraries[@]}" -o "$out/$name"
  mkdir -p "$out/$name.corpus"
done

cat > "$out/results.corpus/weir" <<'SEED'
{"schema":"weir.result/1","status":"complete","workload":{"name":"w","unit":"commands/s","scaling":"grows"},"parameters":{"size":4},
"precision":"fp32","scale":"tiny","streams":2,"submit":"inline","placement":"natural","sync_mode":"per_iteration","device":{"name":"cpu","model":"m"},
"environment":{"variables":{}},"work_per_iteration":8.0,"samples":{"latency_ns":[1,2,3],"interval_ns":[1,2,3],"device_ns":null,"submit_ns":[1]},
"metrics":{"latency_ns":{"p50":2},"throughput":{"value":1.0,"unit":"x","interval":null}},"check":{"status":"passed"},"warnings":[],"unavailable":{}}
SEED
echo '{"schema":"weir.sweep/1","results":[],"workload":"w"}' > "$out/results.corpus/sweep"
echo '{"workload":"w","results":[{"workload_name":"w","stream_count":4,"throughput":1.5,"latency_ms":{"p50":1.0},"iteration_times_ms":[1.0,1.1]}]}' \
  > "$out/results.corpus/aorta"
cp config/*.yaml "$out/yaml.corpus/"
cp config/devices/*.yaml "$out/profile.corpus/"
cat > "$out/profile.corpus/table" <<'SEED'
name: x
mapping: fixed
map: [0, 1]
durations:
  - {kernel: gemm, type: f32, precision: tf32, dims: [8, 8, 8, 256], ns: 412.5, blocks: 5, blocks_per_multiprocessor: 1}
  - {host: gelu, type: f32, dims: [64], ns: 9}
  - {copy: to_device, bytes: 1048576, ns: 21000}
  - {collective: all_reduce, bytes: 1048576, ns: 60000}
SEED
printf 'host.launch_ns=5' > "$out/profile.corpus/setting"
cat > "$out/yaml.corpus/small" <<'SEED'
name: x
streams: 1
params: {n: 8, s: {default: 0.5, max: 2}}
work: n * 2
unit: samples/s
buffers:
  a: {count: n, init: uniform, scale: s}
  i: {count: n, init: indices}
  h: {count: n, place: host, init: constant, value: 1}
  b: {count: 2 * n}
commands:
  - {name: k, kernel: chain, ops: [mul 1.5, clamp 0 1], reads: a, writes: "b[0:n]", after: [c]}
  - repeat: {for: j, count: 2, do: [{name: c, copy: {from: h, to: "b[n:n]"}, when: j == 0}]}
  - {kernel: gather, dims: [n, 1, n], reads: [a, i], writes: "b[:n]", priority: 1}
  - {host: gelu, reads: h, writes: h}
SEED
for text in 8 1,2,4 1..64:x2 16..64:+16 size=4 5% 0.05 inline,graph; do printf %s "$text" > "$out/options.corpus/${text//[^0-9a-z]/_}"; done

for source in fuzz/*.cpp; do
  name=$(basename "$source" .cpp)
  echo "== $name: $seconds s"
  "$out/$name" -max_total_time="$seconds" -max_len=8192 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$out/$name-" "$out/$name.corpus"
done
