#!/bin/sh
# assemble.sh ROOT - makes ROOT/opt/callgate into the root of an image: Node beside it, the shared libraries that Node and the
# package's own binaries name, accounts for the two users, and the directories that it writes to.
# Runs in the build stage (Dockerfile), as root.
set -eu
root=$1
cd "$root"

mkdir -p usr/local/bin usr/share/licenses/node etc/callgate etc/ssl/certs run/callgate var/lib/callgate tmp
cp "$(command -v node)" usr/local/bin/node

# Binaries of another C library, or for another Node than this one, are no use here.
find opt/callgate/node_modules -path '*musl*' -name '*.node' -exec rm {} +
abi=$(node -p process.versions.modules)
find opt/callgate/node_modules -name 'node.abi*.node' ! -name "node.abi$abi.*" -exec rm {} +

# Nor are other people's tests.
find opt/callgate/node_modules -type d \( -name test -o -name tests \) -prune -exec rm -r {} +

# Each shared library once, at its own path; the loader with them.
find usr/local/bin opt/callgate/node_modules -type f \( -name node -o -name '*.node' \) -exec ldd {} + |
  sed -n 's/^.*=> \(\/[^ ]*\) .*$/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*$/\1/p' | sort -u |
  while read -r library; do
    mkdir -p ".$(dirname "$library")"
    cp -L "$library" ".$library"
  done

# glibc resolves names by itself, by these.
printf 'passwd: files\ngroup: files\nhosts: files dns\n' >etc/nsswitch.conf
printf 'root:x:0:0:root:/:/nonexistent\ncallgate:x:65532:65532:callgate:/:/nonexistent\n' >etc/passwd
printf 'root:x:0:\ncallgate:x:65532:\n' >etc/group

chmod -R go-w,a+rX .
chown -R 0:0 .
chown 65532:65532 run/callgate var/lib/callgate
chmod 0755 run/callgate
chmod 0700 var/lib/callgate
chmod 1777 tmp

# It works, here and now: both libraries with machine code, loaded by that Node out of that tree.
chroot . /usr/local/bin/node /opt/callgate/dist/bin/callgate.js doctor --json >/tmp/doctor.json || true
node -e '
  const { checks } = JSON.parse(require("node:fs").readFileSync("/tmp/doctor.json", "utf8"));
  const libraries = checks.find(({ check }) => check === "libraries");
  if (libraries.findings.length > 0) { console.error(libraries.findings); process.exit(1); }
  console.log(libraries.summary);'
