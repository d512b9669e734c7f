package publish

import (
	"bufio"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"sbx/internal/fault"
)

// Exit codes of the collect command, beside 0 for a bundle on stdout.
const (
	CollectNoGit        = 71 // the sandbox has no git
	CollectNoRepository = 72 // the work directory is not in a repository
	CollectNoCommit     = 73 // the repository has no commit
	CollectNothing      = 74 // no commit since base: nothing to publish
	CollectNoBase       = 75 // base is not a commit there
	CollectShallow      = 76 // a shallow clone without a base: the history is missing
	CollectFailed       = 77 // git could not write the bundle
)

//go:embed collect.sh
var collectScript string

// CollectCommand is run inside a sandbox, in the work directory: it writes a git bundle of
// HEAD to stdout and nothing else. With a base, a commit id or a branch of the remote, the
// bundle holds the commits since. It needs a POSIX sh and git. Uncommitted changes are not
// published, which stderr reports.
func CollectCommand(base string) []string {
	return []string{"sh", "-c", collectScript, "sbx-collect", base}
}

// CollectMeaning describes an exit code of the collect command; "" for any other code.
func CollectMeaning(code int) string {
	switch code {
	case CollectNoGit:
		return "the sandbox has no git"
	case CollectNoRepository:
		return "the work directory is not in a git repository (it is the sandbox's own folder, unless --workdir names another)"
	case CollectNoCommit:
		return "the repository has no commit"
	case CollectNothing:
		return "no commit since the base: nothing to publish"
	case CollectNoBase:
		return "the base is not a commit in the sandbox"
	case CollectShallow:
		return "the sandbox has a shallow clone, and no base was given"
	case CollectFailed:
		return "git could not write the bundle"
	default:
		return ""
	}
}

// asText runs a command and encodes its output as text, keeping its exit code: some
// providers return a command's output as characters, not bytes.
const asText = `if command -v base64 >/dev/null 2>&1; then echo base64; enc=base64; else echo hex; enc='od -An -v -tx1'; fi
exec 4>&1
code=$({ { "$@" 4>&-; echo $? >&3; } | $enc 3>&- >&4; } 3>&1)
exit "$code"`

// CollectText is CollectCommand with its output as text that NewDecoder reads.
func CollectText(base string) []string {
	return append([]string{"sh", "-c", asText, "sbx-text"}, CollectCommand(base)...)
}

// Decoder decodes the text of CollectText.
type Decoder struct {
	text *io.PipeWriter
	done chan error
}

// NewDecoder writes the decoded bytes to w. Close ends it and returns its error: invalid
// text is fault.KindRefused.
func NewDecoder(w io.Writer) *Decoder {
	r, text := io.Pipe()
	d := &Decoder{text: text, done: make(chan error, 1)}
	go func() {
		err := decodeText(w, bufio.NewReader(r))
		_ = r.CloseWithError(err) // later writes fail at once
		d.done <- err
	}()
	return d
}

func (d *Decoder) Write(b []byte) (int, error) { return d.text.Write(b) }

// Close waits until everything is decoded.
func (d *Decoder) Close() error {
	_ = d.text.Close() // it never fails
	return <-d.done
}

// maxEncoding bounds in bytes the line that names the encoding.
const maxEncoding = 16

func decodeText(w io.Writer, r *bufio.Reader) error {
	head, err := readLine(r, maxEncoding)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var bytes io.Reader
	switch strings.TrimSpace(head) {
	case "base64":
		bytes = base64.NewDecoder(base64.StdEncoding, r) // it skips line ends
	case "hex":
		bytes = hex.NewDecoder(spaceFilter{r})
	default:
		return fault.New(fault.KindRefused, "the sandbox returned no bundle")
	}
	if _, err = io.Copy(w, bytes); err == nil {
		return nil
	}
	if corrupt := base64.CorruptInputError(0); errors.As(err, &corrupt) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.New(fault.KindRefused, "the bundle is damaged or truncated: %w", err)
	}
	return err
}

// readLine reads up to and including a newline. A line longer than limit bytes is
// fault.KindRefused, and no more of it is read. The input may end before the newline, with
// io.EOF.
func readLine(r *bufio.Reader, limit int) (string, error) {
	var line []byte
	for len(line) < limit {
		c, err := r.ReadByte()
		if err != nil {
			return string(line), err
		}
		if line = append(line, c); c == '\n' {
			return string(line), nil
		}
	}
	return "", fault.New(fault.KindRefused, "the sandbox returned no bundle: a line of more than %d bytes", limit)
}

// spaceFilter removes white space.
type spaceFilter struct{ r io.Reader }

func (p spaceFilter) Read(b []byte) (int, error) {
	for {
		n, err := p.r.Read(b)
		kept := 0
		for _, c := range b[:n] {
			if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
				b[kept] = c
				kept++
			}
		}
		if kept > 0 || err != nil {
			return kept, err
		}
	}
}
