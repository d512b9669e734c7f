//go:build !unix

package wire

func closeOnExec(int) {}
