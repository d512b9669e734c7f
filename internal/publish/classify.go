package publish

import (
	"errors"
	"regexp"
	"strings"

	"sbx/internal/fault"
)

// Errors that callers distinguish with errors.Is.
var (
	// ErrStopped: the task was stopped first; nothing of it became public.
	ErrStopped = errors.New("the task was stopped before it was published")
	// ErrMoved: the branch is not at the commit from which the work started; nothing became
	// public.
	ErrMoved = errors.New("the branch has moved")
	// ErrInDoubt: a push was cut; only a successful Poison shows the result.
	ErrInDoubt = errors.New("nobody knows whether the push arrived")
	// ErrTorn: the remote did not push atomically.
	ErrTorn = errors.New("the remote moved one of two refs that it promised to move together")
)

// remoteError is the error for a failed call to the remote. The call changed nothing.
func (s *scratch) remoteError(op string, p gitOutput) error {
	if p.cutShort {
		return fault.New(fault.KindUnavailable, "%s: no answer within the limit", op).WithHint("try again; is the host reachable from here?")
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
			"git on this host must be able to push there without asking: a credential helper, an ssh agent, or a token in the URL",
		},
		{fault.KindAuth, `(?i)host key verification failed`, "connect once with ssh and accept the host's key"},
		{
			fault.KindUsage, `(?i)does not appear to be a git repository|repository .*not found|requested url returned error: 404|no such file or directory|not a git repository`,
			"the address is wrong, or these credentials may not see it",
		},
		{fault.KindUsage, `transport '.*' not allowed`, "sbx takes https, http, ssh, git and file"},
		{fault.KindRefused, `detected dubious ownership`, "git refuses folders of other users; see safe.directory"},
		{fault.KindUnsupported, `does not support --atomic push`, "sbx publishes only where the branch and the fence move together; use --publish CMD there"},
	} {
		if regexp.MustCompile(row.words).MatchString(words) {
			return row.kind, row.hint
		}
	}
	return fault.KindUnavailable, "try again; is the host reachable from here?"
}

// describeOutput selects the most useful of git's messages as one line for an error: the
// lines of the remote and its hooks, else the most specific line of git.
func (s *scratch) describeOutput(p gitOutput) string {
	var theirs []string
	best, rank := "git said nothing", 0
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
