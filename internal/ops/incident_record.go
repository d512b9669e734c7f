package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/incident"
	"sbx/internal/journal"
	"sbx/internal/notify"
)

// sight is what this process has seen and done since it last wrote to the open incident. It is
// collected in memory whether or not one is open, and costs one look for the open one at the end.
type sight struct {
	mu        sync.Mutex
	verb      string // "" = it is none that looks at sandboxes, and only what it does is recorded
	watch     Reporter
	event     incident.Event
	seen      bool // event has something that is not written
	wroteAt   time.Time
	runs      []startedRun
	sent      []incident.Event
	snapshots []pendingSnapshot
	warned    bool
	last      bool // the verb is over
}

// startedRun is a run of this process that terminates or changes something.
type startedRun struct {
	disk  journal.Disk
	id    string
	ended bool // its journal is complete
}

// pendingSnapshot makes the bytes of a snapshot, if an incident is open.
type pendingSnapshot struct {
	name string
	make func() ([]byte, error)
}

const (
	// recordLimit is how long recording may take, also after an interrupt.
	recordLimit = 15 * time.Second
	// recordEvery is how often a verb that repeats records what it sees.
	recordEvery = time.Minute
	// maxActs bounds the acts of one event.
	maxActs = 500
)

// BeginVerb says which verb this process runs, for the incident that may be open, and where it is reported that
// it could not be recorded.
func (e *Env) BeginVerb(verb string, watch Reporter) {
	e.sight.mu.Lock()
	defer e.sight.mu.Unlock()
	e.sight.verb, e.sight.watch = verb, watch
}

// saw adds to what this process has seen.
func (e *Env) saw(add func(*incident.Event)) {
	e.sight.mu.Lock()
	defer e.sight.mu.Unlock()
	add(&e.sight.event)
	e.sight.seen = true
}

// noteRun has what a run does recorded.
func (e *Env) noteRun(disk journal.Disk, id string) {
	e.sight.mu.Lock()
	defer e.sight.mu.Unlock()
	e.sight.runs = append(e.sight.runs, startedRun{disk: disk, id: id})
}

// noteRunEnd says that the journal of a run is complete.
func (e *Env) noteRunEnd(id string) {
	e.sight.mu.Lock()
	defer e.sight.mu.Unlock()
	for i := range e.sight.runs {
		e.sight.runs[i].ended = e.sight.runs[i].ended || e.sight.runs[i].id == id
	}
}

// noteSent has a notification recorded.
func (e *Env) noteSent(m notify.Message, to, failed []string, err error) {
	if len(to) == 0 {
		return
	}
	message := &incident.Message{Kind: string(m.Kind), Alert: m.Alert, Severity: m.Severity, Level: m.Level}
	for _, name := range to {
		if !slices.Contains(failed, name) {
			message.To = append(message.To, name)
		}
	}
	if err != nil {
		message.Error = err.Error()
	}
	e.sight.mu.Lock()
	defer e.sight.mu.Unlock()
	e.sight.sent = append(e.sight.sent, incident.Event{
		Kind: incident.Escalated, At: e.Now(), Verb: m.Verb, Text: cmp.Or(m.Title, m.Text), Providers: m.Providers, Message: message,
	})
}

// AddSnapshot has a snapshot stored, if an incident is open when the answer was shown. The bytes are
// made only then.
func (e *Env) AddSnapshot(name string, content func() ([]byte, error)) {
	e.sight.mu.Lock()
	defer e.sight.mu.Unlock()
	i := slices.IndexFunc(e.sight.snapshots, func(s pendingSnapshot) bool { return s.name == name })
	if i >= 0 { // of a verb that repeats, the last one
		e.sight.snapshots = slices.Delete(e.sight.snapshots, i, i+1)
	}
	e.sight.snapshots = append(e.sight.snapshots, pendingSnapshot{name, content})
}

// RecordVerb records what this process has seen and done in the incident that is open. A skin calls
// it when it has shown the answer, with the exit code and the error of the verb. Whatever comes of it
// changes neither: a failure is one warning.
func (e *Env) RecordVerb(ctx context.Context, code int, err error) {
	e.sight.mu.Lock()
	e.sight.last = true
	if code == fault.ExitCode(fault.Usage("")) { // nothing was called
		e.sight.verb, e.sight.seen = "", false
	}
	if e.sight.verb != "" {
		e.sight.seen = true
		if e.sight.event.ExitCode = &code; err != nil {
			e.sight.event.Errors = append(e.sight.event.Errors, err.Error())
		}
	}
	e.sight.mu.Unlock()
	e.record(ctx)
}

// incidentIsOpen says that what this process reads belongs into an incident.
func (e *Env) incidentIsOpen() bool {
	if e.Incidents == nil {
		return false
	}
	folder, err := e.Incidents()
	if err != nil {
		return false
	}
	id, err := folder.Current()
	return err == nil && id != ""
}

// RecordSoFar records what this process has seen and done until now. A verb that works for long calls
// it at the points from which another process may have to go on.
func (e *Env) RecordSoFar(ctx context.Context) { e.record(ctx) }

// recordRound records after a round of a verb that repeats.
func (e *Env) recordRound(ctx context.Context) {
	e.sight.mu.Lock()
	acted := slices.ContainsFunc(e.sight.runs, func(r startedRun) bool { return r.ended })
	due := acted || e.sight.seen && (e.sight.wroteAt.IsZero() || time.Since(e.sight.wroteAt) >= recordEvery)
	e.sight.mu.Unlock()
	if due {
		e.record(ctx)
	}
}

// recordSent records the notifications that were sent.
func (e *Env) recordSent(ctx context.Context) {
	e.sight.mu.Lock()
	due := len(e.sight.sent) > 0
	e.sight.mu.Unlock()
	if due {
		e.record(ctx)
	}
}

// record writes what was collected to the open incident. What it cannot write is lost.
func (e *Env) record(ctx context.Context) {
	if e.Incidents == nil {
		return
	}
	s := &e.sight
	s.mu.Lock()
	defer s.mu.Unlock()
	if (s.verb == "" || !s.seen) && len(s.runs)+len(s.sent)+len(s.snapshots) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer stop()
	err := e.writeSight(ctx, s)
	event := incident.Event{}
	s.event, s.seen, s.sent, s.snapshots, s.wroteAt = event, false, nil, nil, time.Now()
	if err != nil && s.watch != nil && !s.warned {
		s.warned = true
		s.watch.Warn("the open incident does not record this: " + err.Error())
	}
}

func (e *Env) writeSight(ctx context.Context, s *sight) error {
	folder, err := e.Incidents()
	if err != nil {
		return nil //nolint:nilerr // without a state directory there is no incident; verbs that need one say so
	}
	id, err := folder.Current()
	if err != nil || id == "" {
		return err
	}
	clean := e.incidentRedactor()
	events, err := e.sightEvents(s)
	for i := range events {
		events[i] = redactedEvent(events[i], clean)
	}
	if len(events) > 0 {
		err = errors.Join(err, folder.Append(ctx, id, events...))
	}
	for _, snapshot := range s.snapshots {
		content, makeErr := snapshot.make()
		if len(content) > 0 {
			redacted, addErr := incident.ReplaceInSnapshot(content, clean)
			if addErr == nil {
				_, addErr = folder.AddSnapshot(ctx, id, snapshot.name, redacted, incident.Event{At: e.Now(), Actor: e.incidentActor(), Verb: s.verb})
			}
			makeErr = errors.Join(makeErr, addErr)
		}
		err = errors.Join(err, makeErr)
	}
	return err
}

// sightEvents are what was collected: what was seen and done, then what was sent.
func (e *Env) sightEvents(s *sight) ([]incident.Event, error) {
	event := s.event
	event.Kind, event.At, event.Actor = cmp.Or(event.Kind, incident.Seen), e.Now(), e.incidentActor()
	event.Verb, event.Line = s.verb, incidentLine(e.Process.Name(), e.Process.Args)
	acts, err := s.takeActs()
	if len(acts) > 0 {
		event.Kind = incident.Acted
		event.Acts = acts[:min(len(acts), maxActs)]
		event.MoreActs = len(acts) - len(event.Acts)
	}
	var events []incident.Event
	if s.verb != "" && s.seen || len(acts) > 0 {
		events = append(events, event)
	}
	for _, sent := range s.sent {
		sent.Actor, sent.Line = event.Actor, event.Line
		events = append(events, sent)
	}
	return events, err
}

// takeActs reads from the journals what the runs of this process have done: of those that are over,
// and of the others at the end of the process.
func (s *sight) takeActs() (all []incident.Act, err error) {
	var left []startedRun
	for _, run := range s.runs {
		if !run.ended && !s.last {
			left = append(left, run)
			continue
		}
		acts, _, readErr := cleanup.ReadActs(run.disk, run.id)
		err = errors.Join(err, readErr)
		for _, a := range acts {
			all = append(all, incidentAct(a))
		}
	}
	s.runs = left
	return all, err
}

func incidentAct(a cleanup.Act) incident.Act {
	reason := a.Reason
	if a.Detail != "" && a.Detail != a.Reason {
		reason = strings.TrimPrefix(reason+"; "+a.Detail, "; ")
	}
	return incident.Act{Ref: a.Ref.String(), Name: a.Name, Action: a.Action, Reason: reason, Outcome: string(a.Outcome), Run: a.Run}
}

func (e *Env) incidentActor() incident.Actor {
	a := e.Actor()
	return incident.Actor{Who: a.Who, Host: a.Host, PID: a.PID, Version: a.Version}
}

// incidentLine is the command line as it is recorded: without the program that a sandbox is started
// with, and without the values of its environment, which are never stored.
func incidentLine(program string, args []string) string {
	words := []string{program}
	for i := 1; i < len(args); i++ {
		word := args[i]
		name, value, given := strings.Cut(word, "=")
		switch {
		case word == "--":
			return strings.Join(append(words, "-- ..."), " ")
		case name == "--env" && given:
			value, _, _ = strings.Cut(value, "=")
			word = name + "=" + value + "=..."
		case i > 1 && args[i-1] == "--env" && given:
			word = name + "=..."
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// incidentRedactor removes the secrets of the configuration from a text, and what looks like one.
func (e *Env) incidentRedactor() func(string) (string, int) {
	var secrets []string
	if c, err := e.Config(); err == nil {
		secrets = c.Secrets()
	}
	return incident.Replacer(secrets, standardReplacers()...)
}

// RedactText is a text that people typed or a sandbox wrote, without secrets, for a record.
func (e *Env) RedactText(text string) string {
	clean, _ := e.incidentRedactor()(text)
	return clean
}

// Secrets by their place: user and password in an address, and the value of a parameter or variable with
// the name of one, or behind "bearer". The second group is what is replaced.
var (
	secretInURL  = regexp.MustCompile(`(://)([^\s/?#"'@\[]+)(@)`)
	secretByName = regexp.MustCompile(
		`(?i)(\b[\w.-]*(?:token|secret|password|passwd|api[_-]?key|access[_-]?key|private[_-]?key|credential)["']?\s*[=:]\s*["']?|\bbearer\s+|[?&](?:sig|signature|key)=)` +
			`([^\s"'&@\[]{3,})(["'&@]|\s|$)`)
)

// Secrets by their form: the value of a flag, keys of well-known services, a private key, whole or cut off.
var (
	secretFlag = regexp.MustCompile(`(?i)(--?[\w-]*(?:token|secret|password|passwd|api-?key|access-?key|private-?key|credentials?)\s+)("[^"]+"|'[^']+'|[^\s"'\[-][^\s]*)`)
	secretForm = regexp.MustCompile(`\b(?:A[KS]IA[0-9A-Z]{16}|gh[opusr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|xox[a-z]-[A-Za-z0-9-]{10,}|sk-[\w-]{16,}|AIza[\w-]{35}|` +
		`eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]+)|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?-----END [A-Z ]*PRIVATE KEY-----|.*)`)
)

// standardReplacers replace what is a secret by its form or its place.
func standardReplacers() []func(string) (string, int) {
	return []func(string) (string, int){
		replacePattern(secretForm, incident.RedactedText), replacePattern(secretFlag, "${1}"+incident.RedactedText),
		replacePattern(secretInURL, "${1}"+incident.RedactedText+"${3}"), replacePattern(secretByName, "${1}"+incident.RedactedText+"${3}"),
	}
}

// replacePattern replaces what a pattern matches, as incident.Replacer takes it.
func replacePattern(pattern *regexp.Regexp, with string) func(string) (string, int) {
	return func(text string) (string, int) {
		n := len(pattern.FindAllStringIndex(text, -1))
		if n == 0 {
			return text, 0
		}
		return pattern.ReplaceAllString(text, with), n
	}
}

// redactedEvent is an event without secrets in any of its texts.
func redactedEvent(event incident.Event, clean func(string) (string, int)) incident.Event {
	text, err := json.Marshal(event)
	if err != nil {
		return event
	}
	text, places := incident.ReplaceInEvent(text, clean)
	out := incident.Event{Kind: event.Kind}
	if places == 0 || json.Unmarshal(text, &out) != nil {
		return event
	}
	return out
}
