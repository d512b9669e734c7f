package guest

import (
	"fmt"

	"al.essio.dev/pkg/shellescape"
)

// MainTag is the tag of the program that `sbx create -- CMD` starts.
const MainTag = "main"

// DefaultMaxOutput is how many bytes of each stream are kept.
const DefaultMaxOutput = 16 << 20

// Exit codes of the scripts themselves; programs rarely use these.
const (
	ExitTaken   = 17 // LaunchScript: a run of that tag exists
	ExitMissing = 44 // ReadOutputScript, ReadExitScript, KillScript: there is no run of that tag
	ExitUnseen  = 45 // LaunchScript: the start was not seen within 10 s; ListScript shows whether it runs
	// Of the checks before LaunchScript, see Start.
	ExitNoWorkdir     = 46
	ExitNoProgram     = 47
	ExitNotExecutable = 48
	ExitMisuse        = 64  // every script: the tag is not a ValidTag, or there is no program
	ExitFailed        = 125 // LaunchScript: the folder of the run cannot be made
)

// Program is what LaunchScript starts. Its environment is that of the call that runs the
// script: the script itself contains no values of variables.
type Program struct {
	Tag       string // "" = MainTag; see ValidTag
	Args      []string
	Workdir   string // "" = that of the call
	MaxOutput int64  // bytes kept of each stream; 0 = DefaultMaxOutput
	// HoldsBack blocks the program, as a pipe does, instead of dropping the oldest output
	// that was not read. A reader that has not read for a minute counts as gone, and the
	// oldest output is dropped.
	HoldsBack bool
}

// LaunchScript is a script that starts a program and returns, printing "started PID" (0 where it
// could not be started at all; its exit says why).
//
// The program leads a session of its own, or without setsid(1) a process group
// where the shell can make one, with nothing on stdin. Everything is kept in
// ~/.sbx/runs/TAG. Of each stream the newest bytes are kept, at most MaxOutput and at least
// two thirds of it. The file `code` is written last, by rename, into disk space that was
// reserved at the start: the exit code as a shell sees it, so that a death by signal n is
// 128+n, like an exit with that code. A missing workdir gives code 125, a missing program
// 127, one that may not be run 126. The Exit constants are the exit codes of the script.
func LaunchScript(p Program) string {
	if len(p.Args) == 0 {
		return misuseScript("there is no program to start")
	}
	limit := p.MaxOutput
	if limit <= 0 {
		limit = DefaultMaxOutput
	}
	return enterRunDir(p.Tag) +
		fmt.Sprintf(
			"w=%s\nsizes='%s'\nhold=%t\nr=%s\n", shellescape.Quote(p.Workdir), blockSizes(limit), p.HoldsBack,
			shellescape.Quote(sharedFunctions+counterFunction+runnerScript),
		) +
		"set -- " + shellescape.QuoteCommand(p.Args) + "\n" + launchText
}

// filesPerStream is the number of files of a stream; the oldest is dropped first.
const filesPerStream = 8

// blockSizes are the size of a block, the number of blocks that one dd copies, and the size
// from which a file is full. A file may grow past that by one dd; all files together stay
// within the limit.
func blockSizes(limit int64) string {
	file := max(1, limit/filesPerStream)
	once := max(1, file/5)
	block := min(once, 64<<10)
	return fmt.Sprintf("%d %d %d", block, once/block, max(1, file-once))
}

// launchText makes the folder, which succeeds for one launch only, and starts the runner
// with closed streams, since the call would wait for open ones, and outside the process
// group of the call where this shell can do that.
const launchText = `u=$(umask)
umask 077
mkdir -p "${d%/*}" || exit 125
mkdir "$d" 2>/dev/null || {
  [ -d "$d" ] && { echo "a run of this name is there already" >&2; exit 17; }
  echo "cannot make $d" >&2; exit 125
}
printf '%1024s\n' '' > "$d/code.new" || { rm -rf "$d"; exit 125; }
[ $hold = false ] || : > "$d/hold"
if command -v setsid >/dev/null 2>&1
then setsid sh -c "$r" sbx "$d" "$w" "$u" $sizes "$@" </dev/null >/dev/null 2>&1 &
else
  set -m 2>/dev/null
  (trap '' HUP; exec sh -c "$r" sbx "$d" "$w" "$u" $sizes "$@") </dev/null >/dev/null 2>&1 &
  set +m 2>/dev/null
fi
i=0
while [ ! -s "$d/pid" ] && [ ! -e "$d/code" ]
do
  [ $i -lt 200 ] || { echo "its start was not seen" >&2; exit 45; }
  sleep 0.05 2>/dev/null || { sleep 1; i=$((i+20)); }
  i=$((i+1))
done
p=0
[ -s "$d/pid" ] && read -r p i < "$d/pid"
echo "started $p"
`

// findProgram is a script that succeeds only where exec would find the program: by its
// path from the workdir, or in PATH. Otherwise it exits with ExitNoWorkdir, ExitNoProgram
// or ExitNotExecutable. Builtins of the shell count as programs.
func findProgram(p Program) string {
	if len(p.Args) == 0 {
		return ""
	}
	return findText + "find_program " + shellescape.QuoteCommand([]string{p.Workdir, p.Args[0]}) + " || exit $?\n"
}

const findText = `find_program() (
  [ -z "$1" ] || { CDPATH= cd -- "$1" 2>/dev/null || exit 46; }
  case $2 in */*)
    [ -e "$2" ] || exit 47
    [ -f "$2" ] && [ -x "$2" ] || exit 48
    exit 0;;
  esac
  found=47 IFS=:
  set -f
  for dir in $PATH; do
    [ -f "${dir:-.}/$2" ] || continue
    [ -x "${dir:-.}/$2" ] && exit 0
    found=48
  done
  command -v "$2" >/dev/null 2>&1 && exit 0
  exit $found
)
`

// runnerScript is the script that waits for the end of the program. Its arguments are the folder,
// the workdir, the caller's umask, the sizes and the program. The program leads a session,
// so that it can be killed with its children and without the runner; a process that leaves
// the session is found by SBX_RUN.
//
// A command that a shell starts with & ignores SIGINT and SIGQUIT, and no shell can undo
// that (POSIX, trap): env or perl restore the default. Where neither is there, the program
// ignores them.
const runnerScript = `d=$1 w=$2 u=$3 block=$4 count=$5 full=$6
shift 6
umask 077
` + runnerParts + `
echo "$$ $(birth $$) $(boot)" > "$d/runner.new" && mv "$d/runner.new" "$d/runner" || exit 125
{ echo "started $(date +%s)"; counters | sed 's/^/before /'; } > "$d/begin"
[ -z "$w" ] || CDPATH= cd -- "$w" 2>> "$d/err.0" || finish 125 unstarted
mkfifo "$d/o" "$d/e" 2>> "$d/err.0" || finish 125 unstarted
: >> "$d/out.0"
: >> "$d/err.0"
keep out < "$d/o" & a=$!
keep err < "$d/e" & b=$!
case $1 in
*=*) ;;
*)
  if env --default-signal=INT,QUIT sh -c : 2>/dev/null
  then set -- env --default-signal=INT,QUIT "$@"
  elif command -v perl >/dev/null 2>&1
  then set -- perl -e '$SIG{INT}=$SIG{QUIT}="DEFAULT"; exec {$ARGV[0]} @ARGV or exit($!{ENOENT}?127:126)' "$@"
  fi
esac
set -- 'umask "$1"; SBX_RUN=$2; export SBX_RUN; shift 2; exec "$@"' sbx "$u" "$d/" "$@"
if command -v setsid >/dev/null 2>&1
then setsid sh -c "$@" > "$d/o" 2> "$d/e" & p=$!
else set -m 2>/dev/null; sh -c "$@" > "$d/o" 2> "$d/e" & p=$!; set +m 2>/dev/null
fi
echo "$p $(birth $p) $(boot)" > "$d/pid.new"; mv "$d/pid.new" "$d/pid"
wait $p; c=$?
i=0
while { [ -n "$(birth $a)" ] || [ -n "$(birth $b)" ]; } && [ $i -lt 20 ]
do sleep 0.05 2>/dev/null || { sleep 1; i=20; }; i=$((i+1)); done
rm -f "$d/o" "$d/e"
finish $c
`

// runnerParts: finish writes the exit over the disk space that LaunchScript has reserved, with a
// second word `unstarted` where the code is the runner's and not the program's. keep
// copies a stream into files that are named by the offset of their first byte. It reads
// with dd, which reads no more than it copies and copies what there is; the oldest file is
// dropped first. Where nothing can be written, keep records that and the program continues.
// With HoldsBack it waits until the file to be dropped was read.
const runnerParts = `finish() {
  { echo "code $1"; [ $# -lt 2 ] || echo "$2"; echo "ended $(date +%s)"; counters | sed 's/^/after /'; } 1<> "$d/code.new"
  mv -f "$d/code.new" "$d/code"
  exit 0
}
hold() {
  while [ -e "$d/hold" ] && [ -z "$(find "$d/hold" -prune -mmin +1 2>/dev/null)" ]; do
    seen=0
    { read -r seen < "$d/$name.seen"; } 2>/dev/null
    [ "$seen" -lt "$1" ] || return
    sleep 0.05 2>/dev/null || sleep 1
  done
}
keep() {
  name=$1 at=0 size=0
  set -- 0
  while :; do
    was=$size
    dd bs=$block count=$count 2>/dev/null >> "$d/$name.$at" || mkdir "$d/$name.cut" 2>/dev/null
    size=$(($(wc -c < "$d/$name.$at")))
    [ $size -gt $was ] || break
    [ $size -ge $full ] || continue
    at=$((at+size)) size=0
    set -- "$@" $at
    [ $# -le 8 ] || { hold $2; rm -f "$d/$name.$1"; shift; }
  done
  cat > /dev/null
}
`

// KillScript is a script that sends a signal, by number, to the process group of a run and to
// its processes outside the group, and prints "signalled N". It records for ReadExitScript that
// sbx sent it. A process that has left the session and has cleared its environment is not
// found. Without such a run the script exits with ExitMissing; without a process to signal
// it does nothing.
func KillScript(tag string, signal int) string {
	return enterRunDir(tag) + fmt.Sprintf("signal=%d\n", signal) + sharedFunctions + killText + strayFunctions + killStraysText
}

// MarkVariable is in the environment of a command that an API cannot end, and so in that of its child processes.
const MarkVariable = "SBX_EXEC"

// KillMarkedScript is a script that kills every process whose environment has this KEY=VALUE,
// except the shell that runs it, and prints "signalled N".
func KillMarkedScript(mark string) string {
	return "signal=9 group= told= n=0 mark=" + shellescape.Quote(mark) + "\n" + sharedFunctions + strayFunctions + killStraysText
}

// killText checks that the process id still belongs to the program before it signals.
const killText = `[ -d "$d" ] || exit 44
n=0 group= told=
mark="SBX_RUN=$d/"
p=$(alive "$d/pid")
if [ -n "$p" ]; then
  echo "$signal $(date +%s)" > "$d/killed"
  if kill -$signal "-$p" 2>/dev/null; then group=$p n=1
  elif kill -$signal "$p" 2>/dev/null; then told=$p n=1; fi
fi
`

// strayFunctions are two shell functions. marked prints the files in /proc of the processes that have
// $mark in their environment, which children inherit: with one grep where it knows -z, since two
// programs for each process take seconds in a busy sandbox. stray says whether a process is in
// $marked or belongs to the session of $group. $told and the processes of the group have received
// the signal already: some programs take a second TERM as a request to stop at once.
const strayFunctions = `marked() {
  if printf 'a\000b' | grep -qzxF b 2>/dev/null; then
    grep -lzxF -e "$mark" /proc/[0-9]*/environ 2>/dev/null
    [ $? -gt 2 ] || return 0
  fi
  for e in /proc/[0-9]*/environ; do
    { tr '\000' '\n' < "$e"; } 2>/dev/null | grep -qxF -e "$mark" && echo "$e"
  done
}
stray() {
  [ "$1" != "$$" ] && [ "$1" != "$told" ] || return 1
  { IFS= read -r stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- "$1" ${stat##*) }
  case $2 in Z|X|x) return 1;; esac
  [ -n "$group" ] && [ "$4" = "$group" ] && return 1
  [ -n "$group" ] && [ "$5" = "$group" ] && return 0
  case $marked in *"/$1/"*) return 0;; esac
  return 1
}
`

// killStraysText repeats after a SIGKILL: a process that was being forked appears later.
const killStraysText = `round=0 found=1
while [ $found = 1 ] && [ $round -lt 5 ]; do
  found=0 marked=$(marked)
  for e in /proc/[0-9]*; do
    q=${e#/proc/}
    stray "$q" && kill -$signal "$q" 2>/dev/null && { found=1; n=$((n+1)); }
  done
  [ $signal -eq 9 ] || break
  round=$((round+1))
done
echo "signalled $n"
exit 0
`
