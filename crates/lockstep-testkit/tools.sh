#!/bin/sh
# Brings what tests need of the system and cannot bring themselves: Node, and Chromium for the dashboard's pages.
# As root on a Debian, packages are installed with apt-get. Anybody else is told which packages are missing; the tests
# that need them then say that they were skipped.
set -eu

missing=""
has() { command -v "$1" > /dev/null 2>&1; }
has node || missing="$missing nodejs"
has npm || missing="$missing npm"
has chromium || has chromium-browser || has google-chrome || has chrome || missing="$missing chromium"

if [ -z "$missing" ]; then
    echo "Node and Chromium are installed"
elif [ "$(id -u)" = 0 ] && has apt-get; then
    echo "installing for tests, with apt-get:$missing"
    export DEBIAN_FRONTEND=noninteractive
    # The lists of packages may be missing or old.
    install() { apt-get install --yes --quiet --no-install-recommends $missing > /dev/null; }
    install || { apt-get update --quiet > /dev/null && install; }
else
    echo "missing, so tests that need them will be skipped:$missing"
    echo "on Debian: sudo apt-get install$missing"
fi
