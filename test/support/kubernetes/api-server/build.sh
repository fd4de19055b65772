#!/usr/bin/env bash
# Builds kube-apiserver: `build.sh 1.35.4 <folder>`. Takes about seven minutes of CPU time, or seconds with a warm cache.
set -euo pipefail
version=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/main.go" "$work"
cd "$work"
export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-mod=mod

# Kubernetes replaces some of its modules with folders of its repository. They are published as v0.<minor>.<patch>.
kubernetes_mod=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
{
  printf 'module frontdesk.test/api-server\n\n%s\n\n' "$(grep '^go ' "$kubernetes_mod")"
  printf 'require k8s.io/kubernetes v%s\n\nreplace (\n' "$version"
  sed -n "s#^\s*\(k8s.io/[a-z-]*\) => ./staging/.*#\t\1 => \1 v0.${version#1.}#p" "$kubernetes_mod"
  echo ')'
} >go.mod
go mod tidy

go build -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$version" -o "$out/kube-apiserver" .
