// What runs between us and a confined server, as pid 1 of its namespaces: it makes a new /proc, and a new /dev/pts, since
// people's terminals are open to whatever runs as them; covers what is not to be seen, starts the server without
// capabilities once we say so, and ends everything there when the server is over. It keeps its own capabilities in the
// namespace, so the server can't trace it; and what is in a namespace ends with its pid 1, whatever it does.
// Names are ours alone: a server's variables never begin so (environment.ts).

/**
 * Arguments: the program `mount`, directories, `--`, files, `--`, and the words that start the server. Descriptor 3 is the way to us.
 * It says `ready PID` (its own, as we see it) and reads a line; without one nothing is started. At the end it says
 * `end STATUS LEFT`: the server's exit status as a shell has it, and how many processes of its were there still.
 * SIGTERM goes on to the server, to its whole process group. SIGINT ends it and everything.
 */
export const CONFINEMENT_SCRIPT = `
exec 5<&0 6>&1 </dev/null >&2
callgate_finish() {
  if [ -n "$CALLGATE_SERVER" ]; then
    kill -KILL "$CALLGATE_SERVER"
    wait "$CALLGATE_SERVER"
  fi 2>/dev/null
  callgate_end 137
}
callgate_end() {
  CALLGATE_LEFT=-1
  for CALLGATE_ONE in /proc/[0-9]*; do
    while read -r CALLGATE_KEY CALLGATE_VALUE CALLGATE_REST; do
      case $CALLGATE_KEY$CALLGATE_VALUE in
        State:[ZX]) break ;;
        State:*) CALLGATE_LEFT=$((CALLGATE_LEFT + 1)); break ;;
      esac
    done <"$CALLGATE_ONE/status"
  done 2>/dev/null
  echo "end $1 $CALLGATE_LEFT" >&3
  exit
}
CALLGATE_SERVER=
read -r CALLGATE_PID CALLGATE_REST </proc/self/stat || exit
trap callgate_finish INT
CALLGATE_MOUNT=$1
shift
"$CALLGATE_MOUNT" -t proc -o nosuid,nodev,noexec proc /proc || exit
if [ -d /dev/pts ]; then
  "$CALLGATE_MOUNT" -t devpts -o nosuid,noexec,ptmxmode=0666,mode=600 devpts /dev/pts || exit
fi
while [ "$1" != -- ]; do
  "$CALLGATE_MOUNT" -t tmpfs -o ro,nosuid,nodev,noexec,size=4k,mode=755 none "$1" || exit
  shift
done
shift
while [ "$1" != -- ]; do
  "$CALLGATE_MOUNT" --bind /dev/null "$1" || exit
  shift
done
shift
echo "ready $CALLGATE_PID" >&3
read -r CALLGATE_REST <&3 || exit
"$@" <&5 >&6 3<&- 5<&- 6>&- &
CALLGATE_SERVER=$!
exec 5<&- 6>&- >/dev/null 2>&1
trap 'kill -TERM "-$CALLGATE_SERVER" || kill -TERM "$CALLGATE_SERVER"' TERM
while :; do
  wait "$CALLGATE_SERVER"
  CALLGATE_STATUS=$?
  if [ "$CALLGATE_STATUS" -gt 128 ] && kill -0 "$CALLGATE_SERVER"; then continue; fi
  break
done
callgate_end "$CALLGATE_STATUS"
`;
