package publish

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sbx/internal/fault"
)

// Verdict is the state of a task on its remote.
type Verdict string

// All verdicts. Published and Stopped are final.
const (
	Absent    Verdict = "absent"    // undecided: the task can still be published
	Published Verdict = "published" // the work is public; a stop comes too late
	Stopped   Verdict = "stopped"   // nothing of the task can be published any more
)

// Mark is the content of a fence ref. By is set for Stopped only; Fence, Commit and Branch
// for Published only. At is by the clock of the host that wrote it.
type Mark struct {
	Verdict Verdict
	Task    string
	Fence   int64
	Commit  string
	Branch  string
	By      string
	At      time.Time
}

// Limits in bytes: of the name in a marker, and of a whole marker.
const (
	maxBy     = 200
	maxMarker = 4096
)

func (m Mark) commitMessage() string {
	if m.Verdict == Stopped {
		return fmt.Sprintf("sbx stopped\n\ntask: %s\nby: %s\nat: %s\n", m.Task, oneLine(m.By, maxBy), formatTime(m.At))
	}
	return fmt.Sprintf("sbx published\n\ntask: %s\nfence: %d\ncommit: %s\nbranch: %s\nat: %s\n", m.Task, m.Fence, m.Commit, m.Branch, formatTime(m.At))
}

// commitObject is the marker as a commit: an empty tree, no parent, sbx as author.
func (m Mark) commitObject(tree string) string {
	who := fmt.Sprintf("sbx <sbx@localhost> %d +0000", max(m.At.Unix(), 0))
	return fmt.Sprintf("tree %s\nauthor %s\ncommitter %s\n\n%s", tree, who, who, m.commitMessage())
}

func formatTime(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// parseMark reads the message of a marker. Anything but a complete marker of sbx is
// fault.KindRefused, because a foreign ref proves nothing.
func parseMark(message string) (Mark, error) {
	head, body, ok := strings.Cut(message, "\n\n")
	verdict, known := strings.CutPrefix(head, "sbx ")
	if !ok || !known || len(message) > maxMarker {
		return Mark{}, notMarkerError("it was not written by sbx")
	}
	fields, err := markFields(body)
	if err != nil {
		return Mark{}, err
	}
	switch m := (Mark{Verdict: Verdict(verdict), Task: fields["task"]}); m.Verdict {
	case Published:
		return readPublished(m, fields)
	case Stopped:
		m.By = oneLine(fields["by"], maxBy)
		return m.withDate(fields)
	default:
		return Mark{}, notMarkerError("it says neither published nor stopped")
	}
}

// markFields reads "key: value" lines. Unknown keys, of a later sbx, are accepted; a
// repeated key is not.
func markFields(body string) (map[string]string, error) {
	fields := map[string]string{}
	for line := range strings.Lines(body) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if _, twice := fields[key]; !ok || twice {
			return nil, notMarkerError("it has a line that is broken or comes twice")
		}
		fields[key] = value
	}
	return fields, nil
}

func readPublished(m Mark, fields map[string]string) (Mark, error) {
	fence, err := strconv.ParseInt(fields["fence"], 10, 64)
	if err != nil || !isOID(fields["commit"]) || checkBranch(fields["branch"]) != nil {
		return Mark{}, notMarkerError("it does not say what was published")
	}
	m.Fence, m.Commit, m.Branch = fence, fields["commit"], fields["branch"]
	return m.withDate(fields)
}

func (m Mark) withDate(fields map[string]string) (Mark, error) {
	at, err := time.Parse(time.RFC3339, fields["at"])
	if err != nil || checkTask(m.Task) != nil {
		return Mark{}, notMarkerError("it names no task or no time")
	}
	m.At = at.UTC().Truncate(time.Second)
	return m, nil
}

func notMarkerError(why string) *fault.Error {
	return fault.New(fault.KindRefused, "the fence ref is no marker of sbx: %s", why).
		WithHint("look at refs/sbx/fence on the remote; who wrote there? Nothing was changed")
}

func isOID(text string) bool {
	return regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`).MatchString(text)
}

// checkTask accepts ids of tasks that are valid in a ref everywhere.
func checkTask(id string) error {
	if regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`).MatchString(id) && refProblem(id) == "" {
		return nil
	}
	return fault.Usage("the task id %q cannot name a fence ref", id).WithHint("letters, digits, dots, dashes and underscores, at most 100")
}

func fenceRef(task string) string { return "refs/sbx/fence/" + task }

// oneLine makes untrusted text fit one line of a marker or an error.
func oneLine(text string, limit int) string {
	text = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text), "?")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return strings.TrimSpace(text)
}
