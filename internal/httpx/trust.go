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

// trustedFiles are the certificates that are trusted in addition to those of the system.
type trustedFiles struct {
	file string
	dirs []string
}

// readTrust reads SSL_CERT_FILE and SSL_CERT_DIR (a list of folders, as in OpenSSL and Go) and
// checks that they can be read.
func (n Net) readTrust() (trustedFiles, error) {
	var t trustedFiles
	t.file, _ = n.Lookup("SSL_CERT_FILE")
	if dirs, ok := n.Lookup("SSL_CERT_DIR"); ok {
		t.dirs = filepath.SplitList(dirs)
	}
	if t.file != "" {
		if err := checkReadable(t.file); err != nil {
			return t, fault.Usage("SSL_CERT_FILE: %w", err)
		}
	}
	for _, dir := range t.dirs {
		if err := checkReadable(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // the list may have folders of other systems
			return t, fault.Usage("SSL_CERT_DIR: %w", err)
		}
	}
	return t, nil
}

func checkReadable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

func (t trustedFiles) certPool() (*x509.CertPool, error) {
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
			return nil, fault.Usage("SSL_CERT_FILE: %s has no certificate", t.file)
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

// lazyTrustTransport reads its certificates when they are first needed: parsing a few hundred
// takes longer than many commands.
type lazyTrustTransport struct {
	plain *http.Transport
	trust trustedFiles

	mu  sync.Mutex
	own *http.Transport // plain with its own certificates; nil before the first https request
}

// RoundTrip sends a request over a connection with these certificates.
func (t *lazyTrustTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if (t.trust.file == "" && len(t.trust.dirs) == 0) || req.URL.Scheme != "https" {
		return t.plain.RoundTrip(req)
	}
	own, err := t.secureTransport()
	if err != nil {
		return nil, err
	}
	return own.RoundTrip(req)
}

func (t *lazyTrustTransport) secureTransport() (*http.Transport, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.own == nil {
		roots, err := t.trust.certPool()
		if err != nil {
			return nil, err
		}
		t.own = t.plain.Clone()
		t.own.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return t.own, nil
}

// CloseIdleConnections is called by http.Client.
func (t *lazyTrustTransport) CloseIdleConnections() {
	t.plain.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.own != nil {
		t.own.CloseIdleConnections()
	}
}
