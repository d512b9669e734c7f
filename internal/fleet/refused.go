package fleet

import (
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
)

// RefusedSources are the sources that refuse a read which is repeated: each is asked again after pauses that
// double up to longestRefusal, so that one that refuses for good slows no other. The zero value knows none. It is
// not safe for concurrent use.
type RefusedSources struct {
	sources map[string]*refusal
}

type refusal struct {
	kind  fault.Kind
	pause *poll.Backoff
	until time.Time
}

const (
	firstRefusal   = time.Second
	longestRefusal = 30 * time.Second
)

// leavesOut says that a source is not asked now.
func (r *RefusedSources) leavesOut(name string) bool {
	return r != nil && r.sources[name] != nil && time.Now().Before(r.sources[name].until)
}

// isKnown takes the answer of a source. It reports whether that is the refusal that was an error already.
func (r *RefusedSources) isKnown(name string, err error) bool {
	if r == nil {
		return false
	}
	kind := fault.KindOf(err)
	if kind != fault.KindNotFound && kind != fault.KindGone && kind != fault.KindAuth {
		delete(r.sources, name)
		return false
	}
	s := r.sources[name]
	known := s != nil && s.kind == kind
	if !known {
		s = &refusal{kind: kind, pause: poll.NewBackoff(firstRefusal, longestRefusal)}
		if r.sources == nil {
			r.sources = map[string]*refusal{}
		}
		r.sources[name] = s
	}
	s.until = time.Now().Add(s.pause.Next())
	return known
}
