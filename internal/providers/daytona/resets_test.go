package daytona_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/daytonatest"
	"sbx/internal/testkit/tiertest"
	"sbx/internal/testkit/wiretest"
)

// lostLooks are failures of one request to a toolbox.
func lostLooks() map[string]wiretest.Fault {
	return map[string]wiretest.Fault{
		"reset":       {Trouble: wiretest.TroubleReset},
		"reset late":  {Trouble: wiretest.TroubleReset, Late: true},
		"502":         {Status: http.StatusBadGateway, Body: "<html>bad gateway</html>"},
		"502 silent":  {Status: http.StatusBadGateway},
		"502 late":    {Status: http.StatusBadGateway, Body: "bad gateway", Late: true},
		"503":         {Status: http.StatusServiceUnavailable, Body: `{"message":"upstream"}`},
		"408":         {Status: http.StatusRequestTimeout, Body: `{"message":"timeout"}`},
		"half a text": {Edit: func(body []byte) []byte { return bytes.Replace(body, []byte("state "), []byte("sta"), 1) }},
	}
}

// playsLostLook says whether a test run plays a trouble at the request with this number: each
// trouble twice, each request with several troubles. The long run plays all.
func playsLostLook(trouble string, request int) bool {
	return tiertest.IsLong("each trouble at each request; else each trouble twice, each request with several") || request%3 == len(trouble)%3
}

// TestOneLostLookEndsNoCommand: for each request of exec.
func TestOneLostLookEndsNoCommand(t *testing.T) {
	t.Parallel()
	for name, trouble := range lostLooks() {
		for after := range 6 {
			if !playsLostLook(name, after) {
				continue
			}
			t.Run(fmt.Sprintf("%s %d", name, after), func(t *testing.T) {
				t.Parallel()
				f := daytonatest.New(t, daytonatest.Options{})
				c := open(t, f.Listen(), httpx.Net{})
				id := f.Add(daytonatest.Seed{})
				trouble := trouble
				trouble.Route, trouble.After, trouble.Times = "POST /toolbox/{id}/process/execute", after, 1
				f.Break(trouble)
				var out bytes.Buffer
				exit, err := c.Exec(t.Context(), id, providers.Command{Args: []string{"sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.2; done; exit 3"}, Stdout: &out})
				require.NoError(t, err)
				require.NotNil(t, exit.Code)
				assert.Equal(t, 3, *exit.Code)
				assert.Equal(t, "1\n2\n3\n", out.String())
			})
		}
	}
}

// TestAnOutageEndsNoCommand: the toolbox does not answer for some seconds.
func TestAnOutageEndsNoCommand(t *testing.T) {
	t.Parallel()
	f := daytonatest.New(t, daytonatest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(daytonatest.Seed{})
	f.Break(wiretest.Fault{Route: "POST /toolbox/{id}/process/execute", After: 1, Times: 7, Status: http.StatusBadGateway})
	var out bytes.Buffer
	exit, err := c.Exec(t.Context(), id, providers.Command{Args: []string{"sh", "-c", "echo done; exit 3"}, Stdout: &out})
	require.NoError(t, err)
	assert.Equal(t, 3, *exit.Code)
	assert.Equal(t, "done\n", out.String())
}

// TestOneLostLookEndsNoFollowing: of a program's log, and of an entrypoint's.
func TestOneLostLookEndsNoFollowing(t *testing.T) {
	t.Parallel()
	for name, trouble := range lostLooks() {
		for after := range 5 {
			if !playsLostLook(name, after) {
				continue
			}
			t.Run(fmt.Sprintf("%s %d", name, after), func(t *testing.T) {
				t.Parallel()
				f := daytonatest.New(t, daytonatest.Options{})
				c := open(t, f.Listen(), httpx.Net{})
				made, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.2; done"}})
				require.NoError(t, err)
				trouble := trouble
				trouble.Route, trouble.After, trouble.Times = "POST /toolbox/{id}/process/execute", after, 1
				f.Break(trouble)
				var text strings.Builder
				for line, err := range c.Logs(t.Context(), made.ID, providers.LogQuery{Follow: true}) {
					require.NoError(t, err)
					text.WriteString(line.Text + " ")
				}
				assert.Equal(t, "1 2 3 ", text.String())
			})
		}
	}
}

// TestAnOutageEndsNoLogOfAnImage: of a sandbox of another client.
func TestAnOutageEndsNoLogOfAnImage(t *testing.T) {
	t.Parallel()
	for name, trouble := range lostLooks() {
		if name == "half a text" || name == "408" { // of the texts of sbx alone; a GET of 408 is repeated by the client
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := daytonatest.New(t, daytonatest.Options{})
			c := open(t, f.Listen(), httpx.Net{})
			id := f.Add(daytonatest.Seed{})
			trouble.Route, trouble.Times = "GET /toolbox/{id}/process/session/entrypoint/logs", 5 // more than the client repeats
			f.Break(trouble)
			ended := false
			for _, err := range c.Logs(t.Context(), id, providers.LogQuery{Follow: true}) {
				require.NoError(t, err)
				if !ended {
					ended = true
					require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true}))
				}
			}
			assert.True(t, ended, "it has shown what there was")
		})
	}
}
