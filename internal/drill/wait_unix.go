//go:build unix

package drill

import (
	"net"
	"syscall"
)

// waitForAnswer is a plain blocking read, as in most HTTP clients; Go's own would wait in a
// poller, where the awaited connection cannot be seen.
func waitForAnswer(conn net.Conn) int {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return 1
	}
	file, err := tcp.File()
	if err != nil || syscall.SetNonblock(int(file.Fd()), false) != nil {
		return 1
	}
	var answer [1]byte
	if _, err := file.Read(answer[:]); err != nil {
		return 1
	}
	return 0
}
