# What is measured beside peers: the library's operations, and GradBench's evals. Included by the Makefile.

BENCH    := $(OUT)/tests/bench/bench
BENCH_OBJECTS := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard tests/bench/*.c)))
$(OUT)/tests/bench/roof.o: OWN += $(KERNEL)
$(BENCH_OBJECTS): $(OUT)/%.o: %.c Makefile | $$(@D)/
	$(call say,CC   $<)
	$(Q)$(CC) $(COMMON) $(OWN) $(LAST) -MMD -MP -c $< -o $@
## deps-bench: install PyTorch with OpenBLAS, what torch.compile needs, and oneDNN to compare with
deps-bench:
	@$(call apt,python3-torch libopenblas0-pthread libtorch-dev libsleef-dev python3-setuptools g++ \
	    libdnnl-dev)
## bench: times against PyTorch, oneDNN and the machine's limit; tables, build/bench/results.tsv
## bench-quick: fewer cases and shorter bursts, under 40 seconds
bench: $(BENCH)
	$(Q)$(BENCH) --output=$(BUILD)/bench --plots=plots
	$(Q)if $(has_gnuplot) >/dev/null; then gnuplot plots/bench.gp; fi
bench-quick: $(BENCH)
	$(Q)$(BENCH) --output=$(BUILD)/bench --quick
# The engines of oneDNN, where its header is found, and of kann, where KANN names a clone of it, are
# programs of their own: nothing else loads them.
ONEDNN := $(if $(wildcard /usr/include/oneapi/dnnl/dnnl.h),$(OUT)/tests/bench/engine_onednn)
$(BENCH): $(filter-out %/engine_onednn.o %/engine_kann.o,$(BENCH_OBJECTS)) $(STATIC) | $(ONEDNN) \
    $(if $(KANN),$(OUT)/tests/bench/engine_kann)
	$(Q)$(link) $(filter %.o %.a,$^) $(LIBS) $(LDLIBS) -o $@
$(OUT)/tests/bench/engine_kann: tests/bench/engine_kann.c $(OUT)/tests/bench/engine.o
	$(Q)$(CC) -O3 -march=native -Iinclude -I$(KANN) $^ $(KANN)/kann.c $(KANN)/kautodiff.c $(LDFLAGS) -lm -o $@
$(OUT)/tests/bench/engine_onednn: $(OUT)/tests/bench/engine_onednn.o $(OUT)/tests/bench/engine.o
	$(Q)$(link) $^ -ldnnl $(LDLIBS) -o $@

# tests/bench/gradbench speaks GradBench's protocol. PyTorch is measured where Python finds it; PEERS adds
# others, such as the benchmark's own:
#     make gradbench PEERS="--tool 'manual=COMMAND'"
PYTHON ?= /usr/bin/python3
EVALS := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard tests/bench/gradbench/*.c)))
tool = --tool '$(1)=$(2)'
## gradbench: GradBench's evals against PyTorch, values against golden.json; a table
gradbench: $(OUT)/tests/bench/gradbench/gradbench
	$(Q)tests/bench/gradbench/gradbench.py $(call tool,normgrad,$< {}) $(if $(shell $(PYTHON) -c \
	    'import torch' 2>&1),,$(call tool,PyTorch,$(PYTHON) tests/bench/gradbench/engine_torch.py {})) $(PEERS)
$(EVALS): $(OUT)/%.o: %.c Makefile | $$(@D)/
	$(call say,CC   $<)
	$(Q)$(CC) $(COMMON) $(LAST) -MMD -MP -c $< -o $@
$(OUT)/tests/bench/gradbench/gradbench: $(EVALS) $(STATIC)
	$(Q)$(link) $^ $(LIBS) $(LDLIBS) -o $@

.PHONY: deps-bench bench bench-quick gradbench
-include $(wildcard $(OUT)/tests/bench/gradbench/*.d)
