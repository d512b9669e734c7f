package kubernetestest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
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
	case p == nil || !f.isSampled(p):
		refuse(w, http.StatusNotFound, "NotFound", "podmetrics.metrics.k8s.io %q not found", Namespace+"/"+r.PathValue("name")) // as metrics-server says it
	default:
		wiretest.JSON(w, http.StatusOK, f.sample(p))
	}
}

// serveManyMetrics answers the newest samples of the namespace, in the order of the names. As metrics-server does
// (pkg/api/pod.go), it leaves out pods that do not run and those without a sample, and answers all at once whatever the
// limit is; Options.MetricsPage is another server of the same API.
func (f *Fake) serveManyMetrics(w http.ResponseWriter, r *http.Request) {
	if f.o.NoMetrics {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	var pods []*thing
	for _, p := range f.things {
		if p.plural == "pods" && f.isSampled(p) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *thing) int { return strings.Compare(a.name, b.name) })
	meta := map[string]any{}
	begin, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("continue"), "0"))
	if err != nil || begin > len(pods) {
		refuse(w, http.StatusBadRequest, "BadRequest", "continue key is not valid")
		return
	}
	if pods = pods[begin:]; f.o.MetricsPage > 0 && len(pods) > f.o.MetricsPage {
		pods, meta["continue"] = pods[:f.o.MetricsPage], strconv.Itoa(begin+f.o.MetricsPage)
	}
	rows := []any{}
	for _, p := range pods {
		rows = append(rows, f.sample(p))
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": meta, "items": rows})
}

// isSampled says that the metrics server has a sample of a pod.
func (f *Fake) isSampled(p *thing) bool { return p.phase == "Running" && !p.unsampled }

// sample is PodMetrics of a pod.
func (f *Fake) sample(p *thing) map[string]any {
	at := f.o.Now().Truncate(cmp.Or(f.o.Scrape, time.Nanosecond))
	containers := []any{}
	all, _ := p.spec["containers"].([]any)
	for _, c := range all {
		usage := p.usageAt(at)
		name := c.(map[string]any)["name"] //nolint:forcetypeassert,errcheck // the fake has made it
		if name != "main" {
			usage = map[string]string{"cpu": "0", "memory": "0"}
		}
		containers = append(containers, map[string]any{"name": name, "usage": usage})
	}
	return map[string]any{
		"kind": "PodMetrics", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": map[string]any{"name": p.name, "namespace": Namespace, "creationTimestamp": stamp(f.o.Now())}, "timestamp": stamp(at), "window": "15s",
		"containers": containers,
	}
}

// Unsample drops the samples of a pod, as of one that has just been made.
func (f *Fake) Unsample(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.podsOf(f.findID(id)) {
		p.unsampled = true
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
