#!/usr/bin/env bash
# try_engine.sh ARCHIVE BASE - runs the image of ARCHIVE (`docker save`) and examples/docker/compose.yaml on a real engine: a dockerd
# of its own, with all its files in a temporary directory and no bridge, ended at the end. BASE: a root with Node and a shell, for
# what is built upon the image. Needs root, dockerd and docker-compose. Exit status 3: no engine can run here (it says why).
set -uo pipefail
archive=$(realpath "$1") base=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
export DOCKER_HOST=unix://$work/docker.sock COMPOSE_PROJECT_NAME=callgate OPERATOR_UID=1000
engine=

leave() {
  docker ps -aq 2>/dev/null | xargs -r docker rm -f >/dev/null 2>&1
  if [ -n "$engine" ]; then kill "$engine" && wait "$engine"; fi 2>/dev/null
  umount -l "$work"/data/overlay2/*/merged "$work"/exec/netns/* 2>/dev/null
  rm -rf "$work"
}
trap leave EXIT

. "$here/checks.sh"

chmod 0711 "$work"
dockerd --data-root "$work/data" --exec-root "$work/exec" --host "$DOCKER_HOST" --pidfile "$work/pid" \
  --bridge=none --iptables=false --ip6tables=false >"$work/dockerd.log" 2>&1 &
engine=$!
until docker info >/dev/null 2>&1; do
  kill -0 "$engine" 2>/dev/null || { tail -n 3 "$work/dockerd.log"; exit 3; }
  sleep 0.2
done
docker load -q -i "$archive" >/dev/null || exit 1

cp -a "$project/examples" "$work/examples"
cd "$work/examples/docker" || exit 1
mkdir docs && echo 'The release is planned for Friday.' >docs/plan.txt
chown -R 10002:10002 docs
chown root:root callgate.toml && chmod 0644 callgate.toml
compose() { docker-compose "$@"; }
of() { docker inspect --format "$2" "$(compose ps -aq "$1" 2>/dev/null || compose ps -q "$1")"; }
until_() { # TIMES COMMAND...: until it holds; what another machine's engine does can't be awaited
  local left=$1
  shift
  until "$@"; do
    [ $((left -= 1)) -gt 0 ] || return 1
    sleep 0.2
  done
}

check 'the compose file is one' compose config -q
check 'its services start, the others once the broker answers' compose up --no-build -d
check 'the engine finds the broker healthy' test "$(of broker '{{.State.Health.Status}}')" = healthy
done_agent() { [ "$(of agent '{{.State.Status}}')" = exited ]; }
read_agent() { until_ 300 done_agent && docker logs "$(compose ps -aq agent)" 2>/dev/null | grep plan.txt; }
check 'the agent, without a network, has its listing through its socket' read_agent

agent() { docker run --rm --read-only --network none --cap-drop ALL --user "${as:-10001:10001}" --volume callgate_sockets:/run/callgate:ro callgate "$@"; }
refused() { ! agent status --socket /run/callgate/operator.sock >"$work/refused" 2>&1 && grep EACCES "$work/refused"; }
check 'the agent can open no socket but its own' refused
operator() { as=1000:10003 agent "$@" --socket /run/callgate/operator.sock; }
asked() { operator approvals list --json >"$work/list.json" && grep -q '"uid":10001' "$work/list.json"; }
written() {
  agent call write_file '{"path":"/srv/docs/new.txt","content":"so be it"}' --socket /run/callgate/agent.sock >"$work/write.log" 2>&1 &
  local writer=$! id
  until_ 20 asked || return 1
  id=$(node -p "JSON.parse(require('fs').readFileSync('$work/list.json', 'utf8')).approvals[0].approval")
  operator approvals approve "$id" --yes && wait "$writer" && grep 'so be it' docs/new.txt
}
check 'a write waits for the operator, whom the kernel tells who asks' written

console_link() { docker logs "$(compose ps -q console)" 2>/dev/null | grep -o 'http://127.0.0.1:[0-9]*/' | head -n 1; }
get() { # UID: the status of the console's page for that user of the host
  setpriv --reuid "$1" --regid "$1" --clear-groups "$(command -v node)" -e "fetch('$(console_link)').then((r) => console.log(r.status), (e) => console.log(e.cause?.code ?? e.code))"
}
linked() { [ -n "$(console_link)" ]; }
check 'the console has a link' until_ 300 linked
check 'it serves the operator on the host' test "$(get 1000)" = 200
check 'and nobody else there' test "$(get 10001)" != 200

killed() { # kill -9, as the kernel's want of memory does it
  local before
  before=$(of broker '{{.State.Pid}}')
  kill -KILL "$before"
  restarted() { local now; now=$(of broker '{{.State.Pid}}') && [ "$now" != 0 ] && [ "$now" != "$before" ]; }
  until_ 300 restarted
}
check 'a broker that is killed is started again' killed
again() { agent call read_file '{"path":"/srv/docs/plan.txt"}' --session again --socket /run/callgate/agent.sock >"$work/again" 2>&1 && grep Friday "$work/again"; }
check 'and has its providers back, without anybody doing anything' until_ 20 again
check 'what it remembers is there' bash -c "docker run --rm --user 1000:10003 --volume callgate_sockets:/run/callgate:ro callgate calls list --json --socket /run/callgate/operator.sock | grep write_file"

server() { # a server of MCP in a container of its own, which is what confines it; it has to be accepted first
  cat >>callgate.toml <<'TOML'

[roles.memory]
users = [10004]
group = 10004
provides = ["memory."]
connections = 1

[[grants]]
id = "memory-announces"
role = "memory"
tools = ["callgate.tools.announce"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true

[[grants]]
id = "agent-remembers"
role = "agent"
tools = ["memory.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
TOML
  sed -i 's/"10001", "10002", "10003"/"10001", "10002", "10003", "10004"/' compose.yaml
  compose up --no-build -d broker && until_ 300 healthy
}
healthy() { [ "$(of broker '{{.State.Health.Status}}')" = healthy ]; }
check 'the broker comes up again with another config' server
provide() { # IMAGE OPTION...: the server of MCP in a container of its own
  local image=$1
  shift
  timeout 60 docker run --init --read-only --tmpfs /tmp --network none --cap-drop ALL --security-opt no-new-privileges:true --user 10004:10004 \
    --volume callgate_sockets:/run/callgate:ro --volume "$project/node_modules:/srv/node_modules:ro" "$@" \
    "$image" mcp provide "${how[@]}" --prefix memory. --socket /run/callgate/memory.sock --env MEMORY_FILE_PATH=/tmp/memory.json -- \
    /usr/local/bin/node /srv/node_modules/@modelcontextprotocol/server-memory/dist/index.js
}
how=(--unconfined)
without_shell() { ! provide callgate --rm >"$work/none" 2>&1 && grep 'there is no sh here' "$work/none"; }
check 'the image alone, which has no shell, says why it starts no server' without_shell
derived() { # as docs/docker.md has it, by hand, as not every engine has a builder
  local from with
  tar -C "$base" -c . | docker import - base >/dev/null && from=$(docker create callgate) && with=$(docker create base true) &&
    docker cp "$from:/opt/callgate" - | docker cp - "$with:/opt" &&
    docker commit --change 'ENTRYPOINT ["/usr/local/bin/node", "/opt/callgate/dist/bin/callgate.js"]' "$with" memory >/dev/null
}
check 'an image with a shell takes the package from it' derived
how=()
unconfinable() { ! provide memory --rm >"$work/none" 2>&1 && grep 'With --unconfined' "$work/none"; }
check 'where the engine forbids namespaces it says so' unconfinable
how=(--unconfined)
provide memory -d --name memory >/dev/null
announced() { operator tools list --prefix memory. --json >"$work/tools.json" 2>&1 && grep -q memory.read_graph "$work/tools.json"; }
check 'a server of MCP in a container announces its tools' eval 'until_ 20 announced || { docker logs memory; compose logs --tail 20 broker; cat "$work/tools.json"; false; }'
unaccepted() { ! agent call memory.read_graph '{}' --socket /run/callgate/agent.sock >"$work/graph" 2>&1 && grep 'not in service' "$work/graph" || { cat "$work/graph"; false; }; }
check 'which are out of service until the operator has looked at them' unaccepted
accepted() {
  operator tools diff 'memory.*' --json >"$work/diff.json" &&
    operator tools accept 'memory.*' "$(tail -n 1 "$work/diff.json" | node -p "JSON.parse(require('fs').readFileSync(0, 'utf8')).digest")"
}
check 'who accepts them' accepted
remembered() { agent call memory.read_graph '{}' --socket /run/callgate/agent.sock >"$work/graph" 2>&1; grep entities "$work/graph"; }
check 'and then one is called' until_ 20 remembered

ended() { docker stop memory >/dev/null && compose stop && [ "$(of broker '{{.State.ExitCode}}')" = 0 ]; }
check 'all of them end when they are told to, the broker with status 0' ended

tally
