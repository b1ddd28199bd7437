# Groups of processes on MPI: a library of its own, built where mpicc is found. Of several, or in a
# place of its own: make MPICC=mpicc.mpich, or MPICC=/opt/mpi/bin/mpicc.

MPICC  = mpicc
MPIRUN = $(subst mpicc,mpirun,$(MPICC))
export MPICC MPIRUN
MPI_HEADER   := src/mpi/include/normgrad/mpi.h
mpicc = OMPI_CC='$(CC)' MPICH_CC='$(CC)' $(MPICC) -Isrc/mpi/include
HAS_MPI := $(shell command -v $(MPICC);)
MPI_STATIC   := $(OUT)/libnormgrad-mpi.a
MPI_SHARED   := $(OUT)/libnormgrad-mpi.so.$(VERSION)
MPI_SONAME   := libnormgrad-mpi.so.$(SERIES)
MPI_EXAMPLES := $(patsubst examples/%.c,$(PROGRAMS)/%,$(sort $(wildcard examples/mpi/*.c)))
MPI_TESTS    := $(OUT)/tests/mpi/check $(OUT)/tests/mpi/bench
WITH_MPI     := $(if $(HAS_MPI),$(MPI_STATIC) $(MPI_SHARED) $(MPI_EXAMPLES))

## deps-mpi: install an MPI, for groups of processes
MPI_PACKAGES = libopenmpi-dev openmpi-bin
deps-mpi:
	@$(call apt,$(MPI_PACKAGES))
needs-mpi:
	$(call need,command -v $(MPICC),mpicc,$(MPI_PACKAGES))
$(OUT)/src/mpi/mpi.o: src/mpi/mpi.c Makefile | $(OUT)/src/mpi/. needs-mpi
	$(call say,CC   $<)
	$(Q)$(mpicc) $(COMMON) $(OWN) $(LAST) -MMD -MP -c $< -o $@
$(MPI_STATIC): $(OUT)/src/mpi/mpi.o
	$(Q)rm -f $@; $(AR) crs $@ $<
$(MPI_SHARED): $(OUT)/src/mpi/mpi.o $(SHARED)
	$(Q)$(mpicc) -pthread $(LAST) $(LDFLAGS) $(call named,$(MPI_SONAME)) $< -L$(OUT) -lnormgrad -o $@
	$(Q)ln -sf $(@F) $(OUT)/$(MPI_SONAME); ln -sf $(@F) $(OUT)/libnormgrad-mpi.so
$(MPI_EXAMPLES): $(PROGRAMS)/%: examples/%.c
$(MPI_TESTS): $(OUT)/%: %.c
$(MPI_EXAMPLES) $(MPI_TESTS): $(MPI_STATIC) $(STATIC) | $(PROGRAMS)/mpi/. $(OUT)/tests/mpi/. $(OUT)/examples/.
	$(call say,LINK $@)
	$(Q)$(mpicc) $(if $(findstring tests,$@),-Isrc -Itests,-Iexamples/more) $(program)

## check-mpi: groups of 1, 2, 3, 4 and 8 processes on MPI: the bits of threads, failures, a killed process
## check-mpi-valgrind: a training on two processes under valgrind
## bench-mpi: steps and sums on two processes of a core each
## demo-mpi: the digits on two processes: own statistics, synchronized ones, and LayerNorm
.PHONY: deps-mpi needs-mpi check-mpi check-mpi-valgrind bench-mpi demo-mpi
check-mpi: needs-mpi $(OUT)/tests/mpi/check $(PROGRAMS)/mpi/transformer_mpi
	$(Q)tests/mpi/run.sh $(OUT)/tests/mpi $(PROGRAMS)/mpi/transformer_mpi
# MPI's own leaks are passed over.
check-mpi: export LSAN_OPTIONS := suppressions=$(CURDIR)/tests/mpi/lsan.supp:print_suppressions=0:fast_unwind_on_malloc=0
check-mpi-valgrind: needs-mpi needs-valgrind $(OUT)/tests/mpi/check
	$(Q)tests/mpi/mpirun.sh 2 valgrind --quiet --error-exitcode=1 --num-callers=50 \
	    --suppressions=tests/mpi/valgrind.supp \
	    $(addprefix --suppressions=,$(wildcard /usr/share/openmpi/openmpi-valgrind.supp)) \
	    --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite $< train 0
bench-mpi: $(OUT)/tests/mpi/bench needs-mpi | $(BUILD)/bench/.
	$(Q)MPI_BIND=core tests/mpi/mpirun.sh 2 $< $(BUILD)/bench/mpi.tsv 10
	$(Q)column -t -s "$$(printf '\t')" $(BUILD)/bench/mpi.tsv
demo-mpi: needs-mpi $(PROGRAMS)/mpi/digits_mpi
	$(Q)tests/mpi/mpirun.sh 2 $(PROGRAMS)/mpi/digits_mpi
