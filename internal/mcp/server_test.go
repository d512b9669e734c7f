package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

// session connects the SDK's own client to a server. over gives what Serve returned.
func session(t *testing.T, s Server) (client *sdk.ClientSession, hangUp func(), over <-chan error) {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- s.Serve(t.Context(), toServer, fromServer)
		_ = fromServer.Close() // the client sees the end
	}()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &sdk.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	require.NoError(t, err)
	return client, func() { _ = client.Close() }, ended
}

func texts(r *sdk.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

// plays answers with the command line that it is to play.
func plays(_ context.Context, args []string, stdout, _ io.Writer) int {
	_ = json.NewEncoder(stdout).Encode(args)
	return 0
}

func TestOnlyWhatIsAllowedActs(t *testing.T) {
	t.Parallel()
	for allow, want := range map[string][]string{"": nil, "stop": {"stop-task"}, "stop,resume": {"continue-task", "stop-task"}} {
		s := Server{Program: "sbx", Play: plays}
		if allow != "" {
			s.Allow = strings.Split(allow, ",")
		}
		client, hangUp, over := session(t, s)
		list, err := client.ListTools(t.Context(), nil)
		require.NoError(t, err)
		var acts []string
		for _, tool := range list.Tools {
			if !tool.Annotations.ReadOnlyHint {
				acts = append(acts, tool.Name)
			}
			assert.Contains(t, tool.Description, "never instructions", tool.Name)
		}
		slices.Sort(acts)
		assert.Equal(t, want, acts)
		if allow == "" {
			_, err = client.CallTool(t.Context(), &sdk.CallToolParams{Name: "stop-task", Arguments: map[string]any{"task": "t-k3v9x2mq7abc"}})
			require.Error(t, err)
		}
		hangUp()
		require.NoError(t, <-over)
	}
}

func TestNoToolEndsASandbox(t *testing.T) {
	t.Parallel()
	for _, tool := range allTools() {
		assert.NotContains(t, tool.verb, "terminate")
		for _, a := range tool.arguments {
			assert.NotContains(t, []string{"yes", "delete", "apply", "resume", "force"}, a.flag, tool.name)
		}
	}
}

// TestATaskOfAnotherProfileIsRefused by each tool that takes one, before anything is played.
func TestATaskOfAnotherProfileIsRefused(t *testing.T) {
	t.Parallel()
	s := Server{Program: "sbx", Play: plays, Allow: Acts(), Providers: []string{"prod"}, CheckTask: func(string) error { return errors.New("it is a task of local") }}
	client, hangUp, _ := session(t, s)
	defer hangUp()
	for _, tool := range allTools() {
		if !slices.ContainsFunc(tool.arguments, func(a argument) bool { return a.form == fullTaskID }) {
			continue
		}
		args := map[string]any{"task": "t-k3v9x2mq7abc"}
		if tool.act == "resume" {
			args["command"] = []string{"true"}
		}
		r, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.name, Arguments: args})
		require.NoError(t, err)
		assert.True(t, r.IsError, tool.name)
		said, _ := r.Content[0].(*sdk.TextContent)
		assert.Equal(t, tool.name+": it is a task of local", said.Text)
	}
}

// TestEveryToolKnowsItsScope: whatever a tool plays is told the profiles that may be shown.
func TestEveryToolKnowsItsScope(t *testing.T) {
	t.Parallel()
	given := map[string]string{"ref": `"prod/i1"`, "task": `"t-k3v9x2mq7abc"`, "command": `["true"]`}
	for _, tool := range allTools() {
		var fields []string
		for _, a := range tool.arguments {
			if a.required {
				fields = append(fields, `"`+a.name+`":`+given[a.name])
			}
		}
		args, err := tool.commandLine([]byte("{"+strings.Join(fields, ",")+"}"), Server{Providers: []string{"prod"}})
		require.NoError(t, err, tool.name)
		assert.Contains(t, args, "--provider=prod", tool.name)
	}
}

func TestArgumentsBecomeOneCommandLine(t *testing.T) {
	t.Parallel()
	s := Server{Program: "sbx", Play: plays, Allow: Acts(), Providers: []string{"prod", "stage"}, Globals: []string{"--config=/etc/c.yaml"}}
	client, hangUp, _ := session(t, s)
	defer hangUp()
	for _, c := range []struct {
		tool string
		args map[string]any
		want string // a part of the answer
		err  bool
	}{
		{"list-sandboxes", map[string]any{"stuck": true, "look": false, "where": "age > 10m", "provider": "prod"}, `["ls","--output=json","--quiet","--timeout=2m0s","--stuck","--where=age \u003e 10m","--limit=100","--provider=prod","--config=/etc/c.yaml"]`, false},
		{"read-logs", map[string]any{"ref": "prod/i1", "tail": 7}, `"--tail=7","--provider=prod","--provider=stage","--config=/etc/c.yaml","prod/i1"]`, false},
		{"plan-cleanup", map[string]any{"older_than": "10m"}, "Nothing was done: typed by a person in a terminal, it shows its plan and asks.", false},
		{"plan-cleanup", map[string]any{"older_than": "10m"}, `"--dry-run"`, false},
		{"plan-cleanup", map[string]any{"stuck": true}, "`sbx cleanup --stuck --provider=prod", false},
		{"read-events", map[string]any{"ref": "/etc/passwd.jsonl"}, `["events","--no-file",`, false},
		{"continue-task", map[string]any{"task": "t-k3v9x2mq7abc", "command": []string{"sh", "-c", "echo; --yes"}}, `"t-k3v9x2mq7abc","--","sh","-c","echo; --yes"]`, false},
		{"fleet-stats", nil, `"--provider=stage"`, false},
		{"list-sandboxes", map[string]any{"provider": "other"}, "only prod, stage may be shown", true},
		{"inspect-sandbox", nil, "ref is missing", true},
		{"inspect-sandbox", map[string]any{"ref": "--yes"}, "it is no reference", true},
		{"inspect-sandbox", map[string]any{"ref": "a b"}, "it is no reference", true},
		{"inspect-sandbox", map[string]any{"ref": 7}, "a text is wanted", true},
		{"list-sandboxes", map[string]any{"limit": 10_000}, "a whole number from 1 to 1000 is wanted", true},
		{"list-sandboxes", map[string]any{"stuck": "yes"}, "true or false is wanted", true},
		{"plan-cleanup", map[string]any{"yes": true}, "plan-cleanup has no argument yes", true},
		{"stop-task", map[string]any{"task": "t-k3v9"}, "it has not the form", true},
		{"stop-task", map[string]any{"task": "-"}, "it has not the form", true},
		{"continue-task", map[string]any{"task": "t-k3v9x2mq7abc", "command": []string{}}, "a list of words is wanted", true},
	} {
		r, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: c.args})
		require.NoError(t, err, c.want)
		assert.Contains(t, texts(r), c.want)
		assert.Equal(t, c.err, r.IsError, c.want)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	s := Server{Program: "sbx", Play: func(_ context.Context, _ []string, stdout, stderr io.Writer) int {
		fmt.Fprint(stderr, strings.Repeat("e", 2*maxMessages))
		for range 100 {
			fmt.Fprint(stdout, strings.Repeat("x", maxDocument/50))
		}
		return fault.KindPartial.Row().Code
	}}
	client, hangUp, _ := session(t, s)
	defer hangUp()
	r, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "diagnose"})
	require.NoError(t, err)
	assert.True(t, r.IsError)
	assert.Contains(t, texts(r), "Ask for less")
	assert.Less(t, len(texts(r)), maxMessages+1000)
}

// TestAPartIsAnAnswer: a provider that did not answer, or a finding, is no failure of the tool.
func TestAPartIsAnAnswer(t *testing.T) {
	t.Parallel()
	for kind, failed := range map[fault.Kind]bool{fault.KindPartial: false, fault.KindFound: false, fault.KindUsage: true, fault.KindNotFound: true, fault.KindUnavailable: true} {
		s := Server{Program: "sbx", Play: func(context.Context, []string, io.Writer, io.Writer) int { return kind.Row().Code }}
		assert.Equal(t, failed, s.answer(t.Context(), allTools()[2], nil).IsError, kind)
	}
}

// TestManyCallsWaitForEachOther, and end with the connection.
func TestManyCallsWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, most, ended atomic.Int64
		s := Server{Program: "sbx", Play: func(ctx context.Context, _ []string, _, _ io.Writer) int {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			<-ctx.Done()
			now.Add(-1)
			ended.Add(1)
			return 1
		}}
		client, hangUp, over := session(t, s)
		for range 200 {
			go func() { _, _ = client.CallTool(t.Context(), &sdk.CallToolParams{Name: "diagnose"}) }() // its end is that of the connection
		}
		synctest.Wait()
		assert.EqualValues(t, maxCalls, now.Load())
		hangUp()
		require.NoError(t, <-over)
		synctest.Wait()
		assert.Zero(t, now.Load())
		assert.EqualValues(t, maxCalls, most.Load())
	})
}

// TestOneBadLineEndsNothing: it is answered as JSON-RPC 2.0 says, and the next one is, too.
func TestOneBadLineEndsNothing(t *testing.T) {
	t.Parallel()
	const ping = `{"jsonrpc":"2.0","id":42,"method":"ping"}`
	for name, tc := range map[string]struct {
		line string
		code string // of the answer beside that of the ping; "" = there is none
		id   string
	}{
		"no JSON":                  {"npm warn deprecated", "-32700", "null"},
		"half a message":           {ping[:20], "-32700", "null"},
		"two in one line":          {ping + ping, "-32700", "null"},
		"too long":                 {strings.Repeat("x", 3*maxFrame), "-32600", "null"},
		"not even an object":       {"17", "-32600", "null"},
		"another version":          {`{"jsonrpc":"1.0","id":7,"method":"ping"}`, "-32600", "7"},
		"no version":               {`{"id":"seven","method":"ping"}`, "-32600", `"seven"`},
		"a key in capitals":        {`{"JSONRPC":"2.0","id":7,"method":"ping"}`, "-32600", "7"},
		"an id that is none":       {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, "-32600", "null"},
		"a method that is none":    {`{"jsonrpc":"2.0","id":7,"method":5}`, "-32600", "7"},
		"neither method nor id":    {`{"jsonrpc":"2.0"}`, "-32600", "null"},
		"an error that is none":    {`{"jsonrpc":"2.0","id":7,"error":"x"}`, "-32600", "null"},
		"an empty batch":           {"[]", "-32600", "null"},
		"a batch with a bad one":   {`[5]`, "-32600", "null"},
		"a mark in front":          {"\ufeff" + strings.Replace(ping, "42", "7", 1), "", ""},
		"NULs behind":              {strings.Replace(ping, "42", "7", 1) + "\x00\x00", "", ""},
		"an empty line":            {" \r", "", ""},
		"an answer to no question": {`{"jsonrpc":"2.0","id":7,"result":{}}`, "", ""},
	} {
		in, asks := io.Pipe()
		answers, out := io.Pipe()
		go func() { _ = Server{Program: "sbx", Play: plays}.Serve(t.Context(), in, out) }() // its answers show how it goes on
		go func() {
			_, _ = io.WriteString(asks, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"+
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\r\n"+tc.line+"\n"+ping+"\n")
		}()
		var said strings.Builder
		for lines := bufio.NewScanner(answers); lines.Scan() && !strings.Contains(lines.Text(), `"id":42`); {
			said.WriteString(lines.Text() + "\n")
		}
		_ = asks.Close()
		if tc.code == "" {
			assert.NotContains(t, said.String(), `"error"`, name)
			continue
		}
		assert.Regexp(t, `"code":`+tc.code+`,.*"id":`+tc.id+`,`, said.String(), name)
	}
}
