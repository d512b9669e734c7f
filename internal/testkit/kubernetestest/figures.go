package kubernetestest

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"sbx/internal/testkit/wiretest"
)

// Figures are what the metrics server has of a pod.
type Figures struct {
	CPUPercent         float64 // of one core
	MemoryMiB          float64 // the working set at the time when the figures are set
	MemoryMiBPerMinute float64 // its growth since then
	LimitMiB           int64   // of its main container
}

// Show sets the figures of a sandbox.
func (f *Fake) Show(id string, figures Figures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.podsOf(f.findID(id)) {
		p.figures, p.since = &figures, f.o.Now()
		p.mainContainer()["resources"] = map[string]any{"limits": map[string]any{"memory": fmt.Sprintf("%dMi", figures.LimitMiB)}}
	}
}

// serveMetrics answers the newest sample of the metrics server.
func (f *Fake) serveMetrics(w http.ResponseWriter, r *http.Request) {
	p := f.find("pods", r.PathValue("name"))
	switch {
	case f.o.NoMetrics:
		http.Error(w, "404 page not found", http.StatusNotFound)
	case p == nil || p.phase != "Running":
		refuse(w, http.StatusNotFound, "NotFound", "podmetrics.metrics.k8s.io %q not found", Namespace+"/"+r.PathValue("name")) // as metrics-server says it
	default:
		at := f.o.Now().Truncate(cmp.Or(f.o.Scrape, time.Nanosecond))
		wiretest.JSON(w, http.StatusOK, map[string]any{
			"kind": "PodMetrics", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": map[string]any{"name": p.name, "namespace": Namespace}, "timestamp": stamp(at), "window": "15s",
			"containers": []any{map[string]any{"name": "main", "usage": p.usageAt(at)}},
		})
	}
}

// usageAt are the quantities of a sample. Memory is at most its limit.
func (o *thing) usageAt(at time.Time) map[string]string {
	if o.figures == nil {
		return map[string]string{"cpu": "1042n", "memory": "20Mi"}
	}
	used := o.figures.MemoryMiB + o.figures.MemoryMiBPerMinute*at.Sub(o.since).Minutes()
	return map[string]string{"cpu": fmt.Sprintf("%dn", int64(o.figures.CPUPercent*1e7)), "memory": fmt.Sprintf("%dKi", int64(min(used, float64(o.figures.LimitMiB))*1024))}
}
