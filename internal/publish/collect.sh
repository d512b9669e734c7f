base=$1
say() { printf 'sbx: %s\n' "$1" >&2; }
quit() { say "$2"; exit "$1"; }
commit() { git rev-parse --verify --quiet "$1^{commit}" 2>/dev/null; }

command -v git >/dev/null 2>&1 || quit 71 'the sandbox has no git'
# the work directory may belong to another user of the sandbox
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
export GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0
git rev-parse --git-dir >/dev/null || quit 72 'the work directory is in no git repository'
commit HEAD >/dev/null || quit 73 'the repository has no commit'

if [ -n "$(git status --porcelain 2>/dev/null | head -n 1)" ]; then
	say 'uncommitted changes are not published'
fi

if [ -z "$base" ]; then
	[ "$(git rev-parse --is-shallow-repository)" != true ] || quit 76 'this is a shallow clone; give a base'
	git bundle create - HEAD || quit 77 'git could not write the bundle'
	exit 0
fi

case $base in -*) quit 75 'the base begins like an option' ;; esac
# what the remote had is meant, not a branch of the same name that the work is on
since=$(commit "refs/remotes/origin/$base") || since=$(commit "$base") || quit 75 "no commit $base"
[ "$(git rev-list --count "$since..HEAD")" != 0 ] || quit 74 'no commit since the base'
git bundle create - HEAD "^$since" || quit 77 'git could not write the bundle'
