package httpx_test

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

// env is an environment of the given names and values.
func env(pairs ...string) func(string) (string, bool) {
	return func(key string) (string, bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// real opens a client that uses the network of this machine.
func realClient(t *testing.T, base string, lookup func(string) (string, bool)) (*httpx.Client, error) {
	t.Helper()
	c, err := httpx.New(httpx.Net{Lookup: lookup}, httpx.Options{Profile: "prod", Base: base, Tries: 1})
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, err
}

// secure is a server with a certificate that no system trusts, in a file.
func secure(t *testing.T) (*httptest.Server, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Proto)) }))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "own.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(file, block, 0o600))
	return server, file
}

func TestTrust(t *testing.T) {
	t.Parallel()
	server, file := secure(t)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, []byte("none"), 0o600))
	for name, tc := range map[string]struct {
		base string
		env  []string
		says string // "" = it works, over HTTP/2
		hint string
		kind fault.Kind
	}{
		"a stranger":           {server.URL, nil, "its certificate is not trusted", "SSL_CERT_FILE", fault.KindUnavailable},
		"by file":              {server.URL, []string{"SSL_CERT_FILE", file}, "", "", ""},
		"by folder":            {server.URL, []string{"SSL_CERT_DIR", filepath.Dir(file)}, "", "", ""},
		"by one of the list":   {server.URL, []string{"SSL_CERT_DIR", filepath.Join(filepath.Dir(file), "none") + string(filepath.ListSeparator) + filepath.Dir(file)}, "", "", ""},
		"another name":         {"https://localhost:" + port, []string{"SSL_CERT_FILE", file}, "its certificate is for another name", "check the url", fault.KindUnavailable},
		"a file without any":   {server.URL, []string{"SSL_CERT_FILE", empty}, "has no certificate", "", fault.KindUsage},
		"TLS is not spoken":    {strings.Replace(plain(t).URL, "http:", "https:", 1), nil, "the server does not use TLS", "write http:// in the url", fault.KindUnavailable},
		"TLS is not asked for": {"http://" + server.Listener.Addr().String(), nil, "HTTP 400", "", fault.KindUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := realClient(t, tc.base, env(tc.env...))
			require.NoError(t, err)
			for range 2 { // the second finds what the first has read
				res, err := c.Do(t.Context(), httpx.Request{Op: "get a"})
				if tc.says == "" {
					require.NoError(t, err)
					assert.Equal(t, "HTTP/2.0", string(res.Body))
					continue
				}
				require.ErrorContains(t, err, "prod: get a: ")
				require.ErrorContains(t, err, tc.says)
				assert.Contains(t, fault.HintOf(err), tc.hint)
				assert.Equal(t, tc.kind, fault.KindOf(err))
			}
		})
	}
}

func plain(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	return server
}

// TestCertificatesThatCannotBeRead are usage errors before any request.
func TestCertificatesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := realClient(t, "https://api.example", env("SSL_CERT_FILE", filepath.Join(t.TempDir(), "none.pem")))
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	require.ErrorContains(t, err, "prod: SSL_CERT_FILE: ")

	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("everything is readable here")
	}
	locked := filepath.Join(t.TempDir(), "locked")
	require.NoError(t, os.Mkdir(locked, 0))
	_, err = realClient(t, "https://api.example", env("SSL_CERT_DIR", locked))
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
}

func TestRefusedForReal(t *testing.T) {
	t.Parallel()
	var l net.ListenConfig
	held, err := l.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := held.Addr().String()
	require.NoError(t, held.Close())
	c, err := realClient(t, "http://"+address, nil)
	require.NoError(t, err)
	_, err = c.Do(t.Context(), httpx.Request{Op: "get a"})
	require.EqualError(t, err, "prod: get a: connection refused")
	assert.True(t, httpx.NotSent(err))
}

func TestProxies(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte("proxied " + r.URL.String() + " for " + r.Header.Get("Proxy-Authorization")))
	}))
	t.Cleanup(proxy.Close)
	host := strings.TrimPrefix(proxy.URL, "http://")
	const want = "proxied http://api.example/a for "
	for name, tc := range map[string]struct {
		base string
		env  []string
		got  string
		says string
	}{
		"upper case":       {"http://api.example", []string{"HTTP_PROXY", proxy.URL}, want, ""},
		"lower case":       {"http://api.example", []string{"http_proxy", proxy.URL}, want, ""},
		"with a password":  {"http://api.example", []string{"HTTP_PROXY", "http://me:hunter22@" + host}, want + "Basic bWU6aHVudGVyMjI=", ""},
		"of https":         {"https://api.example", []string{"HTTPS_PROXY", proxy.URL}, "", "Forbidden"},
		"not for this one": {plain(t).URL, []string{"HTTP_PROXY", proxy.URL}, "", ""},
		"excepted":         {"http://nowhere.invalid", []string{"HTTP_PROXY", proxy.URL, "NO_PROXY", ".invalid"}, "", "nowhere.invalid"},
		"a dead proxy":     {"http://api.example", []string{"HTTP_PROXY", "http://me:hunter22@127.0.0.1:1"}, "", "the proxy cannot be reached: connection refused"},
		"under CGI":        {"http://nowhere.invalid", []string{"HTTP_PROXY", proxy.URL, "REQUEST_METHOD", "GET"}, "", "CGI"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := realClient(t, tc.base, env(tc.env...))
			require.NoError(t, err)
			res, err := c.Do(t.Context(), httpx.Request{Op: "get a", Path: "/a"})
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
				assert.NotContains(t, err.Error(), "hunter22")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.got, string(res.Body))
		})
	}
}
