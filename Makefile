# normgrad: `make help` lists the targets. `make` needs only a C compiler and GNU Make.
#
# Products stand in $(BUILD)/$(VARIANT); the example programs of the release variant in
# $(BUILD)/examples. CC, CFLAGS, CPPFLAGS, LDFLAGS, LDLIBS, PREFIX, LIBDIR, INCLUDEDIR, MANDIR and
# DESTDIR mean the usual things; flags given by the user come last. What was built with other flags
# is not built again: make clean, or BUILD=elsewhere.

BUILD   = build
VARIANT = release
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

# ---- Packages: apt-get installs them, elsewhere they are named -----------------------------------

PACKAGES = check pkg-config gnuplot-nox zlib1g-dev fonts-dejavu-core
SUDO = $(if $(filter 0,$(shell id -u)),,sudo )
apt-get = $(SUDO)apt-get install -y --no-install-recommends $(1)
apt = if ! command -v apt-get >/dev/null; then \
        echo '$@: there is no apt-get here; Debian calls what is needed: $(1)' >&2; exit 1; fi; \
    set -ex; $(SUDO)apt-get update -q; DEBIAN_FRONTEND=noninteractive $(call apt-get,$(1))

has_header  = echo '\#include <$(1)>' | $(CC) $(CPPFLAGS) $(CFLAGS) $(shell pkg-config --cflags $(2) 2>/dev/null) -E -x c -
has_check   = $(call has_header,check.h,check)
has_gnuplot = command -v gnuplot
## deps: install what check, demo, plots and compressed files need
deps:
	@if { command -v pkg-config && $(has_gnuplot) && $(has_check) && \
	    $(call has_header,zlib.h,zlib); } >/dev/null 2>&1; \
	then echo 'deps: nothing is missing (make docs needs Doxygen too: $(call apt-get,doxygen))'; \
	else $(call apt,$(PACKAGES)); fi
# Whatever is built, or needs something, waits for it. What it installs is looked for in recipes.
FIRST := $(filter deps,$(MAKECMDGOALS))

# $(call need,test command,what,package): stops with the command that installs what is missing.
need = @{ $(1); } >/dev/null 2>&1 || { echo '$(2) is missing. To install it: $(call apt-get,$(3))' >&2; exit 1; }
needs-check: $(FIRST)
	$(call need,$(has_check),Check,check)
needs-gnuplot: $(FIRST)
	$(call need,$(has_gnuplot),gnuplot,gnuplot-nox)
TOOLS = needs-valgrind needs-clang-format needs-doxygen needs-pkg-config
$(TOOLS): needs-%: $(FIRST)
	$(call need,command -v $*,$*,$*)

# ---- What there is to build ---------------------------------------------------------------------

OUT      := $(BUILD)/$(VARIANT)
PROGRAMS := $(if $(filter release,$(VARIANT)),$(BUILD),$(OUT))/examples
HEADERS  := $(sort $(wildcard include/normgrad/*.h))
SOURCES  := $(filter-out src/mpi/%,$(sort $(wildcard src/*/*.c)))
TABLE    := src/kernels/table
OBJECTS   = $(patsubst %.c,$(OUT)/%.o,$(filter-out $(TABLE).c,$(SOURCES))) $(TABLES)
STEPS    := $(patsubst examples/%.c,$(PROGRAMS)/%,$(sort $(wildcard examples/*.c)))
MORE     := $(patsubst examples/more/%.c,$(PROGRAMS)/%,$(sort $(wildcard examples/more/*.c)))
EXAMPLES := $(STEPS) $(MORE)
# Files in examples/ that are yours: compiled with the warnings that a user would choose.
YOURS    := $(filter-out $(foreach name,[1-6]_* quickstart gradcheck,\
              $(patsubst examples/%.c,$(PROGRAMS)/%,$(wildcard examples/$(name).c))),$(STEPS))
CLAIMS   := $(basename $(notdir $(sort $(wildcard examples/claims/*.c))))
EXPERIMENTS := $(CLAIMS:%=$(PROGRAMS)/%)
CASES    := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard tests/cases/*.c)))
VERSION  := $(subst $() ,.,$(strip $(shell sed -n 's/^.define NG_VERSION_[A-Z]* *//p' include/normgrad/core.h)))
# What programs are compatible with: MAJOR, and before 1.0 MAJOR.MINOR.
SERIES   := $(basename $(if $(filter 0.%,$(VERSION)),$(VERSION),$(basename $(VERSION))))
STATIC   := $(OUT)/libnormgrad.a
# $(call dll,NAME,.VERSION): a shared library; $(call named,DLL): links one that programs know by this name.
DARWIN   := $(filter Darwin,$(shell uname -s))
dll       = $(if $(DARWIN),$(1)$(2).dylib,$(1).so$(2))
named     = $(if $(DARWIN),-dynamiclib -install_name @rpath/$(1),-shared -Wl,-soname,$(1))
SONAME   := $(call dll,libnormgrad,.$(SERIES))
SHARED   := $(OUT)/$(call dll,libnormgrad,.$(VERSION))

# ---- Flags --------------------------------------------------------------------------------------

WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Wdouble-promotion -Wstrict-prototypes \
           $(if $(filter 1,$(WERROR)),-Werror)
FLAGS.asan     = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS.ubsan    = -O1 -g -fsanitize=undefined -fno-sanitize-recover=all
FLAGS.tsan     = -O1 -g -fsanitize=thread
FLAGS.coverage = -O0 -g --coverage
FLAGS.fuzz     = -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
                 -fno-omit-frame-pointer -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
ifeq ($(VARIANT),fuzz)
CC = clang
endif
LAST   = $(FLAGS.$(VARIANT)) $(CPPFLAGS) $(CFLAGS)
# What the compiler says of the processor that it compiles for, as NAME=VALUE.
MACROS := $(shell $(CC) -std=c11 $(CPPFLAGS) $(CFLAGS) -dM -E -x c /dev/null 2>/dev/null | \
    sed -n 's/^.define \([^ ]*\) \([^ ]*\)$$/\1=\2/p')
# Float's arithmetic is float's: neither the x87's, nor double's as s390x has it under C11.
PRECISION := $(if $(filter __FLT_EVAL_METHOD__=0,$(MACROS)),,$(if $(filter __i386__=1,$(MACROS)),\
    -msse2 -mfpmath=sse,-fexcess-precision=fast))
# A product and a sum are fused only where the source says so: bits do not depend on the compiler.
# -g1 gives a debugger lines and functions; CFLAGS=-g gives variables, and takes longer to compile.
COMMON = -std=c11 $(FEATURES) -O2 -g1 -ffp-contract=off $(PRECISION) $(WARNINGS) -pthread -Iinclude
# POSIX of 2008 and no more. Three files also ask how many processors they may use, and for large pages:
# make GNU= does without.
FEATURES = -D_POSIX_C_SOURCE=200809L
GNU = -D_GNU_SOURCE -D_DARWIN_C_SOURCE
# The kernels' vectors are written out: the SLP vectorizer gains nothing there.
KERNEL = -fno-math-errno -fno-trapping-math \
         $(if $(filter __clang__=1,$(MACROS)),,-funswitch-loops -fvect-cost-model=dynamic -fno-tree-slp-vectorize)
# The kernels are compiled for each instruction set, the best first, and dtype: table_avx2_float.o...
# valgrind does not know all instructions of the others; what is fuzzed are files and calls.
ISAS = $(if $(filter valgrind fuzz,$(VARIANT)),,$(if $(filter __x86_64__=1,$(MACROS)),avx512 avx2) \
       $(if $(filter __aarch64__=1,$(MACROS)),neon)) baseline
ISA.avx2   = -mavx2 -mfma
ISA.avx512 = -mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -mprefer-vector-width=512
TABLES = $(foreach isa,$(ISAS),$(foreach real,float double,$(OUT)/$(TABLE)_$(isa)_$(real).o))
words_of = $(subst _, ,$(basename $(@F)))
$(OUT)/src/%: OWN = -fPIC -fvisibility=hidden -Isrc
$(OUT)/src/io/%: OWN += $(if $(WITH_ZLIB),-DNG_WITH_ZLIB $(shell pkg-config --cflags zlib 2>/dev/null))
$(patsubst %,$(OUT)/%.o,src/core/pool src/core/alloc tests/core/test_threads): FEATURES += $(GNU)
$(OUT)/src/kernels/%: OWN += $(KERNEL) -D'NG_ISAS(X)=$(foreach isa,$(ISAS),X($(isa)))'
$(OUT)/$(TABLE)_%: OWN += -DISA=$(word 2,$(words_of)) -DREAL=$(word 3,$(words_of)) $(ISA.$(word 2,$(words_of)))
# zlib reads compressed files (.gz, .npz), where its header is found; ZLIB=0 leaves it out. What deps may
# install is looked for whenever a recipe asks.
found_zlib = $(if $(filter 0,$(ZLIB)),,$(shell $(call has_header,zlib.h,zlib) >/dev/null 2>&1 && echo 1))
WITH_ZLIB = $(found_zlib)
ifeq ($(FIRST),)
WITH_ZLIB := $(found_zlib)
endif
LIBS = $(if $(WITH_ZLIB),$(or $(shell pkg-config --libs zlib 2>/dev/null),-lz) )-lm
link = $(CC) -pthread $(LAST) $(LDFLAGS)
program = $(COMMON) $(LAST) -MMD -MP -MT $@ -MF $(OUT)/examples/$(@F).d $(filter %.c %.o,$^) $(LDFLAGS) \
    $(filter %.a,$^) $(LIBS) $(LDLIBS) -o $@

# ---- The library, the examples, the demo ---------------------------------------------------------

# A folder of $(BUILD), of whose writing the first attempt tells. GNU Make 3.81 takes the slash off folder/.
.PRECIOUS: %/.
%/.: | $(FIRST)
	@mkdir -p $(@D) || { echo 'to build in another place: make BUILD=/elsewhere' >&2; exit 1; }
# Tests, figures, exercises; installation, the library as two files; MPI; fuzzers and the benchmark.
PARTS := tests/scripts/tests.mk $(wildcard examples/*.mk examples/*/*.mk src/install.mk src/dist.mk src/mpi/*.mk) \
    $(filter-out tests/scripts/%,$(wildcard tests/*/*.mk))
include $(PARTS)

## all: the library, static and shared, and the examples
all: $(STATIC) $(SHARED) $(EXAMPLES) $(EXPERIMENTS) $(WITH_MPI)
$(filter-out $(TABLES),$(OBJECTS)) $(CASES): $(OUT)/%.o: %.c Makefile | $$(@D)/.
	$(call say,CC   $<)
	$(Q)$(CC) $(COMMON) $(OWN) $(LAST) -MMD -MP -c $< -o $@
$(TABLES): $(TABLE).c Makefile | $$(@D)/.
	$(call say,CC   $< for $(wordlist 2,3,$(words_of)))
	$(Q)$(CC) $(COMMON) $(OWN) $(LAST) -MMD -MP -c $< -o $@
$(STATIC): $(OBJECTS)
	$(call say,AR   $@)
	$(Q)rm -f $@; $(AR) crs $@ $(OBJECTS)
$(SHARED): $(OBJECTS)
	$(call say,LINK $@)
	$(Q)$(link) $(call named,$(SONAME)) $(OBJECTS) $(LIBS) $(LDLIBS) -o $@
	$(Q)ln -sf $(@F) $(OUT)/$(SONAME); ln -sf $(@F) $(OUT)/$(call dll,libnormgrad)
$(STEPS): $(PROGRAMS)/%: examples/%.c
$(YOURS): WARNINGS = -Wall -Wextra
$(MORE): $(PROGRAMS)/%: examples/more/%.c
$(EXPERIMENTS): $(PROGRAMS)/%: examples/claims/%.c
$(PROGRAMS)/gradcheck_error: $(CASES)
$(EXAMPLES) $(EXPERIMENTS): $(STATIC) | $(PROGRAMS)/. $(OUT)/examples/.
	$(call say,LINK $@)
	$(Q)$(CC) $(program)
## demo: trains on the digits with each norm and draws build/convergence.svg
demo: needs-gnuplot $(PROGRAMS)/digits
	$(Q)$(PROGRAMS)/digits --out $(BUILD)/convergence
	$(Q)LC_ALL=C.UTF-8 gnuplot -c plots/convergence.gp $(BUILD)/convergence
## clean: removes everything that was built
clean:
	rm -rf $(BUILD)
## help: this list
help:
	@sed -n 's/^## //p' Makefile $(PARTS) | awk '{ i = index($$0, ": "); printf "%-18s %s\n", substr($$0, 1, i - 1), substr($$0, i + 2) }'
	@echo
	@echo 'Every processor is used; -j1 and so on say how many. VARIANT=asan, ubsan, tsan, valgrind or coverage'
	@echo 'builds for these, in build/asan and so on: make suite VARIANT=asan. V=1 shows commands, WERROR=1 makes'
	@echo 'warnings errors, ZLIB=0 leaves zlib out. After other flags than before: make clean, or BUILD=elsewhere.'

.PHONY: deps needs-check needs-gnuplot $(TOOLS) all demo clean help FORCE
FORCE:

-include $(wildcard $(OUT)/src/*/*.d $(OUT)/tests/*.d $(OUT)/tests/*/*.d $(OUT)/examples/*.d)
