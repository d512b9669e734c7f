package providers

import (
	"math"
	"time"
)

// earliest is before every API here: what lies before it is a zero that was written as
// a time, and no age.
const earliest = 1990

// Moment gives the time that an API tells; zero for one that no sandbox can have.
func Moment(at time.Time) time.Time {
	if at.Year() < earliest {
		return time.Time{}
	}
	return at
}

// mostBytes is more than any machine has.
const mostBytes = 1 << 50

// Bytes gives an amount of memory or disk that an API tells; nil for none and for what
// no machine can have.
func Bytes(n *int64) *int64 {
	if n == nil || *n < 0 || *n > mostBytes {
		return nil
	}
	return n
}

// Percent gives a share of processors in percent of one core; nil for none and for
// what cannot be.
func Percent(v *float64) *float64 {
	const most = 1e6 // ten thousand cores
	if v == nil || !(*v >= 0 && *v <= most) || math.IsInf(*v, 0) {
		return nil
	}
	return v
}
