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

// Verdict is what a remote says of a task.
type Verdict string

// The closed list of verdicts. Published and Stopped are final.
const (
	Absent    Verdict = "absent"    // nobody has decided: the task can still be published
	Published Verdict = "published" // the work is public; a stop comes too late
	Stopped   Verdict = "stopped"   // nothing of the task can be published any more
)

// Mark is what a fence ref says. By is of stopped alone; Fence, Commit and
// Branch are of published alone. At is the clock of the host that wrote it.
type Mark struct {
	Verdict Verdict
	Task    string
	Fence   int64
	Commit  string
	Branch  string
	By      string
	At      time.Time
}

// maxBy bounds in bytes who may be named in a marker; maxMarker what is read as one.
const (
	maxBy     = 200
	maxMarker = 4096
)

func (m Mark) message() string {
	if m.Verdict == Stopped {
		return fmt.Sprintf("sbx stopped\n\ntask: %s\nby: %s\nat: %s\n", m.Task, oneLine(m.By, maxBy), stamp(m.At))
	}
	return fmt.Sprintf("sbx published\n\ntask: %s\nfence: %d\ncommit: %s\nbranch: %s\nat: %s\n", m.Task, m.Fence, m.Commit, m.Branch, stamp(m.At))
}

// object is the marker as a commit: an empty tree, no parent, sbx as author.
func (m Mark) object(tree string) string {
	who := fmt.Sprintf("sbx <sbx@localhost> %d +0000", max(m.At.Unix(), 0))
	return fmt.Sprintf("tree %s\nauthor %s\ncommitter %s\n\n%s", tree, who, who, m.message())
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// parseMark reads the message of a marker. What is not a whole marker of sbx is
// fault.KindRefused: a ref somebody else put there proves nothing.
func parseMark(message string) (Mark, error) {
	head, body, ok := strings.Cut(message, "\n\n")
	verdict, known := strings.CutPrefix(head, "sbx ")
	if !ok || !known || len(message) > maxMarker {
		return Mark{}, notAMarker("it was not written by sbx")
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
		return m.dated(fields)
	default:
		return Mark{}, notAMarker("it says neither published nor stopped")
	}
}

// markFields reads "key: value" lines. Keys of a later sbx pass, a key that
// comes twice does not.
func markFields(body string) (map[string]string, error) {
	fields := map[string]string{}
	for line := range strings.Lines(body) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if _, twice := fields[key]; !ok || twice {
			return nil, notAMarker("it has a line that is broken or comes twice")
		}
		fields[key] = value
	}
	return fields, nil
}

func readPublished(m Mark, fields map[string]string) (Mark, error) {
	fence, err := strconv.ParseInt(fields["fence"], 10, 64)
	if err != nil || !isOID(fields["commit"]) || checkBranch(fields["branch"]) != nil {
		return Mark{}, notAMarker("it does not say what was published")
	}
	m.Fence, m.Commit, m.Branch = fence, fields["commit"], fields["branch"]
	return m.dated(fields)
}

func (m Mark) dated(fields map[string]string) (Mark, error) {
	at, err := time.Parse(time.RFC3339, fields["at"])
	if err != nil || checkTask(m.Task) != nil {
		return Mark{}, notAMarker("it names no task or no time")
	}
	m.At = at.UTC().Truncate(time.Second)
	return m, nil
}

func notAMarker(why string) *fault.Error {
	return fault.New(fault.KindRefused, "the fence ref is no marker of sbx: %s", why).
		WithHint("look at refs/sbx/fence on the remote; who wrote there? Nothing was changed")
}

func isOID(text string) bool {
	return regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`).MatchString(text)
}

// checkTask holds a task's id to what is a ref everywhere.
func checkTask(id string) error {
	if regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`).MatchString(id) && badRef(id) == "" {
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
