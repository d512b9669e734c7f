//go:build !linux

package identity

// pidNamespace is constant: there are no PID namespaces.
func namespace() (uint64, error) { return 0, nil }
