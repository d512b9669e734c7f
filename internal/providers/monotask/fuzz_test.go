package monotask

import "testing"

func FuzzParseLog(f *testing.F) {
	for _, seed := range []string{`["a"]`, `[{"message":"a","timestamp":1}]`, `{"logs":[]}`, "plain\ntext", `[null]`, "{"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, l := range parseLog(body) {
			if l.Stream == "" {
				t.Fatalf("a line without a stream from %q", body)
			}
		}
	})
}
