package kubernetes_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/kubernetestest"
)

// atOnce is how many requests make or end the objects of a benchmark at the same time.
const atOnce = 32

// BenchmarkListingTenThousand lists 10,000 sandboxes of a real cluster, by sbx and by a loop that reads the same
// pages and nothing else.
func BenchmarkListingTenThousand(b *testing.B) {
	file := realCluster(b)
	o := newOwner(b, file)
	label := map[string]string{"bench": "list"}
	each(10_000, atOnce, func(int) {
		o.create("Sandbox", agents, "sandboxes", meta(label), fields{"operatingMode": "Suspended", "podTemplate": fields{"spec": podSpec("sleep 600")}}, nil)
	})
	all := "/apis/" + agents + "/namespaces/" + kubernetestest.Namespace + "/sandboxes?limit=500&labelSelector=bench%3Dlist"
	settled := func() bool {
		return o.count(all, func(status fields) bool { return status["conditions"] != nil }) == 10_000
	}
	require.Eventually(b, settled, 5*time.Minute, time.Second, "the controller is at work still")
	every := func(fields) bool { return true }
	b.Run("sbx", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := onCluster(b, file, map[string]string{"kinds": "sandbox", "label": "bench=list"})
			rows := 0
			for _, err := range c.List(b.Context(), providers.Query{}) {
				require.NoError(b, err)
				rows++
			}
			c.Close()
			require.Equal(b, 10_000, rows)
		}
	})
	b.Run("loop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			own := newOwner(b, file)
			require.Equal(b, 10_000, own.count("/api/v1/namespaces/"+kubernetestest.Namespace+"/pods?limit=500", every)+own.count(all, every))
		}
	})
}

// barePage has what a row of sbx is made of.
type barePage struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []struct {
		Metadata struct {
			Name              string            `json:"name"`
			UID               string            `json:"uid"`
			Labels            map[string]string `json:"labels"`
			Annotations       map[string]string `json:"annotations"`
			CreationTimestamp time.Time         `json:"creationTimestamp"` //nolint:tagliatelle // as the API spells it
		} `json:"metadata"`
		Spec   fields `json:"spec"`
		Status fields `json:"status"`
	} `json:"items"`
}

// count reads all pages and counts the rows whose status is as it shall be.
func (o owner) count(path string, is func(status fields) bool) (rows int) {
	o.t.Helper()
	for token := ""; ; {
		r, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, o.base+path+"&continue="+url.QueryEscape(token), nil)
		require.NoError(o.t, err)
		res, err := o.http.Do(r)
		require.NoError(o.t, err)
		var page barePage
		require.NoError(o.t, json.NewDecoder(res.Body).Decode(&page))
		_ = res.Body.Close()
		for _, item := range page.Items {
			if is(item.Status) {
				rows++
			}
		}
		if token = page.Metadata.Continue; token == "" {
			return rows
		}
	}
}

// BenchmarkEndingHundred ends a hundred pods of a real cluster that end at TERM: by sbx, 16 at a time, each verified;
// by bare requests, 16 at a time; by one `kubectl delete` with all names; and ten of them one after the other.
func BenchmarkEndingHundred(b *testing.B) {
	file := realCluster(b)
	c := onCluster(b, file, nil)
	defer c.Close()
	kubectl := func(b *testing.B, names ...string) {
		b.Helper()
		out, err := exec.CommandContext(b.Context(), "kubectl", append([]string{"--kubeconfig", file, "delete", "--wait", "pod"}, names...)...).CombinedOutput()
		require.NoError(b, err, "%s", out)
	}
	for name, end := range map[string]func(b *testing.B, pods []made){
		"sbx": func(b *testing.B, pods []made) {
			b.Helper()
			each(len(pods), 16, func(i int) { require.NoError(b, endAndVerify(b, c, pods[i].id("pod"))) })
		},
		"bare_deletes": func(b *testing.B, pods []made) {
			b.Helper()
			o := newOwner(b, file)
			each(len(pods), 16, func(i int) {
				o.do(b.Context(), http.MethodDelete, pods[i].path, nil)
				o.await(pods[i], func(m made) bool { return m.text("code") == "404" })
			})
		},
		"kubectl_100_names": func(b *testing.B, pods []made) {
			b.Helper()
			kubectl(b, namesOf(pods)...)
		},
		"kubectl_10_in_turn": func(b *testing.B, pods []made) {
			b.Helper()
			for _, name := range namesOf(pods)[:10] {
				kubectl(b, name)
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			o := newOwner(b, file)
			for b.Loop() {
				b.StopTimer()
				var mu sync.Mutex
				var pods []made
				each(100, atOnce, func(int) {
					p := o.create("pod", "v1", "pods", meta(map[string]string{"bench": "end"}), podSpec("trap 'exit 0' TERM; sleep 600 & wait"), nil)
					p = o.await(p, func(m made) bool { return m.text("status", "phase") == "Running" })
					mu.Lock()
					defer mu.Unlock()
					pods = append(pods, p)
				})
				b.StartTimer()
				end(b, pods)
			}
		})
	}
}

func endAndVerify(b *testing.B, c interface {
	providers.Provider
	providers.Verifier
}, id string,
) error {
	b.Helper()
	if err := c.Terminate(b.Context(), id, providers.TerminateOptions{Delete: true, Grace: 5 * time.Second, By: "test"}); err != nil {
		return err
	}
	for {
		proof, err := c.VerifyEnd(b.Context(), id, providers.EndQuery{Delete: true, Now: time.Now()})
		if err != nil || proof.Ended == sandbox.True {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func namesOf(pods []made) (names []string) {
	for _, p := range pods {
		names = append(names, p.text("metadata", "name"))
	}
	return names
}

// each calls do with 0 to n-1, some at once.
func each(n, atOnce int, do func(i int)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			do(i)
			<-slots
		})
	}
	all.Wait()
}
