package guest

import (
	"fmt"
	"regexp"
	"strings"
)

// Main is the tag of the program that `sbx create -- CMD` starts.
const Main = "main"

// DefaultMaxOutput is how much of each stream is kept, in bytes.
const DefaultMaxOutput = 16 << 20

// Exit codes of the texts themselves, apart from what programs use.
const (
	ExitTaken   = 17 // Launch: a run of that tag is there already
	ExitMissing = 44 // ReadOutput, ReadExit, Kill: there is no run of that tag
)

// Program is what Launch starts. Its environment is that of the call that runs
// the text: values never stand in the text itself.
type Program struct {
	Tag       string // "" = Main; see ValidTag
	Args      []string
	Workdir   string // "" = where the call runs
	MaxOutput int64  // bytes kept of each stream; 0 = DefaultMaxOutput
}

// ValidTag says that a word may name a run: letters, digits, dots and dashes, at
// most 64.
func ValidTag(tag string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$`).MatchString(tag)
}

// enter is the first line of a text about a run: $d is its folder.
func enter(tag string) string {
	if tag == "" {
		tag = Main
	}
	return `d="${HOME:-/tmp}/.sbx/runs/"` + Quote(tag) + "\n"
}

// Launch is a shell text that starts a program and returns, printing "started
// PID". The program runs in a session of its own with nothing on stdin. Of each
// stream the newest MaxOutput bytes stay in ~/.sbx/runs/TAG (the oldest, where
// `head -c` reads more than it gives). The file `code` is written last, by
// rename: the exit code as a shell sees it, 128+n for a death by signal n. A
// workdir that is not there gives 125, a missing program 127, one that may not
// be run 126. A tag that is in use exits with ExitTaken.
func Launch(p Program) string {
	limit := p.MaxOutput
	if limit <= 0 {
		limit = DefaultMaxOutput
	}
	return enter(p.Tag) + "r=" + Quote(runner(p, limit)) + launchText
}

// launchText makes the folder, which only one launch can, and leaves the runner
// behind with closed streams, or the call would wait for it.
const launchText = `
umask 077
mkdir -p "${d%/*}" || exit 125
mkdir "$d" 2>/dev/null || { echo "a run of this name is there already" >&2; exit 17; }
if command -v setsid >/dev/null 2>&1
then setsid sh -c "$r" sh "$d" </dev/null >/dev/null 2>&1 &
else sh -c "$r" sh "$d" </dev/null >/dev/null 2>&1 &
fi
i=0
while [ ! -s "$d/pid" ] && [ ! -e "$d/code" ] && [ $i -lt 100 ]
do sleep 0.05 2>/dev/null || sleep 1; i=$((i+1)); done
echo "started $(cat "$d/pid" 2>/dev/null)"
`

// runner is the text that stays beside the program and sees its end; $1 is the
// folder. The program leads a session, so that it can be killed with all it has
// started and without the runner.
func runner(p Program, limit int64) string {
	tag := p.Tag
	if tag == "" {
		tag = Main
	}
	var b strings.Builder
	b.WriteString("d=$1\numask 077\necho $$ > \"$d/runner\"\n" + counters + runnerParts)
	if p.Workdir != "" {
		b.WriteString("cd " + Quote(p.Workdir) + " 2>\"$d/err.0\" || finish 125\n")
	}
	segment := max(1, limit/2)
	fmt.Fprintf(&b, "if [ \"$(printf ab | { head -c 1 >/dev/null; cat; })\" = b ]; then segment=%d; else segment=%d; fi\n", segment, limit)
	b.WriteString("echo $segment > \"$d/segment\"\n" + runnerStart)
	b.WriteString("env " + Quote("SBX_RUN="+tag) + " $s " + Quote(p.Args...) + " > \"$d/o\" 2> \"$d/e\" & p=$!\n" + runnerEnd)
	return b.String()
}

// runnerParts: keep writes a stream into segments and drops the oldest; finish
// writes what is known of the end, the code last.
const runnerParts = `
counters > "$d/before" 2>/dev/null
date +%s > "$d/started"
finish() {
  counters > "$d/after" 2>/dev/null
  date +%s > "$d/ended"
  echo "$1" > "$d/code.new" && mv "$d/code.new" "$d/code"
  exit 0
}
keep() {
  n=0
  while :; do
    head -c $segment > "$d/$1.$n"
    [ "$(wc -c < "$d/$1.$n")" -lt $segment ] && break
    n=$((n+1))
    rm -f "$d/$1.$((n-2))"
  done
  cat > /dev/null
}
`

const runnerStart = `mkfifo "$d/o" "$d/e" || finish 125
keep out < "$d/o" & a=$!
keep err < "$d/e" & b=$!
s=; command -v setsid >/dev/null 2>&1 && s=setsid
`

// runnerEnd waits for the program, then a second for what it wrote: a child that
// has stayed behind may hold the streams for ever.
const runnerEnd = `echo $p > "$d/pid.new" && mv "$d/pid.new" "$d/pid"
wait $p; c=$?
i=0
while { kill -0 $a || kill -0 $b; } 2>/dev/null && [ $i -lt 20 ]
do sleep 0.05 2>/dev/null || { sleep 1; i=20; }; i=$((i+1)); done
rm -f "$d/o" "$d/e"
finish $c
`

// counters is a shell function that prints what the kernel counts for the group
// that the caller is in.
const counters = `counters() {
  for f in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control
  do [ -r $f ] && { echo "file $f"; cat $f; return; }; done
}`
