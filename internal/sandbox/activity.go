package sandbox

import "time"

// ActivityBasis says what moves LastActivityAt. A recent time is a sign of life on
// any basis; an old one proves silence only where every program that works would
// have moved it.
type ActivityBasis string

// The closed list of bases.
const (
	BasisUnknown  ActivityBasis = ""         // an old time proves nothing
	BasisOutput   ActivityBasis = "output"   // what its programs write
	BasisReports  ActivityBasis = "reports"  // what its agent reports to a control plane
	BasisRequests ActivityBasis = "requests" // calls of its clients: a program works on without one
)

// ProvesSilence says that an old LastActivityAt means that nothing has worked since.
func (b ActivityBasis) ProvesSilence() bool { return b == BasisOutput || b == BasisReports }

// WithActivity adds what an earlier look or another source knows: the later time
// counts, and a basis that proves silence stays, since its source was asked.
func (s Sandbox) WithActivity(at time.Time, basis ActivityBasis) Sandbox {
	if at.After(s.LastActivityAt) {
		s.LastActivityAt = at
	}
	if basis.ProvesSilence() {
		s.ActivityBasis = basis
	}
	return s
}
