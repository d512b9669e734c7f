package docker_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers/docker"
)

// engine listens and sends each client one word; with TLS it takes only clients with a certificate.
func engine(t *testing.T, network, address string, config *tls.Config) string {
	t.Helper()
	l, err := net.Listen(network, address)
	require.NoError(t, err)
	if config != nil {
		l = tls.NewListener(l, config)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("engine"))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// writePair writes ca.pem, cert.pem and key.pem, all of one certificate, and returns it for the server.
func writePair(t *testing.T, dir string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(7), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	text, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text})
	secret := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for name, text := range map[string][]byte{"ca.pem": certificate, "cert.pem": certificate, "key.pem": secret} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	pair, err := tls.X509KeyPair(certificate, secret)
	require.NoError(t, err)
	return pair
}

// writeContext writes a context as `docker context create` does, and its certificates; it returns the folder of these.
func writeContext(t *testing.T, config, name, host string, skipVerify bool) string {
	t.Helper()
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
	meta := filepath.Join(config, "contexts", "meta", id)
	require.NoError(t, os.MkdirAll(meta, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(meta, "meta.json"), fmt.Appendf(nil, `{"Name":%q,"Metadata":{},"Endpoints":{"docker":{"Host":%q,"SkipTLSVerify":%t}}}`, name, host, skipVerify), 0o600))
	return filepath.Join(config, "contexts", "tls", id, "docker")
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "docker") //nolint:usetesting // the path of a socket is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := engine(t, "unix", filepath.Join(dir, "s"), nil)
	plain := engine(t, "tcp", "127.0.0.1:0", nil)
	certs := filepath.Join(dir, "certs")
	pair := writePair(t, certs)
	pool := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	require.NoError(t, err)
	pool.AddCert(leaf)
	secure := engine(t, "tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12})
	other := filepath.Join(dir, "other") // of another engine
	writePair(t, other)
	broken := filepath.Join(dir, "broken")
	writePair(t, broken)
	require.NoError(t, os.WriteFile(filepath.Join(broken, "ca.pem"), []byte("none"), 0o600))
	writeContext(t, dir, "socket", "unix://"+socket, false)
	writePair(t, other)
	require.NoError(t, os.CopyFS(writeContext(t, dir, "secure", "tcp://"+secure, false), os.DirFS(certs)))
	require.NoError(t, os.CopyFS(writeContext(t, dir, "untrusted", "tcp://"+secure, false), os.DirFS(other)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"currentContext":"socket"}`), 0o600))

	for name, tc := range map[string]struct {
		settings map[string]string
		base     string
		refused  string // "" = it opens
		unheard  string // "" = the engine answers
	}{
		"the current context":      {nil, "http://unix-socket", "", ""},
		"a socket":                 {map[string]string{"host": "unix://" + socket}, "http://unix-socket", "", ""},
		"tcp":                      {map[string]string{"host": "tcp://" + plain}, "http://" + plain, "", ""},
		"tcp, a path":              {map[string]string{"host": "tcp://" + plain + "/v1"}, "http://" + plain, "", ""},
		"certificates":             {map[string]string{"host": "tcp://" + secure, "cert_path": certs, "tls_verify": "1"}, "http://" + secure, "", ""},
		"certificates, unverified": {map[string]string{"host": "tcp://" + secure, "cert_path": certs}, "http://" + secure, "", ""},
		"those of another engine":  {map[string]string{"host": "tcp://" + secure, "cert_path": other, "tls_verify": "1"}, "http://" + secure, "", "certificate"},
		"a context with TLS":       {map[string]string{"context": "secure"}, "http://" + secure, "", ""},
		"a context, untrusted":     {map[string]string{"context": "untrusted"}, "http://" + secure, "", "certificate"},
		"no authority":             {map[string]string{"host": "tcp://" + secure, "cert_path": broken}, "", "ca.pem has no certificate", ""},
		"no certificates":          {map[string]string{"host": "tcp://" + secure, "cert_path": dir}, "", "cert_path", ""},
		"no such context":          {map[string]string{"context": "none"}, "", `the context "none" of Docker cannot be read`, ""},
		"no address":               {map[string]string{"host": "unix"}, "", `the setting host: "unix" is no address`, ""},
		"a password for ssh":       {map[string]string{"host": "ssh://me:secret@host"}, "", "the setting host", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lookup := func(name string) (string, bool) { return dir, name == "DOCKER_CONFIG" }
			base, dial, err := docker.FindEndpoint(tc.settings, lookup)
			if tc.refused != "" {
				assert.Equal(t, fault.KindUsage, fault.KindOf(err), "%v", err)
				require.ErrorContains(t, err, tc.refused)
				assert.NotContains(t, err.Error(), "secret")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.base, base)
			c, err := dial(t.Context())
			if tc.unheard != "" {
				require.ErrorContains(t, err, tc.unheard)
				return
			}
			require.NoError(t, err)
			defer func() { _ = c.Close() }()
			word := make([]byte, 6)
			_, err = c.Read(word)
			require.NoError(t, err)
			assert.Equal(t, "engine", string(word))
		})
	}
}

// A handshake that is not answered ends with its caller.
func TestAHandshakeEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	certs := t.TempDir()
	writePair(t, certs)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			defer func() { _ = c.Close() }()
			_, _ = c.Read(make([]byte, 1)) // the handshake has begun
			cancel()
			<-t.Context().Done()
		}
	}()
	_, dial, err := docker.FindEndpoint(map[string]string{"host": "tcp://" + l.Addr().String(), "cert_path": certs}, func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	_, err = dial(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
