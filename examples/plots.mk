# The experiments and their figures. Included by the Makefile.

# Each claim's experiment writes its .dat, has it drawn, and writes a .tsv, the verdicts on the claim's parts. All
# is made in $(OUT)/plots and taken to plots/ at the end: who interrupts it leaves plots/ as it was.
RESULTS = $(CLAIMS:%=$(OUT)/plots/%.log)

## plots: runs the demo and the experiment on every claim, updates plots/ and plots/claims.tsv
plots: $(RESULTS) $(OUT)/plots/digits.log
	$(Q){ printf 'id\tpart\tnorm\teffect\tlow\thigh\tn\tthreshold\tverdict\n'; cat $(OUT)/plots/*.tsv; } \
	    > $(OUT)/plots/claims.new
	$(Q)cp $(OUT)/plots/*.dat $(OUT)/plots/*.svg plots/; mv $(OUT)/plots/claims.new plots/claims.tsv
	$(Q)LC_ALL=C.UTF-8 gnuplot plots/claims.gp
	@echo; cut -f 1,9 plots/claims.tsv | sed 1d | sort | uniq -c
## plots-quick: the same, so small that the figures mean nothing, in build/: a smoke run
plots-quick: $(CLAIMS:%=$(OUT)/plots-quick/%.log)

# $(call experiment,options): runs one, and draws its data as it says; on failure shows what it printed.
experiment = @echo '  RUN  $<'; { $< --out $(@D)/$(1) && sed -n 's/.*To draw it: //p' $@.new | LC_ALL=C.UTF-8 sh -e; } > $@.new 2>&1 || \
    { cat $@.new; exit 1; }; mv $@.new $@
$(RESULTS): $(OUT)/plots/%.log: $(PROGRAMS)/% FORCE | needs-gnuplot $(OUT)/plots/.
	$(call experiment)
$(OUT)/plots/digits.log: $(PROGRAMS)/digits FORCE | needs-gnuplot $(OUT)/plots/.
	$(call experiment,convergence)
$(OUT)/plots-quick/%.log: $(PROGRAMS)/% FORCE | needs-gnuplot $(OUT)/plots-quick/.
	$(call experiment, --quick)

.PHONY: plots plots-quick
