# What is measured beside peers: the library's operations, and GradBench's evals. Included by the Makefile.

BENCH    := $(OUT)/tests/bench/bench
BENCH_OBJECTS := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard tests/bench/*.c)))
$(OUT)/tests/bench/roof.o: OWN += $(KERNEL)
$(BENCH_OBJECTS): $(OUT)/%.o: %.c Makefile | $$(@D)/
	$(call say,CC   $<)
	$(Q)$(CC) $(COMMON) $(OWN) $(LAST) -MMD -MP -c $< -o $@
## deps-bench: install PyTorch with OpenBLAS, what torch.compile needs, oneDNN and ADOL-C to compare with
deps-bench:
	@$(call apt,python3-torch libopenblas0-pthread libtorch-dev libsleef-dev python3-setuptools g++ \
	    libdnnl-dev libadolc-dev)
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

# The programs of tests/bench/gradbench speak GradBench's protocol. PyTorch is measured where Python finds
# it, ADOL-C where its header is (libadolc-dev); PEERS adds others:
#     make gradbench PEERS="--tool 'manual=COMMAND'"
EVALS  := $(filter-out %/gradbench,$(patsubst %.c,$(OUT)/%,$(sort $(wildcard tests/bench/gradbench/*.c))))
ADOLC  := $(if $(wildcard /usr/include/adolc/adolc.h),$(OUT)/tests/bench/gradbench/engine_adolc)
PYTHON ?= /usr/bin/python3
tool = --tool '$(1)=$(2)'
## gradbench: GradBench's evals against PyTorch and ADOL-C, values against golden.json; a table
gradbench: $(EVALS) $(ADOLC)
	$(Q)tests/bench/gradbench/gradbench.py $(call tool,normgrad,$(<D)/{}) $(if $(shell $(PYTHON) -c \
	    'import torch' 2>&1),,$(call tool,PyTorch,$(PYTHON) tests/bench/gradbench/engine_torch.py {})) \
	    $(if $(ADOLC),$(call tool,ADOL-C,$(ADOLC) {})) $(PEERS)
GRADBENCH := $(OUT)/tests/bench/gradbench/gradbench.o
$(EVALS:%=%.o) $(GRADBENCH): $(OUT)/%.o: %.c Makefile | $$(@D)/
	$(call say,CC   $<)
	$(Q)$(CC) $(COMMON) $(LAST) -MMD -MP -c $< -o $@
$(EVALS): %: %.o $(GRADBENCH) $(STATIC)
	$(Q)$(link) $^ $(LIBS) $(LDLIBS) -o $@
$(OUT)/tests/bench/gradbench/engine_adolc: tests/bench/gradbench/engine_adolc.cpp $(GRADBENCH) $(STATIC)
	$(call say,CXX  $<)
	$(Q)$(CXX_FOUND) -std=c++17 -O2 -pthread -Iinclude $^ $(LDFLAGS) -ladolc $(LIBS) $(LDLIBS) -o $@

.PHONY: deps-bench bench bench-quick gradbench
-include $(wildcard $(OUT)/tests/bench/gradbench/*.d)
