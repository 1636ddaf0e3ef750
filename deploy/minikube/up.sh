#!/bin/sh
# A cluster on this machine with the image in it and a volume for runs: deploy/minikube/up.sh.
#
# Needs minikube and kubectl, and an image: `make image`.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
image=${LOCKSTEP_IMAGE:-$here/../../target/image/lockstep.tar}
for program in minikube kubectl; do
    command -v "$program" > /dev/null || { echo "$program is missing" >&2; exit 1; }
done
[ -e "$image" ] || { echo "$image is missing: make image" >&2; exit 1; }

# Calico heeds NetworkPolicies; minikube's own network accepts them and does nothing.
minikube start --cpus "${CPUS:-4}" --memory "${MEMORY:-6g}" --cni calico
minikube image load "$image"
kubectl apply -f "$here/volume.yaml"
echo "up. Next: lockstep submit deploy/minikube/job.toml --to kube; when you are done: minikube delete"
