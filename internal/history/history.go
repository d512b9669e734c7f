// Package history keeps what looks have seen, so that trends, repeated timeouts and the cause of
// what has vanished are known to later runs.
//
// A Recorder collects what the looks of one process see and stores it at the end, in one
// transaction. A profile's sample has the counts of a complete listing and the usage of the
// sandboxes that were asked. Evidence of a sandbox that is stuck or has failed is stored beside it,
// since its provider may forget it. Events are what verbs have concluded. Everything is bounded by
// Rules, and notes of people by NoteRules. The package judges nothing.
package history

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// Rules bound what is kept of one profile: a week; beyond two hours one sample for ten minutes,
// which keeps 200 sandboxes that are looked at each minute below 50 MB.
func Rules() store.SampleRules {
	return store.SampleRules{Keep: 7 * 24 * time.Hour, Fine: 2 * time.Hour, Every: 10 * time.Minute, Bytes: 32 << 20}
}

const (
	maxBoxes    = 10_000 // whose usage one sample holds
	maxLogLines = 20     // of a sandbox that failed
	maxLogBytes = 4 << 10
)

// Seen is what is kept of a sandbox that was in trouble, or has failed.
type Seen struct {
	Sandbox sandbox.Sandbox `json:"sandbox"`
	At      time.Time       `json:"at"`
	Live    bool            `json:"live,omitempty"` // it had not failed: it was stuck, or had a likely cause of trouble
	Cause   sandbox.Cause   `json:"cause,omitempty"`
	Reason  string          `json:"reason,omitempty"` // one sentence
	Causes  []Cause         `json:"causes,omitempty"` // the possible causes, the likeliest first
	Logs    []string        `json:"logs,omitempty"`   // its last lines of output
	Usage   *sandbox.Usage  `json:"usage,omitempty"`  // its last sample
}

// Cause is a possible cause as a look has found it.
type Cause struct {
	ID         string             `json:"id"`
	Cause      sandbox.Cause      `json:"cause"`
	Title      string             `json:"title"`
	Confidence sandbox.Confidence `json:"confidence"`
	Score      float64            `json:"score"`
	Coverage   float64            `json:"coverage"`
	Evidence   []sandbox.Evidence `json:"evidence,omitempty"`
	WhyNot     string             `json:"why_not,omitempty"`
}

// Look is one sample of a profile.
type Look struct {
	At     time.Time
	Counts map[sandbox.State]int64  // of a complete listing; nil = there was none
	Usage  map[string]sandbox.Usage // by sandbox id
	// Ending are the sandboxes of a complete listing that were terminating, by id.
	Ending []string
	// TimedOut are the sandboxes of the listing that a time limit ended, with their tasks.
	TimedOut map[string]string
}

// look and usage are a Look as it is stored: short keys, since there are many.
type look struct {
	Counts map[sandbox.State]int64 `json:"c,omitempty"`
	Usage  []usage                 `json:"u,omitempty"`
	Ending []string                `json:"e,omitempty"`
	Limits map[string]string       `json:"l,omitempty"`
}

type usage struct {
	ID      string   `json:"i"`
	At      int64    `json:"t"` // seconds after the look: 0 or negative
	CPU     *float64 `json:"s,omitempty"`
	Percent *float64 `json:"p,omitempty"`
	Memory  *int64   `json:"m,omitempty"`
	Limit   *int64   `json:"l,omitempty"`
	Ops     *int64   `json:"o,omitempty"`
	Source  string   `json:"f,omitempty"`
}

// Recorder collects what the looks of one process see. It may be used concurrently.
type Recorder struct {
	now func() time.Time

	mu    sync.Mutex
	looks map[string]*Look  // by profile
	seen  map[sample][]byte // as it is stored: that of ten thousand would fill the memory
	lost  error             // why some of it cannot be stored

	events []Event
	// listed are the failed sandboxes of listings, by profile and id.
	listed map[string]map[string]Seen
	// unstored are the samples of a Flush that failed, for the next one.
	unstored []store.Sample
}

// sample is the key under which evidence is stored: later evidence with the same key replaces it.
type sample struct {
	ref sandbox.Ref
	at  time.Time
}

// NewRecorder makes an empty recorder.
func NewRecorder(now func() time.Time) *Recorder {
	return &Recorder{now: now, looks: map[string]*Look{}, seen: map[sample][]byte{}, listed: map[string]map[string]Seen{}}
}

func (r *Recorder) look(profile string) *Look {
	if r.looks[profile] == nil {
		r.looks[profile] = &Look{Usage: map[string]sandbox.Usage{}}
	}
	return r.looks[profile]
}

// AddCounts records the counts of a complete listing and the ids of those that were terminating.
func (r *Recorder) AddCounts(profile string, counts map[sandbox.State]int64, ending ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := make(map[sandbox.State]int64, len(counts)+1)
	kept[sandbox.StateRunning] = 0 // an empty listing is known to have none
	maps.Copy(kept, counts)
	l := r.look(profile)
	l.Counts, l.Ending = kept, ending
}

// AddUsage records the newest usage of a sandbox.
func (r *Recorder) AddUsage(ref sandbox.Ref, u sandbox.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.look(ref.Provider)
	if _, known := l.Usage[ref.ID]; known || len(l.Usage) < maxBoxes {
		l.Usage[ref.ID] = u
	}
}

// AddListed records the sandboxes of a listing that failed. A listing tells less than a look, so that
// evidence of a look is preferred.
func (r *Recorder) AddListed(profile string, failed []Seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range failed {
		box := s.Sandbox
		if r.now().Sub(cmp.Or(box.EndedAt, box.CreatedAt)) < Rules().Keep {
			if r.listed[profile] == nil {
				r.listed[profile] = map[string]Seen{}
			}
			r.listed[profile][box.ID] = s
		}
		if box.TaskID != "" && box.Exit != nil && box.Exit.Class == sandbox.ClassTimeout {
			l := r.look(profile)
			if l.TimedOut == nil {
				l.TimedOut = map[string]string{}
			}
			l.TimedOut[box.ID] = box.TaskID
		}
	}
}

// seenEvery bounds the evidence of a sandbox that is stuck for days, and of failed ones that are
// listed for days: one row for each hour.
const seenEvery = time.Hour

// AddSeen records evidence of a look. Its log is cut to the last lines.
func (r *Recorder) AddSeen(s Seen) {
	s.Logs = s.Logs[max(0, len(s.Logs)-maxLogLines):]
	size := 0
	for i, line := range slices.Backward(s.Logs) {
		if size += len(line); size > maxLogBytes {
			s.Logs = s.Logs[i+1:]
			break
		}
	}
	s.At = cmp.Or(s.At, r.now())
	at := s.At
	if s.Live || s.Sandbox.EndedAt.IsZero() {
		at = at.Truncate(seenEvery)
	}
	body, err := pack(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.lost = err
		return
	}
	r.seen[sample{s.Sandbox.Ref(), at}] = body
}

// Pending reports whether there is anything to store.
func (r *Recorder) Pending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.looks)+len(r.seen)+len(r.events)+len(r.listed)+len(r.unstored) > 0
}

// mostUnstored is how many samples wait for a store that cannot be written: those of ten thousand
// sandboxes. Older ones are lost.
const mostUnstored = 10_000

// Flush stores what was collected. What could not be stored is kept for the next Flush.
func (r *Recorder) Flush(ctx context.Context, st store.SampleStore) error {
	listed := r.takeListed()
	samples, profiles, err := r.take()
	if err != nil {
		return err
	}
	kept := samples
	for profile, failed := range listed {
		var merged store.Sample
		if merged, err = mergeListed(ctx, st, profile, r.now(), failed); err != nil {
			break
		}
		samples = append(samples, merged)
	}
	if err == nil && len(samples) > 0 {
		err = st.AddSamples(ctx, samples)
	}
	if err != nil {
		r.putBack(kept, listed)
		return err
	}
	var errs []error
	for _, profile := range profiles {
		errs = append(errs, st.ThinSamples(ctx, profile, r.now(), Rules()))
	}
	return errors.Join(errs...)
}

// putBack keeps what could not be stored. What was seen meanwhile counts more.
func (r *Recorder) putBack(samples []store.Sample, listed map[string]map[string]Seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unstored = samples[max(0, len(samples)-mostUnstored):]
	for profile, failed := range listed {
		maps.Copy(failed, r.listed[profile])
		r.listed[profile] = failed
	}
}

func (r *Recorder) take() (samples []store.Sample, profiles []string, err error) {
	r.mu.Lock()
	looks, seen, events := r.looks, r.seen, r.events
	samples, r.unstored, r.events = slices.Clone(r.unstored), nil, nil
	r.looks, r.seen = map[string]*Look{}, map[sample][]byte{}
	err, r.lost = r.lost, nil
	r.mu.Unlock()
	for _, s := range samples {
		if !slices.Contains(profiles, s.Profile) {
			profiles = append(profiles, s.Profile)
		}
	}
	now := r.now()
	put := func(profile, subject string, at time.Time, body []byte) {
		samples = append(samples, store.Sample{Profile: profile, Subject: subject, At: at, Body: body})
		if !slices.Contains(profiles, profile) {
			profiles = append(profiles, profile)
		}
	}
	add := func(profile, subject string, at time.Time, value any) {
		body, packErr := pack(value)
		err = errors.Join(err, packErr)
		put(profile, subject, at, body)
	}
	for profile, l := range looks {
		add(profile, "", now, l.stored(now))
	}
	for key, body := range seen {
		put(key.ref.Provider, key.ref.ID, key.at, body)
	}
	if len(events) > 0 {
		add(allProfiles, eventsSubject, now, events[max(0, len(events)-maxEvents):])
	}
	return samples, profiles, err
}

func (l *Look) stored(now time.Time) look {
	out := look{Counts: l.Counts, Ending: l.Ending, Limits: l.TimedOut}
	for _, id := range slices.Sorted(maps.Keys(l.Usage)) {
		u := l.Usage[id]
		out.Usage = append(out.Usage, usage{
			ID: id, At: int64(u.At.Sub(now).Seconds()), CPU: u.CPUSeconds, Percent: u.CPUPercent,
			Memory: u.MemoryBytes, Limit: u.MemoryLimitBytes, Ops: u.Operations, Source: u.Source,
		})
	}
	return out
}

// Looks returns the samples of a profile since a time, oldest first. One that cannot be read,
// such as that of a newer version, is left out.
func Looks(ctx context.Context, st store.SampleStore, profile string, since time.Time) ([]Look, error) {
	samples, err := st.Samples(ctx, store.SampleQuery{Profile: profile, Since: since})
	if err != nil {
		return nil, err
	}
	looks := make([]Look, 0, len(samples))
	for _, s := range samples {
		var kept look
		if unpack(s.Body, &kept) != nil {
			continue
		}
		l := Look{At: s.At, Counts: kept.Counts, Ending: kept.Ending, Usage: map[string]sandbox.Usage{}, TimedOut: kept.Limits}
		for _, u := range kept.Usage {
			l.Usage[u.ID] = sandbox.Usage{
				At: s.At.Add(time.Duration(u.At) * time.Second), CPUSeconds: u.CPU, CPUPercent: u.Percent,
				MemoryBytes: u.Memory, MemoryLimitBytes: u.Limit, Operations: u.Ops, Source: u.Source,
			}
		}
		looks = append(looks, l)
	}
	return looks, nil
}

// LastSeen returns the newest evidence of a sandbox; false = there is none. Evidence of a look precedes
// that of a listing, which only adds that one which was in trouble has failed since.
func LastSeen(ctx context.Context, st store.SampleStore, ref sandbox.Ref) (Seen, bool, error) {
	samples, err := st.Samples(ctx, store.SampleQuery{Profile: ref.Provider, Subject: ref.ID})
	if err != nil {
		return Seen{}, false, err
	}
	for _, s := range slices.Backward(samples) {
		var seen Seen
		if unpack(s.Body, &seen) != nil {
			continue
		}
		if seen.Live {
			failed, known, err := lastListed(ctx, st, ref)
			if err == nil && known && failed.At.After(seen.At) {
				seen.Sandbox, seen.At, seen.Live = failed.Sandbox, failed.At, false
			}
			return seen, true, err
		}
		return seen, true, nil
	}
	return lastListed(ctx, st, ref)
}

// packFrom is the size from which a body is compressed.
const packFrom = 512

func pack(value any) ([]byte, error) {
	plain, err := json.Marshal(value)
	if err != nil || len(plain) < packFrom {
		return plain, err
	}
	w, _ := packers.Get().(*gzip.Writer)
	if w == nil {
		w = gzip.NewWriter(nil)
	}
	defer packers.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	_, err = w.Write(plain)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// packers are compressors for the next value: one has 800 kB of tables.
var packers sync.Pool //nolint:gochecknoglobals // a pool of no state

func unpack(body []byte, into any) error {
	if len(body) > 0 && (body[0] == '{' || body[0] == '[') {
		return json.Unmarshal(body, into)
	}
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return err
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxPlain))
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, into)
}

// maxPlain bounds what one sample may unpack to.
const maxPlain = 64 << 20
