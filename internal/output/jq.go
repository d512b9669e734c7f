package output

import (
	"context"
	"errors"
	"math/big"
	"strings"

	"github.com/itchyny/gojq"

	"sbx/internal/fault"
)

// parseQuery compiles a jq expression. It sees no environment, no files and no
// other input than the document.
func parseQuery(text string) (*gojq.Code, error) {
	refuse := func(err error) (*gojq.Code, error) {
		return nil, fault.Usage("bad jq expression: %s", Escape(err.Error())).
			WithHint("jq reads the JSON document: jq='.items[].ref'")
	}
	parsed, err := gojq.Parse(text)
	if err != nil {
		return refuse(err)
	}
	code, err := gojq.Compile(parsed)
	if err != nil {
		return refuse(err)
	}
	return code, nil
}

// runQuery runs the expression over the document and prints one result per line:
// strings as they are, everything else as compact JSON. A failure of the
// expression, and one that gives too much, is fault.KindUsage and gives no output at
// all.
func runQuery(ctx context.Context, code *gojq.Code, document Fields) ([]byte, error) {
	var out []byte
	results := code.RunWithContext(ctx, forQuery(document))
	for n := 0; ; n++ {
		v, more := results.Next()
		if !more {
			return out, nil
		}
		if err, failed := v.(error); failed {
			var halt *gojq.HaltError
			if errors.As(err, &halt) && halt.Value() == nil {
				return out, nil
			}
			return nil, fault.Usage("jq: %s", Escape(err.Error())).WithHint("see the document with -o json")
		}
		if out = append(appendResult(out, v), '\n'); len(out) > maxRendered {
			return nil, errRendered()
		}
		if n == maxResults {
			return nil, fault.Usage("jq: more than %d results", maxResults).WithHint(hintCost)
		}
	}
}

func appendResult(out []byte, v any) []byte {
	if s, ok := v.(string); ok {
		return append(out, EscapeBlock(s)...)
	}
	return appendJSON(out, fromQuery(v), compact)
}

// forQuery gives gojq the types that it accepts.
func forQuery(document Fields) any {
	return plainValue(document, func(s string) string { return strings.ToValidUTF8(s, "\ufffd") })
}

// fromQuery gives back the types that appendJSON knows; integers beyond 64 bits
// become floats.
func fromQuery(v any) any {
	switch v := v.(type) {
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		return f
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = fromQuery(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = fromQuery(e)
		}
		return shapeValue(out)
	}
	return shapeValue(v)
}
