package training

import (
	"slices"
	"strings"
)

// processCommand is how a container starts its program: argv as it is, with
// nothing around it, or a script under a shell that passes signals on. Where the
// run has earlier attempts, a shell first adds them to ATTEMPT, which Kubernetes
// can count and not add to; the program takes the shell's place. The image's own
// command is not known, and cannot be started so.
func processCommand(later bool, shell string, command, args []string) (argv, rest []string) {
	switch {
	case shell != "" && later:
		return ShellCommand(addAttempts + "\n" + shell), nil
	case shell != "":
		return ShellCommand(shell), nil
	case later && len(command) > 0:
		return append([]string{"/bin/sh", "-c", verbatim(execute), "sh"}, command...), args
	}
	return command, args
}

// AsWritten is what the user wrote of how a container starts: its command with
// the arguments, or its script.
func AsWritten(command, args []string) (argv []string, script string) {
	switch n := len(command); {
	case n == 6 && command[2] == verbatim(pickShell) && command[4] == verbatim(supervisor):
		script = strings.ReplaceAll(command[5], "$$", "$") // as a kubelet does
		return nil, strings.TrimPrefix(script, addAttempts+"\n")
	case n > 4 && command[2] == verbatim(execute):
		command = command[4:]
	}
	return append(slices.Clone(command), args...), ""
}

// addAttempts makes ATTEMPT count over all jobs of a run.
const addAttempts = EnvAttempt + "=$((" + EnvAttempt + " + " + EnvFirstAttempt + ")); export " + EnvAttempt

// execute is what comes before a command of a later job.
const execute = addAttempts + `; exec "$@"`

// ShellCommand is the command line of a container that runs a shell script:
// by bash where the image has it, else by its sh, with pipefail. A shell that
// does not know pipefail refuses scripts with a pipe, by exit code 2: a failure
// in it would be lost. The exit code is the script's.
//
// A container runtime signals the first process of a container only, and a
// shell that waits for a command neither dies of SIGTERM nor passes it on. So
// the script runs in a shell of its own, and the one above passes the signal to
// the script's processes and stays until they have ended, since its own end
// would be theirs.
func ShellCommand(script string) []string {
	return []string{"/bin/sh", "-c", verbatim(pickShell), "sh", verbatim(supervisor), verbatim(script)}
}

// verbatim escapes what a kubelet would expand in a command: $(NAME), and $$,
// which it makes one.
func verbatim(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(s[i])
		if s[i] == '$' && i+1 < len(s) && (s[i+1] == '$' || s[i+1] == '(') {
			b.WriteByte('$')
		}
	}
	return b.String()
}

// pickShell replaces itself by the shell that runs the supervisor, $1, on the
// script, $2.
const pickShell = `s=$(command -v bash || command -v sh) && exec "$s" -c "$1" "$s" "$2"`

// supervisor runs the script, $1, by the shell $0. It needs a POSIX shell, kill
// and sleep, and /proc.
//
// A script that is told to end does not begin its next command; when the one
// that ran ended well, the script has still not done its part, which is 143.
//
// Every process of the group gets SIGTERM once, but one that reads a pipe only
// when nobody writes to that pipe any more and it had time to read the rest:
// in `train | tee log` the log is to take what train says at the end.
//
// The trap itself does the work: a signal may come at any moment, also just
// before the shell begins to wait.
var supervisor = strings.TrimSpace(`
stop=
group_of() {
  { IFS= read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${line##*) }
  case $1 in Z|X) return 1 ;; esac
  group=$3
}
look() {
  members=
  for p in /proc/[0-9]*; do
    p=${p#/proc/}
    if [ "$p" != "$$" ] && group_of "$p" && [ "$group" = "$mine" ]; then members="$members $p"; fi
  done
}
fed() {
  for w in $members; do
    for fd in 1 2; do
      [ "/proc/$w/fd/$fd" -ef "/proc/$1/fd/0" ] && return 0
    done
  done
  return 1
}
end() {
  trap : TERM INT QUIT HUP
  stop=1
  group_of "$$" && mine=$group
  told=' '
  drained=' '
  while look; [ -n "$members" ]; do
    for p in $members; do
      case $told in *" $p "*) continue ;; esac
      if [ -p "/proc/$p/fd/0" ]; then
        if fed "$p"; then continue; fi
        case $drained in *" $p "*) ;; *) drained="$drained$p "; continue ;; esac
      fi
      told="$told$p "
      kill -TERM "$p" 2>/dev/null
    done
    sleep 0.2 2>/dev/null || sleep 1
  done
}
trap end TERM INT QUIT HUP
piped() {
  rest=$1
  while :; do
    case $rest in *'|'*) rest=${rest#*'|'} ;; *) return 1 ;; esac
    case $rest in '|'*) rest=${rest#'|'} ;; *) return 0 ;; esac
  done
}
flags=
if "$0" -c 'set -o pipefail' 2>/dev/null; then
  flags='-o pipefail'
elif piped "$1"; then
  echo "The script has a pipe, and $0, the shell of this image, has no pipefail: when a command before the last of a pipe failed, the job would count as done. Use an image with bash, write the script without pipes, or take the risk by command = [\"sh\", \"-c\", ...] instead of a script." >&2
  exit 2
fi
[ -z "$stop" ] || exit 143
(
  trap - INT QUIT
  exec "$0" $flags -c "trap 'c=\$?; [ \$c -ne 0 ] || c=143; exit \$c' TERM; $1" sh
) &
main=$!
[ -z "$stop" ] || end
wait "$main"
code=$?
[ -n "$stop" ] || exit "$code"
wait "$main" 2>/dev/null
last=$?
[ "$last" -eq 127 ] || code=$last
exit "$code"
`)
