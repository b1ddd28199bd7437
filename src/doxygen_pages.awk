# What Doxygen reads in place of a page in Markdown (src/Doxyfile): headings have GitHub's anchors, and
# links lead to the pages of the reference, to its pictures, or else into the tree.

function without(text, what) { gsub(what, "", text); return text }
function slug(title) { # GitHub's anchor of a heading
    title = tolower(without(title, "[^A-Za-z0-9_ -]"))
    gsub(/ /, "-", title)
    return title
}
function page(path) { # its file in the reference, or ""
    if (path == "README.md") return "index.html"
    if (path ~ /\.md$/) return label(path) ".html"
    if (path !~ /^include\/.*\.h$/) return ""
    sub(/.*\//, "", path)
    gsub(/_/, "__", path)
    sub(/\./, "_8", path)
    return path ".html"
}
function label(path) { sub(/\.md$/, "", path); gsub(/\//, "_", path); return path }
function target(link,    anchor, path) {
    if (link ~ /^[a-z]+:/) return link
    anchor = link ~ /#/ ? link : ""
    sub(/#.*/, "", link)
    sub(/^[^#]*#/, "", anchor)
    path = link == "" ? here : folder link
    while (sub(/[^\/]+\/\.\.\//, "", path)) continue
    if (path ~ /\.(svg|png)$/) return without(path, ".*/")
    if (page(path) != "") return page(path) (anchor == "" ? "" : "#" label(path) "-" anchor)
    return "../../../" path
}

FNR == 1 {
    here = substr(FILENAME, index(FILENAME, ENVIRON["PWD"]) == 1 ? length(ENVIRON["PWD"]) + 2 : 1)
    folder = without(here, "[^/]*$")
}
/^ *```/ { fenced = !fenced }
fenced { print; next }
/^#+ / {
    title = without(without($0, "^#+ "), "`")
    print $0 " {#" (titled++ ? label(here) "-" slug(title) : here == "README.md" ? "mainpage" : label(here)) "}"
    next
}
{
    line = $0
    while (line ~ /\[[^]]*$/ && (getline more) > 0 && more != "") line = line " " more # a link over two lines
    while (match(line, /!?\[[^]]*\]\([^) ]*\)/)) {
        found = substr(line, RSTART, RLENGTH)
        text = link = found
        sub(/^!?\[/, "", text)
        sub(/\]\([^)]*\)$/, "", text)
        sub(/.*\]\(/, "", link)
        sub(/\)$/, "", link)
        line = substr(line, 1, RSTART - 1) (found ~ /^!/ ? \
            "<img src=\"" target(link) "\" alt=\"" text "\"/>" : "<a href=\"" target(link) "\">" text "</a>") \
            substr(line, RSTART + RLENGTH)
    }
    print line
}
