package supervisor

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/internal/providers/local/wire"
)

// listenSocket opens the command socket. It is bound through the folder's descriptor: the path
// of a socket is limited to 107 bytes.
func listenSocket(dir string) (*os.File, error) {
	folder, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(folder) // opened with O_PATH
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	address := &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", folder, wire.SocketName)}
	if err := errors.Join(unix.Bind(fd, address), unix.Listen(fd, 16)); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), wire.SocketName), nil
}

// serveCommands accepts one command per connection until the process ends.
func (s *stub) serveCommands(socket *os.File) {
	defer socket.Close() // also keeps it reachable: a collected file closes its descriptor
	fd := int(socket.Fd())
	for {
		conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
		switch {
		case err == nil:
			go s.serveCommand(os.NewFile(uintptr(conn), "command"))
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED), errors.Is(err, unix.EMFILE):
		default:
			return
		}
	}
}

// serveCommand runs one command for one connection; the connection's end kills it.
func (s *stub) serveCommand(conn *os.File) {
	defer conn.Close()
	ask, files, err := wire.ReceiveExec(conn)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		s.sendReport(conn, wire.StubReport{Fail: wire.AsFail(err)})
		return
	}
	dir := ask.Dir
	if dir == "" {
		dir = s.order.Dir
	}
	pid, ended, err := s.startAndWatch(programRequest{
		argv: ask.Argv, env: append(append([]string{}, s.order.Env...), ask.Env...), dir: absolutePath(dir, s.order.Dir), files: files, tty: ask.TTY,
	})
	if err != nil {
		s.sendReport(conn, wire.StubReport{Fail: wire.AsFail(err)})
		return
	}
	s.sendReport(conn, wire.StubReport{Started: &wire.Started{PID: pid}})
	go func() {
		var b [1]byte
		for {
			if _, err := conn.Read(b[:]); err != nil && !errors.Is(err, syscall.EINTR) {
				s.killSession(pid)
				return
			}
		}
	}()
	e := exitReport(<-ended)
	s.sendReport(conn, wire.StubReport{Exited: &e})
}

func (s *stub) sendReport(conn *os.File, r wire.StubReport) {
	_ = wire.Write(conn, r) // the client may have disconnected
}
