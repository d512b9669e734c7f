package cond

import (
	"math"
	"time"
)

// Kind is the type of a value.
type Kind string

// The closed list of kinds.
const (
	KindNumber Kind = "number"
	KindText   Kind = "text"
	KindBool   Kind = "true or false"
	KindTime   Kind = "time"
	KindLabels Kind = "labels" // texts by key
)

// Unit is the unit of a number.
type Unit string

// The closed list of units. Only numbers of one unit are compared.
const (
	UnitNone         Unit = ""
	UnitCount        Unit = "count"
	UnitSeconds      Unit = "seconds"
	UnitMiB          Unit = "MiB"
	UnitMiBPerMinute Unit = "MiB per minute"
	UnitPercent      Unit = "percent" // 0 to 100, or more where it is of one core
	UnitRatio        Unit = "ratio"   // 0 to 1
)

// Value is one value of a subject. The zero Value is not reported.
type Value struct {
	state  state
	kind   valueKind
	number float64 // also a bool (0, 1) and a time (Unix seconds)
	text   string  // also why it is unread
	labels map[string]string
}

type state int8

const (
	absent state = iota // the source says that there is none, or does not report it
	unread              // nobody could tell: not looked, or the look failed
	known
	atLeast // a number that is a lower bound
)

type valueKind int8

const (
	isNumber valueKind = iota
	isText
	isBool
	isTime
	isLabels
)

// Absent is a value that is not reported. Only `== nil` is true of it; any other comparison is
// unknown.
func Absent() Value { return Value{} }

// Unread is a value that could not be read, with the reason: "not looked at". Every comparison
// with it is unknown, also `== nil`.
func Unread(reason string) Value { return Value{state: unread, text: reason} }

// Number is a number in the unit of its name; one that is not finite is not reported.
func Number(n float64) Value {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return Absent()
	}
	return Value{state: known, kind: isNumber, number: n}
}

// NumberOf is Number of what is not nil.
func NumberOf[N int | int64 | float64](n *N) Value {
	if n == nil {
		return Absent()
	}
	return Number(float64(*n))
}

// Scaled is NumberOf divided by a unit: bytes as MiB.
func Scaled[N int | int64 | float64](n *N, unit float64) Value {
	v := NumberOf(n)
	v.number /= unit
	return v
}

// AtLeast is a number of which only a lower bound is known. A comparison that the bound does
// not decide is unknown.
func AtLeast(n float64) Value {
	v := Number(n)
	if v.state == known {
		v.state = atLeast
	}
	return v
}

// Duration is a number of seconds.
func Duration(d time.Duration) Value { return Number(d.Seconds()) }

// Text is a text; the empty one is not reported.
func Text[S ~string](s S) Value {
	if s == "" {
		return Absent()
	}
	return Value{state: known, kind: isText, text: string(s)}
}

// Bool is true or false.
func Bool(b bool) Value {
	v := Value{state: known, kind: isBool}
	if b {
		v.number = 1
	}
	return v
}

// Time is a moment; the zero one is not reported.
func Time(t time.Time) Value {
	if t.IsZero() {
		return Absent()
	}
	return Value{state: known, kind: isTime, number: unixSeconds(t)}
}

// unixSeconds keeps microseconds, which no source of a time exceeds.
func unixSeconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// Labels are texts by key. Nil has no labels.
func Labels(labels map[string]string) Value {
	return Value{state: known, kind: isLabels, labels: labels}
}

// label is the text of one label of Labels; absent without the label.
func (v Value) label(key string) Value {
	if !v.is(isLabels) {
		return v.asMissing()
	}
	text, has := v.labels[key]
	if !has {
		return Absent()
	}
	return Value{state: known, kind: isText, text: text}
}

// is reports whether the value is known and of this kind. A table whose function returns
// another kind than it states compares as unknown.
func (v Value) is(k valueKind) bool { return v.state >= known && v.kind == k }

// Missing reports that the value is not known: not reported, or unread.
func (v Value) Missing() bool { return v.state < known }

// Unread reports that nobody could read the value.
func (v Value) Unread() bool { return v.state == unread }

// comparable reports whether two values are known and of one kind.
func (v Value) comparable(o Value) bool { return !v.Missing() && !o.Missing() && v.kind == o.kind }

// highest is the largest number that the value may be.
func (v Value) highest() float64 {
	if v.state == atLeast {
		return math.Inf(1)
	}
	return v.number
}

// asMissing is the value without what it may hold: not reported, or unread with its reason.
func (v Value) asMissing() Value {
	if v.state == unread {
		return v
	}
	return Absent()
}

// has is whether labels have a key.
func (v Value) has(key Value) truth {
	if !v.is(isLabels) || !key.is(isText) {
		return unknown
	}
	_, has := v.labels[key.text]
	return truthOf(has)
}

// size is the length of a text, or the number of labels.
func (v Value) size() Value {
	switch {
	case v.is(isText):
		return Number(float64(len([]rune(v.text))))
	case v.is(isLabels):
		return Number(float64(len(v.labels)))
	}
	return v.asMissing()
}
