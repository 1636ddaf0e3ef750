#!/usr/bin/env python3
"""Turns the documents into a site: `make book`.

mdBook wants all pages below one folder, with their list at its top. So what git knows is laid out as it lies in the
repository, and docs/SUMMARY.md, whose links begin at docs/, is put above it. At the end every link of the site is
followed: one that leads nowhere is an error.
"""

import argparse
import os
import posixpath
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
# What pages may link to.
LINKED = ["*.md", "*.py", "LICENSE-*", "docs", "examples", "deploy"]


def lay_out(folder):
    """Copies what the site may link to, and the list of pages."""
    shutil.rmtree(folder, ignore_errors=True)
    listed = ["git", "ls-files", "-z", "--", *LINKED]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        target = folder / "src" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    shutil.copyfile(ROOT / "docs/book.toml", folder / "book.toml")
    summary = (ROOT / "docs/SUMMARY.md").read_text()

    def from_the_top(link):
        return f"]({posixpath.normpath('docs/' + link.group(1))})"

    (folder / "src/SUMMARY.md").write_text(re.sub(r"\]\(([^)]+)\)", from_the_top, summary))


class Links(HTMLParser):
    """What a page links to and shows, and the places in it that others may link to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key == "id":
                self.places.add(value)
            if value and ((tag == "a" and key == "href") or (tag == "img" and key == "src")):
                self.links.append(value)


def broken(site):
    """Links of the site that lead nowhere."""
    pages = {path: Links(path.read_text()) for path in site.rglob("*.html")}
    for path, page in pages.items():
        # mdBook's own for missing pages and for print, whose links are those of others.
        if path.name in {"404.html", "print.html", "toc.html"}:
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path if not parts.path else Path(os.path.normpath(path.parent / unquote(parts.path)))
            if target.is_dir():
                # A folder of the repository has no page of its own.
                continue
            if not target.exists():
                yield f"{path.relative_to(site)}: {link} is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{path.relative_to(site)}: {link}: the page has no such place"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mdbook", required=True, help="the program mdbook")
    parser.add_argument("--out", type=Path, required=True, help="folder of the site")
    args = parser.parse_args()
    laid_out = args.out.resolve().with_name("book-source")
    lay_out(laid_out)
    subprocess.run([args.mdbook, "build", laid_out, "--dest-dir", args.out.resolve()], check=True)
    for page in laid_out.glob("src/**/README.md"):
        # mdBook calls its page index.html, but does not change links to it.
        index = args.out.resolve() / page.relative_to(laid_out / "src").with_name("index.html")
        if index.exists():
            shutil.copyfile(index, index.with_name("README.html"))
    wrong = sorted(set(broken(args.out.resolve())))
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{args.out}/index.html")


if __name__ == "__main__":
    main()
