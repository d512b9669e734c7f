package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"slices"
	"time"

	"sbx/internal/fault"
)

// Sample is what one look has seen of a profile, or of one sandbox of it. Profile and Subject
// have at most 1 KiB.
type Sample struct {
	Profile string
	Subject string    // the id of the sandbox; "" = the profile
	At      time.Time // by the clock of the host that looked
	Body    []byte    // opaque here, at most MaxSampleBytes; nil = none
}

// MaxSampleBytes bounds the body of a sample.
const MaxSampleBytes = 4 << 20

// SampleQuery selects samples of one profile.
type SampleQuery struct {
	Profile string
	Subject string    // "" = those of the profile itself
	Since   time.Time // taken then or later

	AnySubject bool // of the profile and of everything of it
}

// SampleRules bound what is kept of one profile. Every field must be positive.
type SampleRules struct {
	Keep  time.Duration // older samples are deleted
	Fine  time.Duration // of older samples of the profile itself only the first within each Every stays
	Every time.Duration
	Bytes int64 // of all bodies of a profile: the oldest samples are deleted beyond it
}

const (
	putSample = `INSERT INTO sbx_sample (profile, subject, at_us, size, body) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (profile, subject, at_us) DO UPDATE SET size = excluded.size, body = excluded.body`
	readSamples = `SELECT profile, subject, at_us, body FROM sbx_sample WHERE profile = $1 AND subject = $2 AND at_us >= $3`
	readAll     = `SELECT profile, subject, at_us, body FROM sbx_sample WHERE profile = $1 AND at_us >= $2`
	dropOld     = `DELETE FROM sbx_sample WHERE profile = $1 AND at_us < $2`
	// The first sample of a period is never deleted, so the others of it can be found by it.
	dropFine = `DELETE FROM sbx_sample WHERE profile = $1 AND subject = '' AND at_us < $2 AND EXISTS (
		SELECT 1 FROM sbx_sample AS earlier WHERE earlier.profile = sbx_sample.profile AND earlier.subject = ''
		AND earlier.at_us >= sbx_sample.at_us - sbx_sample.at_us % $3 AND earlier.at_us < sbx_sample.at_us)`
	dropBeyond = `DELETE FROM sbx_sample WHERE profile = $1 AND at_us <= (SELECT coalesce(max(at_us), -1) FROM (
		SELECT at_us, sum(size) OVER (ORDER BY at_us DESC) AS total FROM sbx_sample WHERE profile = $1) AS sums WHERE total > $2)`
)

// AddSamples implements SampleStore.
func (d *Database) AddSamples(ctx context.Context, all []Sample) error {
	if err := checkSamples(all); err != nil || len(all) == 0 {
		return err
	}
	return d.writeTx(ctx, "add samples", func(ctx context.Context, tx *sql.Tx) error {
		for _, sample := range all {
			s := sample.storable()
			if _, err := tx.ExecContext(ctx, putSample, s.Profile, s.Subject, toMicros(s.At), int64(len(s.Body)), base64.RawStdEncoding.EncodeToString(s.Body)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Samples implements SampleStore.
func (d *Database) Samples(ctx context.Context, q SampleQuery) ([]Sample, error) {
	rows, op := rowType[Sample]{scanSample, compareSamples}, "samples of "+q.Profile
	if q.AnySubject {
		return rows.queryList(ctx, d, op, readAll, storableText(q.Profile), toMicros(q.Since))
	}
	return rows.queryList(ctx, d, op, readSamples, storableText(q.Profile), storableText(q.Subject), toMicros(q.Since))
}

func scanSample(row rowScanner) (Sample, error) {
	var s Sample
	var at int64
	var body string // base64: a text is the same in every database
	if err := row.Scan(&s.Profile, &s.Subject, &at, &body); err != nil {
		return s, err
	}
	var err error
	s.At = fromMicros(at)
	s.Body, err = base64.RawStdEncoding.DecodeString(body)
	return s, err
}

func compareSamples(a, b Sample) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Subject, b.Subject))
}

// ThinSamples implements SampleStore.
func (d *Database) ThinSamples(ctx context.Context, profile string, now time.Time, r SampleRules) error {
	profile = storableText(profile)
	return d.writeTx(ctx, "thin the samples of "+profile, func(ctx context.Context, tx *sql.Tx) error {
		for _, step := range []struct {
			statement string
			args      []any
		}{
			{dropOld, []any{profile, toMicros(now.Add(-r.Keep))}},
			{dropFine, []any{profile, toMicros(now.Add(-r.Fine)), r.Every.Microseconds()}},
			{dropBeyond, []any{profile, r.Bytes}},
		} {
			if _, err := tx.ExecContext(ctx, step.statement, step.args...); err != nil {
				return err
			}
		}
		return nil
	})
}

func checkSamples(all []Sample) error {
	for _, s := range all {
		switch {
		case s.Profile == "" || s.At.IsZero():
			return fault.Usage("a sample needs a profile and a time")
		case len(s.Body) > MaxSampleBytes:
			return fault.Usage("a sample of %s has %d bytes, more than %d", s.Profile, len(s.Body), MaxSampleBytes)
		}
	}
	return nil
}

func (s Sample) storable() Sample {
	body := slices.Clone(s.Body)
	if body == nil {
		body = []byte{}
	}
	return Sample{Profile: storableText(s.Profile), Subject: storableText(s.Subject), At: storedTime(s.At), Body: body}
}

// AddSamples implements SampleStore.
func (m *InMemory) AddSamples(ctx context.Context, all []Sample) error {
	if err := cmp.Or(checkSamples(all), ctx.Err()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, sample := range all {
		s := sample.storable()
		m.samples = slices.DeleteFunc(m.samples, func(o Sample) bool {
			return o.Profile == s.Profile && o.Subject == s.Subject && o.At.Equal(s.At)
		})
		m.samples = append(m.samples, s)
	}
	slices.SortStableFunc(m.samples, compareSamples)
	return nil
}

// Samples implements SampleStore.
func (m *InMemory) Samples(ctx context.Context, q SampleQuery) ([]Sample, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []Sample{}
	for _, s := range m.samples {
		if s.Profile == storableText(q.Profile) && (q.AnySubject || s.Subject == storableText(q.Subject)) && !s.At.Before(storedTime(q.Since)) {
			list = append(list, s.storable())
		}
	}
	return list, nil
}

// ThinSamples implements SampleStore.
func (m *InMemory) ThinSamples(ctx context.Context, profile string, now time.Time, r SampleRules) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	profile = storableText(profile)
	var total int64
	seen := map[int64]bool{} // periods of which a sample stays
	var kept []Sample
	for _, s := range m.samples { // oldest first
		if s.Profile == profile {
			period := toMicros(s.At) / r.Every.Microseconds()
			fine := s.Subject != "" || !s.At.Before(storedTime(now.Add(-r.Fine)))
			if s.At.Before(storedTime(now.Add(-r.Keep))) || !fine && seen[period] {
				continue
			}
			if s.Subject == "" {
				seen[period] = true
			}
		}
		kept = append(kept, s)
	}
	beyond := false
	for i, s := range slices.Backward(kept) {
		if s.Profile != profile {
			continue
		}
		total += int64(len(s.Body))
		if beyond = beyond || total > r.Bytes; beyond {
			kept = slices.Delete(kept, i, i+1)
		}
	}
	m.samples = kept
	return nil
}
