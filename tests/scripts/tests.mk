# The tests, and what else is checked. Included by the Makefile.

RUNNER   := $(OUT)/tests/runner
# The folders of suites, which mirror src/.
SUITES   := support check core group io kernels nn norms ops optim plot tape
TEST_OBJECTS := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard tests/*.c $(SUITES:%=tests/%/*.c)))) $(CASES)
CHECK_CFLAGS = $(shell pkg-config --cflags check 2>/dev/null)
CHECK_LIBS   = $(or $(shell pkg-config --libs check 2>/dev/null),-lcheck -lpthread -lrt -lm)
$(OUT)/tests/%: OWN = -Isrc -Itests $(CHECK_CFLAGS) $(if $(WITH_ZLIB),-DNG_WITH_ZLIB)
# The cases use the public interface alone.
$(OUT)/tests/cases/%: OWN =

## check: all tests, the README's example, the programs, calls that are wrong
check: suite libm check-digest walkthrough programs exercises misuse
## suite: the tests; CK_RUN_SUITE=name runs one, CK_FORK=no each in one process; VARIANT=asan, valgrind...
suite: $(RUNNER)
	$(Q)tests/scripts/suites.sh $(RUNNER)
# A process for each test takes most of the sanitizers' time (CK_FORK=yes).
ifneq ($(filter asan ubsan tsan valgrind,$(VARIANT)),)
export CK_FORK := $(or $(CK_FORK),no)
export ASAN_OPTIONS := allocator_may_return_null=1:$(ASAN_OPTIONS)
export TSAN_OPTIONS := allocator_may_return_null=1:die_after_fork=0:$(TSAN_OPTIONS)
endif
# valgrind runs one thread at a time. In a forked child it takes for lost what the parent's threads hold:
# tests that fork are left out.
ifeq ($(VARIANT),valgrind)
suite: export RUN_UNDER := valgrind --quiet --error-exitcode=1 \
    --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect
suite: export CK_EXCLUDE_TAGS := fork
suite: export OMP_NUM_THREADS := 1
suite: needs-valgrind
endif

# What computes a training calls no function of the C library whose last bits differ from one to another.
# Square roots, roundings, remainders and powers of two are exact.
INEXACT = a?(sin|cos|tan)h?|atan2|sincos|exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|hypot|cbrt|erf|erfc|[lt]gamma
libm: $(OBJECTS)
	$(Q)! nm -A -u $^ | grep -vE '/src/(check|plot)/' | grep -E ' U (_ZGV.*|($(INEXACT))[fl]?)$$'
# In the runner the calls of these go to tests/support/support.c, which can refuse them.
comma := ,
WRAPPED = $(patsubst %,-Wl$(comma)--wrap=%,open read write fsync rename close pthread_create)
$(RUNNER): $(TEST_OBJECTS) $(STATIC)
	$(call say,LINK $@)
	$(Q)$(link) $(WRAPPED) $^ $(CHECK_LIBS) $(LIBS) $(LDLIBS) -o $@
$(filter-out $(CASES),$(TEST_OBJECTS)): $(OUT)/%.o: %.c Makefile | $$(@D)/. needs-check
	$(call say,CC   $<)
	$(Q)$(CC) $(COMMON) $(OWN) $(LAST) -MMD -MP -c $< -o $@

# Networks whose bits are the same on every processor with fused multiply-add.
DIGEST := $(OUT)/tests/digest/digest
$(DIGEST): $(OUT)/%: %.c $(STATIC) | $$(@D)/.
	$(Q)$(CC) $(COMMON) $(LAST) $(LDFLAGS) $< $(STATIC) $(LIBS) $(LDLIBS) -o $@
## digest: train a network with each kind of layer, and print a digest of each one's bits
digest: $(DIGEST)
	$(Q)$(DIGEST)
check-digest: $(DIGEST)
	$(Q)tests/digest/digest.sh $(DIGEST)

# Planted faults, and right gradients.
FAULTS := $(OUT)/tests/faults/faults
$(FAULTS): $(OUT)/%: %.c $(CASES) $(STATIC) | $$(@D)/.
	$(Q)$(CC) $(COMMON) $(LAST) $(LDFLAGS) $(filter %.c %.o,$^) $(STATIC) $(LIBS) $(LDLIBS) -o $@
## faults: 10,000 faults in gradients: how many random directions miss; 100,000 right ones: a minute or two
faults: $(FAULTS)
	$(Q)$(FAULTS)

compile_outside = $(CC) $(COMMON) $(LAST) $(LDFLAGS)
walkthrough exercises: export LIBRARIES = $(STATIC) $(LIBS) $(LDLIBS)
# The norm that README.md adds, taken from its text.
walkthrough: $(STATIC)
	$(Q)tests/scripts/walkthrough.sh $(OUT)/walkthrough $(compile_outside)
# Those of examples/more answer --help; one of your own in examples/ need not.
programs: $(EXAMPLES) $(EXPERIMENTS)
	$(Q)tests/scripts/programs.sh $(OUT)/programs $(EXPERIMENTS) $(MORE)
## lifetimes: VARIANT=asan: the debug library, installed, catches uses of memory after its life
lifetimes:
	$(if $(filter asan,$(VARIANT)),,$(error lifetimes needs VARIANT=asan))
	+$(Q)tests/scripts/lifetimes.sh $(OUT)/lifetimes
## coverage: VARIANT=coverage: the share of lines that the tests run, for each file of src/
coverage: $(if $(filter coverage,$(VARIANT)),suite)
	$(if $(filter coverage,$(VARIANT)),,$(error coverage needs VARIANT=coverage))
	$(Q)gcov -n $(OBJECTS) 2>/dev/null | awk -F"[':%]" \
	    '/^File/ { file = $$2 } /^Lines/ && file ~ /^src/ { printf "%6s %%  %s\n", $$2, file; file = "" }' | sort -k3 -u | sort -n
## mutations: N faults planted in src/ at random places by SEED: which suites notice, what survives
mutations:
	$(Q)tests/scripts/mutations.py $(BUILD)/mutations $(or $(N),100) $(or $(SEED),1)

# Calls that a compiler must object to, and a program in C++; check-cxx tries every compiler.
CXX_FOUND = $(firstword $(foreach c,$(CXX) g++ clang++,$(shell command -v $(c);)))
BUILT_HERE = -L$(OUT) -lnormgrad -Wl,-rpath,$(OUT)
misuse: $(SHARED)
	$(Q)CC='$(CC)' CXX='$(CXX_FOUND)' tests/scripts/misuse.sh $(OUT)/misuse quick '$(BUILT_HERE)'
## check-cxx: wrong calls in every C since C99 and C++ since C++17, a program in C++; gcc and clang
check-cxx: $(SHARED)
	$(Q)tests/scripts/misuse.sh $(OUT)/misuse full '$(BUILT_HERE)'
## check-install: programs outside the tree by pkg-config and CMake; README's lines
check-install: needs-pkg-config all
	+$(Q)CC='$(CC)' tests/scripts/outside.sh $(OUT)/outside

headers:
	$(Q)CC='$(CC) $(WARNINGS)' CXX='$(CXX_FOUND)' tests/scripts/headers.sh
STYLED = $(sort $(wildcard include/*.h include/*/*.h src/*/*.[ch] src/*/*.inc $(foreach d,tests examples tests/bench,$d/*.[ch] $d/*/*.[ch])))
## lint: the headers in C and C++, a comment for each declaration; exported names; format
lint: headers $$(MAN_PAGES) $$(HTML_PAGES) $(SHARED)
	$(Q)case "$$(clang-format --version 2>/dev/null)" in *' 14.'*) clang-format --dry-run -Werror $(STYLED) ;; \
	*) echo 'skipped: the format, for there is no clang-format 14' ;; esac
	$(Q)tests/scripts/map.sh
	$(Q)sed '/^#/d; s/ .*//' src/normgrad.symbols | sort >$(OUT)/listed
	$(Q)nm -D --defined-only $(SHARED) | awk '{ print $$3 }' | sort | diff $(OUT)/listed - >&2
	$(Q)! grep -nHE '.{101}|	| $$' $(STYLED)
## format: the sources through clang-format (14: others break some lines elsewhere)
format: needs-clang-format
	$(Q)clang-format -i $(STYLED)

.PHONY: check suite digest check-digest faults walkthrough programs lifetimes coverage mutations misuse check-cxx check-install \
    headers lint format
