package httpx

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"sbx/internal/fault"
)

// trust says which certificates count beside the system's.
type trust struct {
	file string
	dirs []string
}

// trusted reads SSL_CERT_FILE and SSL_CERT_DIR (a list of folders, as OpenSSL
// and Go take it) and looks whether they can be read at all.
func (n Net) trusted() (trust, error) {
	var t trust
	t.file, _ = n.Lookup("SSL_CERT_FILE")
	if dirs, ok := n.Lookup("SSL_CERT_DIR"); ok {
		t.dirs = filepath.SplitList(dirs)
	}
	if t.file != "" {
		if err := readable(t.file); err != nil {
			return t, fault.Usage("SSL_CERT_FILE: %w", err)
		}
	}
	for _, dir := range t.dirs {
		if err := readable(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // a list names folders of several systems
			return t, fault.Usage("SSL_CERT_DIR: %w", err)
		}
	}
	return t, nil
}

func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// none says that the system's own certificates are all.
func (t trust) none() bool { return t.file == "" && len(t.dirs) == 0 }

// pool is the system's certificates and the others.
func (t trust) pool() (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if t.file != "" {
		pem, err := os.ReadFile(t.file)
		if err != nil {
			return nil, fault.Usage("SSL_CERT_FILE: %w", err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fault.Usage("SSL_CERT_FILE: %s holds no certificate", t.file)
		}
	}
	for _, dir := range t.dirs {
		found, _ := filepath.Glob(filepath.Join(dir, "*")) // the pattern is well-formed
		for _, name := range found {
			if pem, err := os.ReadFile(name); err == nil { // folders and broken links are no certificates
				pool.AppendCertsFromPEM(pem)
			}
		}
	}
	return pool, nil
}

// trusting is a transport that reads its certificates when they are first
// needed: parsing a few hundred takes longer than many a whole command.
type trusting struct {
	plain *http.Transport
	trust trust

	mu  sync.Mutex
	own *http.Transport // plain with its own certificates; nil before the first https request
}

// RoundTrip sends a request over a connection that trusts what it should.
func (t *trusting) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.trust.none() || req.URL.Scheme != "https" {
		return t.plain.RoundTrip(req)
	}
	own, err := t.secure()
	if err != nil {
		return nil, err
	}
	return own.RoundTrip(req)
}

func (t *trusting) secure() (*http.Transport, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.own == nil {
		roots, err := t.trust.pool()
		if err != nil {
			return nil, err
		}
		t.own = t.plain.Clone()
		t.own.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return t.own, nil
}

// CloseIdleConnections is what http.Client looks for.
func (t *trusting) CloseIdleConnections() {
	t.plain.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.own != nil {
		t.own.CloseIdleConnections()
	}
}
