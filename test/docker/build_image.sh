#!/usr/bin/env bash
# build_image.sh [WORK] - builds the image of the Dockerfile without an engine or a registry of images, with buildah and chroot
# isolation, over a base that debootstrap makes of Debian with Node from npm; then tries it in namespaces (try_image.sh), and where
# an engine can run on this machine on that, with the compose file (try_engine.sh). All of it is below WORK (a temporary directory
# without it), and gone at the end, but for what WORK had: a WORK that is kept makes the next run faster.
# Root, Debian, npm. Exit status 0: built, and every check holds.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
kept=${1:-}
work=${kept:-$(mktemp -d)}
mkdir -p "$work"
work=$(realpath "$work")
store=(--root "$work/storage" --runroot "$work/run" --storage-driver "${STORAGE_DRIVER:-overlay}")
node_major=${NODE_MAJOR:-24}

leave() {
  buildah "${store[@]}" rm --all >/dev/null 2>&1 || true
  umount -l "$work/storage/overlay" 2>/dev/null || true
  rm -f "$work/npmrc"
  [ -n "$kept" ] || rm -rf "$work"
}
trap leave EXIT

tools() {
  local missing=() program
  for program in buildah debootstrap docker-compose; do command -v "$program" >/dev/null || missing+=("$program"); done
  command -v dockerd >/dev/null || missing+=(docker.io)
  [ ${#missing[@]} -eq 0 ] || { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"; }
}

base() { # what docker.io/library/node has, as far as the build needs it: Debian, Node, npm
  local root=$work/base npm
  [ -e "$root/usr/local/bin/npm" ] && return
  rm -rf "$root"
  debootstrap --variant=minbase bookworm "$root" >"$work/debootstrap.log" || { tail "$work/debootstrap.log"; return 1; }
  mkdir -p "$work/node" "$root/usr/local/lib/node_modules"
  (cd "$work/node" && npm init -y >/dev/null && npm install --no-audit --no-fund --ignore-scripts "node-linux-$(node -p process.arch)@$node_major" >/dev/null)
  cp "$work/node/node_modules/node-linux-$(node -p process.arch)/bin/node" "$root/usr/local/bin/node"
  npm=$(dirname "$(dirname "$(realpath "$(command -v npm)")")") # this machine's own
  cp -a "$npm" "$root/usr/local/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
}

base_image() {
  local container
  [ -z "$(buildah "${store[@]}" images -q localhost/node-base 2>/dev/null)" ] || return 0
  container=$(buildah "${store[@]}" from scratch)
  buildah "${store[@]}" copy -q "$container" "$work/base" / >/dev/null
  buildah "${store[@]}" commit -q "$container" localhost/node-base >/dev/null
  buildah "${store[@]}" rm "$container" >/dev/null
}

image() { # HEALTHCHECK is in images of Docker's format only
  cat "${HOME:-/root}/.npmrc" >"$work/npmrc" 2>/dev/null || : >"$work/npmrc"
  chmod 600 "$work/npmrc"
  echo cafile=/etc/ssl/certs/ca-certificates.crt >>"$work/npmrc" # the base has no certificates of its own
  buildah "${store[@]}" bud -q --isolation chroot --format docker --pull-never \
    --volume /etc/ssl/certs:/etc/ssl/certs:ro --secret "id=npmrc,src=$work/npmrc" \
    --build-arg NODE_IMAGE=localhost/node-base --tag callgate "$project"
}

timed() {
  local began=$SECONDS
  "$@"
  printf '%s: %s s\n' "$1" $((SECONDS - began))
}

timed tools
timed base
timed base_image
timed image
container=$(buildah "${store[@]}" from --pull-never localhost/callgate)
root=$(buildah "${store[@]}" mount "$container")
buildah "${store[@]}" inspect --type image --format '{{json .Docker.config}}' localhost/callgate >"$work/config.json" 2>/dev/null ||
  buildah "${store[@]}" inspect --type image localhost/callgate >"$work/config.json"
timed bash "$here/try_image.sh" "$root" "$work/config.json"

rm -f "$work/callgate.tar"
buildah "${store[@]}" push -q localhost/callgate "docker-archive:$work/callgate.tar:callgate:latest"
status=0
bash "$here/try_engine.sh" "$work/callgate.tar" "$work/base" || status=$?
[ "$status" -ne 3 ] || echo 'Not tried: an engine, which cannot run here (see above).'
[ "$status" -eq 0 ] || [ "$status" -eq 3 ]
