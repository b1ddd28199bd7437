# The page that trains in a browser. Included by the Makefile.

PAGE = $(BUILD)/page
# clang with wasi-libc, whose headers are in /usr/include/wasm32-wasi; WASI=/elsewhere for another place.
WASI = /usr
WASM_CC = clang --target=wasm32-wasi -nostdlibinc -isystem $(WASI)/include/wasm32-wasi
WASM_PACKAGES = clang lld wasi-libc libclang-rt-14-dev-wasm32
WASM_FLAGS = -std=c11 -O2 -msimd128 -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror) -DNG_NO_THREADS -DNG_NO_IO \
    -I$(DIST) -I$(PAGE)
WASM_LINK = -L$(WASI)/lib/wasm32-wasi -lm -Wl,-z,stack-size=1048576 -Wl,--strip-all
## page: build/page/index.html, two trainings side by side in a browser (clang and wasi-libc)
page: $(PAGE)/index.html
	@gzip -9c $(PAGE)/page.wasm | wc -c | sed 's|.*|  $<: & bytes of WebAssembly, compressed|'
needs-wasi: $(FIRST)
	$(call need,echo 'int main(void) { return 0; }' | $(WASM_CC) -x c - $(WASM_LINK) -o /dev/null,what compiles to WebAssembly,$(WASM_PACKAGES))
$(PAGE)/digits.h: examples/data/digits.csv | $(PAGE)/.
	$(Q)awk 'BEGIN { print "static const unsigned char digits[][65] = {" } { print "{" $$0 "}," } END { print "};" }' $< >$@
$(PAGE)/normgrad.o: $$(DIST)/normgrad.c $$(DIST)/normgrad.h | $(PAGE)/. needs-wasi
	$(call say,CC   $<)
	$(Q)$(WASM_CC) $(WASM_FLAGS) -c $< -o $@
$(PAGE)/page.wasm: examples/page/page.c $(PAGE)/normgrad.o $(PAGE)/digits.h
	$(Q)$(WASM_CC) -mexec-model=reactor $(WASM_FLAGS) $(filter %.c %.o,$^) $(WASM_LINK) -o $@
# The program stands in the page itself, because a page that is opened as a file may load no other.
$(PAGE)/index.html: examples/page/page.html $(PAGE)/page.wasm
	$(Q)gzip -9nc $(PAGE)/page.wasm | base64 | sed -e '/^@WASM@$$/ { r /dev/stdin' -e 'd; }' $< >$@
# The digests' networks as WebAssembly: with the bits of other processors that do not fuse.
$(PAGE)/digest.wasm: tests/digest/digest.c $(PAGE)/normgrad.o
	$(Q)$(WASM_CC) $(WASM_FLAGS) $^ $(WASM_LINK) -o $@
## check-page: the digests as WebAssembly; the page trains and checks in a browser (Node.js, Chromium)
CHROMIUM = $(firstword $(shell command -v chromium chromium-browser google-chrome;))
check-page: $(PAGE)/index.html $(PAGE)/digest.wasm
	$(call need,command -v node,node,nodejs)
	$(call need,test '$(CHROMIUM)',chromium,chromium)
	$(Q)NORMGRAD_ISA=baseline tests/digest/digest.sh $(PAGE)/digest.wasm node --no-warnings tests/scripts/wasi.mjs
	$(Q)node tests/scripts/page.mjs $(PAGE)/index.html '$(CHROMIUM)'

.PHONY: page check-page needs-wasi
