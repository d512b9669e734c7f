package cleanup

import (
	"errors"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
)

// Verdict is the error behind the exit code of a run: nil when every profile was
// seen whole and everything that was selected has ended. What changed or was left
// alone on purpose is no trouble (DESIGN section 4).
func (s Survey) Verdict(endings []sandbox.Ending) error {
	left, ending := s.unlisted(), fleet.Verdict(endings, false)
	if len(left) == 0 && len(s.Sources) > 0 && !fault.Interrupted(ending) {
		return s.sourcesVerdict(ending)
	}
	switch {
	case len(left) == 0:
		return ending
	case len(left) == len(s.Shares) && len(endings) == 0:
		return errors.Join(left...)
	case fault.Interrupted(ending):
		return ending
	case ending != nil:
		return fault.New(fault.KindPartial, "%w; and %d of %d profiles could not be seen whole, and were left out", ending, len(left), len(s.Shares))
	}
	return fault.New(fault.KindPartial, "%d of %d profiles could not be seen whole, and were left out", len(left), len(s.Shares)).
		WithHint("the others are done; nothing was ended where something might be missing from the list")
}

// sourcesVerdict is partial: the rest is done, and some could not be judged.
func (s Survey) sourcesVerdict(ending error) error {
	if ending != nil {
		return fault.New(fault.KindPartial, "%w; and a source of activity does not answer", ending)
	}
	return fault.New(fault.KindPartial, "%w", s.Sources[0]).WithHint("%s", fault.HintOf(s.Sources[0]))
}

// Succeeded names the profiles in which nothing is left undone: each was seen whole,
// every source of activity answered, every ending went well, and nothing stayed because
// nobody has said whose it is.
func (s Survey) Succeeded(endings []sandbox.Ending) []string {
	trouble := map[string]bool{}
	for _, err := range s.Sources {
		known, ok := errors.AsType[*fault.Error](err)
		if !ok || known.Provider == "" {
			return []string{} // it is about all of them
		}
		trouble[known.Provider] = true
	}
	for _, e := range endings {
		if fleet.Verdict([]sandbox.Ending{e}, false) != nil {
			trouble[e.Ref.Provider] = true
		}
	}
	names := []string{}
	for _, share := range s.Shares {
		if share.Err == nil && share.Unowned == 0 && !trouble[share.Profile] {
			names = append(names, share.Profile)
		}
	}
	return names
}

// Records are the shares as the journal keeps them, without what redact hides.
func (s Survey) Records(redact func(string) string) []ShareRecord {
	records := make([]ShareRecord, 0, len(s.Shares))
	for _, share := range s.Shares {
		r := ShareRecord{Profile: share.Profile, Complete: share.Err == nil, Fleet: share.Fleet, Selected: share.Selected, Unowned: share.Unowned}
		if share.Err == nil {
			r.Active = new(share.Active)
		}
		if share.Err != nil {
			r.Error = redact(share.Err.Error())
		}
		records = append(records, r)
	}
	return records
}
