# Two commands do most of it: `make run` and `make test`. CMake presets do the work; this only names it.
JOBS ?= $(shell nproc)
RUN_ARGS ?= run P0 --streams 1..16:x2 -o results/$(shell date +%Y%m%d-%H%M%S)
BUILD = cmake --preset release > /dev/null && cmake --build --preset release --parallel $(JOBS) --target
export JOBS

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup build hip run test test-gpu test-long bench bench-quick bench-gpu fuzz install deb docs format lint clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|' 2> /dev/null || grep '##' Makefile

setup: ## Install missing distribution packages (Debian 12, Ubuntu 24.04)
	@scripts/setup.sh build

build: setup ## Build build/release/weir
	@$(BUILD) weir

hip: ## Build with the device code for AMD GPUs; installs hipcc where it is missing
	@scripts/setup.sh hip
	@cmake --preset release -DWEIR_HIP=ON > /dev/null && cmake --build --preset release --parallel $(JOBS) --target weir

run: ## Set up, build, then sweep the P0 workloads on the best device; writes results/ and a page about them
	@scripts/run.sh $(RUN_ARGS)

test: ## Set up, then the test suite: release, ASan+UBSan of the lower layers, TSan, importers fuzzed for a few seconds, the other architecture compiled
	@scripts/setup.sh test
	@scripts/test.sh release asan tsan fuzz cross

test-gpu: ## The tests that need a GPU
	@scripts/setup.sh test
	@scripts/test.sh gpu

test-long: ## Everything under ASan+UBSan, all threads under TSan; 10^9 commands through each channel, none lost; the queue probe 200 times; 500 kills, 200 random signals, 10,000 preemptions; 32 writers of a history and its server killed 200 times; one of each is added and found
	@scripts/setup.sh test
	@scripts/test.sh asan-all tsan-all
	@$(BUILD) tests_lab_queues tests_channel tests_lab_preempt tests_cli tests_report_history
	WEIR_LONG_TESTS=1 build/release/tests_lab_queues --gtest_filter='ProbeCpuLong.*'
	WEIR_LONG_TESTS=1 build/release/tests_channel --gtest_filter='ChannelLong*'
	WEIR_LONG_TESTS=1 build/release/tests_cli --gtest_filter='SchedFaults.*:SchedSoak.*:Stop.random*'
	WEIR_LONG_TESTS=1 build/release/tests_lab_preempt
	WEIR_LONG_TESTS=1 build/release/tests_report_history --gtest_filter='*Killed*'
	scripts/one_of_each.sh

bench: setup ## Run the benchmarks that need no GPU, then all kernel packages, 30 samples each; writes reports/
	@$(BUILD) weir
	@$(BUILD) run_bench -- -k 0
	build/release/weir bench --iterations 30 $(BENCH_ARGS)

bench-quick: build ## All kernel packages, 10 samples each; writes reports/
	build/release/weir bench --iterations 10 $(BENCH_ARGS)

bench-gpu: setup ## Compare Weir with a hand-written CUDA loop (needs a GPU)
	@$(BUILD) run_bench_gpu -- -k 0

fuzz: ## Fuzz the parsers with libFuzzer (SECONDS=60 each, TARGETS="nsys rpd"; inputs that crash stay in build/fuzz)
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh $(or $(SECONDS),60) $(TARGETS)

install: build ## Install the binary (PREFIX, default /usr/local)
	cmake --install build/release --prefix $(or $(PREFIX),/usr/local)

deb: build ## Build the Debian package into build/release/packages
	cd build/release && cpack -G DEB

docs: build ## Rewrite docs/cli.md from the program
	build/release/weir help --markdown > docs/cli.md.new && mv docs/cli.md.new docs/cli.md

format: ## Format all sources in place (clang-format 19)
	@scripts/setup.sh lint
	find include src tests bench fuzz kernels -regex '.*\.\(h\|cpp\|cu\|cuh\)' -o -path 'kernels/*.cl' 2> /dev/null | xargs clang-format-19 -i

lint: ## Check formatting, compile everything and each header alone with clang 19, run clang-tidy 19; CHANGED=1 looks only at files that differ from HEAD
	@scripts/setup.sh lint
	@scripts/lint.sh $(if $(CHANGED),--changed)

clean: ## Remove build/ (results/ stays)
	rm -rf build
