package safety_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/safety"
)

// TestAnswers: many are counted whatever asks, and a name replaces a plain yes, never the number.
func TestAnswers(t *testing.T) {
	t.Parallel()
	prod := []string{"prod"}
	for name, tc := range map[string]struct {
		least   safety.Ask
		targets int
		names   []string
		want    []string
	}{
		"five that were named":        {safety.AskNothing, 5, nil, nil},
		"six that were named":         {safety.AskNothing, 6, nil, []string{"6"}},
		"one of production":           {safety.AskNothing, 1, prod, []string{"prod"}},
		"six of production":           {safety.AskNothing, 6, prod, []string{"6", "prod"}},
		"the beginning of an id":      {safety.AskYes, 1, nil, []string{"y"}},
		"the beginning, production":   {safety.AskYes, 1, prod, []string{"prod"}},
		"a few by a rule":             {safety.AskYes, 5, nil, []string{"y"}},
		"many by a rule":              {safety.AskYes, 6, nil, []string{"6"}},
		"one that runs, by a rule":    {safety.AskCount, 1, nil, []string{"1"}},
		"one that runs, production":   {safety.AskCount, 1, prod, []string{"1", "prod"}},
		"a gate":                      {safety.AskGate, 1, nil, []string{"yes"}},
		"a gate, production":          {safety.AskGate, 1, prod, []string{"prod"}},
		"a gate, many of production":  {safety.AskGate, 6, prod, []string{"6", "prod"}},
		"a gate by name":              {safety.AskName, 6, prod, []string{"prod"}},
		"a gate by name, all named":   {safety.AskName, 1, nil, []string{"yes"}},
		"a gate by name, named, many": {safety.AskName, 6, nil, []string{"6"}},
	} {
		assert.Equal(t, tc.want, safety.Answers(tc.least, tc.targets, tc.names), name)
	}
}
