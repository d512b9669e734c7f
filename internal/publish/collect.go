package publish

import _ "embed"

// How the collect command ends, beside 0 for a bundle on stdout.
const (
	CollectNoGit        = 71 // the sandbox has no git
	CollectNoRepository = 72 // the work directory is in no repository
	CollectNoCommit     = 73 // the repository has no commit
	CollectNothing      = 74 // no commit since base: there is nothing to publish
	CollectNoBase       = 75 // base is no commit there
	CollectShallow      = 76 // a shallow clone, and no base: the history is not there
	CollectFailed       = 77 // git could not write the bundle
)

//go:embed collect.sh
var collectScript string

// CollectCommand is what runs inside a sandbox, in the work directory: it writes
// a git bundle of HEAD to stdout and nothing else there. With a base, a commit id
// or a branch as the remote had it, the bundle holds what came since. It needs a
// POSIX sh and git. Uncommitted changes are not published; stderr says so.
func CollectCommand(base string) []string {
	return []string{"sh", "-c", collectScript, "sbx-collect", base}
}

// CollectMeaning says in words how the collect command ended; "" for a code that
// is not its own.
func CollectMeaning(code int) string {
	switch code {
	case CollectNoGit:
		return "the sandbox has no git"
	case CollectNoRepository:
		return "the work directory is in no git repository (it is the sandbox's own folder, unless --workdir names another)"
	case CollectNoCommit:
		return "the repository has no commit"
	case CollectNothing:
		return "no commit since the base: nothing to publish"
	case CollectNoBase:
		return "the base is no commit in the sandbox"
	case CollectShallow:
		return "the sandbox has a shallow clone, and no base was given"
	case CollectFailed:
		return "git could not write the bundle"
	default:
		return ""
	}
}
