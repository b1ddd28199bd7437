# Made-up input. Included by the Makefile.

## fuzz: VARIANT=fuzz: every reader against made-up input, FUZZ_SECONDS each (an hour)
FUZZERS := $(patsubst tests/fuzz/%.c,$(OUT)/tests/fuzz/%,$(sort $(wildcard tests/fuzz/*.c)))
fuzz: $(if $(filter fuzz,$(VARIANT)),$(FUZZERS))
	$(if $(filter fuzz,$(VARIANT)),,$(error fuzz needs VARIANT=fuzz, and clang))
	$(Q)tests/fuzz/run.sh $(OUT)/found $(or $(FUZZ_SECONDS),3600) $^
$(OUT)/tests/fuzz/%: tests/fuzz/%.c tests/fuzz/fuzz.h $(STATIC) | $(OUT)/tests/fuzz/.
	$(call say,LINK $@)
	$(Q)$(CC) $(COMMON) $(LAST) -fsanitize=fuzzer $< $(LDFLAGS) $(STATIC) $(LIBS) $(LDLIBS) -o $@

.PHONY: fuzz
