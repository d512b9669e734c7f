//go:build unix

package drill

import (
	"net"
	"syscall"
)

// waitForAnswer is a plain blocking read, as most HTTP clients end in; Go's own
// would wait on a poller, where nobody can see for what.
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
