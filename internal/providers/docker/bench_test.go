package docker_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// BenchmarkEndingTwenty ends twenty containers at once: removed and verified by sbx, and removed by force by
// Docker's own client, as twenty `docker rm -f` do.
func BenchmarkEndingTwenty(b *testing.B) {
	host := realEngine(b)
	own, err := client.New(client.WithHost(host))
	require.NoError(b, err)
	c := open(b, map[string]string{"host": host}, httpx.Net{})
	defer c.Close()
	for name, end := range map[string]func(b *testing.B, id string){
		"sbx": func(b *testing.B, id string) {
			b.Helper()
			require.NoError(b, c.Terminate(b.Context(), id, providers.TerminateOptions{Delete: true, Grace: 5 * time.Second, By: "test"}))
			proof, err := c.VerifyEnd(b.Context(), id, providers.EndQuery{Delete: true, Since: time.Now(), Now: time.Now()})
			require.NoError(b, err)
			require.Equal(b, sandbox.True, proof.Ended)
		},
		"rm -f": func(b *testing.B, id string) {
			b.Helper()
			_, err := own.ContainerRemove(b.Context(), id, client.ContainerRemoveOptions{Force: true})
			require.NoError(b, err)
		},
	} {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				ids := startTwenty(b, own)
				b.StartTimer()
				var all sync.WaitGroup
				for _, id := range ids {
					all.Go(func() { end(b, id) })
				}
				all.Wait()
			}
		})
	}
}

func startTwenty(b *testing.B, own *client.Client) []string {
	b.Helper()
	var ids []string
	for range 20 {
		made, err := own.ContainerCreate(b.Context(), client.ContainerCreateOptions{
			Config: &container.Config{Image: image, Cmd: []string{"sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait"}}, HostConfig: &container.HostConfig{NetworkMode: "none"},
		})
		require.NoError(b, err)
		_, err = own.ContainerStart(b.Context(), made.ID, client.ContainerStartOptions{})
		require.NoError(b, err)
		ids = append(ids, made.ID)
	}
	return ids
}
