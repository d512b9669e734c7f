package publish

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
)

// pushResult is the effect of one push, by the remote's report.
type pushResult int

const (
	pushAccepted pushResult = iota // every ref moved, or was there already
	pushRejected                   // no ref moved
	pushTorn                       // one ref moved and one did not
	pushUnknown                    // the effect is unknown
	pushNotSent                    // git ended before it sent anything: no permission, no atomic push
)

// refUpdate is one ref of a push: its required commit before ("" = it must not exist) and
// after.
type refUpdate struct{ ref, from, to string }

// pushAtomically pushes all updates or none. It fails only when ctx has ended; the result
// is then pushUnknown.
func (s *scratch) pushAtomically(ctx context.Context, updates ...refUpdate) (pushResult, gitOutput, error) {
	args := []string{"push", "--porcelain", "--atomic", "--no-verify", "--no-follow-tags", "--no-signed"}
	for _, u := range updates {
		args = append(args, "--force-with-lease="+u.ref+":"+u.from)
	}
	args = append(args, "--", s.remote)
	for _, u := range updates {
		args = append(args, u.to+":"+u.ref)
	}
	p, err := s.runRemote(ctx, args...)
	if err != nil {
		return pushUnknown, p, err
	}
	return parsePushResult(p, updates), p, nil
}

// parsePushResult reads the porcelain lines of git push, one per ref:
// "<flag>\t<from>:<to>\t<summary> (<reason>)".
func parsePushResult(p gitOutput, updates []refUpdate) pushResult {
	moved, stayed := 0, 0
	for _, u := range updates {
		flag, summary := refStatus(p.out, u.ref)
		switch {
		case flag == "":
		case flag != "!":
			moved++
		case strings.HasPrefix(summary, "[rejected]"), strings.HasPrefix(summary, "[remote rejected]"):
			stayed++
		}
	}
	switch {
	case moved == len(updates) && p.code == 0 && !p.cutShort:
		return pushAccepted
	case stayed == len(updates):
		return pushRejected
	case moved > 0 && stayed > 0:
		return pushTorn
	case moved == 0 && stayed == 0 && !p.cutShort && sentNothing(p.errors):
		return pushNotSent
	}
	return pushUnknown
}

func refStatus(out, ref string) (flag, summary string) {
	for line := range strings.Lines(out) {
		part := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		if len(part) == 3 && strings.HasSuffix(part[1], ":"+ref) {
			return part[0], part[2]
		}
	}
	return "", ""
}

// rejectReasons joins the remote's reasons for not moving refs.
func rejectReasons(out string, updates ...refUpdate) string {
	var all []string
	for _, u := range updates {
		if flag, summary := refStatus(out, u.ref); flag == "!" {
			all = append(all, u.ref+" "+summary)
		}
	}
	return oneLine(strings.Join(all, ", "), 300)
}

// pushTries is how often a push is sent again that lost only the remote's lock.
const pushTries = 4

// errContended reports that a push lost the remote's lock.
var errContended = errors.New("the remote was busy with the same refs")

// newPushPauses returns the pauses before a push is sent again.
func newPushPauses() *poll.Backoff { return poll.NewBackoff(100*time.Millisecond, time.Second) }

// isBusy reports whether the remote's message says that another push held the refs. A hook
// or a rule of the host is not busy: it would refuse the next push too.
func isBusy(reasons string) bool {
	return regexp.MustCompile(`(?i)(cannot|failed to|unable to) lock|failed to update ref|already exists|failed to start transaction|incorrect old value`).MatchString(reasons)
}

// sentNothing reports whether git ended before the remote accepted a command. Output of
// hooks does not count, because they run after that.
func sentNothing(words string) bool {
	var own []string
	for line := range strings.Lines(words) {
		if !strings.HasPrefix(line, "remote:") {
			own = append(own, line)
		}
	}
	kind, _ := classifyMessage(strings.Join(own, ""))
	return kind != fault.KindUnavailable
}

func inDoubt(op string, cause error) error {
	return fault.New(fault.KindUnavailable, "%s: %w: %w", op, ErrInDoubt, cause).
		WithHint("the task's claim on the branch, a ref on the remote, shows it; `sbx stop` settles it in both cases")
}

// resolveFailedPush finds out what became of a publish whose push failed: only the state of
// the remote counts.
func (s *scratch) resolveFailedPush(ctx context.Context, p Push, f pushResult, said gitOutput, updates []refUpdate) (Receipt, error) {
	switch f {
	case pushNotSent:
		return Receipt{}, s.remoteError("publish to "+p.Target.String(), said)
	case pushTorn:
		return Receipt{}, fault.New(fault.KindPartial, "publish to %s: %w: %s", p.Target, ErrNotAtomic, rejectReasons(said.out, updates...)).
			WithHint("this host hides or protects refs/sbx or the branch; check both, then publish with --publish CMD")
	default:
	}
	seen, err := s.readRefs(ctx, fenceRef(p.Task), p.Target.branchRef())
	if err != nil {
		return Receipt{}, s.unseenPushError(p, f, err)
	}
	if marker := updates[1].to; seen[fenceRef(p.Task)] == marker {
		return Receipt{Commit: updates[0].to, Marker: marker}, nil // the push arrived; only the answer was lost
	}
	receipt, err := s.checkFence(ctx, p, seen)
	if err != nil || receipt.Already {
		return receipt, err
	}
	if f == pushUnknown {
		return Receipt{}, s.unseenPushError(p, f, errors.New(s.describeOutput(said)))
	}
	if err := checkBase(p, seen); err != nil {
		return Receipt{}, err
	}
	why := rejectReasons(said.out, updates...)
	if isBusy(why) {
		return Receipt{}, fault.New(fault.KindUnavailable, "publish to %s: %w: %s", p.Target, errContended, why).WithHint("try again")
	}
	return Receipt{}, fault.New(fault.KindRefused, "the remote refused to publish to %s: %s", p.Target, strings.TrimSpace(why+" "+s.describeOutput(said))).
		WithHint("a hook or a rule of the host protects the branch or refs/sbx; nothing was changed")
}

// unseenPushError is the error for a push whose result could not be read: after a rejection
// nothing happened, otherwise it is unknown.
func (s *scratch) unseenPushError(p Push, f pushResult, cause error) error {
	if f == pushRejected {
		return cause
	}
	return inDoubt("publish to "+p.Target.String(), cause)
}

// Errors that callers distinguish with errors.Is.
var (
	// ErrStopped: the task was stopped first; nothing of it became public.
	ErrStopped = errors.New("the task was stopped before it was published")
	// ErrMoved: the branch is not at the commit from which the work started; nothing became
	// public.
	ErrMoved = errors.New("the branch has moved")
	// ErrInDoubt: a push was cut; only a successful ForbidPublish shows the result.
	ErrInDoubt = errors.New("it is unknown whether the push arrived")
	// ErrNotAtomic: the remote did not push atomically.
	ErrNotAtomic = errors.New("the remote updated one of two refs that it had to update together")
)

// remoteError is the error for a failed call to the remote. The call changed nothing.
func (s *scratch) remoteError(op string, p gitOutput) error {
	if p.cutShort {
		return fault.New(fault.KindUnavailable, "%s: no answer within the limit", op).WithHint("try again; check that the host is reachable from here")
	}
	kind, hint := classifyMessage(p.errors)
	return fault.New(kind, "%s: %s", op, s.describeOutput(p)).WithHint("%s", hint)
}

// classifyMessage reads git's messages, in the C locale. Unknown ones count as unavailable:
// git says "could not read from remote" for every failure below it.
func classifyMessage(words string) (fault.Kind, string) {
	for _, row := range []struct {
		kind  fault.Kind
		words string
		hint  string
	}{
		{
			fault.KindAuth, `(?i)authentication failed|could not read (username|password)|terminal prompts disabled|permission denied|` +
				`requested url returned error: 40[13]|permission to .* denied|access denied|not authorized|invalid (username|credentials)|write access .*not granted`,
			"git on this host must be able to push there without a prompt: a credential helper, an ssh agent, or a token in the URL",
		},
		{fault.KindAuth, `(?i)host key verification failed`, "connect once with ssh and accept the host's key"},
		{
			fault.KindUsage, `(?i)does not appear to be a git repository|repository .*not found|requested url returned error: 404|no such file or directory|not a git repository`,
			"the address is wrong, or these credentials have no access to it",
		},
		{fault.KindUsage, `transport '.*' not allowed`, "sbx supports https, http, ssh, git and file"},
		{fault.KindRefused, `detected dubious ownership`, "git refuses folders of other users; see safe.directory"},
		{
			fault.KindUnsupported, `does not support --atomic push`,
			"sbx publishes only where the branch and the task's claim on it are updated together; use --publish CMD there",
		},
	} {
		if regexp.MustCompile(row.words).MatchString(words) {
			return row.kind, row.hint
		}
	}
	return fault.KindUnavailable, "try again; check that the host is reachable from here"
}

// describeOutput selects the most useful of git's messages as one line for an error: the
// lines of the remote and its hooks, else the most specific line of git.
func (s *scratch) describeOutput(p gitOutput) string {
	var theirs []string
	best, rank := "git printed nothing", 0
	for line := range strings.Lines(p.errors) {
		if words, ok := strings.CutPrefix(line, "remote:"); ok && strings.TrimSpace(words) != "" {
			theirs = append(theirs, strings.TrimSpace(words))
		}
		if r := lineRank(line); r > rank {
			best, rank = line, r
		}
	}
	if len(theirs) > 0 {
		best = strings.Join(theirs, "; ")
	}
	return oneLine(s.credentials.maskText(best), 300)
}

func lineRank(line string) int {
	switch {
	case strings.TrimSpace(line) == "":
		return 0
	case strings.Contains(line, "hung up unexpectedly"), strings.HasPrefix(line, "error: failed to push some refs"), strings.HasPrefix(line, "fatal: Could not read from remote"), strings.HasPrefix(line, "fatal: fsck error"):
		return 1
	case strings.HasPrefix(line, "error:"):
		return 3
	case strings.HasPrefix(line, "fatal:"), strings.HasPrefix(line, "ssh:"):
		return 4
	default:
		return 2
	}
}
