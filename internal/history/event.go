package history

import (
	"context"
	"slices"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// Event is what a verb has concluded of all sandboxes, or has done, that no other record has. It is kept
// for the reports of its time.
type Event struct {
	At        time.Time `json:"at"`
	Verb      string    `json:"verb"`
	Who       string    `json:"who"`
	Host      string    `json:"host"`
	Providers []string  `json:"providers,omitempty"`
	Text      string    `json:"text,omitempty"`
	Figures   []Figure  `json:"figures,omitempty"` // too low where Errors says that a provider did not answer
	Flags     []Check   `json:"flags,omitempty"`   // that hold
	Causes    []Cause   `json:"causes,omitempty"`
	Targets   []Check   `json:"targets,omitempty"` // of verify
	Met       bool      `json:"met,omitempty"`     // all targets are
	Errors    []string  `json:"errors,omitempty"`
	Message   *Message  `json:"message,omitempty"` // that was sent
}

// Figure is a count of sandboxes. One that could not be counted is nil.
type Figure struct {
	Name  string `json:"name"`
	Value *int64 `json:"value"`
}

// Check is a statement and whether it is true: a flag, or a target with its figure.
type Check struct {
	ID       string             `json:"id"`
	Title    string             `json:"title"`
	Verdict  sandbox.Verdict    `json:"verdict"`
	Severity string             `json:"severity,omitempty"`
	Value    string             `json:"value,omitempty"`
	Target   string             `json:"target,omitempty"`
	Evidence []sandbox.Evidence `json:"evidence,omitempty"`
}

// Message is a notification that was sent, or could not be.
type Message struct {
	Alert    string   `json:"alert,omitempty"`
	Severity string   `json:"severity,omitempty"`
	Level    string   `json:"level,omitempty"` // who acts first
	To       []string `json:"to,omitempty"`    // the services that got it
	Error    string   `json:"error,omitempty"` // why it was not sent
}

const (
	maxEvents = 1000 // in one sample, the newest
	// allProfiles and eventsSubject are where events are stored; no profile and no id has such a form.
	allProfiles   = "/all"
	eventsSubject = "/events"
)

// AddEvent records an event. Of events with the same text, verb and providers it keeps the first and the
// last until they are stored, since a verb may look every few seconds.
func (r *Recorder) AddEvent(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	same := 0
	for i, have := range r.events {
		if e.Message == nil && have.Message == nil && e.Verb == have.Verb && e.Text == have.Text && slices.Equal(e.Providers, have.Providers) {
			if same++; same == 2 {
				r.events[i] = e
				return
			}
		}
	}
	r.events = append(r.events, e)
}

// Events returns the events since a time, oldest first. What cannot be read, such as that of a newer
// version, is left out.
func Events(ctx context.Context, st store.SampleStore, since time.Time) ([]Event, error) {
	samples, err := st.Samples(ctx, store.SampleQuery{Profile: allProfiles, Subject: eventsSubject, Since: since})
	var all []Event
	for _, s := range samples {
		var events []Event
		if unpack(s.Body, &events) == nil {
			all = append(all, events...)
		}
	}
	all = slices.DeleteFunc(all, func(e Event) bool { return e.At.Before(since) })
	slices.SortStableFunc(all, func(a, b Event) int { return a.At.Compare(b.At) })
	return all, err
}

// SeenSince returns the evidence that looks since a time have kept of the sandboxes of a profile, oldest
// first. What cannot be read is left out.
func SeenSince(ctx context.Context, st store.SampleStore, profile string, since time.Time) ([]Seen, error) {
	samples, err := st.Samples(ctx, store.SampleQuery{Profile: profile, AnySubject: true, Since: since.Truncate(seenEvery)})
	var all []Seen
	for _, s := range samples {
		var seen Seen
		if s.Subject != "" && s.Subject != listedSubject && unpack(s.Body, &seen) == nil && !seen.At.Before(since) {
			all = append(all, seen)
		}
	}
	return all, err
}
