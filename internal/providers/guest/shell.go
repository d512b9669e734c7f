// Package guest runs POSIX shell scripts inside a sandbox where the provider's API keeps too
// little. They start a program in a process group of its own, with its output in files of
// limited size and its exit code in a file that is written last; they read those files,
// measure the use of resources, and kill a process group. The package has the parsers of
// their output, too.
//
// How a script gets into a sandbox is the business of the provider's client: a Shell.
package guest

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Shell runs one script inside a sandbox and returns its output and exit code. An error
// means that it could not be run or that its end was not seen.
type Shell func(ctx context.Context, text string) (printed []byte, code int, err error)

// ErrNoRun says that sbx has started no program of that tag in the sandbox.
var ErrNoRun = errors.New("sbx has started no program in it")

// Start launches a program. Nothing was started where it is fault.KindCommandNotFound,
// fault.KindNotExecutable, fault.KindLauncher (no workdir) or fault.KindUsage (the tag is in
// use); fault.KindUnavailable where the start was not seen and the program may run. A tag
// can be launched once only, so the launch is repeated where the answer was lost.
func Start(ctx context.Context, sh Shell, p Program) error {
	attempts := 0
	counted := func(ctx context.Context, text string) ([]byte, int, error) {
		attempts++
		return sh(ctx, text)
	}
	printed, code, err := RunRepeated(ctx, counted, findProgram(p)+LaunchScript(p))
	missing := missingFault(code, p)
	switch {
	case err != nil:
		return err
	case missing != nil:
		return missing
	case code == ExitTaken && attempts > 1:
		return nil // the attempt whose answer was lost has started it
	case code == ExitTaken:
		return fault.Usage("a program of this name has been started in it before")
	case code == ExitUnseen:
		return fault.New(
			fault.KindUnavailable, "the program was requested, its start is unverified",
		).Inside().WithHint("it may run: `sbx inspect` and `sbx logs` show it once it has started")
	case code != 0 || !bytes.HasPrefix(printed, []byte("started")):
		return fault.New(fault.KindLauncher, "the program could not be started: the shell in the sandbox exits with %d", code)
	}
	return nil
}

// missingFault is the fault for an exit code of findProgram; nil for any other code.
func missingFault(code int, p Program) error {
	switch code {
	case ExitNoProgram:
		return noProgram(p.Args[0])
	case ExitNotExecutable:
		return notExecutable(p.Args[0])
	case ExitNoWorkdir:
		return NoFolder(p.Workdir)
	}
	return nil
}

// noProgram, notExecutable and NoFolder are the faults of a command that was not started.
func noProgram(name string) error {
	return fault.New(fault.KindCommandNotFound, "there is no program %q in it", name)
}

func notExecutable(name string) error {
	return fault.New(fault.KindNotExecutable, "%q is not executable", name)
}

// NoFolder is the fault of a workdir that does not exist in the sandbox.
func NoFolder(name string) error {
	return providers.NoWorkdir(fault.New(fault.KindLauncher, "there is no folder %q in it", name).WithHint("name an existing folder with --workdir"))
}

// FindMissing looks in the sandbox for the folder and the program of a command that an API has
// answered with 126 or 127: some say not why. It is the fault of what is missing, and nil where all is
// there or the look fails.
func FindMissing(ctx context.Context, sh Shell, p Program) error {
	_, code, err := RunRepeated(ctx, sh, findProgram(p))
	if err != nil {
		return nil //nolint:nilerr // what is missing is not known then
	}
	return missingFault(code, p)
}

// Exit is how a run ended, nil while it runs. Without such a run it is fault.KindNotFound
// around ErrNoRun.
func Exit(ctx context.Context, sh Shell, tag string) (*sandbox.Exit, error) {
	return RunReadOnly(ctx, sh, ReadExitScript(tag), func(printed []byte, code int) (*sandbox.Exit, error) {
		if code == ExitMissing {
			return nil, fault.New(fault.KindNotFound, "%w", ErrNoRun)
		}
		return ParseExit(printed)
	})
}

// Usage measures the use of resources inside the sandbox.
func Usage(ctx context.Context, sh Shell, now time.Time) (sandbox.Usage, error) {
	return RunReadOnly(ctx, sh, MeasureScript, func(printed []byte, _ int) (sandbox.Usage, error) { return ParseUsage(printed, now) })
}

// UnseenProcesses lists what may work in a sandbox without a sign in the log of the run main: the other runs that have
// not ended, whose output only their client gets, and the processes of main whose output does not go to that log. It
// gives all runs as well.
func UnseenProcesses(ctx context.Context, sh Shell, main string) (unseen []providers.Process, runs []Run, err error) {
	unseen, err = RunReadOnly(ctx, sh, unseenScript(main), func(printed []byte, _ int) ([]providers.Process, error) {
		var err error
		if runs, err = ParseList(printed); err != nil {
			return nil, err
		}
		var found []providers.Process
		for _, r := range runs {
			if r.Tag != main && !r.Ended {
				found = append(found, providers.Process{Args: []string{"run", r.Tag}})
			}
		}
		for line := range strings.Lines(string(printed)) {
			if text, is := strings.CutPrefix(line, "elsewhere "); is {
				pid, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
				if !slices.ContainsFunc(found, func(p providers.Process) bool { return p.PID == pid }) {
					found = append(found, providers.Process{PID: pid, Args: []string{"writes elsewhere"}})
				}
			}
		}
		return found, nil
	})
	return unseen, runs, err
}

// unseenScript is ListScript that also prints "elsewhere PID" for each process of a run of which descriptor 1 or 2 is
// not a pipe of the run, or cannot be read.
func unseenScript(tag string) string {
	return enterRunDir(tag) + sharedFunctions + strayFunctions + `ours() { [ "/proc/$q/fd/$1" -ef "$d/o" ] || [ "/proc/$q/fd/$1" -ef "$d/e" ]; } 2>/dev/null
mark="SBX_RUN=$d/"
[ ! -d "$d" ] || for e in "/proc/$(alive "$d/pid")/" $(marked); do
  q=${e#/proc/}
  q=${q%/*}
  { ours 1 && ours 2; } || [ -z "$q" ] || [ -z "$(birth "$q")" ] || echo "elsewhere $q"
done
` + listText
}

// NotStarted says by exit code and end of stderr that a program was not run at all; nil where
// it ran or this is not known. A program may exit with both codes itself, so stderr must
// name the program: what `sh -c 'x'` prints about x is output of sh.
func NotStarted(code int, program, stderr string) error {
	said := strings.ToLower(stderr)
	name := strings.ToLower(program)
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool {
			return slices.ContainsFunc([]string{"", `"`, "'", "’"}, func(quote string) bool { return strings.Contains(said, name+quote+": "+w) })
		})
	}
	switch {
	case code == 127 && says("not found", "command not found", "no such file", "executable file not found"):
		return noProgram(program)
	case code == 126 && says("permission denied", "cannot execute", "is a directory", "exec format error"):
		return notExecutable(program)
	}
	return nil
}

// Run is one program that LaunchScript has started in a sandbox.
type Run struct {
	Tag       string
	StartedAt time.Time // zero where it did not start
	Ended     bool
	Lost      bool // it ended unseen, without an exit code
}

// ListScript is a script that prints the runs of a sandbox, for ParseList.
const ListScript = sharedFunctions + listText

const listText = `for d in ` + runsDir + `/*; do
  [ -d "$d" ] && echo "run ${d##*/} $(state "$d") $(sed -n 's/^started //p' "$d/begin" 2>/dev/null)"
done
echo end
`

// ParseList reads the output of ListScript, in the order of tags. fault.KindUnavailable around
// ErrOutput where its end is missing.
func ParseList(text []byte) ([]Run, error) {
	var runs []Run
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 1 && words[0] == "end":
			return runs, nil
		case len(words) < 3 || words[0] != "run" || !ValidTag(words[1]):
			continue
		}
		r := Run{Tag: words[1], Lost: words[2] == stateLost, Ended: words[2] != stateRunning}
		if len(words) > 3 {
			r.StartedAt = parseUnixTime(words[3])
		}
		runs = append(runs, r)
	}
	return nil, outputFault("the list of runs has no end")
}

// How often a script is repeated whose answer was lost: the proxies in front of a sandbox
// lose a few of a hundred short answers.
const (
	maxTries       = 5
	firstPause     = 200 * time.Millisecond
	attemptTimeout = 15 * time.Second // of one attempt: such a script takes a moment
	repeatTimeout  = 31 * time.Second // since the first attempt: two attempts that hang are repeated
)

// RunRepeated runs an idempotent script, again where its answer was lost.
func RunRepeated(ctx context.Context, sh Shell, text string) (printed []byte, code int, err error) {
	began := time.Now()
	pauses := poll.NewBackoff(firstPause, repeatTimeout)
	for try := 1; ; try++ {
		printed, code, err = runOnce(ctx, sh, text)
		if err == nil || fault.KindOf(err) != fault.KindUnavailable || fault.SettlesLook(err) {
			return printed, code, err
		}
		wait := max(pauses.Next(), fault.RetryAfterOf(err))
		if try == maxTries || time.Since(began)+wait > repeatTimeout || poll.Sleep(ctx, wait) != nil {
			return printed, code, err
		}
	}
}

// RunReadOnly runs a script that changes nothing and reads its output; again where the answer was
// lost, and once more where the output is ErrOutput: it may have been cut off.
func RunReadOnly[T any](ctx context.Context, sh Shell, text string, read func(printed []byte, code int) (T, error)) (T, error) {
	for again := false; ; again = true {
		printed, code, err := RunRepeated(ctx, sh, text)
		if err != nil {
			var none T
			return none, err
		}
		got, err := read(printed, code)
		if again || !errors.Is(err, ErrOutput) || poll.Sleep(ctx, firstPause) != nil {
			return got, err
		}
	}
}

// runOnce runs a script once. One that hangs is lost like one whose answer broke off.
func runOnce(ctx context.Context, sh Shell, text string) ([]byte, int, error) {
	inner, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	printed, code, err := sh(inner, text)
	if err != nil && inner.Err() != nil && ctx.Err() == nil {
		return nil, -1, fault.New(fault.KindUnavailable, "it did not respond within %s", attemptTimeout).Inside()
	}
	return printed, code, err
}

// ValidTag says that a word can be the tag of a run: letters, digits, dots and dashes, at
// most 64, the first no dot or dash.
func ValidTag(tag string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$`).MatchString(tag)
}

// runsDir is where the runs of a user's sandbox are kept, as a shell word.
const runsDir = `"${HOME:-/tmp}/.sbx/runs"`

// enterRunDir is the first line of a script about a run: $d is its folder. For an invalid tag
// the script only exits with ExitMisuse.
func enterRunDir(tag string) string {
	if tag == "" {
		tag = MainTag
	}
	if !ValidTag(tag) {
		return misuseScript("this cannot name a run: " + tag)
	}
	return "d=" + runsDir + "/" + shellescape.Quote(tag) + "\n"
}

func misuseScript(why string) string {
	return "printf '%s\\n' " + shellescape.Quote(why) + " >&2; exit 64\n"
}

// sharedFunctions are the shell functions that the scripts share.
//
// A process is identified by its id, its start time and the boot: the id alone may belong
// to another process by now, above all after a sandbox was stopped and started again. A
// zombie counts as dead: in a sandbox the first process often never reaps.
const sharedFunctions = `birth() {
  [ -e /proc/self/stat ] || { kill -0 "$1" 2>/dev/null && echo 0; return; }
  { IFS= read -r stat < "/proc/$1/stat"; } 2>/dev/null || return
  set -- ${stat##*) }
  case $1 in Z|X|x) ;; *) echo "${20}";; esac
}
boot() { cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo none; }
alive() {
  [ -r "$1" ] && { read -r pid born on < "$1"; } 2>/dev/null || return
  [ -n "$on" ] && [ "$on" = "$(boot)" ] && [ "$(birth "$pid")" = "$born" ] && echo "$pid"
}
state() {
  watched=$(alive "$1/runner")$(alive "$1/pid")
  if [ -e "$1/code" ]; then echo ended
  elif [ -n "$watched" ]; then echo running
  elif [ ! -e "$1/runner" ] && [ -z "$(find "$1" -prune -mmin +1 2>/dev/null)" ]; then echo running
  else echo lost; fi
}
`

// counterFunction is a shell function that prints the kernel's memory counters: of the control
// group of the sandbox, of the caller's control group where the machine belongs to the
// sandbox, or of that machine.
const counterFunction = `counters() {
  c=/sys/fs/cgroup
  own=$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null)
  old=$(sed -n 's/^[0-9]*:\([^:]*,\)*memory\(,[^:]*\)*://p' /proc/self/cgroup 2>/dev/null)
  for g in $c "$c$own"; do
    [ -r "$g/memory.events" ] || continue
    echo "file $g/memory.events"
    grep '^oom_kill ' "$g/memory.events"
    for k in peak max; do [ -r "$g/memory.$k" ] && echo "$k $(cat "$g/memory.$k")"; done
    return
  done
  for g in "$c/memory$old" $c/memory; do
    grep -q '^oom_kill ' "$g/memory.oom_control" 2>/dev/null || continue
    echo "file $g/memory.oom_control"
    grep '^oom_kill ' "$g/memory.oom_control"
    echo "peak $(cat "$g/memory.max_usage_in_bytes")"
    echo "max $(cat "$g/memory.limit_in_bytes")"
    return
  done
  grep -q '^oom_kill ' /proc/vmstat 2>/dev/null && { echo "file /proc/vmstat"; grep '^oom_kill ' /proc/vmstat; }
}
`
