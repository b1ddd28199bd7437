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
$(DOCS)/man/man3/normgrad.h.3: include/normgrad.h $(HEADERS) $$(MPI_HEADER) src/Doxyfile src/doxygen.awk | $(DOCS)/
	$(Q)rm -rf $(DOCS)/man
	$(Q){ cat src/Doxyfile; $(DOXYGEN_SETTINGS); } | doxygen -
$(DOCS)/html/index.html: include/normgrad.h $(HEADERS) $(PAGES) $(wildcard src/Doxyfile* src/doxygen* plots/*.svg) | $(DOCS)/
	$(Q)rm -rf $(DOCS)/html
	$(Q){ cat src/Doxyfile src/Doxyfile.html; $(DOXYGEN_SETTINGS); } | doxygen -
	$(Q)cp plots/*.svg $(DOCS)/html
MAN_PAGES = $(if $(shell command -v doxygen),$(DOCS)/man/man3/normgrad.h.3)
HTML_PAGES = $(MAN_PAGES:$(DOCS)/man/man3/normgrad.h.3=$(DOCS)/html/index.html)

TO = $(DESTDIR)$(LIBDIR)
FROM_PC = realpath -m -s --relative-to='$(LIBDIR)/pkgconfig'
# $(call fill,FILE,TO): FILE.in of src/, for the build systems of others, with places and version.
fill = $(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
    -e "s|@TO_PREFIX@|$$($(FROM_PC) '$(PREFIX)')|" -e "s|@TO_INCLUDE@|$$($(FROM_PC) '$(INCLUDEDIR)')|" \
    -e 's|@VERSION@|$(VERSION)|' -e 's|@SONAME@|$(SONAME)|' -e 's|@MPI_SONAME@|$(MPI_SONAME)|' \
    -e 's|@SANITIZE@|$(filter -fsanitize%,$(FLAGS.$(VARIANT)))|' -e 's|@LIBS_PRIVATE@|-pthread $(LIBS)|' \
    src/$(1).in | install -Dm 644 /dev/stdin '$(2)/$(1)'
## install: libraries, headers, man pages, data, normgrad.pc and CMake's files to $(DESTDIR)$(PREFIX)
install: $(STATIC) $(SHARED) $(MAN_PAGES) $$(WITH_MPI)
	@for place in '$(LIBDIR)' '$(INCLUDEDIR)' '$(MANDIR)' '$(DATADIR)'; do case $$place in /*) ;; \
	    *) echo "install: PREFIX is to begin with /, and $$place does not" >&2; exit 1;; esac; \
	    mkdir -p "$(DESTDIR)$$place" && [ -w "$(DESTDIR)$$place" ] || { \
	    echo "install: no right to write $(DESTDIR)$$place; make install PREFIX=\$$HOME/.local needs none" >&2; exit 1; }; done
	install -Dm 644 -t '$(TO)' $(STATIC) $(if $(WITH_MPI),$(MPI_STATIC))
	install -Dm 755 -t '$(TO)' $(SHARED) $(if $(WITH_MPI),$(MPI_SHARED))
	ln -sf $(notdir $(SHARED)) '$(TO)/$(SONAME)'; ln -sf $(notdir $(SHARED)) '$(TO)/libnormgrad.so'
	$(if $(WITH_MPI),ln -sf $(notdir $(MPI_SHARED)) '$(TO)/$(MPI_SONAME)'; \
	    ln -sf $(notdir $(MPI_SHARED)) '$(TO)/libnormgrad-mpi.so')
	install -Dm 644 -t '$(DESTDIR)$(INCLUDEDIR)' include/normgrad.h
	install -Dm 644 -t '$(DESTDIR)$(INCLUDEDIR)/normgrad' $(HEADERS) $(if $(WITH_MPI),$(MPI_HEADER))
	$(call fill,normgrad.pc,$(TO)/pkgconfig)
	$(if $(WITH_MPI),$(call fill,normgrad-mpi.pc,$(TO)/pkgconfig))
	$(call fill,normgradConfig.cmake,$(TO)/cmake/normgrad)
	$(call fill,normgradConfigVersion.cmake,$(TO)/cmake/normgrad)
	install -Dm 644 -t '$(DESTDIR)$(DATADIR)/data' examples/data/*
	$(if $(MAN_PAGES),$(Q)cd $(DOCS)/man/man3; install -Dm 644 -t '$(DESTDIR)$(MANDIR)/man3' *.3,\
	    @echo 'skipped: man pages, for there is no doxygen')
	$(if $(DESTDIR),,@ldconfig 2>/dev/null || true)
## uninstall: what install has put there
uninstall: $(MAN_PAGES)
	rm -f '$(TO)'/libnormgrad*.a '$(TO)'/libnormgrad*.so '$(TO)'/libnormgrad*.so.$(SERIES)* \
	    '$(TO)'/pkgconfig/normgrad.pc '$(TO)'/pkgconfig/normgrad-mpi.pc '$(DESTDIR)$(INCLUDEDIR)/normgrad.h'
	rm -rf '$(TO)/cmake/normgrad' '$(DESTDIR)$(INCLUDEDIR)/normgrad' '$(DESTDIR)$(DATADIR)'
	$(if $(MAN_PAGES),$(Q)cd $(DOCS)/man/man3; for page in *.3; do rm -f '$(DESTDIR)$(MANDIR)/man3/'"$$page"; done)

.PHONY: docs install uninstall
