package incidents

import (
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"sbx/internal/fault"
	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/ops"
)

// NoteRequest is what a person knows.
type NoteRequest struct {
	Text      string
	At        time.Time          // when it was; zero = now
	Milestone incident.Milestone // that was reached then; "" = none
	Question  string             // of a runbook, that it answers; "" = none
	Providers []string           // that it is about; none = all
	// Questions are those that runbooks ask; it is called where the note answers one.
	Questions func() ([]string, error)
}

// maxNote bounds a note, in characters: it is a line of a timeline.
const maxNote = 4000

// Note keeps what a person knows, without secrets: in the store, which hosts may share.
func Note(ctx context.Context, env *ops.Env, req NoteRequest) (history.Note, error) {
	if n := utf8.RuneCountInString(req.Text); n > maxNote {
		return history.Note{}, fault.Usage("the note has %d characters, and %d is the most", n, maxNote).WithHint("write several notes")
	}
	if err := req.checkQuestion(); err != nil {
		return history.Note{}, err
	}
	n := history.Note{
		At: env.Now().UTC(), Written: env.Now().UTC(), Who: env.Process.User(), Host: env.Process.Host, Providers: req.Providers,
		Text: env.RedactText(req.Text), Milestone: string(req.Milestone), Question: req.Question,
	}
	if !req.At.IsZero() {
		n.At = req.At.UTC()
	}
	if err := env.RequireState(); err != nil {
		return n, err
	}
	st, err := env.Store(true)
	if err != nil {
		return n, err
	}
	return n, errors.Join(history.AddNote(ctx, st, n), st.Close())
}

// checkQuestion refuses a question that no runbook asks: no report would show its answer.
func (r NoteRequest) checkQuestion() error {
	if r.Question == "" {
		return nil
	}
	ids, err := r.Questions()
	switch {
	case err != nil:
		return fault.New(fault.KindOf(err), "the questions of the runbooks cannot be read: %w", err).WithHint("a note without --answer needs no runbook")
	case !slices.Contains(ids, r.Question):
		return fault.Usage("no runbook asks the question %q", r.Question).WithHint("%s", fault.Meant(r.Question, ids))
	}
	return nil
}

// readNotes takes the notes that are about the scope: those of its time, and when it was detected, which may be
// before it began.
func (r *IncidentReport) readNotes(all []history.Note, p period) {
	for _, n := range all {
		within := func(at time.Time) bool { return !at.Before(p.since) && !at.After(p.noted) }
		early := n.Milestone == string(incident.MilestoneDetected) && n.At.Before(p.since) && within(n.Written)
		if !p.isAbout(n.Providers) || !early && !within(n.At) {
			continue
		}
		r.Said = append(r.Said, incident.Event{
			Kind: incident.Noted, At: n.At, Actor: incident.Actor{Who: n.Who, Host: n.Host}, Text: n.Text, Milestone: incident.Milestone(n.Milestone), Question: n.Question,
		})
	}
}
