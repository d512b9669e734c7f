package selector

import (
	"strings"
	"time"

	"sbx/internal/cond"
	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Where is the condition of --where. The zero Where is no filter.
type Where struct{ condition *cond.Condition[*Subject] }

// ParseWhere compiles a condition over the names of ConditionNames. Errors are
// fault.KindUsage, with the place in the text.
func ParseWhere(text string) (Where, error) {
	c, err := cond.Compile(text, cond.Schema[*Subject]{
		Names: ConditionNames(),
		Refused: map[string]string{
			"memory_mb": "write usage.memory_mb for the memory in use, memory_limit_mb for its limit",
		},
		Hint: "`sbx help conditions` lists the names",
	})
	if err != nil {
		return Where{}, err
	}
	return Where{c}, nil
}

// IsZero reports that there is no condition.
func (w Where) IsZero() bool { return w.condition == nil }

// String is the condition as it was written; "" without one.
func (w Where) String() string {
	if w.IsZero() {
		return ""
	}
	return w.condition.String()
}

// MarshalText writes the condition into plans and journals.
func (w Where) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText compiles the condition of a plan or journal again, so that an invalid one is
// refused where it is read.
func (w *Where) UnmarshalText(text []byte) error {
	read, err := ParseWhere(string(text))
	if err != nil {
		return fault.Usage("the condition %q: %w", string(text), err)
	}
	*w = read
	return nil
}

// NeedsLook reports whether a look at the sandbox itself can decide the condition where its
// record does not.
func (w Where) NeedsLook() bool { return !w.IsZero() && w.condition.NeedsLook() }

// Eval is the verdict of the condition.
func (w Where) Eval(s *Subject) sandbox.Verdict { return w.condition.Eval(s) }

// Explain evaluates the condition with every comparison.
func (w Where) Explain(s *Subject) cond.Explanation { return w.condition.Explain(s) }

// Figures are the figures of a sandbox's usage that conditions compare, as its last observation gave them.
type Figures struct {
	Last  sandbox.Usage // the newest sample
	Trend triage.Trend  // of all samples
	Err   error         // why there is no sample; nil = there is one, or its provider reports no usage
}

// Subject is a sandbox as conditions see it. Build it with NewSubject.
type Subject struct {
	sandbox sandbox.Sandbox
	now     time.Time
	verdict triage.Verdict
	usage   *Figures // nil = it was not observed

	age       time.Duration
	ageSource sandbox.AgeSource
}

// NewSubject is a sandbox as of now, with its judgement and its usage; nil = it was not observed.
func NewSubject(sb sandbox.Sandbox, now time.Time, verdict triage.Verdict, usage *Figures) *Subject {
	s := &Subject{sandbox: sb, now: now, verdict: verdict, usage: usage}
	s.age, s.ageSource = sb.Age(now) // once, whatever the number of conditions
	return s
}

// Judge is the verdict of the condition on one sandbox.
func (w Where) Judge(sb sandbox.Sandbox, f Facts) sandbox.Verdict {
	return w.Eval(f.subject(sb))
}

func (f Facts) subject(sb sandbox.Sandbox) *Subject {
	if f.Judged == nil {
		return NewSubject(sb, f.Now, triage.Verdict{}, nil)
	}
	verdict, usage := f.Judged(sb)
	return NewSubject(sb, f.Now, verdict, usage)
}

func (s Selector) checkWhere(sb sandbox.Sandbox, f Facts) (sandbox.Verdict, string) {
	e := s.Where.Explain(f.subject(sb))
	if e.Verdict != sandbox.Unknown {
		return e.Verdict, e.String()
	}
	return e.Verdict, strings.Join(e.Missing, ", ")
}
