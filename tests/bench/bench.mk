# What is measured beside peers: the library's operations, and GradBench's evals. Included by the Makefile.

BENCH_OBJECTS := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard tests/bench/*.c)))
$(OUT)/tests/bench/roof.o: OWN += $(KERNEL)
$(BENCH_OBJECTS): $(OUT)/%.o: %.c Makefile | $$(@D)/.
	$(call say,CC   $<)
	$(Q)$(CC) $(COMMON) $(OWN) $(LAST) -MMD -MP -c $< -o $@
## deps-bench: install PyTorch with OpenBLAS, what torch.compile needs, and oneDNN to compare with
deps-bench:
	@$(call apt,python3-torch libopenblas0-pthread libtorch-dev libsleef-dev python3-setuptools g++ \
	    libdnnl-dev)
# oneDNN's engine, where its header is found, is a program of its own: nothing else loads it.
ENGINE := $(OUT)/tests/bench/engine
ENGINES := $(ENGINE) $(if $(wildcard /usr/include/oneapi/dnnl/dnnl.h),$(ENGINE)_onednn)
$(ENGINE): $(filter %/normgrad.o %/roof.o %/engine.o,$(BENCH_OBJECTS)) $(STATIC)
	$(Q)$(link) $^ $(LIBS) $(LDLIBS) -o $@
$(ENGINE)_onednn: $(ENGINE)_onednn.o $(ENGINE).o
	$(Q)$(link) $^ -ldnnl $(LDLIBS) -o $@
PYTHON ?= /usr/bin/python3
MEASURE = $(PYTHON) tests/bench/bench.py --engines=$(<D) $(FLAGS) --output=$(BUILD)/bench
## bench: times against PyTorch, oneDNN and the machine's limit; a table, build/bench/results.tsv
## bench-quick: fewer cases and shorter bursts, without torch.compile
## bench-compilers: the library by each compiler that is found, in turns
## bench-tables: the tables of tests/bench/README.md with AVX-512 and AVX2, to build/bench/tables.md
bench: $(ENGINES)
	$(Q)$(MEASURE)
	$(Q)cp $(BUILD)/bench/bench_ratio.dat plots
	$(Q)if $(has_gnuplot) >/dev/null; then gnuplot plots/bench.gp; fi
bench-quick: $(ENGINES)
	$(Q)$(MEASURE) --quick
COMPILED = $(BUILD)/compilers
bench-compilers:
	$(Q)mkdir -p $(COMPILED)
	$(Q)$(PYTHON) tests/bench/compilers.py $(COMPILED)
# Both instruction sets' tables side by side, then what the compilers differ in.
bench-tables: IN = $(BUILD)/bench
bench-tables: $(ENGINES)
	$(Q)mkdir -p $(IN) $(COMPILED); set -e; for isa in avx512 avx2; do \
	    $(MEASURE)/$$isa --isa=$$isa --group=norm,pointwise,conv,product,step >$(IN)/$$isa.md; \
	    grep '^|' $(IN)/$$isa.md >$(IN)/$$isa.rows; done; cp $(IN)/avx512/bench_ratio.dat plots; \
	{ sed 's/^|[^|]*|//' $(IN)/avx2.rows | paste -d ' ' $(IN)/avx512.rows -; grep -hv '^|' $(IN)/avx*.md; \
	    for isa in avx512 avx2; do echo; $(PYTHON) tests/bench/compilers.py --isa=$$isa --marked $(COMPILED); \
	    done; } >$(IN)/tables.md

# tests/bench/gradbench speaks GradBench's protocol. PyTorch is measured where Python finds it; PEERS adds
# others, such as the benchmark's own:
#     make gradbench PEERS="--tool 'manual=COMMAND'"
EVALS := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard tests/bench/gradbench/*.c)))
tool = --tool '$(1)=$(2)'
## gradbench: GradBench's evals against PyTorch, values against golden.json; a table
gradbench: $(OUT)/tests/bench/gradbench/gradbench
	$(Q)tests/bench/gradbench/gradbench.py $(call tool,normgrad,$< {}) $(if $(shell $(PYTHON) -c \
	    'import torch' 2>&1),,$(call tool,PyTorch,$(PYTHON) tests/bench/gradbench/engine_torch.py {})) $(PEERS)
$(EVALS): FEATURES = -D_XOPEN_SOURCE=700
$(EVALS): $(OUT)/%.o: %.c Makefile | $$(@D)/.
	$(call say,CC   $<)
	$(Q)$(CC) $(COMMON) $(LAST) -MMD -MP -c $< -o $@
$(OUT)/tests/bench/gradbench/gradbench: $(EVALS) $(STATIC)
	$(Q)$(link) $^ $(LIBS) $(LDLIBS) -o $@

.PHONY: deps-bench bench bench-quick bench-compilers bench-tables gradbench
-include $(wildcard $(OUT)/tests/bench/gradbench/*.d)
