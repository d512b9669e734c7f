package publish

import (
	"context"
	"strings"
)

// fate is what one push did, by the words of the remote.
type fate int

const (
	taken    fate = iota // every ref moved, or was there already
	rejected             // no ref moved
	torn                 // one moved and one did not
	open                 // nobody knows
	refused              // git ended before it sent anything: no right, no atomic push
)

// update is one ref of a push: from what it must be at ("" = must not exist) to what.
type update struct{ ref, from, to string }

// push asks for all updates or none. The error is ctx's alone; the fate is then open.
func (s *scratch) push(ctx context.Context, updates ...update) (fate, printed, error) {
	args := []string{"push", "--porcelain", "--atomic", "--no-verify", "--no-follow-tags", "--no-signed"}
	for _, u := range updates {
		args = append(args, "--force-with-lease="+u.ref+":"+u.from)
	}
	args = append(args, "--", s.remote)
	for _, u := range updates {
		args = append(args, u.to+":"+u.ref)
	}
	p, err := s.far(ctx, args...)
	if err != nil {
		return open, p, err
	}
	return fateOf(p, updates), p, nil
}

// fateOf reads the porcelain lines of git push, one a ref: "<flag>\t<from>:<to>\t<summary> (<reason>)".
func fateOf(p printed, updates []update) fate {
	moved, stayed := 0, 0
	for _, u := range updates {
		flag, summary := status(p.out, u.ref)
		switch {
		case flag == "":
		case flag != "!":
			moved++
		case strings.HasPrefix(summary, "[rejected]"), strings.HasPrefix(summary, "[remote rejected]"):
			stayed++
		}
	}
	switch {
	case moved == len(updates) && p.code == 0 && !p.cut:
		return taken
	case stayed == len(updates):
		return rejected
	case moved > 0 && stayed > 0:
		return torn
	case moved == 0 && stayed == 0 && !p.cut && sentNothing(p.errors):
		return refused
	}
	return open
}

func status(out, ref string) (flag, summary string) {
	for line := range strings.Lines(out) {
		part := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		if len(part) == 3 && strings.HasSuffix(part[1], ":"+ref) {
			return part[0], part[2]
		}
	}
	return "", ""
}

// reasons joins why the remote kept refs where they were.
func reasons(out string, updates ...update) string {
	var all []string
	for _, u := range updates {
		if flag, summary := status(out, u.ref); flag == "!" {
			all = append(all, u.ref+" "+summary)
		}
	}
	return oneLine(strings.Join(all, ", "), 300)
}
