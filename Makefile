# normgrad: `make help` lists the targets. `make` needs only a C compiler and GNU Make.
#
# Products stand in $(BUILD)/$(VARIANT); the example programs of the release variant in
# $(BUILD)/examples. CC, CFLAGS, CPPFLAGS, LDFLAGS, LDLIBS, PREFIX, LIBDIR, INCLUDEDIR, MANDIR and
# DESTDIR mean the usual things; flags given by the user come last.

BUILD   = build
VARIANT = release
PREFIX  = /usr/local
LIBDIR  = $(PREFIX)/lib
INCLUDEDIR = $(PREFIX)/include
MANDIR  = $(PREFIX)/share/man
DATADIR = $(PREFIX)/share/normgrad
OBJCOPY = objcopy

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDEXPANSION:
MAKEFLAGS += --no-builtin-rules
# As many jobs as there are processors, unless -j, MAKEFLAGS or a make above says how many.
ifeq ($(MAKELEVEL)$(findstring -j,$(MAKEFLAGS) $(shell echo "$$MAKEFLAGS")),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
endif
Q = $(if $(V),,@)
say = $(if $(V),,@echo '  $(1)')
again = +$(Q)$(MAKE) --no-print-directory

# ---- Packages: apt-get installs them, elsewhere they are named -----------------------------------

PACKAGES       = check pkg-config gnuplot-nox zlib1g-dev fonts-dejavu-core
MPI_PACKAGES   = libopenmpi-dev openmpi-bin
BENCH_PACKAGES = python3-torch libdnnl-dev libadolc-dev
SUDO = $(if $(filter 0,$(shell id -u)),,sudo )
apt-get = $(SUDO)apt-get install -y --no-install-recommends $(1)
apt = if ! command -v apt-get >/dev/null; then \
        echo '$@: there is no apt-get here; Debian calls what is needed: $(1)' >&2; exit 1; fi; \
    set -ex; $(SUDO)apt-get update -q; DEBIAN_FRONTEND=noninteractive $(call apt-get,$(1))

has_header  = echo '\#include <$(1)>' | $(CC) $(CPPFLAGS) $(CFLAGS) $(shell pkg-config --cflags $(2) 2>/dev/null) -E -x c -
has_check   = $(call has_header,check.h,check)
has_gnuplot = command -v gnuplot
## deps: install what check, demo, plots and compressed files need
## deps-mpi: install an MPI, for groups of processes
## deps-bench: install PyTorch, oneDNN and ADOL-C to compare with
deps:
	@if { command -v pkg-config && $(has_gnuplot) && $(has_check) && \
	    $(call has_header,zlib.h,zlib); } >/dev/null 2>&1; \
	then echo 'deps: nothing is missing (make docs needs Doxygen too: $(call apt-get,doxygen))'; \
	else $(call apt,$(PACKAGES)); fi
deps-mpi deps-bench: deps-%:
	@$(call apt,$(if $(filter mpi,$*),$(MPI_PACKAGES),$(BENCH_PACKAGES)))
# With deps among several goals, the others begin afresh after it and see what it has installed.
OTHER_GOALS := $(if $(filter deps,$(MAKECMDGOALS)),$(filter-out deps,$(MAKECMDGOALS)))
ifneq ($(OTHER_GOALS),)

.PHONY: $(OTHER_GOALS)
$(firstword $(OTHER_GOALS)): deps
	$(again) $(OTHER_GOALS)
$(wordlist 2,$(words $(OTHER_GOALS)),$(OTHER_GOALS)): $(firstword $(OTHER_GOALS))
	@:

else

# $(call need,test command,what,package): stops with the command that installs what is missing.
need = @{ $(1); } >/dev/null 2>&1 || { echo '$(2) is missing. To install it: $(call apt-get,$(3))' >&2; exit 1; }
TOOLS = needs-valgrind needs-clang needs-clang-format needs-doxygen needs-pkg-config
needs-check:
	$(call need,$(has_check),Check,check)
needs-gnuplot:
	$(call need,$(has_gnuplot),gnuplot,gnuplot-nox)
needs-mpi:
	$(call need,command -v $(MPICC),mpicc,$(MPI_PACKAGES))
$(TOOLS): needs-%:
	$(call need,command -v $*,$*,$*)

# ---- What there is to build ---------------------------------------------------------------------

OUT      := $(BUILD)/$(VARIANT)
PROGRAMS := $(if $(filter release,$(VARIANT)),$(BUILD),$(OUT))/examples
RUNNER   := $(OUT)/tests/runner
BENCH    := $(OUT)/tests/bench/bench
HEADERS  := $(sort $(wildcard include/normgrad/*.h))
SOURCES  := $(filter-out src/mpi/%,$(sort $(wildcard src/*/*.c)))
TABLE    := src/kernels/table
OBJECTS   = $(patsubst %.c,$(OUT)/%.o,$(filter-out $(TABLE).c,$(SOURCES))) $(TABLES)
EXAMPLES := $(patsubst examples/%.c,$(PROGRAMS)/%,$(sort $(wildcard examples/*.c)))
CLAIMS   := $(filter-out lab,$(basename $(notdir $(sort $(wildcard examples/claims/*.c)))))
EXPERIMENTS := $(CLAIMS:%=$(PROGRAMS)/%)
GRADCHECK := $(filter $(PROGRAMS)/gradcheck,$(EXAMPLES))
CASES    := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard tests/cases/*.c)))
TEST_OBJECTS  := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard tests/*.c tests/norms/*.c))) $(CASES)
BENCH_OBJECTS := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard tests/bench/*.c)))
LAB      := $(OUT)/examples/claims/lab.o
VERSION := $(subst $() ,.,$(strip $(shell sed -n 's/^.define NG_VERSION_[A-Z]* *//p' include/normgrad/core.h)))
# What programs are compatible with: MAJOR, and before 1.0 MAJOR.MINOR.
SERIES  := $(basename $(if $(filter 0.%,$(VERSION)),$(VERSION),$(basename $(VERSION))))
STATIC  := $(OUT)/libnormgrad.a
SONAME  := libnormgrad.so.$(SERIES)
SHARED  := $(OUT)/libnormgrad.so.$(VERSION)
# For the build systems of others: pkg-config and CMake.
CONFIGS := $(addprefix $(OUT)/,normgrad.pc normgradConfig.cmake normgradConfigVersion.cmake)

# ---- Flags --------------------------------------------------------------------------------------

WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Wdouble-promotion -Wstrict-prototypes \
           $(if $(filter 1,$(WERROR)),-Werror)
FLAGS.asan     = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS.ubsan    = -O1 -g -fsanitize=undefined -fno-sanitize-recover=all
FLAGS.tsan     = -O1 -g -fsanitize=thread
FLAGS.coverage = -O0 -g --coverage
FLAGS.fuzz     = -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
                 -fno-omit-frame-pointer -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
LAST   = $(FLAGS.$(VARIANT)) $(CPPFLAGS) $(CFLAGS)
# What the compiler says of the processor that it compiles for, as NAME=VALUE.
MACROS := $(shell $(CC) -std=c11 $(CPPFLAGS) $(CFLAGS) -dM -E -x c /dev/null 2>/dev/null | \
    sed -n 's/^.define \([^ ]*\) \([^ ]*\)$$/\1=\2/p')
# Float's arithmetic is float's: neither the x87's, nor double's as s390x has it under C11.
PRECISION := $(if $(filter __FLT_EVAL_METHOD__=0,$(MACROS)),,$(if $(filter __i386__=1,$(MACROS)),\
    -msse2 -mfpmath=sse,-fexcess-precision=fast))
# A product and a sum are fused only where the source says so: bits do not depend on the compiler.
# -g1 gives a debugger lines and functions; CFLAGS=-g gives variables, and takes longer to compile.
COMMON = -std=c11 -D_DEFAULT_SOURCE -O2 -g1 -ffp-contract=off $(PRECISION) $(WARNINGS) -pthread -Iinclude
# The kernels' vectors are written out: the SLP vectorizer gains nothing there.
KERNEL = -fno-math-errno -fno-trapping-math \
         $(if $(filter __clang__=1,$(MACROS)),,-funswitch-loops -fvect-cost-model=dynamic -fno-tree-slp-vectorize)
# The kernels are compiled for each instruction set, the best first, and dtype: table_avx2_float.o...
ISAS = $(if $(filter __x86_64__=1,$(MACROS)),avx512 avx2) $(if $(filter __aarch64__=1,$(MACROS)),neon) baseline
ISA.avx2   = -mavx2 -mfma
ISA.avx512 = -mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -mprefer-vector-width=512
TABLES = $(foreach isa,$(ISAS),$(foreach real,float double,$(OUT)/$(TABLE)_$(isa)_$(real).o))
words_of = $(subst _, ,$(basename $(@F)))
$(OUT)/src/%: OWN = -fPIC -fvisibility=hidden -Isrc
$(OUT)/src/io/%: OWN += $(if $(WITH_ZLIB),-DNG_WITH_ZLIB $(shell pkg-config --cflags zlib 2>/dev/null))
$(OUT)/src/kernels/%: OWN += $(KERNEL) -D'NG_ISAS(X)=$(foreach isa,$(ISAS),X($(isa)))'
$(OUT)/$(TABLE)_%: OWN += -DISA=$(word 2,$(words_of)) -DREAL=$(word 3,$(words_of)) $(ISA.$(word 2,$(words_of)))
$(OUT)/tests/%: OWN = -Isrc -Itests -I$(OUT)/tests $(CHECK_CFLAGS) $(if $(WITH_ZLIB),-DNG_WITH_ZLIB)
$(OUT)/tests/bench/roof.o: OWN += $(KERNEL)
# zlib reads compressed files (.gz, .npz). It is used where its header is found; ZLIB=0 leaves it out.
WITH_ZLIB := $(if $(filter 0,$(ZLIB)),,$(shell $(call has_header,zlib.h,zlib) >/dev/null 2>&1 && echo 1))
LIBS = $(if $(WITH_ZLIB),$(or $(shell pkg-config --libs zlib 2>/dev/null),-lz) )-lm
CHECK_CFLAGS = $(shell pkg-config --cflags check 2>/dev/null)
CHECK_LIBS   = $(or $(shell pkg-config --libs check 2>/dev/null),-lcheck -lpthread -lrt -lm)
link = $(CC) -pthread $(LAST) $(LDFLAGS)
program = $(COMMON) $(LAST) -MMD -MP -MT $@ -MF $(OUT)/examples/$(@F).d $(filter %.c %.o,$^) $(LDFLAGS) \
    $(filter %.a,$^) $(LIBS) $(LDLIBS) -o $@
# A folder of $(BUILD), of whose writing the first attempt tells.
.PRECIOUS: %/
%/:
	@mkdir -p $@ || { echo 'to build in another place: make BUILD=/elsewhere' >&2; exit 1; }
# $(call remember,text): rewrites a file only when the text is another one.
remember = @$(if $(shell test -w $(@D) && echo 1),,$(error cannot write in $(@D): make BUILD=/elsewhere)) \
    $(file >$@.new,$(1))cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(OUT)/flags: FORCE | $(OUT)/tests/
	$(call remember,$(CC) $(COMMON) $(LAST) $(KERNEL) $(ISA.avx2) $(ISA.avx512) $(LDFLAGS) $(LIBS))
$(OUT)/objects: FORCE | $(OUT)/tests/
	$(call remember,$(OBJECTS))
$(OUT)/places: FORCE | $(OUT)/tests/
	$(call remember,$(VERSION) $(PREFIX) $(LIBDIR) $(INCLUDEDIR))

# ---- The library and the examples ---------------------------------------------------------------

# libnormgrad-mpi, its examples and its tests, where mpicc is found; the library as two files.
include src/mpi/mpi.mk src/dist.mk
include examples/exercises/exercises.mk
## all: the library, static and shared, and the examples
all: $(STATIC) $(SHARED) $(CONFIGS) $(EXAMPLES) $(EXPERIMENTS) $(WITH_MPI)
$(filter-out $(TABLES),$(OBJECTS)) $(TEST_OBJECTS) $(BENCH_OBJECTS) $(LAB): $(OUT)/%.o: %.c $(OUT)/flags | $$(@D)/
	$(call say,CC   $<)
	$(Q)$(CC) $(COMMON) $(OWN) $(LAST) -MMD -MP -c $< -o $@
$(OUT)/src/kernels/select.o: $(OUT)/objects
$(TABLES): $(TABLE).c $(OUT)/flags | $$(@D)/
	$(call say,CC   $< for $(wordlist 2,3,$(words_of)))
	$(Q)$(CC) $(COMMON) $(OWN) $(LAST) -MMD -MP -c $< -o $@
$(STATIC): $(OBJECTS) $(OUT)/objects
	$(call say,AR   $@)
	$(Q)rm -f $@; $(AR) crs $@ $(OBJECTS)
$(SHARED): $(OBJECTS) $(OUT)/objects
	$(call say,LINK $@)
	$(Q)$(link) -shared -Wl,-soname,$(SONAME) $(OBJECTS) $(LIBS) $(LDLIBS) -o $@
	$(Q)ln -sf $(@F) $(OUT)/$(SONAME); ln -sf $(@F) $(OUT)/libnormgrad.so
$(CONFIGS) $(MPI_CONFIG): $(OUT)/%: src/%.in $(OUT)/flags $(OUT)/places
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
	    -e 's|@VERSION@|$(VERSION)|' -e 's|@SONAME@|$(SONAME)|' -e 's|@MPI_SONAME@|$(MPI_SONAME)|' \
	    -e 's|@SANITIZE@|$(filter -fsanitize%,$(FLAGS.$(VARIANT)))|' -e 's|@LIBS_PRIVATE@|-pthread $(LIBS)|' $< > $@
$(EXAMPLES): $(PROGRAMS)/%: examples/%.c
$(EXPERIMENTS): $(PROGRAMS)/%: examples/claims/%.c $(LAB)
$(PROGRAMS)/gradcheck $(PROGRAMS)/gradcheck_error: $(CASES)
$(EXAMPLES) $(EXPERIMENTS): $(STATIC) $(OUT)/flags | $(PROGRAMS)/ $(OUT)/examples/
	$(call say,LINK $@)
	$(Q)$(CC) $(program)

# ---- Tests --------------------------------------------------------------------------------------

## check: all tests, the README's example, the programs, every gradient; the slowest tests
check: suite walkthrough programs exercises misuse cxx $(GRADCHECK)
	$(if $(GRADCHECK),$(Q)$(GRADCHECK))
	$(Q)tests/suites.sh $(RUNNER) --slowest
# CK_RUN_SUITE=name runs one; CK_FORK=no runs each in one process.
suite: $(RUNNER)
	$(Q)tests/suites.sh $(RUNNER)

outside = $(CC) $(COMMON) $(LAST) -- $(LDFLAGS) $(STATIC) $(LIBS) $(LDLIBS)
# The norm that README.md adds, taken from its text.
walkthrough: $(STATIC)
	$(Q)tests/walkthrough.sh $(OUT)/walkthrough $(outside)
# The programs that begin as the others do: one of your own in examples/ need not.
programs: $(EXAMPLES) $(EXPERIMENTS)
	$(Q)tests/programs.sh $(OUT)/programs $(EXPERIMENTS) \
	    $(patsubst examples/%.c,$(PROGRAMS)/%,$(shell grep -lE '(program|experiment)_end' examples/*.c))
# Use of memory after its life, which the library of VARIANT=asan catches.
lifetimes: $(STATIC)
	$(if $(filter asan,$(VARIANT)),,$(error lifetimes needs VARIANT=asan))
	$(Q)tests/lifetimes.sh $(OUT)/lifetimes $(outside)
# The runner's copy of the library calls tests/support.c for memory, files and threads, which counts
# the calls and can refuse them.
COUNTED = malloc calloc realloc aligned_alloc posix_memalign free \
          open read write fsync rename close fchmod pthread_create memfd_create socketpair
$(OUT)/tests/libnormgrad.a: $(STATIC) Makefile
	$(Q)$(OBJCOPY) $(foreach f,$(COUNTED),--redefine-sym $(f)=counted_$(f)) $< $@
$(RUNNER): $(TEST_OBJECTS) $(OUT)/tests/libnormgrad.a
	$(call say,LINK $@)
	$(Q)$(link) $(TEST_OBJECTS) $(OUT)/tests/libnormgrad.a $(CHECK_LIBS) $(LIBS) $(LDLIBS) -o $@
$(filter-out $(CASES),$(TEST_OBJECTS)): | needs-check
# Each suite in one process: a process for each test takes most of the sanitizers' time (CK_FORK=yes).
## check-asan: the tests under AddressSanitizer and UndefinedBehaviorSanitizer
## check-ubsan: the tests under UndefinedBehaviorSanitizer alone
## check-tsan: the tests under ThreadSanitizer
check-asan check-ubsan check-tsan: export CK_FORK := $(or $(CK_FORK),no)
check-asan check-ubsan check-tsan: export ASAN_OPTIONS := allocator_may_return_null=1:$(ASAN_OPTIONS)
check-tsan: export TSAN_OPTIONS := allocator_may_return_null=1:die_after_fork=0:$(TSAN_OPTIONS)
check-asan check-ubsan check-tsan: check-%:
	$(again) VARIANT=$* suite $(if $(filter asan,$*),lifetimes)
# Only with the baseline kernels: valgrind does not know all other instructions. It runs one thread at
# a time. In a forked child it takes for lost what the parent's threads hold: tests that fork are left out.
## check-valgrind: the tests under valgrind's memcheck
check-valgrind: export RUN_UNDER := valgrind --quiet --error-exitcode=1 \
    --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect
check-valgrind: needs-valgrind
	$(again) BUILD=$(BUILD)/valgrind ISAS=baseline CK_FORK=no CK_EXCLUDE_TAGS=fork OMP_NUM_THREADS=1 suite
## fuzz: every reader, and the interface, against made-up input for FUZZ_SECONDS each (an hour)
## fuzz-quick: a minute each
FUZZERS := $(patsubst tests/fuzz/%.c,$(OUT)/tests/fuzz/%,$(sort $(wildcard tests/fuzz/*.c)))
fuzz fuzz-quick: needs-clang
	$(again) VARIANT=fuzz CC=clang FUZZ_SECONDS=$(or $(FUZZ_SECONDS),$(if $(filter %-quick,$@),60,3600)) fuzz-run
fuzz-run: $(FUZZERS)
	$(Q)tests/fuzz/run.sh $(OUT)/found $(FUZZ_SECONDS) $^
$(OUT)/tests/fuzz/%: tests/fuzz/%.c tests/fuzz/fuzz.h $(STATIC) | $(OUT)/tests/fuzz/
	$(call say,LINK $@)
	$(Q)$(CC) $(COMMON) $(LAST) -fsanitize=fuzzer $< $(LDFLAGS) $(STATIC) $(LIBS) $(LDLIBS) -o $@
## coverage: the tests with gcov; prints the share of lines run, for each file of src/
coverage:
	$(again) VARIANT=coverage suite
	$(Q)gcov -n $(OBJECTS:$(OUT)/%=$(BUILD)/coverage/%) 2>/dev/null | awk -F"[':%]" \
	    '/^File/ { file = $$2 } /^Lines/ && file ~ /^src/ { printf "%6s %%  %s\n", $$2, file; file = "" }' | sort -k3 -u | sort -n
## mutations: N faults planted in src/ at random places by SEED: which suites notice, what survives
mutations:
	$(Q)tests/mutations.py $(BUILD)/mutations $(or $(N),100) $(or $(SEED),1)
# Times against PyTorch, oneDNN and the machine, and GradBench's evals.
include tests/bench/bench.mk

# ---- The main job and the figures ---------------------------------------------------------------

## demo: trains on the digits with each norm and draws build/convergence.svg and .png
demo: needs-gnuplot $(PROGRAMS)/digits
	$(Q)$(PROGRAMS)/digits --out $(BUILD)/convergence

# Each claim's experiment writes its .dat, has it drawn, and writes the verdicts on the claim's parts. All
# is made in $(OUT)/plots and taken to plots/ at the end: who interrupts it leaves plots/ as it was.
# What measures time comes last, so that with make -j it is alone.
RESULTS = $(CLAIMS:%=$(OUT)/plots/%.log)
TIMED   = $(filter %/rms_cost.log,$(RESULTS))

## plots: runs the demo and the experiment on every claim, updates plots/ and plots/claims.tsv
plots: $(RESULTS) $(OUT)/plots/digits.log
	$(Q){ printf 'id\tpart\tnorm\teffect\tlow\thigh\tn\tthreshold\tverdict\n'; cat $(RESULTS:.log=.tsv); } \
	    > $(OUT)/plots/claims.new
	$(Q)cp $(OUT)/plots/*.dat $(OUT)/plots/*.svg $(OUT)/plots/*.png plots/; mv $(OUT)/plots/claims.new plots/claims.tsv
	$(Q)for figure in claims workers; do LC_ALL=C.UTF-8 gnuplot plots/$$figure.gp; done # with plots-mpi's data
	@echo; cut -f 1,9 plots/claims.tsv | sed 1d | sort | uniq -c
## plots-quick: the same, so small that the figures mean nothing, in build/: a smoke run
plots-quick: $(CLAIMS:%=$(OUT)/plots-quick/%.log)

# $(call experiment,options): runs one; on failure shows what it printed.
experiment = @echo '  RUN  $<'; $< --out $(@D)/$(1) > $@.new 2>&1 || { cat $@.new; exit 1; }; mv $@.new $@
$(RESULTS): $(OUT)/plots/%.log: $(PROGRAMS)/% FORCE | needs-gnuplot $(OUT)/plots/
	$(call experiment, --verdicts $(@:.log=.tsv))
$(TIMED): | $(filter-out $(TIMED),$(RESULTS)) $(OUT)/plots/digits.log
$(OUT)/plots/digits.log: $(PROGRAMS)/digits FORCE | needs-gnuplot $(OUT)/plots/
	$(call experiment,convergence)
$(OUT)/plots-quick/%.log: $(PROGRAMS)/% FORCE | needs-gnuplot $(OUT)/plots-quick/
	$(call experiment, --quick --verdicts $(@:.log=.tsv))

# ---- The reference, and installation ------------------------------------------------------------

## docs: the reference, from the headers, in build/docs/html and build/docs/man (Doxygen)
DOCS = $(BUILD)/docs
docs: needs-doxygen $(DOCS)/man/man3/normgrad.h.3
	@echo '  $(DOCS)/html/index.html; man -M $(DOCS)/man ng_layer_norm_new'
# Doxygen ends in an error where a declaration has no comment.
$(DOCS)/man/man3/normgrad.h.3: include/normgrad.h $(HEADERS) $(MPI_HEADER) src/Doxyfile src/doxygen.awk | $(DOCS)/
	$(Q)rm -rf $(DOCS)/html $(DOCS)/man
	$(Q){ cat src/Doxyfile; echo 'OUTPUT_DIRECTORY = $(DOCS)'; echo 'PROJECT_NUMBER = $(VERSION)'; } | doxygen -
MAN_PAGES = $(if $(shell command -v doxygen),$(DOCS)/man/man3/normgrad.h.3)

## install: libraries, headers, man pages, data, normgrad.pc and CMake's files to $(DESTDIR)$(PREFIX)
TO = $(DESTDIR)$(LIBDIR)
install: $(STATIC) $(SHARED) $(CONFIGS) $(MAN_PAGES) $(WITH_MPI)
	@for place in '$(LIBDIR)' '$(INCLUDEDIR)' '$(MANDIR)' '$(DATADIR)'; do case $$place in /*) ;; \
	    *) echo "install: PREFIX is to begin with /, and $$place does not" >&2; exit 1;; esac; \
	    mkdir -p "$(DESTDIR)$$place" && [ -w "$(DESTDIR)$$place" ] || { \
	    echo "install: no right to write $(DESTDIR)$$place; make install PREFIX=\$$HOME/.local needs none" >&2; exit 1; }; done
	install -Dm 644 -t '$(TO)' $(STATIC) $(if $(WITH_MPI),$(MPI_STATIC))
	install -Dm 755 -t '$(TO)' $(SHARED) $(if $(WITH_MPI),$(MPI_SHARED))
	ln -sf $(notdir $(SHARED)) '$(TO)/$(SONAME)'; ln -sf $(notdir $(SHARED)) '$(TO)/libnormgrad.so'
	$(if $(WITH_MPI),ln -sf $(notdir $(MPI_SHARED)) '$(TO)/$(MPI_SONAME)'; \
	    ln -sf $(notdir $(MPI_SHARED)) '$(TO)/libnormgrad-mpi.so')
	install -Dm 644 -t '$(DESTDIR)$(INCLUDEDIR)' include/normgrad.h
	install -Dm 644 -t '$(DESTDIR)$(INCLUDEDIR)/normgrad' $(HEADERS) $(if $(WITH_MPI),$(MPI_HEADER))
	install -Dm 644 -t '$(TO)/pkgconfig' $(filter %.pc,$(CONFIGS)) $(if $(WITH_MPI),$(MPI_CONFIG))
	install -Dm 644 -t '$(TO)/cmake/normgrad' $(filter %.cmake,$(CONFIGS))
	install -Dm 644 -t '$(DESTDIR)$(DATADIR)/data' examples/data/*
	$(if $(MAN_PAGES),$(Q)cd $(DOCS)/man/man3; install -Dm 644 -t '$(DESTDIR)$(MANDIR)/man3' *.3,\
	    @echo 'skipped: man pages, for there is no doxygen')
	$(if $(DESTDIR),,@ldconfig 2>/dev/null || true)
## uninstall: what install has put there
uninstall: $(MAN_PAGES)
	rm -f '$(TO)'/libnormgrad*.a '$(TO)'/libnormgrad*.so '$(TO)'/libnormgrad*.so.$(SERIES)* \
	    '$(TO)'/pkgconfig/normgrad.pc '$(TO)'/pkgconfig/normgrad-mpi.pc '$(DESTDIR)$(INCLUDEDIR)/normgrad.h'
	rm -rf '$(TO)/cmake/normgrad' '$(DESTDIR)$(INCLUDEDIR)/normgrad' '$(DESTDIR)$(DATADIR)'
	$(if $(MAN_PAGES),$(Q)cd $(DOCS)/man/man3; for page in *.3; do rm -f '$(DESTDIR)$(MANDIR)/man3/'"$$page"; done)

# ---- Compilers' objections, format, sizes -------------------------------------------------------

# Calls that a compiler must object to, and a program in C++; check-cxx tries every compiler.
CXX_FOUND = $(firstword $(foreach c,$(CXX) g++ clang++,$(shell command -v $(c))))
BUILT_HERE = -L$(OUT) -lnormgrad -Wl,-rpath,$(OUT)
misuse:
	$(Q)CC='$(CC)' CXX='$(CXX_FOUND)' tests/misuse.sh $(OUT)/misuse quick
cxx: $(SHARED)
	$(if $(CXX_FOUND)$(CI),$(Q)CXX='$(CXX_FOUND)' tests/cxx.sh $(OUT)/cxx quick '$(BUILT_HERE)')
## check-cxx: wrong calls in every C since C99 and C++ since C++17, a program in C++; gcc and clang
## check-install: programs outside the tree by pkg-config and CMake; README's lines without root
check-cxx: $(SHARED)
	$(Q)tests/misuse.sh $(OUT)/misuse full
	$(Q)tests/cxx.sh $(OUT)/cxx full '$(BUILT_HERE)'
check-install: needs-pkg-config all
	+$(Q)CC='$(CC)' tests/outside.sh $(OUT)/outside
	+$(Q)tests/rootless.sh $(OUT)/rootless '$(MAKEOVERRIDES)'
headers:
	$(Q)CC='$(CC) $(WARNINGS)' CXX='$(CXX_FOUND)' tests/headers.sh
STYLED = $(sort $(wildcard include/*.h include/*/*.h src/*/*.[ch] src/*/*.inc $(foreach d,tests examples tests/bench,$d/*.[ch] $d/*/*.[ch])))
# All but ops.h, whose formulas are aligned by hand.
FORMATTED = $(filter-out include/normgrad/ops.h,$(STYLED))

## lint: the headers in C and C++, a comment for each declaration; exported names; format; lines
lint: headers $(MAN_PAGES) $(SHARED)
	$(Q)case "$$(clang-format --version 2>/dev/null)" in *' 14.'*) clang-format --dry-run -Werror $(FORMATTED) ;; \
	*) echo 'skipped: the format, for there is no clang-format 14' ;; esac
	$(Q)tests/map.sh && tests/symbols.sh $(SHARED)
	$(Q)! grep -nHE '.{101}|	| $$' $(STYLED)
	$(Q)tests/budget.sh
## format: the sources through clang-format (14: others break some lines elsewhere)
format: needs-clang-format
	$(Q)clang-format -i $(FORMATTED)
## clean: removes everything that was built
clean:
	rm -rf $(BUILD)
## help: this list
help:
	@sed -n 's/^## //p' Makefile src/mpi/mpi.mk src/dist.mk tests/bench/bench.mk examples/exercises/exercises.mk | awk '{ i = index($$0, ": "); printf "%-18s %s\n", substr($$0, 1, i - 1), substr($$0, i + 2) }'
	@echo
	@echo 'Every processor is used; -j1 and so on say how many. VARIANT=asan, ubsan, tsan or coverage builds'
	@echo 'for these, in build/asan and so on. V=1 shows commands, WERROR=1 makes warnings errors,'
	@echo 'ZLIB=0 leaves zlib out.'

.PHONY: deps deps-mpi deps-bench needs-check needs-gnuplot needs-mpi $(TOOLS) all check suite \
    walkthrough programs lifetimes misuse cxx check-asan check-ubsan check-tsan check-valgrind \
    fuzz fuzz-quick fuzz-run coverage mutations demo plots plots-quick docs \
    install uninstall check-cxx check-install headers lint format clean help FORCE
FORCE:

-include $(wildcard $(OUT)/src/*/*.d $(OUT)/tests/*.d $(OUT)/tests/*/*.d $(OUT)/examples/*.d $(OUT)/examples/claims/*.d)

endif
