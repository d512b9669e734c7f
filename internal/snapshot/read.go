package snapshot

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/jsontext"
	"sbx/internal/sandbox"
)

// MaxFile is the most bytes of a document: some ten thousand sandboxes need a tenth.
const MaxFile = 32 << 20

// schemaPrefix begins the schema of every version.
const schemaPrefix = "sbx.snapshot/v"

// Encode writes the document.
func Encode(s *Snapshot) ([]byte, error) {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	if err := to.Encode(s); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// Decode reads a document strictly. The error says what is wrong, for the file that it is from.
func Decode(text []byte) (*Snapshot, error) {
	if len(text) > MaxFile {
		return nil, fault.Usage("it is larger than 32 MiB, the limit")
	}
	if err := checkVersion(text); err != nil {
		return nil, err
	}
	var s Snapshot
	from := json.NewDecoder(bytes.NewReader(text))
	from.DisallowUnknownFields()
	if err := from.Decode(&s); err != nil {
		return nil, fault.Usage("it is not a snapshot: %s", jsontext.Describe(err))
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return &s, nil
}

// checkVersion refuses what is no snapshot, what has something behind it, and one of a newer
// version, before keys are looked at.
func checkVersion(text []byte) error {
	var head struct {
		Schema *string `json:"schema"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return fault.Usage("it is not a snapshot: %s", jsontext.Describe(err))
	}
	if head.Schema == nil {
		return fault.Usage("it is not a snapshot: it has no schema")
	}
	number, found := strings.CutPrefix(*head.Schema, schemaPrefix)
	version, err := strconv.Atoi(number)
	switch {
	case !found || err != nil || version < 1:
		return fault.Usage("it is not a snapshot: its schema is %q", cut(*head.Schema))
	case *head.Schema != Schema:
		return fault.Usage("it was written by a newer sbx: its schema is %q, and this sbx reads %s", cut(*head.Schema), Schema)
	}
	return nil
}

func cut(text string) string { return strings.ToValidUTF8(text[:min(len(text), 80)], "") }

// check refuses a document whose values contradict each other.
func (s *Snapshot) check() error {
	if s.At.IsZero() {
		return fault.Usage("the snapshot has no time (key at)")
	}
	names := map[string]bool{}
	for _, p := range s.Profiles {
		switch {
		case p.Name == "" || strings.ContainsAny(p.Name, "/ \t\n"):
			return fault.Usage("the snapshot names a provider %q, which is no name", cut(p.Name))
		case names[p.Name]:
			return fault.Usage("the snapshot has the provider %s twice", p.Name)
		}
		names[p.Name] = true
		if err := p.check(); err != nil {
			return err
		}
	}
	for _, v := range s.verdicts() {
		if !isVerdict(v) {
			return fault.Usage("the snapshot has a verdict %q; there are true, false and unknown", cut(string(v)))
		}
	}
	return nil
}

func (p *Profile) check() error {
	ids := make(map[string]bool, len(p.Sandboxes))
	for _, b := range p.Sandboxes {
		if b.ID == "" {
			return fault.Usage("the snapshot has a sandbox without an id at %s", p.Name)
		}
		ref := sandbox.Ref{Provider: p.Name, ID: b.ID}
		if ids[b.ID] {
			return fault.Usage("the snapshot has %s twice", ref)
		}
		ids[b.ID] = true
		if _, known := sandbox.ParseState(string(b.State)); !known {
			return fault.Usage("the snapshot has %s in a state %q, which is none", ref, cut(string(b.State)))
		}
		if err := b.Look.check(); err != nil {
			return fault.Usage("the snapshot of %s: %w", ref, err)
		}
		if p.Judged && b.JudgedAt.IsZero() {
			return fault.Usage("the snapshot does not say when %s was judged (key judged_at)", ref)
		}
	}
	return nil
}

func (l *Look) check() error {
	if l == nil {
		return nil
	}
	if _, known := sandbox.ParseState(string(l.State)); !known && l.State != "" {
		return fault.Usage("%q is no state", cut(string(l.State)))
	}
	if l.Processes != nil && (*l.Processes < 0 || *l.Processes > maxProcesses) {
		return fault.Usage("it has %d processes", *l.Processes)
	}
	if err := l.Samples.check(); err != nil {
		return err
	}
	return l.Earlier.check()
}

// maxProcesses is more than any machine runs.
const maxProcesses = 1 << 22

// verdicts are all that the document has; an empty one is not known.
func (s *Snapshot) verdicts() []sandbox.Verdict {
	c := s.Concluded
	all := []sandbox.Verdict{c.Verdict}
	answers := slices.Concat(c.Flags, c.Checks)
	for _, b := range c.Runbooks {
		answers = slices.Concat(answers, b.Checks, b.Escalations)
	}
	for _, a := range answers {
		all = append(all, a.Verdict)
	}
	for _, a := range c.Alerts {
		all = append(all, a.Verdict)
	}
	for _, p := range s.Profiles {
		for _, b := range p.Sandboxes {
			all = append(all, b.Activity)
			if b.Look != nil {
				all = append(all, b.Look.Finished, b.Look.Answers)
			}
		}
	}
	return all
}

func isVerdict(v sandbox.Verdict) bool {
	return v == "" || v == sandbox.True || v == sandbox.False || v == sandbox.Unknown
}
