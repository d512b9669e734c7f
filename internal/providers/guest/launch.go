package guest

import (
	"fmt"

	"al.essio.dev/pkg/shellescape"
)

// Main is the tag of the program that `sbx create -- CMD` starts.
const Main = "main"

// DefaultMaxOutput is how much of each stream is kept, in bytes.
const DefaultMaxOutput = 16 << 20

// Exit codes of the texts themselves, apart from what programs use.
const (
	ExitTaken   = 17 // Launch: a run of that tag is there already
	ExitMissing = 44 // ReadOutput, ReadExit, Kill: there is no run of that tag
	ExitUnseen  = 45 // Launch: the start was not seen within 10 s; List tells what came of it
	// Of what Start looks for before Launch.
	ExitNoWorkdir     = 46
	ExitNoProgram     = 47
	ExitNotExecutable = 48
	ExitMisuse        = 64  // every text: the tag is not a ValidTag, or there is no program
	ExitFailed        = 125 // Launch: the folder of the run cannot be made
)

// Program is what Launch starts. Its environment is that of the call that runs
// the text: values never stand in the text itself.
type Program struct {
	Tag       string // "" = Main; see ValidTag
	Args      []string
	Workdir   string // "" = where the call runs
	MaxOutput int64  // bytes kept of each stream; 0 = DefaultMaxOutput
	// HoldsBack lets the program wait for its reader instead of dropping the oldest
	// output that was not read, as a pipe does. A reader that does not look for a
	// minute is gone, and the oldest goes.
	HoldsBack bool
}

// Launch is a shell text that starts a program and returns, printing "started
// PID" (0 where it could not be started at all; its exit says why).
//
// The program leads a session of its own, or without setsid(1) a process group
// where the shell can make one, with nothing on stdin. Everything is kept in
// ~/.sbx/runs/TAG. Of each stream the newest bytes stay, at most MaxOutput and
// at least two thirds of it. The file `code` is written last, by rename, into
// room that was taken at the start: the exit code as a shell sees it, so that a
// death by signal n is 128+n and cannot be told from a program that exits so by
// itself. A workdir that is not there gives code 125, a missing program 127, one
// that may not be run 126. See the Exit constants for what the text exits with.
func Launch(p Program) string {
	if len(p.Args) == 0 {
		return misuse("there is no program to start")
	}
	limit := p.MaxOutput
	if limit <= 0 {
		limit = DefaultMaxOutput
	}
	return enter(p.Tag) +
		fmt.Sprintf("w=%s\nsizes='%s'\nhold=%t\nr=%s\n", shellescape.Quote(p.Workdir), sizes(limit), p.HoldsBack, shellescape.Quote(parts+counters+runner)) +
		"set -- " + shellescape.QuoteCommand(p.Args) + "\n" + launchText
}

// kept is how many files a stream is spread over; the oldest goes first.
const kept = 8

// sizes says in which blocks a stream is copied, how many of them one dd takes,
// and from which size on a file is full: it may grow past that by one dd, and
// kept of them stay within the limit.
func sizes(limit int64) string {
	file := max(1, limit/kept)
	once := max(1, file/5)
	block := min(once, 64<<10)
	return fmt.Sprintf("%d %d %d", block, once/block, max(1, file-once))
}

// launchText makes the folder, which only one launch can, and leaves the runner
// behind with closed streams, or the call would wait for it, and out of reach of
// what ends the call's own group, as far as this shell can do that.
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
