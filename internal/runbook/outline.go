package runbook

import (
	"cmp"
	"strconv"

	"sbx/internal/triage"
)

// Heading is where a part of a runbook stands: "2 stuck" is a whole step, 2a is inside it. A cause or a procedure is
// 6a, and its steps are 6a1, 6a2.
type Heading struct {
	Number string
	Word   string // of the whole step that it is, or is inside of
	Title  string
}

// IsWhole says that it is a whole step.
func (h Heading) IsWhole() bool {
	_, err := strconv.Atoi(h.Number)
	return err == nil
}

// Whole names the whole step: "6 end".
func (h Heading) Whole() string {
	digits := 0
	for digits < len(h.Number) && h.Number[digits] >= '0' && h.Number[digits] <= '9' {
		digits++
	}
	return h.Number[:digits] + " " + h.Word
}

// Outline has the numbers of a runbook, which no document writes: every step of the diagnosis but a check is a whole
// one, then what is done, then the verification. A check is inside the step before it.
type Outline struct {
	Steps []Heading // the whole ones

	parts  map[string]Heading
	inside int // parts of the last whole step so far
}

// Of is where a step stands, by its id.
func (o Outline) Of(step Word) Heading { return o.parts["step "+string(step)] }

// OfCause is where the branch of a cause stands.
func (o Outline) OfCause(possible Word) Heading { return o.parts["cause "+string(possible)] }

// OfProcedure is where a procedure stands.
func (o Outline) OfProcedure(id Word) Heading { return o.parts["procedure "+string(id)] }

// Outline numbers the steps of a runbook; every surface takes numbers and words from it.
func (r *Runbook) Outline() Outline {
	o, spec := Outline{parts: map[string]Heading{}}, r.Spec
	for _, s := range spec.Steps {
		if key := "step " + string(s.ID); s.Kind() == KindCheck && len(o.Steps) > 0 {
			o.addPart(key, s.Heading())
		} else {
			o.addWhole(s.word(), s.Heading())
			o.parts[key] = o.Steps[len(o.Steps)-1]
		}
	}
	if len(spec.Causes)+len(spec.Procedures) > 0 {
		o.addStuckStep("end")
	}
	for _, c := range spec.Causes {
		o.addBranch("cause "+string(c.PossibleCause), c.Known().Title, c.Steps)
	}
	for _, p := range spec.Procedures {
		o.addBranch("procedure "+string(p.ID), p.Title, p.Steps)
	}
	if len(spec.Verification) > 0 {
		o.addStuckStep("verify")
	}
	for _, s := range spec.Verification {
		o.addPart("step "+string(s.ID), s.Heading())
	}
	return o
}

// word is what a whole step is called: of the investigation its own word, else its id.
func (s Step) word() string {
	if len(s.Collect) == 1 {
		known, _ := triage.StuckStep(string(s.Collect[0]))
		return cmp.Or(known.Word, string(s.ID))
	}
	return string(s.ID)
}

func (o *Outline) addStuckStep(id string) {
	known, _ := triage.StuckStep(id)
	o.addWhole(known.Word, known.Title)
}

func (o *Outline) addWhole(word, title string) {
	o.Steps, o.inside = append(o.Steps, Heading{strconv.Itoa(len(o.Steps) + 1), word, title}), 0
}

func (o *Outline) addPart(key, title string) Heading {
	whole := o.Steps[len(o.Steps)-1]
	part := Heading{whole.Number + letters(o.inside), whole.Word, title}
	o.inside++
	o.parts[key] = part
	return part
}

func (o *Outline) addBranch(key, title string, steps []Step) {
	branch := o.addPart(key, title)
	for i, s := range steps {
		o.parts["step "+string(s.ID)] = Heading{branch.Number + strconv.Itoa(i+1), branch.Word, s.Heading()}
	}
}

// letters numbers what is inside a step: a to z, then aa.
func letters(n int) string {
	last := string(rune('a' + n%26))
	if n < 26 {
		return last
	}
	return letters(n/26-1) + last
}
