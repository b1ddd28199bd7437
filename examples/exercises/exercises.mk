# The exercises. Included by the Makefile.

EXERCISE_FILES = $(sort $(wildcard examples/exercises/[0-9]*.c))
THIS_EXERCISE  = $(if $(N),$(firstword $(filter examples/exercises/$(N)_% examples/exercises/0$(N)_%,$(EXERCISE_FILES))))

## exercise: N=03 compiles an exercise of examples/exercises and lets the checker mark it
exercise: $(STATIC) | $(BUILD)/exercises/.
	$(if $(THIS_EXERCISE),,@echo 'which one? make exercise N=01, to N=$(lastword $(sort $(foreach f,$(notdir \
	    $(EXERCISE_FILES)),$(firstword $(subst _, ,$f)))))' >&2; exit 1)
	@$(CC) $(COMMON) -Werror=int-conversion $(LAST) $(THIS_EXERCISE) $(LDFLAGS) $(STATIC) $(LIBS) $(LDLIBS) \
	    -o $(BUILD)/exercises/$(basename $(notdir $(THIS_EXERCISE)))
	@$(BUILD)/exercises/$(basename $(notdir $(THIS_EXERCISE))) || :
# The solutions pass, the empty exercises do not, and typical mistakes get their hints.
exercises: $(STATIC)
	$(Q)tests/scripts/exercises.sh $(OUT)/exercises $(compile_outside)

.PHONY: exercise exercises
