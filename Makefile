# `make` alone says what there is. Everything a target brings lies in target/ and .cache/.

TARGET := $(or $(CARGO_TARGET_DIR),target)
LOCKSTEP := $(TARGET)/release/lockstep
export LOCKSTEP_CACHE ?= $(CURDIR)/.cache

HOST = $(shell rustc --version --verbose | sed -n 's/^host: //p')
STATIC = $(TARGET)/static/$(HOST)/release/lockstep
MDBOOK := 0.5.4
# Many tests start processes and wait for them: two for each processor keep all busy.
TEST_THREADS = $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))

.PHONY: help demo test test-peers test-tools test-fast test-long test-kube test-gpu kernels soak bench-train bench-cores bench-gpu report-gpu bench-data bench-recovery bench-collective bench-scale bench-hosts bench-losses bench-shards bench-trees bench-serving bench-dashboard screenshots wheel dist static book image test-python clean release cargo components

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' Makefile

demo: release ## Build, bring Fashion-MNIST, and train it on two workers
	@$(LOCKSTEP) data get fashion-mnist
	@$(LOCKSTEP) run examples/fashion-mnist.toml --workers 2 --epochs 10

# Threads of other libraries that spin while they wait would take the processors from the tests beside them.
test test-peers: export OMP_WAIT_POLICY := passive
test test-peers: export OPENBLAS_NUM_THREADS := 1

test: components ## Run the checks for every change: format, clippy, docs, unit and integration tests, a word with each peer
	@echo "== format"
	@cargo fmt --all --check
	@echo "== clippy"
	@cargo clippy --quiet --workspace --all-targets -- -D warnings
	@echo "== docs"
	@RUSTDOCFLAGS=-Dwarnings cargo doc --quiet --workspace --no-deps
	@echo "== unit and integration tests"
	@RUST_TEST_THREADS=$(TEST_THREADS) cargo test --workspace --lib --bins --test it --no-fail-fast
	@cargo test --workspace --doc --quiet
ifeq ($(filter test-peers,$(MAKECMDGOALS)),)
	@echo "== one conversation with each peer that is small or in the cache; make test-peers holds all of them"
	@cargo test --workspace --test peers -- smoke::
endif

# Ray's clusters live as long as the test program: each part has a program of its own, so that they do not add up. What
# goes through a cluster waits half of its time, so the other peers are tested beside it, and give way to it, since it is
# the longest. All parts run, and any that fails fails the target.
PEERS = cargo test --workspace --test peers --no-fail-fast --
test-peers: cargo test-tools ## Run the long conversations with real Ray, MLflow, TensorBoard, browsers and object stores
	@cargo test --workspace --test peers --no-run
	@failed=0; ray=$$(mktemp); \
	( ended=0; $(PEERS) ray:: || ended=1; $(PEERS) submit:: || ended=1; exit $$ended ) > $$ray 2>&1 & beside=$$!; \
	export RUST_TEST_THREADS=$(TEST_THREADS); \
	echo "== peers other than Ray"; nice -n 5 $(PEERS) --skip smoke:: --skip ray:: --skip submit:: || failed=1; \
	wait $$beside || failed=1; echo "== Ray, and jobs on Ray"; cat $$ray; rm -f $$ray; \
	exit $$failed

test-tools: ## Bring what tests need of the system, Node and Chromium: by apt-get if root, else say what to install
	@sh crates/lockstep-testkit/tools.sh

test-fast: cargo ## Run the unit tests only
	@cargo test --workspace --lib --bins

test-long: cargo ## Run the tests that take long or bring gigabytes: soak, 500 steps in fixed16, large networks on an emulated GPU, 5 GiB of Parquet, an older Ray, CLIP beside transformers, PyTorch and TensorFlow as gangs
	@cargo test --workspace --test soak -- --include-ignored
	@cargo test --workspace --test it -- --include-ignored memory::
	@cargo test --workspace --test it -- --ignored --nocapture clip_real::
	@LOCKSTEP_TEST_RAY=2.53.0 cargo test --workspace --test peers -- ray::
	@LOCKSTEP_TEST_RAY=2.53.0 cargo test --workspace --test peers -- submit::
	@cargo test --workspace --test peers -- --ignored python:: scripts:: bench:: serve_jobs::
	@cargo test --workspace --test it -- --ignored scripts:: serve_api:: fixed16::
	@cargo test --package lockstep-cuda --test it -- --ignored emulated::

test-kube: cargo ## Build a control plane of Kubernetes once (Go; minutes), and run jobs through it (root, for KubeRay)
	@cargo test --workspace --test peers -- --ignored --nocapture kube::

test-gpu: cargo ## Hold the GPU of this machine against the processor, bit by bit; without one, say so
	@cargo test --package lockstep-cuda --test it -- --nocapture gpu::
	@cargo test --package lockstep-train --lib -- --nocapture gpu::
	@cargo test --package lockstep-cuda --test it -- --nocapture --ignored gpu_at_last::

kernels: cargo ## Make the PTX of the GPU kernels again, with NVIDIA's compiler of PyPI; no GPU is needed
	@cargo test --package lockstep-cuda --test peers -- --ignored --exact make_kernels --nocapture

soak: cargo ## Kill workers and coordinators for minutes: the weights must not change
	@cargo test --workspace --test soak -- --include-ignored --nocapture

bench-gpu: release ## Compare whole jobs and encoders on the GPU of this machine with PyTorch on it (python3 with torch)
	@cargo build --release --package lockstep-cuda --example encoder_speed
	@python3 bench/gpu.py --lockstep $(LOCKSTEP) --encoder-speed $(TARGET)/release/examples/encoder_speed $(BENCH_ARGS)

report-gpu: release ## Hold the GPU of this machine against the processor and PyTorch in seven minutes, and print a short table
	@cargo build --release --package lockstep-cuda --example encoder_speed
	@python3 bench/gpu_report.py --lockstep $(LOCKSTEP) --encoder-speed $(TARGET)/release/examples/encoder_speed \
		--tests "$$($(call test_program,lockstep-cuda,--test it))" --tests "$$($(call test_program,lockstep-train,--lib))" $(BENCH_ARGS)

# Where cargo has put a test program.
test_program = cargo test --package $(1) $(2) --no-run 2>&1 | sed -n 's/.*Executable.*(\(.*\)).*/\1/p'

bench-train: release ## Compare with PyTorch, side by side (BENCH_ARGS="--rounds 5 --write-docs")
	@command -v python3 > /dev/null || { echo "python3 is missing: the benchmark is written in it" >&2; exit 1; }
	@$(LOCKSTEP) data get fashion-mnist
	@python3 bench/train.py --lockstep $(LOCKSTEP) $(BENCH_ARGS)

bench-cores: release ## Compare all cores with PyTorch's and onnxruntime's threads (python3 with torch, onnxruntime)
	@cargo build --release --package lockstep-nn --example clip_rate
	@python3 bench/cores.py --lockstep $(LOCKSTEP) --clip-rate $(TARGET)/release/examples/clip_rate $(BENCH_ARGS)

bench-data: cargo ## Compare with Pillow, Ray Data and onnxruntime, side by side (BENCH_ARGS="--rounds 5")
	@command -v python3 > /dev/null || { echo "python3 is missing: the benchmark is written in it" >&2; exit 1; }
	@cargo build --release --package lockstep-image --example decode_rate
	@python3 bench/data.py --target $(TARGET) $(BENCH_ARGS)
	@python3 bench/clip.py $(BENCH_ARGS)

bench-recovery: release ## Kill a worker of a job on 5 GB, and say how long it stood still
	@mkdir -p $(LOCKSTEP_CACHE)
	@python3 bench/recovery.py --lockstep $(LOCKSTEP) $(BENCH_ARGS)

bench-collective: cargo ## Compare the exchange of gradients with PyTorch's gloo, side by side
	@command -v python3 > /dev/null || { echo "python3 is missing: the benchmark is written in it" >&2; exit 1; }
	@cargo build --release --package lockstep-gang --example collective_rate
	@python3 bench/collective.py --example $(TARGET)/release/examples/collective_rate $(BENCH_ARGS)

bench-shards: release ## Compare what a script is handed with Ray Data and a PyTorch DataLoader, side by side
	@command -v python3 > /dev/null || { echo "python3 is missing: the benchmark is written in it" >&2; exit 1; }
	@python3 bench/shards.py --lockstep $(LOCKSTEP) $(BENCH_ARGS)

bench-trees: release ## Compare boosted trees with XGBoost alone and Ray Train, side by side (BENCH_ARGS="--turns 5")
	@command -v python3 > /dev/null || { echo "python3 is missing: the benchmark is written in it" >&2; exit 1; }
	@python3 bench/trees.py --lockstep $(LOCKSTEP) $(BENCH_ARGS)

bench-serving: release ## Compare predictions over HTTP with MLflow's scoring server, side by side
	@command -v python3 > /dev/null || { echo "python3 is missing: the benchmark is written in it" >&2; exit 1; }
	@$(LOCKSTEP) data get fashion-mnist
	@python3 bench/serve_model.py --lockstep $(LOCKSTEP) $(BENCH_ARGS)

bench-scale: cargo ## Hold the model of docs/scale.md against gangs of 2 to 16 processes on slow networks (as root)
	@command -v python3 > /dev/null || { echo "python3 is missing: the benchmark is written in it" >&2; exit 1; }
	@cargo build --release --package lockstep-gang --example collective_rate
	@python3 bench/scale.py --example $(TARGET)/release/examples/collective_rate $(BENCH_ARGS)

bench-hosts: release ## Train on hosts in network namespaces, disturb them, and compare the weights with one worker's (as root)
	@python3 bench/hosts.py --lockstep $(LOCKSTEP) $(BENCH_ARGS)

bench-losses: release ## Kill a worker or a host every ten seconds for ten minutes, on one machine and on three hosts (as root)
	@$(LOCKSTEP) data get fashion-mnist
	@python3 bench/losses.py --lockstep $(LOCKSTEP) --cache $(LOCKSTEP_CACHE) $(BENCH_ARGS)

bench-dashboard: release ## Say what the server and its dashboard cost: memory, start, lists of a thousand, 100 open pages
	@command -v python3 > /dev/null || { echo "python3 is missing: the benchmark is written in it" >&2; exit 1; }
	@python3 bench/dashboard.py --lockstep $(LOCKSTEP) $(BENCH_ARGS)

screenshots: cargo test-tools ## Take the pictures of the dashboard that the documents show (Chromium, Node)
	@cargo test --workspace --test peers -- --ignored --nocapture dashboard::screenshots

wheel: release ## Build the Python wheel, which carries the program, into target/wheel
	@command -v python3 > /dev/null || { echo "python3 is missing: the wheel is built with it" >&2; exit 1; }
	@python3 crates/lockstep-script/python/make_wheel.py --binary $(LOCKSTEP) --out $(TARGET)/wheel

dist: wheel static ## Build what a release publishes into target/dist: archives, the wheel, checksums
	@python3 deploy/dist/build.py $(STATIC) $(LOCKSTEP) --out $(TARGET)/dist --wheel "$$(ls -t $(TARGET)/wheel/*.whl | head -n 1)"

# Without shared libraries it runs on any Linux of this processor, but cannot load XGBoost.
static: cargo
	@RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --package lockstep --target $(HOST) --target-dir $(TARGET)/static

book: cargo ## Turn the documents into a site that can be searched, in target/book
	@command -v python3 > /dev/null || { echo "python3 is missing: the site is put together with it" >&2; exit 1; }
	@test -x $(LOCKSTEP_CACHE)/tools/bin/mdbook || cargo install mdbook --version $(MDBOOK) --locked --quiet \
		--no-default-features --features search --root $(LOCKSTEP_CACHE)/tools
	@python3 docs/make-book.py --mdbook $(LOCKSTEP_CACHE)/tools/bin/mdbook --out $(TARGET)/book

test-python: ## Run the tests of the Python package alone (PYTHON=..., one that has numpy)
	@$(or $(PYTHON),python3) -m unittest discover --start-directory crates/lockstep-script/python/tests

clean: ## Remove what was built and brought
	@rm -rf target .cache bench/results

image: release ## Build container images, without a container daemon
	@command -v python3 > /dev/null || { echo "python3 is missing: the image is put together with it" >&2; exit 1; }
	@python3 deploy/image/build.py $(TARGET)/release/lockstep --out $(TARGET)/image

release: cargo
	@cargo build --release --package lockstep

cargo:
	@command -v cargo > /dev/null || { \
		echo "cargo is missing: install Rust from https://rustup.rs, then run this again" >&2; exit 1; }
	@command -v cc > /dev/null || { \
		echo "cc is missing: Rust links with it; install a C compiler (Debian: apt install gcc)" >&2; exit 1; }

# The formatter and the linter are parts of the toolchain that a minimal install leaves out.
components: cargo
	@for part in fmt:rustfmt clippy:clippy; do \
		cargo "$${part%%:*}" --version > /dev/null 2>&1 && continue; \
		command -v rustup > /dev/null || { \
			echo "cargo $${part%%:*} is missing, and so is rustup, which would bring it" >&2; exit 1; }; \
		rustup component add "$${part#*:}" || exit 1; \
	done
