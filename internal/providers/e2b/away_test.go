package e2b_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/wiretest"
)

// While the API is away, a program is followed through the edge by the record of a minute ago, and by none that is
// older, that was paused, or whose time is over.
func TestAProgramIsFollowedWhileTheAPIIsAway(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]wiretest.Fault{
		"an error":  {Status: http.StatusServiceUnavailable},
		"no answer": {Trouble: wiretest.TroubleHang},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := e2btest.New(t, e2btest.Options{})
			c := dialled(t, f)
			s, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "echo one; exit 3"}})
			require.NoError(t, err)
			follow := func() (code int, lines []string, failed error) {
				exit, failed := c.Exit(t.Context(), s.ID)
				if failed == nil {
					require.NotNil(t, exit)
					code = *exit.Code
				}
				for line, err := range c.Logs(t.Context(), s.ID, providers.LogQuery{}) {
					if err != nil {
						return code, lines, err
					}
					lines = append(lines, line.Text)
				}
				return code, lines, failed
			}
			require.Eventually(t, func() bool { exit, err := c.Exit(t.Context(), s.ID); return err == nil && exit != nil }, time.Minute, time.Second)
			away.Route = "GET /sandboxes/{id}"
			f.Break(away)
			began := time.Now()
			for range 3 {
				code, lines, err := follow()
				require.NoError(t, err)
				assert.Equal(t, 3, code)
				assert.Equal(t, []string{"one"}, lines)
				<-time.After(8 * time.Second)
			}
			assert.Less(t, time.Since(began), time.Minute)
			_, err = c.Exec(t.Context(), s.ID, providers.Command{Args: []string{"true"}})
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "a command of a user needs the API: %v", err)
			<-time.After(time.Minute)
			_, _, err = follow()
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
		})
	}
}

// What the API has last shown as paused, or what may have been paused since, is not asked inside.
func TestNoPausedSandboxIsAskedInsideWhileTheAPIIsAway(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		left            time.Duration
		paused, resumes bool
	}{
		"paused":             {time.Hour, true, false},
		"its time is over":   {20 * time.Second, false, false},
		"traffic resumes it": {time.Hour, false, true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := e2btest.New(t, e2btest.Options{})
			id := f.Add(e2btest.Seed{Metadata: map[string]string{sandbox.LabelRun: "main"}, Left: tc.left})
			c := dialled(t, f)
			if tc.resumes {
				f.Break(wiretest.Fault{Route: "GET /sandboxes/{id}", Times: 2, Edit: func(body []byte) []byte { // the two reads of one question
					return edited(body, `"state":"running"`, `"state":"running","lifecycle":{"autoResume":true}`)
				}})
			}
			_, err := c.Exit(t.Context(), id)
			require.Equal(t, fault.KindNotFound, fault.KindOf(err), "nothing was started in it: %v", err)
			if tc.paused {
				f.Break(wiretest.Fault{Route: "GET /sandboxes/{id}", Times: 1, Edit: func(body []byte) []byte { return edited(body, `"state":"running"`, `"state":"paused"`) }})
				_, err := c.Exit(t.Context(), id)
				require.ErrorContains(t, err, "it is paused")
			}
			<-time.After(30 * time.Second)
			f.Break(wiretest.Fault{Route: "GET /sandboxes/{id}", Status: http.StatusServiceUnavailable})
			asked := len(f.Calls("POST /process.Process/Start"))
			_, err = c.Exit(t.Context(), id)
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
			for _, err := range c.Logs(t.Context(), id, providers.LogQuery{}) {
				assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
			}
			assert.Equal(t, asked, len(f.Calls("POST /process.Process/Start"))) //nolint:testifylint // the calls are long
		})
	}
}

func edited(body []byte, before, after string) []byte {
	return []byte(strings.Replace(string(body), before, after, 1))
}
