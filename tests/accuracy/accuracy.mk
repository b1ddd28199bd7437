# The errors of the elementwise functions. Included by the Makefile.

ACCURACY := $(OUT)/tests/accuracy/accuracy
## accuracy: the errors of all elementwise functions, for every float: minutes (STRIDE=100: seconds)
accuracy: $(ACCURACY)
	$(Q)NORMGRAD_THREADS=1 $< $(STRIDE)
$(ACCURACY): $(OUT)/%: %.c $(STATIC) | $$(@D)/
	$(call say,LINK $@)
	$(Q)$(CC) $(COMMON) $(OWN) $(LAST) $^ $(LDFLAGS) $(LIBS) $(LDLIBS) -o $@
