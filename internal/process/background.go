package process

import (
	"os"
	"os/exec"
	"strings"
)

// Background starts a program that outlives this process: in a session of its own,
// with input on its standard input and both outputs in a file. It returns when the
// program has taken all of the input, with the number of its process.
func (p Process) Background(program string, args []string, input string, log *os.File) (pid int, err error) {
	cmd := exec.Command(program, args...) //nolint:noctx // it is to outlive every context
	cmd.Args[0] = p.Name()
	cmd.Env, cmd.Dir = p.Environ, p.Workdir
	cmd.Stdout, cmd.Stderr = log, log
	detach(cmd)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid = cmd.Process.Pid
	_, err = strings.NewReader(input).WriteTo(pipe)
	if closed := pipe.Close(); err == nil {
		err = closed
	}
	if released := cmd.Process.Release(); err == nil {
		err = released
	}
	return pid, err
}
