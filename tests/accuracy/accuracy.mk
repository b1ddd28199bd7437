# How accurate results are. Included by the Makefile.

ACCURACY := $(patsubst %,$(OUT)/tests/accuracy/%,elementwise norms)
ACCURACY_ONEDNN := $(if $(shell grep -s 'VERSION_MAJOR 3' /usr/include/oneapi/dnnl/dnnl_version.h),$(OUT)/tests/accuracy/onednn)
## accuracy: errors of elementwise functions (every STRIDE-th float, default 32; 1: minutes), norms, softmax,
## accuracy: losses and attention, beside PyTorch and oneDNN where they are installed; a figure
accuracy: $(ACCURACY) $(ACCURACY_ONEDNN)
	$(Q)NORMGRAD_THREADS=1 $< $(or $(STRIDE),32)
	$(Q)NORMGRAD_THREADS=1 OMP_NUM_THREADS=1 PYTHON=$(PYTHON) $(OUT)/tests/accuracy/norms $(BUILD)
	$(Q)if $(has_gnuplot) >/dev/null; then gnuplot -c plots/accuracy.gp $(BUILD); fi
$(OUT)/tests/accuracy/elementwise: tests/accuracy/elementwise.c
$(OUT)/tests/accuracy/norms: $(addprefix tests/,accuracy/norms.c accuracy/engines.c support/exact.c accuracy/engines.h support/exact.h)
$(ACCURACY): FEATURES = -D_XOPEN_SOURCE=700
$(ACCURACY): $(STATIC) | $$(@D)/.
	$(call say,LINK $@)
	$(Q)$(CC) $(COMMON) $(OWN) $(LAST) $(filter %.c,$^) $(STATIC) $(LDFLAGS) $(LIBS) $(LDLIBS) -o $@
$(OUT)/tests/accuracy/onednn: tests/accuracy/onednn.c | $$(@D)/.
	$(call say,LINK $@)
	$(Q)$(CC) $(COMMON) $(LAST) $< $(LDFLAGS) -ldnnl $(LDLIBS) -o $@

.PHONY: accuracy
