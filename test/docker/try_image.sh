#!/usr/bin/env bash
# try_image.sh ROOT CONFIG - runs an image without an engine: ROOT is its file system, CONFIG what buildah inspects of it (JSON).
# Each service of examples/docker/compose.yaml gets namespaces of its own (mounts, processes, network), the image as a read-only
# root, its user and groups, no capabilities and no new privileges, as an engine would give them. Needs root and util-linux.
set -uo pipefail
image=$1 config=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
services=()

leave() {
  local pid
  for pid in "${services[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  wait 2>/dev/null
  rm -rf "$work"
}
trap leave EXIT

. "$here/checks.sh"

setting() { # EXPRESSION over `config`, as JSON
  node -p "const all = JSON.parse(require('fs').readFileSync('$config', 'utf8')); const config = all.Docker?.config ?? all; JSON.stringify($1)"
}

# --- what the image is

entry=(/usr/local/bin/node /opt/callgate/dist/bin/callgate.js)
is() { [ "$(setting "$1")" = "$2" ] || { setting "$1"; return 1; }; }
check 'it runs as a user of its own, not as root' is config.User '"65532:65532"'
check 'its entry point is the program itself, without a shell' is config.Entrypoint '["/usr/local/bin/node","/opt/callgate/dist/bin/callgate.js"]'
check 'its health check is the command line, without a shell' is 'config.Healthcheck.Test' '["CMD","/usr/local/bin/node","/opt/callgate/dist/bin/callgate.js","status","--json"]'
check 'there is no shell, and no program but Node' bash -c "! find '$image' -type f -perm /111 ! -name '*.so*' ! -name '*.node' ! -path '*/opt/callgate/*' ! -path '*/usr/local/bin/node' | grep . && ! find '$image' -name sh -o -name bash -o -name busybox | grep ."
check 'nothing in it gains privileges' bash -c "! find '$image' -type f -perm /6000 | grep ."
check 'nothing in it can be written by others, but /tmp' bash -c "! find '$image' ! -type l -perm /022 ! -path '$image/tmp' | grep ."
check 'what its user owns is two directories' test "$(cd "$image" && find . -uid 65532 | sort | tr '\n' ' ')" = './run/callgate ./var/lib/callgate '
check 'no install script, test or secret came along' bash -c "! find '$image/opt/callgate' -name '*.test.*' -o -name '.npmrc' -o -name '*.secret' | grep ."

# --- running it

mkdir -p "$work"/{sockets,state,docs,etc}
chown 65532:65532 "$work/sockets" "$work/state"
chmod 0755 "$work/sockets" && chmod 0700 "$work/state" && chmod 0755 "$work"
cp "$here/../../examples/docker/callgate.toml" "$work/etc/callgate.toml"
chmod 0644 "$work/etc/callgate.toml"
echo 'The release is planned for Friday.' >"$work/docs/plan.txt"
chown -R 10002:10002 "$work/docs"

inside() { # the first process of its namespaces: mounts, then becomes the service
  mount --make-rprivate /
  mount --bind "$image" "$image" && mount -o remount,bind,ro "$image"
  local pair from to how
  for pair in "${mounts[@]}"; do
    IFS=: read -r from to how <<<"$pair"
    mount --bind "$from" "$image$to"
    [ -z "$how" ] || mount -o "remount,bind,$how" "$image$to"
  done
  mount -t proc proc "$image/proc"
  mount -t tmpfs -o mode=0755 tmpfs "$image/dev"
  local name
  for name in null zero random urandom; do touch "$image/dev/$name" && mount --bind "/dev/$name" "$image/dev/$name"; done
  exec setpriv --no-new-privs chroot --userspec="$user" --groups="$groups" "$image" "${command[@]}"
}
export -f inside

service() { # NAME: `user`, `groups`, `mounts` and `command` say how; its first process is in first_NAME, outside's number
  local name=$1 child pair script
  for pair in "${mounts[@]}" :/proc :/dev; do mkdir -p "$image$(cut -d: -f2 <<<"$pair")"; done # an engine makes what is mounted on
  script="image=$(printf %q "$image") user=$user groups=$groups mounts=($(printf '%q ' "${mounts[@]}")) command=($(printf '%q ' "${command[@]}")); inside"
  unshare --mount --pid --net --ipc --uts --fork --kill-child bash -c "$script" >"$work/$name.log" 2>"$work/$name.err" &
  services+=($!)
  printf -v "outer_$name" %s $!
  until child=$(cat "/proc/$!/task/$!/children" 2>/dev/null) && [ -n "$child" ]; do
    kill -0 $! 2>/dev/null || return 1
    sleep 0.1
  done
  printf -v "first_$name" %s "${child% }"
}

awaits() { # NAME TEXT: until the service says so, or is gone
  local outer=outer_$1
  until grep -q "$2" "$work/$1.log" "$work/$1.err" 2>/dev/null; do
    kill -0 "${!outer}" 2>/dev/null || { cat "$work/$1.log" "$work/$1.err"; return 1; }
    sleep 0.1
  done
}

within() { # PID USER GROUP COMMAND...: beside a service, in its namespaces
  local pid=$1 uid=$2 gid=$3
  shift 3
  nsenter --target "$pid" --mount --net --ipc --pid --root --wd --setuid "$uid" --setgid "$gid" "$@"
}

user=65532:65532 groups=10001,10002,10003
mounts=("$work/sockets:/run/callgate" "$work/state:/var/lib/callgate" "$work/etc:/etc/callgate")
command=("${entry[@]}" serve --config /etc/callgate/callgate.toml)
check 'the broker is ready, with a read-only root and no capabilities' eval 'service broker && awaits broker daemon.ready'

status_of() { grep -E "^$1:" "/proc/$first_broker/status" | tr -s '\t ' ' '; }
check 'it is process 1 of its container' bash -c "grep -q 'NSpid:.*[[:space:]]1\$' /proc/$first_broker/status"
check 'it has no capability' test "$(status_of CapEff)" = 'CapEff: 0000000000000000'
check 'it can gain none' test "$(status_of NoNewPrivs)" = 'NoNewPrivs: 1'
check 'it sees no network but its own loopback' test "$(within "$first_broker" 65532 65532 "${entry[0]}" -p 'Object.keys(require("os").networkInterfaces()).filter((name) => name !== "lo").length')" = 0
check 'nothing can be written beside its two directories' within "$first_broker" 65532 65532 "${entry[0]}" -e '
  const { writeFileSync } = require("fs");
  for (const path of ["/x", "/etc/callgate.toml", "/opt/callgate/x", "/tmp/x"])
    try { writeFileSync(path, ""); console.log(path); process.exit(1); } catch (error) { if (error.code !== "EROFS") { console.log(error.code); process.exit(1); } }'
health() { within "$first_broker" 65532 65532 "${entry[@]}" status --json --socket /run/callgate/health.sock; }
check 'its health check holds' health
check 'its own doctor finds no error' within "$first_broker" 65532 65532 "${entry[@]}" doctor --config /etc/callgate/callgate.toml --socket /run/callgate/health.sock

user=10002:10002 groups=10002
mounts=("$work/sockets:/run/callgate:ro" "$work/docs:/srv/docs")
command=("${entry[@]}" role files --socket /run/callgate/files.sock --root internal,trusted,rw:/srv/docs)
check 'the provider of files serves, without a network' eval 'service files && awaits files serving'

agent() { # in namespaces of its own each time, as an agent's container would be
  user=10001:10001 groups=10001
  mounts=("$work/sockets:/run/callgate:ro")
  command=("${entry[@]}" "$@")
  service agent && wait "$outer_agent"
  local status=$?
  cat "$work/agent.log" "$work/agent.err"
  return $status
}
check 'the agent reads through its socket' eval 'agent call read_file "{\"path\":\"/srv/docs/plan.txt\"}" --socket /run/callgate/agent.sock | grep Friday'
check 'the agent can open no socket but its own' eval '! agent status --socket /run/callgate/operator.sock && grep EACCES "$work/agent.err"'
check 'the agent sees none of the documents' bash -c "! test -e '$image/srv/docs/plan.txt'"

operator() { within "$first_broker" 1000 10003 "${entry[@]}" "$@" --socket /run/callgate/operator.sock; }
written() { # asked by the agent, answered by the operator, who sees whose question it is
  user=10001:10001 groups=10001
  mounts=("$work/sockets:/run/callgate:ro")
  command=("${entry[@]}" call write_file '{"path":"/srv/docs/new.txt","content":"so be it"}' --socket /run/callgate/agent.sock)
  service writer && awaits writer 'waiting for a person' || return 1
  local id
  operator approvals list --json >"$work/list.json" || return 1
  id=$(node -p "const [one] = JSON.parse(require('fs').readFileSync('$work/list.json', 'utf8')).approvals; if (one.uid !== 10001) throw one; one.approval")
  operator approvals approve "$id" --yes && wait "$outer_writer" && grep 'so be it' "$work/docs/new.txt"
}
check 'a write waits for the operator, whom the kernel tells who asks' written

stopped() { # NAME: SIGTERM to the first process, as an engine sends it
  local outer=outer_$1 first=first_$1
  kill -TERM "${!first}" && wait "${!outer}"
}
check 'the provider ends at SIGTERM' stopped files
check 'the broker ends at SIGTERM with status 0' stopped broker
check 'it told of every end in its log' grep -q '"daemon.stopped"' "$work/broker.log"
user=65532:65532 groups=65532
mounts=("$work/sockets:/run/callgate:ro")
command=("${entry[@]}" status --json --socket /run/callgate/health.sock)
check 'then the health check fails' eval 'service late; ! wait "$outer_late"'

tally
