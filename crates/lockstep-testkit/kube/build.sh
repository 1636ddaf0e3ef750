#!/bin/sh
# Builds a real Kubernetes control plane from Go's modules, each part once: build.sh CACHE PART...
#
# Parts: etcd, apiserver, controller-manager, scheduler, kuberay (with the CRDs beside it, in crds/). They lie in a folder of
# CACHE for each version, which is printed; one that is there is left as it is. Needs Go (https://go.dev), and apt-get
# for Debian's etcd where none is installed.
#
# LOCKSTEP_KUBERNETES and LOCKSTEP_KUBERAY name other versions. LOCKSTEP_KUBERAY_SOURCE names a folder with KubeRay's
# sources, which the operator is built from instead: Go's proxy refuses some versions of KubeRay's own module, and not the
# modules that it needs.
set -eu

KUBERNETES=${LOCKSTEP_KUBERNETES:-1.37.1}
KUBERAY=${LOCKSTEP_KUBERAY:-1.6.2}
SOURCE=${LOCKSTEP_KUBERAY_SOURCE:-}
[ -z "$SOURCE" ] || SOURCE=$(cd "$SOURCE" && pwd)

cache=$(mkdir -p "$1" && cd "$1" && pwd)
shift

PATH=$PATH:/usr/local/go/bin
export PATH GOFLAGS=-buildvcs=false CGO_ENABLED=0
command -v go > /dev/null || { echo "go is missing: the control plane is built with it (https://go.dev)" >&2; exit 1; }

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
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
GO
    # Their go.mod names every version that theirs was tested with; without it, others would be chosen.
    sed -n '/^require (/,/^)/p' "$theirs" | grep -v 'k8s.io/[a-z0-9-]* v0.0.0' >> go.mod
    go mod tidy
    cd "$work" && mv kubernetes.new kubernetes
}

# The operator's sources, in the current folder, and what they are in `version`.
kuberay_sources() {
    module=github.com/ray-project/kuberay/ray-operator
    if [ -n "$SOURCE" ]; then
        cd "$SOURCE"
        [ ! -d ray-operator ] || cd ray-operator
        grep -qx "module $module" go.mod 2> /dev/null || {
            echo "LOCKSTEP_KUBERAY_SOURCE: $PWD has no go.mod of $module; the root of KubeRay's repository is meant" >&2
            exit 1
        }
        version=$(sed -n 's/.*KUBERAY_VERSION *= *"v\{0,1\}\([^"]*\)".*/\1/p' controllers/ray/utils/constant.go)
        version="$version, from its source"
        return
    fi
    version=$KUBERAY
    rm -rf "$work/kuberay" && mkdir "$work/kuberay"
    cd "$work/kuberay"
    go mod download "$module@v$KUBERAY"
    # A copy: the module's own folder is read-only, and its go.mod and go.sum say all that is needed.
    cp -r "$(go env GOMODCACHE)/$module@v$KUBERAY/." . && chmod -R u+w .
}

for part; do
    case $part in
    kuberay) name=kuberay-$KUBERAY ;;
    *) name=kube-$KUBERNETES ;;
    esac
    [ "$part" != kuberay ] || [ -z "$SOURCE" ] || name=kuberay-source
    folder=$cache/$name
    work=$folder/work
    mkdir -p "$work"
    # What others build in this folder is waited for.
    exec 9> "$folder.lock"
    flock 9
    # Sources may be others than last time. If they are not, Go has little to do.
    if [ -x "$folder/$part" ] && { [ "$part" != kuberay ] || [ -z "$SOURCE" ]; }; then
        continue
    fi
    case $part in
    apiserver | controller-manager | scheduler)
        kubernetes_module
        cd "$work/kubernetes"
        version=k8s.io/component-base/version
        minor=${KUBERNETES#1.}
        go build -trimpath -o "$folder/$part.new" -ldflags "-s -w -X $version.gitVersion=v$KUBERNETES \
            -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*} -X $version.gitTreeState=clean" \
            "k8s.io/kubernetes/cmd/kube-$part"
        ;;
    kuberay)
        kuberay_sources
        go build -trimpath -ldflags "-s -w" -o "$folder/kuberay.new" .
        rm -rf "$folder/crds" && mkdir "$folder/crds"
        cp config/crd/bases/*.yaml "$folder/crds/"
        echo "$version" > "$folder/kuberay.version"
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
echo "$folder"
