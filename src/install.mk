# The reference, and installation. Included by the Makefile.

PREFIX  = /usr/local
LIBDIR  = $(PREFIX)/lib
INCLUDEDIR = $(PREFIX)/include
MANDIR  = $(PREFIX)/share/man
DATADIR = $(PREFIX)/share/normgrad

## docs: the reference, from the headers and pages, in build/docs/html and build/docs/man (Doxygen)
DOCS = $(BUILD)/docs
PAGES := README.md $(wildcard */README.md */*/README.md include/normgrad/CHANGES.md)
docs: needs-doxygen $(DOCS)/man/man3/normgrad.h.3 $(DOCS)/html/index.html
	@echo '  $(DOCS)/html/index.html; man -M $(DOCS)/man ng_layer_norm_new'
# Doxygen ends in an error where a declaration has no comment.
DOXYGEN_SETTINGS = echo 'OUTPUT_DIRECTORY = $(DOCS)'; echo 'PROJECT_NUMBER = $(VERSION)'
$(DOCS)/man/man3/normgrad.h.3: include/normgrad.h $(HEADERS) $$(MPI_HEADER) src/Doxyfile src/doxygen.awk | $(DOCS)/.
	$(Q)rm -rf $(DOCS)/man
	$(Q){ cat src/Doxyfile; $(DOXYGEN_SETTINGS); } | doxygen -
$(DOCS)/html/index.html: include/normgrad.h $(HEADERS) $(PAGES) $(wildcard src/Doxyfile* src/doxygen* plots/*.svg) | $(DOCS)/.
	$(Q)rm -rf $(DOCS)/html
	$(Q){ cat src/Doxyfile src/Doxyfile.html; $(DOXYGEN_SETTINGS); } | doxygen -
	$(Q)cp plots/*.svg $(DOCS)/html
MAN_PAGES = $(if $(shell command -v doxygen;),$(DOCS)/man/man3/normgrad.h.3)
HTML_PAGES = $(MAN_PAGES:$(DOCS)/man/man3/normgrad.h.3=$(DOCS)/html/index.html)

TO = $(DESTDIR)$(LIBDIR)
# $(call put,MODE,FOLDER,FILES)
put = mkdir -p '$(2)'; install -m $(1) $(3) '$(2)'
# The way from where normgrad.pc is to another folder.
FROM_PC = awk 'BEGIN { n = split(ARGV[1], from, "/+"); m = split(ARGV[2], to, "/+"); \
    for (i = 1; i <= n && from[i] == to[i];) i++; \
    for (k = i; k <= n; k++) way = way "../"; for (k = i; k <= m; k++) way = way to[k] "/"; \
    sub("/+$$", "", way); print way }' '$(LIBDIR)/pkgconfig'
# $(call fill,FILE,TO): FILE.in of src/, for the build systems of others, with places and version.
fill = $(Q)mkdir -p '$(2)'; sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
    -e "s|@TO_PREFIX@|$$($(FROM_PC) '$(PREFIX)')|" -e "s|@TO_INCLUDE@|$$($(FROM_PC) '$(INCLUDEDIR)')|" \
    -e 's|@VERSION@|$(VERSION)|' -e 's|@SONAME@|$(SONAME)|' -e 's|@MPI_SONAME@|$(MPI_SONAME)|' \
    -e 's|@SANITIZE@|$(filter -fsanitize%,$(FLAGS.$(VARIANT)))|' -e 's|@LIBS_PRIVATE@|-pthread $(LIBS)|' \
    src/$(1).in > '$(2)/$(1)'; chmod 644 '$(2)/$(1)'
## install: libraries, headers, man pages, data, normgrad.pc and CMake's files to $(DESTDIR)$(PREFIX)
install: $(STATIC) $(SHARED) $(MAN_PAGES) $$(WITH_MPI)
	@for place in '$(LIBDIR)' '$(INCLUDEDIR)' '$(MANDIR)' '$(DATADIR)'; do case $$place in /*) ;; \
	    *) echo "install: PREFIX is to begin with /, and $$place does not" >&2; exit 1;; esac; \
	    mkdir -p "$(DESTDIR)$$place" && [ -w "$(DESTDIR)$$place" ] || { \
	    echo "install: no right to write $(DESTDIR)$$place; make install PREFIX=\$$HOME/.local needs none" >&2; exit 1; }; done
	$(call put,644,$(TO),$(STATIC) $(if $(WITH_MPI),$(MPI_STATIC)))
	$(call put,755,$(TO),$(SHARED) $(if $(WITH_MPI),$(MPI_SHARED)))
	ln -sf $(notdir $(SHARED)) '$(TO)/$(SONAME)'; ln -sf $(notdir $(SHARED)) '$(TO)/$(call dll,libnormgrad)'
	$(if $(WITH_MPI),ln -sf $(notdir $(MPI_SHARED)) '$(TO)/$(MPI_SONAME)'; \
	    ln -sf $(notdir $(MPI_SHARED)) '$(TO)/libnormgrad-mpi.so')
	$(call put,644,$(DESTDIR)$(INCLUDEDIR),include/normgrad.h)
	$(call put,644,$(DESTDIR)$(INCLUDEDIR)/normgrad,$(HEADERS) $(if $(WITH_MPI),$(MPI_HEADER)))
	$(call fill,normgrad.pc,$(TO)/pkgconfig)
	$(if $(WITH_MPI),$(call fill,normgrad-mpi.pc,$(TO)/pkgconfig))
	$(call fill,normgradConfig.cmake,$(TO)/cmake/normgrad)
	$(call fill,normgradConfigVersion.cmake,$(TO)/cmake/normgrad)
	$(call put,644,$(DESTDIR)$(DATADIR)/data,examples/data/*)
	$(if $(MAN_PAGES),$(Q)cd $(DOCS)/man/man3; $(call put,644,$(DESTDIR)$(MANDIR)/man3,*.3),\
	    @echo 'skipped: man pages, for there is no doxygen')
	$(if $(DESTDIR),,@ldconfig 2>/dev/null || true)
## uninstall: what install has put there
uninstall: $(MAN_PAGES)
	rm -f '$(TO)'/libnormgrad*.a '$(TO)'/libnormgrad*.so '$(TO)'/libnormgrad*.so.$(SERIES)* '$(TO)'/libnormgrad*.dylib \
	    '$(TO)'/pkgconfig/normgrad.pc '$(TO)'/pkgconfig/normgrad-mpi.pc '$(DESTDIR)$(INCLUDEDIR)/normgrad.h'
	rm -rf '$(TO)/cmake/normgrad' '$(DESTDIR)$(INCLUDEDIR)/normgrad' '$(DESTDIR)$(DATADIR)'
	$(if $(MAN_PAGES),$(Q)cd $(DOCS)/man/man3; for page in *.3; do rm -f '$(DESTDIR)$(MANDIR)/man3/'"$$page"; done)

.PHONY: docs install uninstall
