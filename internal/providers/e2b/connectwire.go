package e2b

// wireStart is StartRequest of process.Process.
type wireStart struct {
	Process wireProcess `json:"process"`
	Tag     string      `json:"tag,omitempty"`
	PTY     *wirePTY    `json:"pty,omitempty"`
	Stdin   bool        `json:"stdin"`
}

type wireProcess struct {
	Cmd  string            `json:"cmd"`
	Args []string          `json:"args"`
	Envs map[string]string `json:"envs,omitempty"`
	Cwd  string            `json:"cwd,omitempty"`
}

type wirePTY struct {
	Size wireSize `json:"size"`
}

type wireSize struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// wireFrame is one message of the stream that Start gives.
type wireFrame struct {
	Event struct {
		Start *struct {
			PID uint32 `json:"pid"`
		} `json:"start"`
		Data *struct {
			Stdout []byte `json:"stdout"`
			Stderr []byte `json:"stderr"`
			PTY    []byte `json:"pty"`
		} `json:"data"`
		End *wireEnd `json:"end"`
	} `json:"event"`
}

// wireEnd is how a process ended. A zero code is left out by the API; -1 stands
// for any signal, which Status names.
type wireEnd struct {
	ExitCode int    `json:"exitCode"`
	Exited   bool   `json:"exited"`
	Status   string `json:"status"`
	Error    string `json:"error"`
}

// wireEndOfStream is the last frame's payload.
type wireEndOfStream struct {
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// wireSelect names a process, by number or tag.
type wireSelect struct {
	PID uint32 `json:"pid,omitempty"`
	Tag string `json:"tag,omitempty"`
}
