package supervisor

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/internal/providers/local/wire"
)

// listen opens the command socket. It is bound through the folder's
// descriptor: a socket's path may hold 107 bytes only, a state folder's more.
func listen(dir string) (*os.File, error) {
	folder, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(folder) // only looked at
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

// serve takes one command per connection until the process ends.
func (s *stub) serve(socket *os.File) {
	fd := int(socket.Fd())
	for {
		conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
		switch {
		case err == nil:
			go s.command(os.NewFile(uintptr(conn), "command"))
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED), errors.Is(err, unix.EMFILE):
		default:
			return
		}
	}
}

// command runs one command for one connection; the connection's end kills it.
func (s *stub) command(conn *os.File) {
	defer conn.Close()
	ask, files, err := wire.ReceiveExec(conn)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		s.reply(conn, wire.StubReport{Fail: wire.AsFail(err)})
		return
	}
	dir := ask.Dir
	if dir == "" {
		dir = s.order.Dir
	}
	pid, ended, err := s.start(request{
		argv: ask.Argv, env: append(append([]string{}, s.order.Env...), ask.Env...), dir: absolute(dir, s.order.Dir), files: files, tty: ask.TTY,
	})
	if err != nil {
		s.reply(conn, wire.StubReport{Fail: wire.AsFail(err)})
		return
	}
	s.reply(conn, wire.StubReport{Started: &wire.Started{PID: pid}})
	go func() {
		var b [1]byte
		for {
			if _, err := conn.Read(b[:]); err != nil && !errors.Is(err, syscall.EINTR) {
				s.kill(pid)
				return
			}
		}
	}()
	e := exited(<-ended)
	s.reply(conn, wire.StubReport{Exited: &e})
}

func (s *stub) reply(conn *os.File, r wire.StubReport) {
	_ = wire.Write(conn, r) // a client that went away wants no answer
}
