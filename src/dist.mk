# The library as two files, and the tree as an archive. Included by the Makefile.

DIST = $(BUILD)/dist
# In the order in which they are to be read.
DIST_HEADERS = $(addprefix include/normgrad/,core.h settings.h tensor.h tape.h group.h \
    elementwise.h reductions.h shapes.h losses.h norm_ops.h images.h sequences.h ops.h \
    derivatives.h module.h layers.h channel_norms.h norms.h \
    attention.h recurrent.h custom.h nn.h optim.h \
    parallel.h gradcheck.h data.h evaluate.h history.h plot.h training.h)
$(if $(filter-out $(DIST_HEADERS),$(HEADERS)),$(error not in DIST_HEADERS: $(filter-out $(DIST_HEADERS),$(HEADERS))))

## dist: the library as two files, build/dist/normgrad.h and normgrad.c
dist: $(DIST)/normgrad.h $(DIST)/normgrad.c
	@wc -c $^
$(DIST)/normgrad.h: include/normgrad.h $(HEADERS)
$(DIST)/normgrad.c: src/normgrad.c $(DIST)/names.h $(wildcard src/*/*.[ch] src/*/*.inc src/*/*.def)
$(DIST)/normgrad.h $(DIST)/normgrad.c: $(DIST)/%: src/dist.awk | $(DIST)/.
	$(Q)awk -v version=$(VERSION) -v file=$* -v names=$(DIST)/names.h -f src/dist.awk $(DIST_HEADERS) > $@
# The names of the kernels, which normgrad.c includes.
$(DIST)/names.h: src/names.awk src/core/elementary.h $(sort $(wildcard src/kernels/*.inc src/kernels/*.h)) | $(DIST)/.
	$(Q)awk -f $^ > $@
## check-onefile: compiles src/normgrad.c and the two files to the same code, and runs all tests with it
compile_all = $(CC) -std=c11 -O2 $(if $(WITH_ZLIB),-DNG_WITH_ZLIB)
$(OUT)/onefile/normgrad.o: $(DIST)/normgrad.h $(DIST)/normgrad.c | $$(@D)/.
	$(Q)$(compile_all) -Iinclude -Isrc -I$(DIST) -c src/normgrad.c -o $@
	$(Q)$(compile_all) -c $(DIST)/normgrad.c -o $(@D)/dist.o
	$(Q)for part in normgrad dist; do $(OBJCOPY) -O binary -j .text $(@D)/$$part.o $(@D)/$$part.text; done
	$(Q)cmp $(@D)/normgrad.text $(@D)/dist.text
check-onefile: $(OUT)/onefile/normgrad.o $(TEST_OBJECTS)
	$(Q)$(link) $(WRAPPED) $^ $(CHECK_LIBS) $(LIBS) $(LDLIBS) -o $(<D)/runner
	$(Q)tests/scripts/suites.sh $(<D)/runner
## check-dist: programs of the two files with gcc, clang, musl and for ARM; all examples; the archive
check-dist: $(DIST)/normgrad.h $(DIST)/normgrad.c $(DIST)/normgrad-$(VERSION).tar.gz
	+$(Q)tests/scripts/dist.sh $(DIST) $(OUT)/dist
## check-windows: the two files for Windows, by MinGW-w64, run under Wine
MINGW = x86_64-w64-mingw32-gcc-posix
WINE = $(firstword $(shell command -v wine64 wine;) $(wildcard /usr/lib/wine/wine64))
check-windows: $(DIST)/normgrad.h $(DIST)/normgrad.c
	$(call need,command -v $(MINGW),$(MINGW),gcc-mingw-w64-x86-64-posix)
	$(call need,test '$(WINE)',Wine,wine64)
	$(Q)tests/scripts/windows.sh $(DIST) $(OUT)/windows $(MINGW) '$(WINE)'
## tarball: build/dist/normgrad-VERSION.tar.gz, what is committed, without drawn figures
tarball: $(DIST)/normgrad-$(VERSION).tar.gz
	@echo '  $<'
$(DIST)/normgrad-$(VERSION).tar.gz: FORCE | $(DIST)/.
	$(Q)git archive --prefix=normgrad-$(VERSION)/ --output=$@ HEAD

.PHONY: dist check-onefile check-dist check-windows tarball
