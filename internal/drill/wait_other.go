//go:build !unix

package drill

import "net"

func waitForAnswer(conn net.Conn) int {
	var answer [1]byte
	if _, err := conn.Read(answer[:]); err != nil {
		return 1
	}
	return 0
}
