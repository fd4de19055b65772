#!/usr/bin/env bash
# Puts the definitions of the Gateway API into a folder: `build.sh <folder>`.
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
export GOTOOLCHAIN=local CGO_ENABLED=0
go mod download sigs.k8s.io/gateway-api
rm -rf "$out/definitions"
cp -r "$(go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)/config/crd/standard" "$out/definitions"
chmod -R u+w "$out/definitions"
