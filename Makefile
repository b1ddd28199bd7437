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
MAKEFLAGS += --no-builtin-rules
# As many jobs as there are processors, unless -j, MAKEFLAGS or a make above says how many.
ifeq ($(MAKELEVEL)$(findstring -j,$(MAKEFLAGS) $(shell echo "$$MAKEFLAGS")),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
endif
Q = $(if $(V),,@)
say = $(if $(V),,@echo '  $(1)')

# ---- deps: what the other targets need ----------------------------------------------------------

PACKAGES.apt-get = check pkg-config gnuplot-nox zlib1g-dev fonts-dejavu-core
PACKAGES.dnf     = check-devel pkgconf-pkg-config gnuplot zlib-devel dejavu-sans-fonts
PACKAGES.pacman  = check pkgconf gnuplot zlib ttf-dejavu
PACKAGES.apk     = check-dev pkgconf gnuplot zlib-dev font-dejavu
PACKAGES.brew    = check pkg-config gnuplot zlib
BENCH_PACKAGES.apt-get = python3-torch libdnnl-dev
BENCH_PACKAGES.dnf     = python3-torch onednn-devel
BENCH_PACKAGES.pacman  = python-pytorch onednn
INSTALL.apt-get  = apt-get install -y --no-install-recommends
INSTALL.dnf      = dnf install -y
INSTALL.pacman   = pacman -Sy --needed --noconfirm
INSTALL.apk      = apk add
INSTALL.brew     = brew install

PACKAGES = $(PACKAGES.$(MANAGER))
MANAGER  = $(firstword $(foreach m,apt-get dnf pacman apk brew,$(shell command -v $(m) >/dev/null && echo $(m))))
SUDO    = $(shell [ "$$(id -u)" = 0 ] || [ '$(MANAGER)' = brew ] || echo sudo)
install_command = $(strip $(if $(MANAGER),$(SUDO) $(INSTALL.$(MANAGER)) $(1),your package manager: $(1)))

# $(call need,test command,what,package,target): stops with the command that installs what is
# missing, and with the target that does so, where there is one.
comma = ,
need = @{ $(1); } >/dev/null 2>&1 || { echo '$(2) is missing. To install it:' \
    '$(if $(4),make $(4)$(comma) or )$(call install_command,$(3))' >&2; exit 1; }

has_header  = echo '\#include <$(1)>' | $(CC) $(CPPFLAGS) $(CFLAGS) $(2) -E -x c -
has_check   = $(call has_header,check.h,$$(pkg-config --cflags check 2>/dev/null))
has_zlib    = $(call has_header,zlib.h,$$(pkg-config --cflags zlib 2>/dev/null))
has_gnuplot = command -v gnuplot

## deps: install what check, demo, plots and .gz need, with the package manager
.PHONY: deps
deps:
	@if { command -v pkg-config && $(has_gnuplot) && $(has_check) && $(has_zlib); } >/dev/null 2>&1; \
	then echo 'deps: nothing is missing'; exit 0; fi; \
	if [ -z '$(MANAGER)' ]; then \
	    echo 'deps: no known package manager; please install Check, gnuplot, zlib and pkg-config' >&2; \
	    exit 1; fi; \
	if [ -n '$(SUDO)' ] && ! command -v sudo >/dev/null; then \
	    echo 'deps: neither root nor sudo; as root: $(INSTALL.$(MANAGER)) $(PACKAGES)' >&2; \
	    exit 1; fi; \
	set -ex; \
	$(if $(filter apt-get,$(MANAGER)),$(SUDO) apt-get update -q;) \
	$(SUDO) $(if $(filter apt-get,$(MANAGER)),env DEBIAN_FRONTEND=noninteractive) \
	    $(INSTALL.$(MANAGER)) $(PACKAGES)

# With deps among several goals, the others begin afresh after it and see what it has installed.
OTHER_GOALS := $(if $(filter deps,$(MAKECMDGOALS)),$(filter-out deps,$(MAKECMDGOALS)))
ifneq ($(OTHER_GOALS),)

.PHONY: $(OTHER_GOALS)
$(firstword $(OTHER_GOALS)): deps
	+@$(MAKE) --no-print-directory $(OTHER_GOALS)
$(wordlist 2,$(words $(OTHER_GOALS)),$(OTHER_GOALS)): $(firstword $(OTHER_GOALS))
	@:

else

# ---- What is there to build ---------------------------------------------------------------------

OUT      := $(BUILD)/$(VARIANT)
PROGRAMS := $(if $(filter release,$(VARIANT)),$(BUILD),$(OUT))/examples
RUNNER   := $(OUT)/tests/runner

SOURCES  := $(filter-out src/mpi/%,$(sort $(wildcard src/*/*.c)))
TABLE    := src/kernels/table
OBJECTS   = $(patsubst %.c,$(OUT)/%.o,$(filter-out $(TABLE).c,$(SOURCES))) $(TABLES)
EXAMPLES := $(patsubst examples/%.c,$(PROGRAMS)/%,$(sort $(wildcard examples/*.c)))
CLAIMS   := $(filter-out lab,$(basename $(notdir $(sort $(wildcard examples/claims/*.c)))))
TESTS    := $(sort $(wildcard tests/*.c))
TEST_OBJECTS  := $(TESTS:%.c=$(OUT)/%.o)
BENCH_OBJECTS := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard tests/bench/*.c)))
BENCH    := $(OUT)/tests/bench/bench
GRADCHECK := $(filter $(PROGRAMS)/gradcheck,$(EXAMPLES))
HEADERS  := $(sort $(wildcard include/normgrad/*.h))

VERSION := $(subst $() ,.,$(strip $(shell sed -n 's/^.define NG_VERSION_[A-Z]* *//p' include/normgrad/core.h)))
# What programs are compatible with: MAJOR, and before 1.0 MAJOR.MINOR.
SERIES  := $(basename $(if $(filter 0.%,$(VERSION)),$(VERSION),$(basename $(VERSION))))
STATIC  := $(OUT)/libnormgrad.a
SONAME  := libnormgrad.so.$(SERIES)
SHARED  := $(OUT)/libnormgrad.so.$(VERSION)
PC      := $(OUT)/normgrad.pc
MPI_LIBS := $(OUT)/libnormgrad-mpi.a $(OUT)/libnormgrad-mpi.so.$(VERSION)
MPI_PC  := $(OUT)/normgrad-mpi.pc
CMAKE   := $(OUT)/normgradConfig.cmake $(OUT)/normgradConfigVersion.cmake

# ---- Flags --------------------------------------------------------------------------------------

WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Wdouble-promotion -Wstrict-prototypes \
           $(if $(filter 1,$(WERROR)),-Werror)

# Of one variant; they come after the kernels' own -O2.
FLAGS.asan     = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS.ubsan    = -O1 -g -fsanitize=undefined -fno-sanitize-recover=all
FLAGS.tsan     = -O1 -g -fsanitize=thread
FLAGS.coverage = -O0 -g --coverage
FLAGS.fuzz     = -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
                 -fno-omit-frame-pointer -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION

# What a program must be linked with, where the library is.
SANITIZE = $(filter -fsanitize%,$(FLAGS.$(VARIANT)))

LAST   = $(FLAGS.$(VARIANT)) $(CPPFLAGS) $(CFLAGS)

# What the compiler says of the processor that it compiles for, as NAME=VALUE.
MACROS := $(shell $(CC) -std=c11 $(CPPFLAGS) $(CFLAGS) -dM -E -x c /dev/null 2>/dev/null | \
    sed -n 's/^.define \([^ ]*\) \([^ ]*\)$$/\1=\2/p')
# Float's arithmetic is to be float's: not the x87's, nor double's as s390x has it under C11.
PRECISION := $(if $(filter __FLT_EVAL_METHOD__=0,$(MACROS)),,$(if $(filter __i386__=1,$(MACROS)),\
    -msse2 -mfpmath=sse,-fexcess-precision=fast))
# No product and sum are fused but where the source says so: bits do not rest on the compiler.
# A debugger is told lines and functions; variables too, which takes a tenth of the time or, in the
# kernels, a third, where a sanitizer wants them or CFLAGS=-g is given.
COMMON = -std=c11 -D_DEFAULT_SOURCE -O2 -g1 -ffp-contract=off $(PRECISION) $(WARNINGS) -pthread -Iinclude
# Vectors are written out or made of loops: of what stands in a row by itself nothing is gained.
KERNEL = -O2 -fno-math-errno -fno-trapping-math \
         $(if $(filter __clang__=1,$(MACROS)),,-fvect-cost-model=dynamic -fno-tree-slp-vectorize)

# The kernels are compiled once for each instruction set and dtype: table_avx2_float.o and so on. The
# best comes first. For the demo alone this processor's do, beside what is built already.
ALL_ISAS := $(if $(filter __x86_64__=1,$(MACROS)),avx512 avx2) $(if $(filter __aarch64__=1,$(MACROS)),neon) baseline
NEEDS.avx2   = __AVX2__ __FMA__
NEEDS.avx512 = __AVX512F__ __AVX512VL__ __AVX512DQ__ __AVX512BW__ __FMA__
ISAS = $(if $(BEST),$(filter $(BEST) $(BUILT),$(ALL_ISAS)),$(ALL_ISAS))
ifeq ($(MAKECMDGOALS),demo)
HERE := $(shell $(CC) -march=native -dM -E -x c /dev/null 2>/dev/null)
BEST := $(if $(HERE),$(firstword $(foreach isa,$(ALL_ISAS),$(if $(filter-out $(HERE),$(NEEDS.$(isa))),,$(isa)))))
BUILT := $(foreach isa,$(ALL_ISAS),$(if $(wildcard $(OUT)/$(TABLE)_$(isa)_*.o),$(isa)))
endif
ISA.avx2   = -mavx2 -mfma
ISA.avx512 = -mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -mprefer-vector-width=512
TABLES = $(foreach isa,$(ISAS),$(foreach real,float double,$(OUT)/$(TABLE)_$(isa)_$(real).o))
words_of = $(subst _, ,$(basename $(@F)))

$(OUT)/src/%: OWN = -fPIC -fvisibility=hidden -Isrc
$(OUT)/src/io/%: OWN += $(if $(WITH_ZLIB),-DNG_WITH_ZLIB $(shell pkg-config --cflags zlib 2>/dev/null))
# What makes layers, doubts gradients or records an op runs once for each, not once a number: it takes
# no longer so, and compiles in two thirds of the time; but for those of ops/ that loop over numbers.
LOOPING = constants dropout order select
$(OUT)/src/nn/% $(OUT)/src/norms/% $(OUT)/src/check/% $(OUT)/src/ops/%: OWN += -O1
$(LOOPING:%=$(OUT)/src/ops/%.%): OWN += -O2
$(OUT)/src/kernels/%: OWN += $(KERNEL) -D'NG_ISAS(X)=$(foreach isa,$(ISAS),X($(isa)))'
$(OUT)/$(TABLE)_%: OWN += -DISA=$(word 2,$(words_of)) -DREAL=$(word 3,$(words_of)) $(ISA.$(word 2,$(words_of)))
$(OUT)/tests/%: OWN = -Isrc -Itests -I$(OUT)/tests $(CHECK_CFLAGS) $(if $(WITH_ZLIB),-DNG_WITH_ZLIB)

# zlib reads compressed files (.gz, .npz). It is used where its header is found; ZLIB=0 leaves it out.
WITH_ZLIB := $(if $(filter 0,$(ZLIB)),,$(shell $(has_zlib) >/dev/null 2>&1 && echo 1))
ZLIB_LIBS := $(if $(WITH_ZLIB),$(or $(shell pkg-config --libs zlib 2>/dev/null),-lz) )
LIBS = $(ZLIB_LIBS)-lm
CHECK_CFLAGS = $(shell pkg-config --cflags check 2>/dev/null)
CHECK_LIBS   = $(or $(shell pkg-config --libs check 2>/dev/null),-lcheck -lpthread -lrt -lm)
link = $(CC) -pthread $(LAST) $(LDFLAGS)

# $(call remember,text): a recipe that rewrites its target only when the text is another one.
remember = @mkdir -p $(@D); $(file >$@.new,$(1))cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(OUT)/flags: FORCE | $(OUT)/tests/
	$(call remember,$(CC) $(COMMON) $(LAST) $(KERNEL) $(ISA.avx2) $(ISA.avx512) $(LDFLAGS) $(LIBS))

$(OUT)/objects: FORCE | $(OUT)/tests/
	$(call remember,$(OBJECTS))

# ---- What is missing is named -------------------------------------------------------------------

.PHONY: needs-check needs-gnuplot needs-valgrind needs-clang-format needs-doxygen needs-pkg-config
needs-check:
	$(call need,$(has_check),Check,$(or $(filter check check-dev check-devel,$(PACKAGES)),check),deps)
needs-gnuplot:
	$(call need,$(has_gnuplot),gnuplot,$(or $(filter gnuplot%,$(PACKAGES)),gnuplot),deps)
needs-valgrind:
	$(call need,command -v valgrind,valgrind,valgrind)
needs-clang-format:
	$(call need,command -v clang-format,clang-format,clang-format)
needs-doxygen:
	$(call need,command -v doxygen,Doxygen,doxygen)
needs-pkg-config:
	$(call need,command -v pkg-config,pkg-config,$(or $(filter pkg%,$(PACKAGES)),pkg-config),deps)

# ---- The library and the examples ---------------------------------------------------------------

## all: the library, static and shared, and the examples
.PHONY: all
all: $(STATIC) $(SHARED) $(PC) $(CMAKE) $(EXAMPLES) $(CLAIMS:%=$(PROGRAMS)/%) $(WITH_MPI)

.PRECIOUS: %/
%/:
	@mkdir -p $@

.SECONDEXPANSION:
LAB = $(OUT)/examples/claims/lab.o
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

# The group of processes on MPI is a library of its own, where its compiler is found. Of several, or
# in a place of its own: make MPICC=mpicc.mpich, or MPICC=/opt/mpi/bin/mpicc.
MPICC  = mpicc
MPIRUN = $(subst mpicc,mpirun,$(MPICC))
export MPICC MPIRUN
MPI_FLAGS = -Isrc/mpi/include
MPI_HEADER = src/mpi/include/normgrad/mpi.h
mpicc = OMPI_CC='$(CC)' MPICH_CC='$(CC)' $(MPICC)
HAS_MPI := $(shell command -v $(MPICC))
MPI_EXAMPLES := $(patsubst examples/%.c,$(PROGRAMS)/%,$(sort $(wildcard examples/mpi/*.c)))
WITH_MPI := $(if $(HAS_MPI),$(MPI_LIBS) $(MPI_PC) $(MPI_EXAMPLES))
MPI_SONAME := libnormgrad-mpi.so.$(SERIES)
.PHONY: needs-mpi
needs-mpi:
	$(call need,command -v $(MPICC),mpicc,$(or $(MPI_PACKAGES.$(MANAGER)),openmpi),deps-mpi)
$(OUT)/mpicc: FORCE | $(OUT)/tests/
	$(call remember,$(shell $(MPICC) -show 2>&1))
$(OUT)/src/mpi/mpi.o: src/mpi/mpi.c $(OUT)/flags $(OUT)/mpicc | $(OUT)/src/mpi/ needs-mpi
	$(call say,CC   $<)
	$(Q)$(mpicc) $(COMMON) $(OWN) $(MPI_FLAGS) $(LAST) -MMD -MP -c $< -o $@
$(OUT)/libnormgrad-mpi.a: $(OUT)/src/mpi/mpi.o
	$(Q)rm -f $@; $(AR) crs $@ $<
$(OUT)/libnormgrad-mpi.so.$(VERSION): $(OUT)/src/mpi/mpi.o $(SHARED)
	$(Q)$(mpicc) -pthread $(LAST) $(LDFLAGS) -shared -Wl,-soname,$(MPI_SONAME) $< -L$(OUT) -lnormgrad -o $@
	$(Q)ln -sf $(@F) $(OUT)/$(MPI_SONAME); ln -sf $(@F) $(OUT)/libnormgrad-mpi.so
$(PROGRAMS)/mpi/workers_mpi: $(LAB)
$(PROGRAMS)/mpi/%: examples/mpi/%.c $(OUT)/libnormgrad-mpi.a $(STATIC) | $(PROGRAMS)/mpi/ $(OUT)/examples/
	$(call say,LINK $@)
	$(Q)$(mpicc) $(COMMON) $(MPI_FLAGS) -Iexamples $(LAST) -MMD -MP -MT $@ -MF $(OUT)/examples/$(@F).d $(filter %.c %.o,$^) \
	    $(LDFLAGS) $(OUT)/libnormgrad-mpi.a $(STATIC) $(LIBS) $(LDLIBS) -o $@
$(OUT)/tests/mpi/bench: tests/mpi/bench.c tests/mpi/network.c tests/mpi/network.h src/group/team.h \
    $(OUT)/libnormgrad-mpi.a $(STATIC) | $(OUT)/tests/mpi/
	$(call say,LINK $@)
	$(Q)$(mpicc) $(COMMON) $(MPI_FLAGS) -Isrc $(LAST) $(filter %.c,$^) $(LDFLAGS) \
	    $(OUT)/libnormgrad-mpi.a $(STATIC) $(LIBS) $(LDLIBS) -o $@
$(OUT)/tests/mpi/check: tests/mpi/check.c $(OUT)/libnormgrad-mpi.a $(STATIC) | $(OUT)/tests/mpi/
	$(call say,LINK $@)
	$(Q)$(mpicc) $(COMMON) $(MPI_FLAGS) $(LAST) -MMD -MP -MT $@ -MF $(OUT)/tests/mpi.d $< \
	    $(LDFLAGS) $(OUT)/libnormgrad-mpi.a $(STATIC) $(LIBS) $(LDLIBS) -o $@

## deps-mpi: install an MPI, for groups of processes
## check-mpi: groups of 1, 2, 3, 4 and 8 processes on MPI: the same bits, failures, a killed process
## bench-mpi: steps, sums and buckets on two processes of a core each; on paper up to 1,024
## check-mpi-asan: the same under AddressSanitizer and UBSan
## check-mpi-valgrind: a training on two processes under valgrind
## plots-mpi: the experiment `workers` with its workers on ranks: its figure has them as crosses
## demo-mpi: the digits on two processes: own statistics, synchronized ones, and LayerNorm
MPI_PACKAGES.apt-get = libopenmpi-dev openmpi-bin
MPI_PACKAGES.dnf     = openmpi-devel
MPI_PACKAGES.pacman  = openmpi
MPI_PACKAGES.apk     = openmpi-dev
MPI_PACKAGES.brew    = open-mpi
.PHONY: deps-mpi check-mpi check-mpi-asan check-mpi-valgrind bench-mpi plots-mpi demo-mpi
deps-mpi:
	$(if $(MPI_PACKAGES.$(MANAGER)),,$(error deps-mpi: please install an MPI yourself))
	$(if $(filter apt-get,$(MANAGER)),$(SUDO) apt-get update -q)
	$(SUDO) $(INSTALL.$(MANAGER)) $(MPI_PACKAGES.$(MANAGER))
check-mpi: needs-mpi $(OUT)/tests/mpi/check $(PROGRAMS)/mpi/transformer_mpi
	$(Q)tests/mpi/run.sh $(OUT)/tests/mpi $(PROGRAMS)/mpi/transformer_mpi
# Of leaks only MPI's own are passed over.
check-mpi-asan:
	+$(Q)ASAN_OPTIONS=allocator_may_return_null=1:$$ASAN_OPTIONS \
	    LSAN_OPTIONS=suppressions=$(CURDIR)/tests/mpi/lsan.supp:print_suppressions=0:fast_unwind_on_malloc=0 \
	    $(MAKE) --no-print-directory VARIANT=asan check-mpi
check-mpi-valgrind: needs-mpi needs-valgrind $(OUT)/tests/mpi/check
	$(Q)tests/mpi/mpirun.sh 2 valgrind --quiet --error-exitcode=1 --num-callers=50 \
	    --suppressions=tests/valgrind.supp --suppressions=tests/mpi/valgrind.supp \
	    $(addprefix --suppressions=,$(wildcard /usr/share/openmpi/openmpi-valgrind.supp)) \
	    --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
	    $(OUT)/tests/mpi/check train
MPI_ROUNDS = 10
bench-mpi: needs-mpi $(OUT)/tests/mpi/bench | $(BUILD)/bench/
	$(Q)tests/mpi/bench.sh $(OUT)/tests/mpi/bench $(BUILD)/bench/mpi.tsv $(MPI_ROUNDS) plots/mpi_scaling.dat
	$(Q)if $(has_gnuplot) >/dev/null; then gnuplot plots/mpi_scaling.gp; fi
plots-mpi: needs-mpi needs-gnuplot $(PROGRAMS)/mpi/workers_mpi | $(OUT)/plots/
	$(Q)tests/mpi/mpirun.sh 4 $(PROGRAMS)/mpi/workers_mpi --no-plot --out plots/
	$(Q)gnuplot plots/workers.gp
demo-mpi: needs-mpi $(PROGRAMS)/mpi/digits_mpi
	$(Q)tests/mpi/demo.sh $(PROGRAMS)/mpi/digits_mpi

# For the build systems of others: pkg-config and CMake.
$(PC) $(CMAKE) $(MPI_PC): $(OUT)/%: src/%.in $(OUT)/flags $(OUT)/places
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
	    -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@SONAME@|$(SONAME)|' \
	    -e 's|@MPI_SONAME@|$(MPI_SONAME)|' \
	    -e 's|@SANITIZE@|$(SANITIZE)|' -e 's|@LIBS_PRIVATE@|-pthread $(LIBS)|' $< > $@

$(OUT)/places: FORCE | $(OUT)/tests/
	$(call remember,$(SONAME) $(VERSION) $(PREFIX) $(LIBDIR) $(INCLUDEDIR))

$(EXAMPLES): $(PROGRAMS)/%: examples/%.c
$(CLAIMS:%=$(PROGRAMS)/%): $(PROGRAMS)/%: examples/claims/%.c $(LAB)
$(EXAMPLES) $(CLAIMS:%=$(PROGRAMS)/%): $(STATIC) $(OUT)/flags | $(PROGRAMS)/ $(OUT)/examples/
	$(call say,LINK $@)
	$(Q)$(CC) $(COMMON) $(LAST) -MMD -MP -MT $@ -MF $(OUT)/examples/$(@F).d $(filter %.c %.o,$^) \
	    $(LDFLAGS) $(STATIC) $(LIBS) $(LDLIBS) -o $@

# ---- Tests --------------------------------------------------------------------------------------

## check: all tests, the README's example, the programs, then every gradient through the checker
.PHONY: check
check: suite walkthrough programs misuse cxx $(GRADCHECK)
	$(if $(GRADCHECK),$(Q)$(GRADCHECK))

# The norm that README.md adds, taken from its text.
.PHONY: walkthrough
walkthrough: $(STATIC)
	$(Q)tests/walkthrough.sh $(OUT)/walkthrough $(CC) $(COMMON) $(LAST) -- $(LDFLAGS) $(STATIC) \
	    $(LIBS) $(LDLIBS)

# Those that begin as the others do: a program of your own in examples/ need not.
.PHONY: programs
programs: $(EXAMPLES) $(CLAIMS:%=$(PROGRAMS)/%)
	$(Q)tests/programs.sh $(OUT)/programs $(CLAIMS:%=$(PROGRAMS)/%) \
	    $(patsubst examples/%.c,$(PROGRAMS)/%,$(shell grep -lE '(program|experiment)_end' examples/*.c))

# Use of memory after its life, which the library of VARIANT=asan catches.
.PHONY: lifetimes
lifetimes: $(STATIC)
	$(if $(filter asan,$(VARIANT)),,$(error lifetimes needs VARIANT=asan))
	$(Q)tests/lifetimes.sh $(OUT)/lifetimes $(CC) $(COMMON) $(LAST) -- $(LDFLAGS) $(STATIC) \
	    $(LIBS) $(LDLIBS)

# CK_RUN_SUITE=name runs one suite; CK_FORK=no all of them in one process.
.PHONY: suite
suite: $(RUNNER)
	$(Q)$(RUNNER)

# The runner's copy of the library takes its memory through tests/support.c, which counts, and can
# refuse; so with what it asks of the system for its files, and with threads.
COUNTED = malloc calloc realloc aligned_alloc posix_memalign free \
          open read write fsync rename close fchmod pthread_create
$(OUT)/tests/libnormgrad.a: $(STATIC)
	$(Q)$(OBJCOPY) $(foreach f,$(COUNTED),--redefine-sym $(f)=counted_$(f)) $< $@

$(RUNNER): $(TEST_OBJECTS) $(OUT)/tests/libnormgrad.a
	$(call say,LINK $@)
	$(Q)$(link) $(TEST_OBJECTS) $(OUT)/tests/libnormgrad.a $(CHECK_LIBS) $(LIBS) $(LDLIBS) -o $@

$(TEST_OBJECTS): | needs-check

# One line for each tests/test_NAME.c: main.c makes a list of suites of them.
$(OUT)/tests/main.o: $(OUT)/tests/suites.h
$(OUT)/tests/suites.h: FORCE | $(OUT)/tests/
	$(call remember,$(patsubst tests/test_%.c,SUITE(%),$(filter tests/test_%.c,$(TESTS))))

# In one process, for one to each test is what takes the sanitizers' time (CK_FORK=yes: one each).
## check-asan: the tests under AddressSanitizer and UndefinedBehaviorSanitizer
## check-ubsan: the tests under UndefinedBehaviorSanitizer alone
## check-tsan: the tests under ThreadSanitizer
.PHONY: check-asan check-ubsan check-tsan
check-asan check-ubsan:
	+$(Q)ASAN_OPTIONS=allocator_may_return_null=1:$$ASAN_OPTIONS CK_FORK=$${CK_FORK-no} \
	    $(MAKE) --no-print-directory VARIANT=$(@:check-%=%) suite $(if $(filter %asan,$@),lifetimes)
check-tsan:
	+$(Q)TSAN_OPTIONS=allocator_may_return_null=1:die_after_fork=0:$$TSAN_OPTIONS CK_FORK=$${CK_FORK-no} \
	    $(MAKE) --no-print-directory VARIANT=tsan suite

# Of the kernels those alone that are for every processor: valgrind does not know all instructions
# that compilers write for others (3.19: vmovq between registers). It runs one thread at a time. In
# a forked child it calls lost what the threads hold that are not there: those tests are left out.
## check-valgrind: the tests under valgrind's memcheck
.PHONY: check-valgrind run-valgrind
check-valgrind: needs-valgrind
	+$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/valgrind ISAS=baseline run-valgrind
run-valgrind: $(RUNNER)
	$(Q)CK_FORK=no CK_EXCLUDE_TAGS=fork OMP_NUM_THREADS=1 valgrind --quiet --error-exitcode=1 \
	    --suppressions=tests/valgrind.supp --leak-check=full \
	    --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect $(RUNNER)

## fuzz: every reader, and the interface, against made-up input for FUZZ_SECONDS each (an hour)
## fuzz-quick: QUICK_SECONDS each (a minute)
FUZZ_SECONDS  = 3600
QUICK_SECONDS = 60
FUZZ_CC = clang
FUZZERS := $(patsubst tests/fuzz/%.c,$(OUT)/tests/fuzz/%,$(sort $(wildcard tests/fuzz/*.c)))
.PHONY: fuzz fuzz-quick fuzz-run needs-clang
needs-clang:
	$(call need,command -v clang,clang,clang)
fuzz fuzz-quick: needs-clang
	+$(Q)$(MAKE) --no-print-directory VARIANT=fuzz CC='$(FUZZ_CC)' \
	    $(if $(filter %-quick,$@),FUZZ_SECONDS=$(QUICK_SECONDS)) fuzz-run
fuzz-run: $(FUZZERS)
	$(Q)tests/fuzz/run.sh $(OUT)/found $(FUZZ_SECONDS) $^
$(OUT)/tests/fuzz/%: tests/fuzz/%.c tests/fuzz/fuzz.h $(STATIC) | $(OUT)/tests/fuzz/
	$(call say,LINK $@)
	$(Q)$(CC) $(COMMON) $(LAST) -fsanitize=fuzzer $< $(LDFLAGS) $(STATIC) $(LIBS) $(LDLIBS) -o $@

## coverage: the tests with gcov; prints the share of lines run, for each file of src/
.PHONY: coverage
coverage:
	+$(Q)$(MAKE) --no-print-directory VARIANT=coverage suite
	$(Q)for o in $(OBJECTS:$(OUT)/%=%); do gcov -n -o $(BUILD)/coverage/$$o $${o%.o}.c; done 2>/dev/null | \
	    awk '/^File/ { keep = index($$2, "src/"); gsub("\047", "", $$2); name = $$2 } \
	         /^Lines/ && keep { split($$0, part, "[:%]"); printf "%6s %%  %s\n", part[2], name; keep = 0 }' | \
	    sort -k3 -u | sort -n

## bench: times against PyTorch, oneDNN and the machine's limit; tables, build/bench/results.tsv
## bench-quick: fewer cases and shorter bursts, under 40 seconds
## deps-bench: install PyTorch and oneDNN to compare with
.PHONY: bench bench-quick deps-bench
bench: $(BENCH)
	$(Q)$(BENCH) --output=$(BUILD)/bench --plots=plots
	$(Q)if $(has_gnuplot) >/dev/null; then gnuplot plots/bench.gp; fi
bench-quick: $(BENCH)
	$(Q)$(BENCH) --output=$(BUILD)/bench --quick
deps-bench:
	$(if $(BENCH_PACKAGES.$(MANAGER)),,$(error deps-bench: please install PyTorch and oneDNN yourself))
	$(if $(filter apt-get,$(MANAGER)),$(SUDO) apt-get update -q)
	$(SUDO) $(INSTALL.$(MANAGER)) $(BENCH_PACKAGES.$(MANAGER))

# The engine of oneDNN is a program of its own, where its header is found: nothing else loads it.
ONEDNN := $(if $(wildcard /usr/include/oneapi/dnnl/dnnl.h),$(OUT)/tests/bench/engine_onednn)
$(OUT)/tests/bench/roof.o: OWN += $(KERNEL)
$(BENCH): $(filter-out %/engine_onednn.o,$(BENCH_OBJECTS)) $(STATIC) | $(ONEDNN)
	$(Q)$(link) $^ $(LIBS) $(LDLIBS) -o $@
$(OUT)/tests/bench/engine_onednn: $(OUT)/tests/bench/engine_onednn.o $(OUT)/tests/bench/engine.o
	$(Q)$(link) $^ -ldnnl $(LDLIBS) -o $@

# ---- The main job and the figures ---------------------------------------------------------------

## demo: trains on the digits with each norm and draws plots/convergence.svg and .png
.PHONY: demo
demo: needs-gnuplot $(PROGRAMS)/digits
	$(Q)$(PROGRAMS)/digits --out plots/convergence

# Each claim's experiment writes plots/NAME.dat, has it drawn, and writes the verdicts on the claim's
# parts, which are gathered in plots/claims.tsv. What it prints stands in $(OUT)/plots/NAME.log. What
# measures time comes last, so that with make -j it is alone.
RESULTS = $(CLAIMS:%=$(OUT)/plots/%.log)
TIMED   = $(filter %/rms_cost.log,$(RESULTS))

## plots: runs the experiment on every claim, draws their figures, writes plots/claims.tsv
.PHONY: plots
plots: $(RESULTS)
	$(Q){ printf 'id\tpart\tnorm\teffect\tlow\thigh\tn\tthreshold\tverdict\n'; \
	    cat $(^:.log=.tsv); } > plots/claims.tsv
	$(Q)gnuplot plots/claims.gp
	@echo; cut -f 1,9 plots/claims.tsv | sed 1d | sort | uniq -c

## plots-quick: the same, so small that the figures mean nothing, in build/: a smoke run
.PHONY: plots-quick
plots-quick: $(CLAIMS:%=$(OUT)/plots-quick/%.log)

# $(call experiment,options): runs one; on failure shows what it printed.
experiment = @echo '  RUN  $<'; $< $(1) --verdicts $(@:.log=.tsv) > $@.new 2>&1 || { cat $@.new; exit 1; }; \
    mv $@.new $@

$(RESULTS): $(OUT)/plots/%.log: $(PROGRAMS)/% FORCE | needs-gnuplot $(OUT)/plots/
	$(call experiment,--out plots/)
$(TIMED): | $(filter-out $(TIMED),$(RESULTS))
$(OUT)/plots-quick/%.log: $(PROGRAMS)/% FORCE | needs-gnuplot $(OUT)/plots-quick/
	$(call experiment,--quick --out $(OUT)/plots-quick/)

# ---- The reference ------------------------------------------------------------------------------

# Both are made of the public headers by src/reference.awk, the man pages by it alone.
DOCS  = $(BUILD)/docs
PAGES = $(DOCS)/man/man3

## docs: the reference, from the headers, in build/docs/html and build/docs/man
.PHONY: docs
docs: needs-doxygen $(PAGES)/normgrad.3
	$(Q)rm -rf $(DOCS)/html
	$(Q){ cat src/Doxyfile; echo 'OUTPUT_DIRECTORY = $(DOCS)'; echo 'PROJECT_NUMBER = $(VERSION)'; } | \
	    doxygen -
	@echo '  $(DOCS)/html/index.html; man -M $(DOCS)/man ng_layer_norm_new'

$(PAGES)/normgrad.3: include/normgrad.h $(HEADERS) src/reference.awk
	$(Q)rm -rf $(PAGES) && mkdir -p $(PAGES)
	$(Q)for header in $(HEADERS) include/normgrad.h; do \
	    awk -v man=$(PAGES) -v version=$(VERSION) -f src/reference.awk $$header || exit 1; done
	$(if $(HAS_MPI),$(Q)awk -v man=$(PAGES) -v version=$(VERSION) -f src/reference.awk $(MPI_HEADER))

# ---- The rest -----------------------------------------------------------------------------------

define install_mpi
install -m 644 $(OUT)/libnormgrad-mpi.a '$(DESTDIR)$(LIBDIR)'
	install -m 755 $(OUT)/libnormgrad-mpi.so.$(VERSION) '$(DESTDIR)$(LIBDIR)'
	ln -sf libnormgrad-mpi.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/$(MPI_SONAME)'
	ln -sf libnormgrad-mpi.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/libnormgrad-mpi.so'
	install -m 644 src/mpi/include/normgrad/mpi.h '$(DESTDIR)$(INCLUDEDIR)/normgrad'
	install -m 644 $(MPI_PC) '$(DESTDIR)$(LIBDIR)/pkgconfig'
endef

## install: libraries, headers, man pages, data, normgrad.pc and CMake's files to $(DESTDIR)$(PREFIX)
.PHONY: install
install: $(STATIC) $(SHARED) $(PC) $(CMAKE) $(PAGES)/normgrad.3 $(WITH_MPI)
	@for place in '$(LIBDIR)' '$(INCLUDEDIR)' '$(MANDIR)' '$(DATADIR)'; do case $$place in /*) ;; \
	    *) echo "install: PREFIX is to begin with /, and $$place does not" >&2; exit 1;; esac; done
	install -d '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(LIBDIR)/cmake/normgrad' \
	    '$(DESTDIR)$(INCLUDEDIR)/normgrad' '$(DESTDIR)$(MANDIR)/man3' '$(DESTDIR)$(DATADIR)/data'
	install -m 644 $(STATIC) '$(DESTDIR)$(LIBDIR)'
	install -m 755 $(SHARED) '$(DESTDIR)$(LIBDIR)'
	ln -sf $(notdir $(SHARED)) '$(DESTDIR)$(LIBDIR)/$(SONAME)'
	ln -sf $(notdir $(SHARED)) '$(DESTDIR)$(LIBDIR)/libnormgrad.so'
	install -m 644 include/normgrad.h '$(DESTDIR)$(INCLUDEDIR)'
	install -m 644 $(HEADERS) '$(DESTDIR)$(INCLUDEDIR)/normgrad'
	install -m 644 $(PC) '$(DESTDIR)$(LIBDIR)/pkgconfig'
	install -m 644 $(CMAKE) '$(DESTDIR)$(LIBDIR)/cmake/normgrad'
	$(if $(WITH_MPI),$(call install_mpi))
	install -m 644 $(PAGES)/*.3 '$(DESTDIR)$(MANDIR)/man3'
	install -m 644 examples/data/* '$(DESTDIR)$(DATADIR)/data'
	$(if $(DESTDIR),,@ldconfig 2>/dev/null || true)

## uninstall: what install has put there
.PHONY: uninstall
uninstall: $(PAGES)/normgrad.3
	cd '$(DESTDIR)$(LIBDIR)' && rm -f libnormgrad.a libnormgrad.so $(SONAME) $(notdir $(SHARED)) \
	    libnormgrad-mpi.a libnormgrad-mpi.so $(MPI_SONAME) libnormgrad-mpi.so.$(VERSION) \
	    pkgconfig/normgrad.pc pkgconfig/normgrad-mpi.pc
	rm -rf '$(DESTDIR)$(LIBDIR)/cmake/normgrad'
	rm -f '$(DESTDIR)$(INCLUDEDIR)/normgrad.h'
	rm -rf '$(DESTDIR)$(INCLUDEDIR)/normgrad' '$(DESTDIR)$(DATADIR)'
	for page in $(PAGES)/*.3; do rm -f '$(DESTDIR)$(MANDIR)/man3/'"$${page##*/}"; done

# Calls that a compiler must object to, and a program in C++: with the compilers at hand; check-cxx
# with all there are.
.PHONY: misuse cxx
BUILT_HERE = -L$(OUT) -lnormgrad -Wl,-rpath,$(OUT)
misuse:
	$(Q)CC='$(CC)' CXX='$(CXX_FOUND)' tests/misuse.sh $(OUT)/misuse quick
cxx: $(SHARED)
	$(if $(CXX_FOUND),$(Q)CXX='$(CXX_FOUND)' tests/cxx.sh $(OUT)/cxx quick '$(BUILT_HERE)')

## check-cxx: wrong calls in every C since C99 and C++ since C++17, a program in C++; gcc and clang
.PHONY: check-cxx
check-cxx: $(SHARED)
	$(Q)tests/misuse.sh $(OUT)/misuse full
	$(Q)tests/cxx.sh $(OUT)/cxx full '$(BUILT_HERE)'

## check-install: programs outside the tree by pkg-config and CMake; README's lines without root
.PHONY: check-install
check-install: needs-pkg-config all
	+$(Q)CC='$(CC)' tests/outside.sh $(OUT)/outside
	+$(Q)tests/rootless.sh $(OUT)/rootless '$(MAKEOVERRIDES)'

STYLED = $(sort $(wildcard include/*.h include/*/*.h src/*/*.h src/*/*.c src/*/*.inc tests/*.h tests/*.c tests/*/*.[ch] examples/*.[ch] examples/*/*.[ch]))

# All but ops.h, whose formulas are aligned by hand.
FORMATTED = $(filter-out include/normgrad/ops.h,$(STYLED))

## format: the sources through clang-format (14: others break some lines elsewhere)
.PHONY: format
format: needs-clang-format
	$(Q)clang-format -i $(FORMATTED)

# A user's program may be in any C since C99 or any C++ since C++17, and pedantic. C++ is left
# out where no compiler for it is found.
CXX_FOUND = $(firstword $(foreach c,$(CXX) g++ clang++,$(shell command -v $(c))))
compile = echo "\#include <$(2)>" | $(1) -pedantic -Werror -Iinclude -fsyntax-only -
INCLUDED = normgrad.h $(HEADERS:include/%=%)
.PHONY: headers
headers:
	$(Q)for std in c99 c11 c17 c2x; do for header in $(INCLUDED); do \
	    $(call compile,$(CC) -std=$$std $(WARNINGS) -x c,$$header) || exit 1; done; done
	$(if $(CXX_FOUND),$(Q)for std in c++17 c++20 c++2b; do for header in $(INCLUDED); do \
	    $(call compile,$(CXX_FOUND) -std=$$std -Wall -Wextra -x c++,$$header) || exit 1; done; done)

## lint: the headers in C and C++, a sentence for each declaration; format, tabs and long lines
.PHONY: lint
lint: headers
	$(Q)case "$$(clang-format --version 2>/dev/null)" in \
	*' 14.'*) clang-format --dry-run -Werror $(FORMATTED) ;; \
	*) echo 'lint: no clang-format 14, so the format is not looked at' ;; esac
	$(Q)tests/map.sh
	$(Q)tests/reference.sh $(OUT)/reference
	$(Q)! grep -nHE '.{101}|	| $$' $(STYLED)

## clean: removes everything that was built
.PHONY: clean
clean:
	rm -rf $(BUILD)

## help: this list
.PHONY: help
help:
	@sed -n 's/^## //p' Makefile | awk '{ i = index($$0, ": "); printf "%-18s %s\n", substr($$0, 1, i - 1), substr($$0, i + 2) }'
	@echo
	@echo 'Every processor is used; -j1 and so on say how many. VARIANT=asan, ubsan, tsan or coverage'
	@echo 'builds the library and its tests for these, in build/asan and so on.'
	@echo 'V=1 shows commands, WERROR=1 makes warnings errors, ZLIB=0 leaves zlib out.'

.PHONY: FORCE
FORCE:

-include $(wildcard $(OUT)/src/*/*.d $(OUT)/tests/*.d $(OUT)/tests/bench/*.d $(OUT)/examples/*.d $(OUT)/examples/claims/*.d)

endif
