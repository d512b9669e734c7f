package monotask

import "testing"

func FuzzParseLog(f *testing.F) {
	for _, seed := range []string{`["a"]`, `[{"message":"a","timestamp":1}]`, `{"logs":[]}`, "plain\ntext", `[null]`, "{"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		lines, err := parseLog(body)
		if err != nil && len(lines) > 0 {
			t.Fatal("an error, and lines")
		}
		for _, l := range lines {
			if l.Stream == "" {
				t.Fatalf("a line without a stream from %q", body)
			}
		}
	})
}
