package faults_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/planted"
)

// plantedLie is a mistake in the source of a room: a text that stands there once is replaced. A world of lies has to
// find it.
type plantedLie struct {
	file, from, to string
	by             string // the test
	says           string // a part of what it reports
}

func plantedLies() map[string]plantedLie {
	const ends, condemns, control = "TestNoLieIsBelieved", "TestNoLieCondemns", "TestNoLieOfAControlPlaneCondemns"
	return map[string]plantedLie{
		"a read that shows an end is believed": {"fleet/corroborate.go", "if !stated && !showsAbsence(err) || !m.needsProof() {", "if true {", ends, "and runs"},
		"one store is two sources":             {"fleet/requests.go", "	case proof.SameStore:\n", "	case false:\n", ends, "and runs"},
		"a missing record ends a wait":         {"fleet/corroborate.go", "	for began, pauses := time.Now(), f.readPauses(); ; {\n		p := e.proveEnd(ctx, true)", "	for began, pauses := time.Now(), f.readPauses(); ; {\n		p := proofResult{ended: true}\n		_ = e", ends, "said to have ended"},
		"a session states its own end":         {"providers/vercel/terminate.go", "	box, err := c.otherRecord(ctx, id, v)\n	switch {\n	case err != nil:", "	box, err := c.otherRecord(ctx, id, v)\n	if err == nil {\n		box = nil\n	}\n	switch {\n	case err != nil:", ends, "and runs"},
		"a stop is stated by its record":       {"providers/daytona/terminate.go", "row.State != \"\" && s != sandbox.StateStopped && !s.Ended()", "false && s.Ended()", ends, "and runs"},
		"a young one is old":                   {"selector/match.go", "case age > s.OlderThan:", "case age > s.OlderThan/8:", ends, "was not to end"},
		"one denied read denies all":           {"policy/shared.go", "c.ConsecutiveFailures >= OpensAfter", "c.TotalFailures >= 1", ends, "for a lie about"},
		"a list that failed was read":          {"cleanup/survey.go", "	left, ending := s.listingErrors(), fleet.Verdict(endings, false)\n", "	left, ending := []error(nil), fleet.Verdict(endings, false)\n", ends, "exit 0"},
		"a leak is seen by one look alone":     {"triage/trend.go", "	if tr.MemoryBytes == nil || tr.memoryGrows(t) || len(earlier) == 0 {", "	if true {", condemns, "was not found in two looks"},
		"the record alone makes a ghost":       {"fleet/missing.go", "		o.missing = o.foundNoneBeside(record)\n", "		o.missing = true\n", condemns, "and was ended"},
		"figures have no owner":                {"providers/docker/read.go", "	if m.ID != \"\" {", "	if false {", condemns, "and was ended"},
		"events of another are believed":       {"providers/omoios/events.go", "(w.SandboxID == \"\" || w.SandboxID == sandboxID)", "true", control, "and was ended"},
		"a heartbeat is work":                  {"providers/omoios/events.go", "	return max(0, beat.Sub(work.Time))", "	return 0", control, "was not found in two looks"},
		"no query of a look has failed":        {"fleet/observe.go", "func (o Observation) LookErr() error {\n", "func (o Observation) LookErr() error {\n	if true {\n		return nil\n	}\n", condemns, "and was ended"},
	}
}

// path is the file of the mistake, as seen from here.
func (p plantedLie) path() string { return filepath.Join("..", filepath.FromSlash(p.file)) }

// apply is the source with the mistake in it.
func (p plantedLie) apply() ([]byte, error) {
	text, err := os.ReadFile(p.path())
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(p.from)); n != 1 {
		return nil, fmt.Errorf("the text stands there %d times", n)
	}
	return bytes.Replace(text, []byte(p.from), []byte(p.to), 1), nil
}

// TestPlantedLiesFit shows that each mistake has exactly one place in the source.
func TestPlantedLiesFit(t *testing.T) {
	t.Parallel()
	for name, p := range plantedLies() {
		_, err := p.apply()
		assert.NoError(t, err, "%s: %s", name, p.file)
	}
}

// TestPlantedLiesAreCaught shows that the worlds of lies can fail. It compiles the rooms once for each mistake, so it
// runs where SBX_MUTATIONS is set.
func TestPlantedLiesAreCaught(t *testing.T) {
	t.Parallel()
	planted.Each(t, plantedLies(), func(t *testing.T, p plantedLie) { // one after the other: each uses all cores
		t.Helper()
		text, err := p.apply()
		require.NoError(t, err)
		out, err := planted.Run(t, map[string][]byte{p.path(): text}, p.by, "SBX_SEEDS=1000")
		require.Error(t, err, "nobody notices")
		at := strings.Index(out, p.says)
		require.GreaterOrEqual(t, at, 0, "it fails otherwise: %s", out)
		t.Log(out[max(0, at-100):min(len(out), at+700)])
	})
}
