package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// TestAnAssistantReadsAndEndsNothing drives the whole program by the protocol's own client: each reading tool answers with
// a document, and after all of them every sandbox is there.
func TestAnAssistantReadsAndEndsNothing(t *testing.T) {
	t.Parallel()
	w := newFactsWorld(t, providers.Type{Facts: remoteFacts()})
	w.fake.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "one"}}, fake.Seed{Sandbox: sandbox.Sandbox{ID: "two"}})
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	var errs bytes.Buffer
	p := w.process("mcp", &errs, &errs)
	p.Stdin, p.Stdout = process.Stream{Reader: toServer}, process.Stream{Writer: fromServer}
	over := make(chan int, 1)
	go func() {
		over <- Run(p, w.types)
		_ = fromServer.Close() // the client sees the end
	}()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &sdk.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	require.NoError(t, err)
	list, err := client.ListTools(t.Context(), nil)
	require.NoError(t, err)
	args := map[string]map[string]any{
		"inspect-sandbox": {"ref": "box/one"}, "read-logs": {"ref": "box/one"}, "read-events": {"ref": "box/one"},
		"plan-cleanup": {"older_than": "1s"}, "show-task": {"task": "t-k3v9x2mq7abc"},
	}
	for _, tool := range list.Tools {
		for _, example := range conditionsOf(t, tool) { // an example that is refused teaches a mistake
			r, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: map[string]any{"where": example}})
			require.NoError(t, err, tool.Name)
			last, _ := r.Content[len(r.Content)-1].(*sdk.TextContent)
			assert.False(t, r.IsError, "%s: %s: %s", tool.Name, example, last.Text)
		}
		assert.True(t, tool.Annotations.ReadOnlyHint, tool.Name)
		r, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: args[tool.Name]})
		require.NoError(t, err, tool.Name)
		last, _ := r.Content[len(r.Content)-1].(*sdk.TextContent)
		require.True(t, json.Valid([]byte(last.Text)), "%s: %s", tool.Name, last.Text)
		assert.Contains(t, last.Text, `"schema": "sbx.`, tool.Name)
	}
	require.NoError(t, client.Close())
	assert.Zero(t, <-over, errs.String())
	_, shown, _ := w.run("ls -o name")
	assert.Equal(t, 2, strings.Count(shown, "box/"))
}

// conditionsOf are the examples of a condition in the description of a tool.
func conditionsOf(t *testing.T, tool *sdk.Tool) []string {
	t.Helper()
	text, err := json.Marshal(tool.InputSchema)
	require.NoError(t, err)
	var schema struct {
		Properties map[string]struct {
			Description string `json:"description"`
		} `json:"properties"`
	}
	require.NoError(t, json.Unmarshal(text, &schema))
	var all []string
	for i, part := range strings.Split(schema.Properties["where"].Description, "`") {
		if i%2 == 1 {
			all = append(all, part)
		}
	}
	return all
}
