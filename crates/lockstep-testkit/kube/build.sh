#!/bin/sh
# Builds a real Kubernetes control plane from Go's modules, once: build.sh FOLDER [PART...].
#
# Parts: etcd, apiserver, controller-manager, kuberay (with the CRDs beside it, in crds/). Each is one program
# in FOLDER; one that is there is left as it is. Needs Go (https://go.dev), and apt-get for Debian's etcd where none is installed.
set -eu

KUBERNETES=1.36.4
# Meant is 1.7.0. When this was written, Go's proxy answered 403 for that version, and the newest that it served was
# 1.6.2; what runs here is written to kuberay.version, and the tests print it.
KUBERAY=${LOCKSTEP_KUBERAY:-1.6.2}

folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- etcd apiserver controller-manager kuberay

PATH=$PATH:/usr/local/go/bin
export PATH GOFLAGS=-buildvcs=false CGO_ENABLED=0
command -v go > /dev/null || { echo "go is missing: the control plane is built with it (https://go.dev)" >&2; exit 1; }

work=$folder/work
mkdir -p "$work"

# Kubernetes cannot be installed by `go install`: its go.mod points at folders of its own repository. A module that
# replaces each of them by the version that was published under the same number can be built.
kubernetes_module() {
    [ -e "$work/kubernetes/go.mod" ] && return
    rm -rf "$work/kubernetes.new" && mkdir "$work/kubernetes.new"
    cd "$work/kubernetes.new"
    go mod download "k8s.io/kubernetes@v$KUBERNETES"
    theirs=$(go env GOMODCACHE)/k8s.io/kubernetes@v$KUBERNETES/go.mod
    staging=v0.${KUBERNETES#1.}
    {
        echo "module lockstep.dev/kubernetes"
        sed -n '/^go /p; /^godebug/,/^)/p' "$theirs"
        echo "require k8s.io/kubernetes v$KUBERNETES"
        sed -n "s|^[[:space:]]*\(k8s.io/[a-z0-9-]*\) => \./staging/.*|replace \1 => \1 $staging|p" "$theirs"
    } > go.mod
    cat > tools.go <<'GO'
//go:build tools

package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
GO
    # Their go.mod names every version that theirs was tested with; without it, others would be chosen.
    sed -n '/^require (/,/^)/p' "$theirs" | grep -v 'k8s.io/[a-z0-9-]* v0.0.0' >> go.mod
    go mod tidy
    cd "$work" && mv kubernetes.new kubernetes
}

for part; do
    [ -x "$folder/$part" ] && continue
    case $part in
    apiserver | controller-manager)
        kubernetes_module
        cd "$work/kubernetes"
        version=k8s.io/component-base/version
        go build -trimpath -o "$folder/$part.new" -ldflags "-s -w -X $version.gitVersion=v$KUBERNETES \
            -X $version.gitMajor=1 -X $version.gitMinor=36 -X $version.gitTreeState=clean" \
            "k8s.io/kubernetes/cmd/kube-$part"
        ;;
    kuberay)
        module=github.com/ray-project/kuberay/ray-operator
        rm -rf "$work/kuberay" && mkdir "$work/kuberay"
        cd "$work/kuberay"
        go mod download "$module@v$KUBERAY"
        # A copy: the module's own folder is read-only, and its go.mod and go.sum say all that is needed.
        cp -r "$(go env GOMODCACHE)/$module@v$KUBERAY/." . && chmod -R u+w .
        go build -trimpath -ldflags "-s -w" -o "$folder/kuberay.new" .
        rm -rf "$folder/crds" && mkdir "$folder/crds"
        cp config/crd/bases/*.yaml "$folder/crds/"
        echo "$KUBERAY" > "$folder/kuberay.version"
        ;;
    etcd)
        if ! command -v etcd > /dev/null; then
            # The package would start a server of its own; its program is all that is wanted.
            cd "$work" && apt-get download etcd-server > /dev/null
            dpkg-deb -x etcd-server_*.deb etcd-package
            cp etcd-package/usr/bin/etcd "$folder/etcd.new"
        else
            cp "$(command -v etcd)" "$folder/etcd.new"
        fi
        ;;
    *)
        echo "no such part: $part" >&2
        exit 2
        ;;
    esac
    mv "$folder/$part.new" "$folder/$part"
done
