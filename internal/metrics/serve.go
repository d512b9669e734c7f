package metrics

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"sbx/internal/fault"
)

// readLimit is how long a reader may take for its question.
const readLimit = 5 * time.Second

// Listen opens an address of this machine, such as 127.0.0.1:9464: figures have no
// credentials, so that others must not reach them. Anything else is
// fault.KindUsage.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fault.Usage("%q is not an address of the form HOST:PORT", address).WithHint("write it like 127.0.0.1:9464")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fault.Usage("%q can be reached from elsewhere", address).WithHint("listen on 127.0.0.1 and put a proxy with credentials before it")
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fault.New(fault.KindUnavailable, "nothing can listen there: %w", err)
	}
	return l, nil
}

// Serve answers at /metrics until ctx ends.
func Serve(ctx context.Context, l net.Listener, gather func() Set) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", Handler(gather))
	server := &http.Server{Handler: mux, ReadTimeout: readLimit, WriteTimeout: readLimit}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fault.New(fault.KindUnavailable, "/metrics ended: %w", err)
	}
	return nil
}

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
