# What one does with this repository; `make help` lists it. Works as root or with sudo, on Debian 12 and 13, from a
# machine that has git and make only.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 30
# Extra arguments for pytest, e.g. make test PYTEST="-k llama".
PYTEST ?=

ORBAX := .venv-orbax
TRANSFORMERS := .venv-transformers
MAXTEXT := .venv-maxtext
WHEEL := .venv-wheel
PACKAGE := .venv-python

export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
CONFIGURE = cmake --log-level=WARNING $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache) --preset
COMPILE = cmake --build --parallel $(JOBS) --preset
# The Python tests with the program of the preset $(1), built with the sanitizer $(2).
SANITIZED = MAXPORT_SANITIZER=$(2) MAXPORT_PROGRAM=$(CURDIR)/build-$(1)/maxport \
  TSAN_OPTIONS=suppressions=$(CURDIR)/tools/tsan.supp $(ORBAX)/bin/python -m pytest -q tests/test_*.py $(PYTEST)
CTEST = ctest --parallel 2 --output-on-failure --no-tests=error --preset

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: packages
packages: ## install the Debian packages that are missing
	@tools/install_packages.sh packages.txt

.PHONY: packages-clang
packages-clang: packages
	@tools/install_packages.sh packages-clang.txt

.PHONY: build
build: packages ## build the program: build/maxport
	@$(CONFIGURE) release
	@$(COMPILE) release --target maxport

.PHONY: build-all
build-all: packages
	@$(CONFIGURE) release
	@$(COMPILE) release

.PHONY: demo
demo: build $(ORBAX)/.ready ## convert a trained model, restore it with stock Orbax, compare, and let it speak
	@$(ORBAX)/bin/python conformance/demo.py

.PHONY: test
test: build-all $(ORBAX)/.ready ## everything that must hold: structure, unit tests, stock Orbax as the judge
	@$(MAKE) --no-print-directory check-structure
	@$(CTEST) release
	@$(ORBAX)/bin/python -m pytest -q tests/test_*.py tools $(PYTEST)

.PHONY: conformance
conformance: build $(ORBAX)/.ready $(TRANSFORMERS)/.ready $(MAXTEXT)/.ready ## MaxText and transformers as judges (Python 3.12, several GB of packages)
	@MAXPORT_TRANSFORMERS=$(CURDIR)/$(TRANSFORMERS)/bin/python MAXPORT_MAXTEXT=$(CURDIR)/$(MAXTEXT)/bin/python \
	  $(ORBAX)/bin/python -m pytest -v conformance --ignore conformance/test_browser.py $(PYTEST)

.PHONY: test-browser
test-browser: build $(ORBAX)/.ready ## the page of `inspect --html` in Chromium (several hundred MB of packages)
	@tools/install_packages.sh packages-browser.txt
	@$(ORBAX)/bin/python -m pytest -v conformance/test_browser.py $(PYTEST)

.PHONY: wheel
wheel: packages $(WHEEL)/.ready ## a wheel in dist/ that carries its libraries, tried in an empty environment
	@python/make_wheel.sh $(WHEEL)

.PHONY: wheels
wheels: packages $(WHEEL)-3.11/.ready $(WHEEL)-3.12/.ready ## wheels for Python 3.11 and 3.12, each tried in an empty environment
	@python/make_wheel.sh $(WHEEL)-3.11
	@python/make_wheel.sh $(WHEEL)-3.12

.PHONY: test-python
test-python: wheel $(PACKAGE)/.ready ## the Python package, from its wheel
	@$(PACKAGE)/bin/python -m pip install --quiet --force-reinstall --no-deps --no-index --find-links dist maxport
	@$(PACKAGE)/bin/python -m pytest -q tests/python $(PYTEST)

.PHONY: test-python-maxtext
test-python-maxtext: $(MAXTEXT)/.ready ## MaxText's own converter with maxport's Orbax handler
	@PYTHONPATH=python $(MAXTEXT)/bin/python -m pytest -q tests/python/test_maxtext.py $(PYTEST)

.PHONY: bench
bench: build $(ORBAX)/.ready ## time and memory beside `cp`, and MaxText's converter where its environment is there
	@$(CONFIGURE) dev
	@$(COMPILE) dev --target tensor_bench zarr_bench
	@$(ORBAX)/bin/python conformance/bench.py

.PHONY: fuzz
fuzz: packages-clang ## each fuzz target for FUZZ_SECONDS (30)
	@$(CONFIGURE) fuzz
	@$(COMPILE) fuzz
	@tools/run_fuzzers.sh build-fuzz $(FUZZ_SECONDS)

.PHONY: asan
asan: packages $(ORBAX)/.ready ## unit tests and Python tests under the address and undefined-behaviour sanitizers (about an hour)
	@$(CONFIGURE) asan
	@$(COMPILE) asan
	@$(CTEST) asan
	@$(call SANITIZED,asan,address)

.PHONY: tsan
tsan: packages-clang $(ORBAX)/.ready ## unit tests and Python tests under the thread sanitizer (about an hour)
	@$(CONFIGURE) tsan
	@$(COMPILE) tsan
	@$(CTEST) tsan
	@$(call SANITIZED,tsan,thread)

.PHONY: check-structure
check-structure: packages ## rooms, sizes, links and other rules of the house
	@python3 tools/check_structure.py

.PHONY: test-data-sums
test-data-sums: ## write tests/data/SHA256SUMS after a change of the fixtures that is meant
	@cd tests/data && git ls-files -z --cached --others --exclude-standard | LC_ALL=C sort -z \
	  | grep -zvxE 'SHA256SUMS|README.md' | xargs -0 sha256sum > SHA256SUMS

.PHONY: clean
clean: ## remove what was built and the virtual environments
	@rm -rf build build-* .venv-orbax .venv-transformers .venv-maxtext .venv-wheel* .venv-python dist demo-output

# Virtual environments. .ready is made last, so an interrupted set-up starts over.
$(ORBAX)/.ready: requirements/orbax.txt | packages
	@tools/make_venv.sh $(ORBAX) $< 3.11 3.13

$(TRANSFORMERS)/.ready: requirements/transformers.txt requirements/orbax.txt | packages
	@tools/make_venv.sh $(TRANSFORMERS) $< 3.11 3.13

$(MAXTEXT)/.ready: requirements/maxtext.txt | packages
	@tools/make_venv.sh $(MAXTEXT) $< 3.12 3.12

$(PACKAGE)/.ready: requirements/python.txt requirements/orbax.txt | packages
	@tools/make_venv.sh $(PACKAGE) $< 3.11 3.13

$(WHEEL)/.ready: requirements/wheel.txt | packages
	@tools/make_venv.sh $(WHEEL) $< 3.11 3.13

$(WHEEL)-%/.ready: requirements/wheel.txt | packages
	@tools/make_venv.sh $(WHEEL)-$* $< $* $*
