package publish

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sbx/internal/fault"
)

// ForbidPublish creates the task's fence ref so that nothing of it can be published any more, and
// returns what the remote then holds: Stopped, by this call or an earlier one, or
// Published, when it comes too late. Without an answer of the remote there is an error and
// no verdict. It may be repeated.
func (g *Git) ForbidPublish(ctx context.Context, task string, t Target, by string, at time.Time) (Mark, error) {
	if err := checkTask(task); err != nil {
		return Mark{}, err
	}
	s, err := g.openScratch(ctx, t)
	if err != nil {
		return Mark{}, err
	}
	defer s.remove()
	mark := Mark{Verdict: Stopped, Task: task, By: oneLine(by, maxBy), At: at.UTC().Truncate(time.Second)}
	if g.beforePush != nil {
		g.beforePush()
	}
	pauses := newPushPauses()
	for try := 0; ; try++ {
		f, said, err := s.createFence(ctx, mark)
		if err != nil {
			return Mark{}, inDoubt("stop publishing to "+t.String(), err)
		}
		if f == pushAccepted {
			return mark, nil
		}
		held, again, err := s.resolveFailedFence(ctx, task, f, said)
		if !again || try == pushTries {
			return held, err
		}
		if err := pauses.Sleep(ctx); err != nil {
			return Mark{}, err
		}
	}
}

// createFence pushes a marker to a fence ref that must not exist.
func (s *scratch) createFence(ctx context.Context, mark Mark) (pushResult, gitOutput, error) {
	marker, err := s.storeMark(ctx, mark)
	if err != nil {
		return pushNotSent, gitOutput{}, err
	}
	f, said, err := s.pushAtomically(ctx, refUpdate{fenceRef(mark.Task), "", marker})
	if err == nil && s.format == sha1Format && strings.Contains(said.errors, "hash algorithm") {
		if err := s.recreate(ctx, sha256Format); err != nil {
			return pushNotSent, gitOutput{}, err
		}
		return s.createFence(ctx, mark)
	}
	return f, said, err
}

// storeMark stores a marker in the scratch repository and returns its id.
func (s *scratch) storeMark(ctx context.Context, mark Mark) (string, error) {
	tree, err := s.runLocal(ctx, "", "hash-object", "-t", "tree", "-w", "--stdin")
	if err != nil {
		return "", err
	}
	oid, err := s.runLocal(ctx, mark.commitObject(strings.TrimSpace(tree)), "hash-object", "-t", "commit", "-w", "--stdin")
	return strings.TrimSpace(oid), err
}

// resolveFailedFence returns what the remote holds after the push of a marker failed, and
// whether to push again. Without a marker there the result is unknown.
func (s *scratch) resolveFailedFence(ctx context.Context, task string, f pushResult, said gitOutput) (Mark, bool, error) {
	const op = "stop publishing"
	if f == pushNotSent {
		return Mark{}, false, s.remoteError(op, said)
	}
	m, err := s.readFence(ctx, task)
	if err != nil {
		return Mark{}, false, err
	}
	if m.Verdict != Absent {
		return m, false, nil
	}
	why := strings.TrimSpace(rejectReasons(said.out, refUpdate{ref: fenceRef(task)}) + " " + s.describeOutput(said))
	if f == pushRejected && !isBusy(why) {
		return Mark{}, false, fault.New(fault.KindRefused, "%s: the remote refused the fence ref: %s", op, why).
			WithHint("this host does not allow refs/sbx, so that a stop cannot block publishing there: revoke the credentials")
	}
	return Mark{}, !said.cutShort, fault.New(fault.KindUnavailable, "%s: %w: %s", op, ErrInDoubt, why).WithHint("try again: it is safe to repeat")
}

// markTime is the time for markers; without a clock 1970.
func (g *Git) markTime() time.Time {
	if g.Now == nil {
		return time.Unix(0, 0)
	}
	return g.Now()
}

// Base is the commit of the branch now, "" when there is no such branch.
func (g *Git) Base(ctx context.Context, t Target) (string, error) {
	s, err := g.openScratch(ctx, t)
	if err != nil {
		return "", err
	}
	defer s.remove()
	seen, err := s.readRefs(ctx, t.branchRef())
	return seen[t.branchRef()], err
}

// readFence reads the state of a task's fence ref. Absent is a result; a remote that cannot
// be asked is an error.
func (s *scratch) readFence(ctx context.Context, task string) (Mark, error) {
	seen, err := s.readRefs(ctx, fenceRef(task))
	if err != nil {
		return Mark{}, err
	}
	return s.readMark(ctx, task, seen)
}

// readRefs returns the commits of the named refs; a ref that does not exist is missing from
// the map.
func (s *scratch) readRefs(ctx context.Context, names ...string) (map[string]string, error) {
	p, err := s.runRemote(ctx, append([]string{"ls-remote", "--quiet", "--", s.remote}, names...)...)
	if err != nil {
		return nil, err
	}
	if p.cutShort || p.code != 0 {
		return nil, s.remoteError("list the remote's "+names[0], p)
	}
	seen := map[string]string{}
	for line := range strings.Lines(p.out) {
		oid, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || !isOID(oid) {
			return nil, fault.New(fault.KindUnavailable, "the remote's list of refs is invalid: %q", oneLine(line, 80))
		}
		seen[name] = oid
	}
	return seen, nil
}

// readMark reads the marker to which the fence ref points.
func (s *scratch) readMark(ctx context.Context, task string, seen map[string]string) (Mark, error) {
	oid := seen[fenceRef(task)]
	if oid == "" {
		return Mark{Verdict: Absent, Task: task}, nil
	}
	if err := s.matchFormat(ctx, oid); err != nil {
		return Mark{}, err
	}
	p, err := s.runRemote(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--depth=1", "--", s.remote, "+"+fenceRef(task)+":refs/mark")
	if err != nil {
		return Mark{}, err
	}
	if p.cutShort || p.code != 0 {
		return Mark{}, s.remoteError("read the fence ref", p)
	}
	object, err := s.runLocal(ctx, "", "cat-file", "-p", "refs/mark")
	if err != nil {
		return Mark{}, err
	}
	_, message, _ := strings.Cut(object, "\n\n")
	m, err := parseMark(message)
	if err == nil && m.Task != task {
		err = notMarkerError("it belongs to another task")
	}
	return m, err
}

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
	at := m.At.UTC().Format(time.RFC3339)
	if m.Verdict == Stopped {
		return fmt.Sprintf("sbx stopped\n\ntask: %s\nby: %s\nat: %s\n", m.Task, oneLine(m.By, maxBy), at)
	}
	return fmt.Sprintf("sbx published\n\ntask: %s\nfence: %d\ncommit: %s\nbranch: %s\nat: %s\n", m.Task, m.Fence, m.Commit, m.Branch, at)
}

// commitObject is the marker as a commit: an empty tree, no parent, sbx as author.
func (m Mark) commitObject(tree string) string {
	who := fmt.Sprintf("sbx <sbx@localhost> %d +0000", max(m.At.Unix(), 0))
	return fmt.Sprintf("tree %s\nauthor %s\ncommitter %s\n\n%s", tree, who, who, m.commitMessage())
}

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
	m := Mark{Verdict: Verdict(verdict), Task: fields["task"]}
	switch m.Verdict {
	case Published:
		fence, err := strconv.ParseInt(fields["fence"], 10, 64)
		if err != nil || !isOID(fields["commit"]) || checkBranch(fields["branch"]) != nil {
			return Mark{}, notMarkerError("it does not name what was published")
		}
		m.Fence, m.Commit, m.Branch = fence, fields["commit"], fields["branch"]
	case Stopped:
		m.By = oneLine(fields["by"], maxBy)
	default:
		return Mark{}, notMarkerError("it is neither published nor stopped")
	}
	at, err := time.Parse(time.RFC3339, fields["at"])
	if err != nil || checkTask(m.Task) != nil {
		return Mark{}, notMarkerError("it names no task or no time")
	}
	m.At = at.UTC().Truncate(time.Second)
	return m, nil
}

// markFields reads "key: value" lines. Unknown keys, of a later sbx, are accepted; a
// repeated key is not.
func markFields(body string) (map[string]string, error) {
	fields := map[string]string{}
	for line := range strings.Lines(body) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if _, twice := fields[key]; !ok || twice {
			return nil, notMarkerError("it has a line that is invalid or occurs twice")
		}
		fields[key] = value
	}
	return fields, nil
}

func notMarkerError(why string) *fault.Error {
	return fault.New(fault.KindRefused, "the fence ref is not a marker of sbx: %s", why).
		WithHint("check refs/sbx/fence on the remote and who wrote it; nothing was changed")
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
