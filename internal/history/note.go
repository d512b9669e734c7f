package history

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"sbx/internal/store"
)

// Note is what a person knows of a moment, for the reports of its time.
type Note struct {
	At        time.Time `json:"at"`      // when it was
	Written   time.Time `json:"written"` // At or later
	Who       string    `json:"who"`
	Host      string    `json:"host"`
	Providers []string  `json:"providers,omitempty"` // that it is about; none = all
	Text      string    `json:"text"`
	Milestone string    `json:"milestone,omitempty"` // that was reached then
	Question  string    `json:"question,omitempty"`  // of a runbook, that it answers
}

// allNotes is where notes are stored: no profile has such a form.
const allNotes = "/notes"

// NoteRules bound what is kept of notes: nothing else has what people typed, so they outlive the looks by far.
func NoteRules() store.SampleRules {
	const year = 366 * 24 * time.Hour
	return store.SampleRules{Keep: year, Fine: year, Every: time.Minute, Bytes: 8 << 20}
}

// AddNote stores a note.
func AddNote(ctx context.Context, st store.SampleStore, n Note) error {
	body, err := pack(n)
	if err == nil {
		err = st.AddSamples(ctx, []store.Sample{{Profile: allNotes, Subject: rand.Text(), At: n.Written, Body: body}}) // two may be of one moment
	}
	if err != nil {
		return err
	}
	return st.ThinSamples(ctx, allNotes, n.Written, NoteRules())
}

// Notes returns the notes that were written since a time, in the order of what they are about. What cannot be
// read, such as that of a newer version, is left out.
func Notes(ctx context.Context, st store.SampleStore, since time.Time) ([]Note, error) {
	samples, err := st.Samples(ctx, store.SampleQuery{Profile: allNotes, AnySubject: true, Since: since})
	var all []Note
	for _, s := range samples {
		var n Note
		if unpack(s.Body, &n) == nil {
			all = append(all, n)
		}
	}
	slices.SortStableFunc(all, func(a, b Note) int { return a.At.Compare(b.At) })
	return all, err
}
