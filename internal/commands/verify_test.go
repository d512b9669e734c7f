package commands

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestAnInterruptedVerifyAnswers: it prints the last complete round in the format that was asked for,
// or that nothing is known. A monitor gets the codes of a plugin, whatever happens.
func TestAnInterruptedVerifyAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line     string
		complete bool // a round was
		code     int
		says     []string // on stdout
	}{
		"table":               {"verify --until-ok 10m", true, 130, []string{"running sandboxes at one provider", "time since cleanup"}},
		"json":                {"verify --until-ok 10m -o json", true, 130, []string{`"rounds": 2`, `"id": "active_normal"`, `"interrupted": true`}},
		"nagios":              {"verify --until-ok 10m -o nagios", true, 3, []string{"SBX UNKNOWN: time since cleanup", "active_normal=", " after round 2\n"}},
		"the limit":           {"verify --until-ok 10m -o json --timeout 40s", true, 124, []string{`"rounds": 2`}},
		"nothing yet":         {"verify --until-ok 10m", false, 130, nil},
		"nothing yet, json":   {"verify --until-ok 10m -o json", false, 130, []string{`"item": null`, `"interrupted": true`}},
		"nothing yet, nagios": {"verify --until-ok 10m -o nagios", false, 3, []string{"SBX UNKNOWN: "}},
		"the limit, nagios":   {"verify -o nagios --timeout 5s", false, 3, []string{"SBX UNKNOWN: the limit of --timeout 5s"}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, p := oneFake(running("prod0001", time.Minute))
			b.configure(t, "providers:\n  prod: {type: local}\n")
			after := 50 * time.Second
			if !tc.complete {
				after = 10 * time.Second
				p.Break(fake.Fault{Op: fake.OpStats, Hang: true}, fake.Fault{Op: fake.OpList, Hang: true})
			}
			b.context = haltedAfter(t, after)
			r := b.run(t, tc.line)
			assert.Equal(t, tc.code, r.code, "%s%s", r.stdout, r.stderr)
			for _, text := range tc.says {
				assert.Contains(t, r.stdout, text)
			}
		})
	}
}

// TestATargetWithoutDataIsMet: nothing that an operator can do gives a rate of timeouts before twenty tasks have run.
// A provider that could not be asked is another matter, and so is --unknown-as.
func TestATargetWithoutDataIsMet(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line   string
		faults []fake.Fault
		code   int
		noData bool // R128
	}{
		"no data":          {"verify", nil, 0, true},
		"said to be wrong": {"verify --unknown-as crit", nil, 10, false},
		"said to be open":  {"verify --unknown-as unknown", nil, 7, false},
		"not asked":        {"verify", []fake.Fault{{Op: fake.OpStats, Err: fault.New(fault.KindUnavailable, "planted")}}, 3, false},
		"not listed":       {"verify", []fake.Fault{{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "planted")}}, 3, false},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, p := oneFake(running("prod0001", time.Minute))
			b.configure(t, "providers:\n  prod: {type: local}\n")
			require.Zero(t, b.run(t, "cleanup --stuck --yes").code)
			p.Break(tc.faults...)
			r := b.run(t, tc.line+" -o json")
			assert.Equal(t, tc.code, r.code, "%s%s", r.stdout, r.stderr)
			var doc struct {
				Item struct {
					Checks []struct {
						ID      string `json:"id"`
						Verdict string `json:"verdict"`
						NoData  bool   `json:"no_data"`
					} `json:"checks"`
				} `json:"item"`
			}
			require.NoError(t, json.Unmarshal([]byte(r.stdout), &doc))
			for _, c := range doc.Item.Checks {
				if c.ID == "timeouts_low" {
					assert.Equal(t, "unknown", c.Verdict)
					assert.Equal(t, tc.noData, c.NoData)
				}
			}
		})
	}
}

// TestVerifyEvery repeats until it is interrupted, whatever a round finds.
func TestVerifyEvery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(running("prod0001", time.Minute))
		b.configure(t, "providers:\n  prod: {type: local}\n")
		b.context = haltedAfter(t, 12*time.Minute)
		r := b.run(t, "verify --every 5m")
		assert.Equal(t, 130, r.code, r.stderr)
		assert.Equal(t, 3, strings.Count(r.stdout, "Targets of the fleet\n"), r.stdout)
		assert.Len(t, p.Calls(fake.OpStats), 3)
		for _, line := range []string{"verify --every 5m -o json", "verify --every 5ms"} {
			assert.Equal(t, 2, b.run(t, line).code, line)
		}
	})
}
