package metrics

import (
	"io"
	"net/http"
)

// Handler answers GET and HEAD with what gather gives at that moment, for
// /metrics. It says nothing but figures, so it needs no credentials; whoever
// listens decides on which address.
func Handler(gather func() Set) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", ContentType)
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, gather().Text()) // the reader left, which is its own business
	})
}
