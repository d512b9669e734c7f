package address

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestWhatMayBeShown(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]struct {
		shown   string
		secrets []string
	}{
		"postgres://h/db":                    {"postgres://h/db", nil},
		"postgresql://me@h/db?sslmode=allow": {"postgresql://me@h/db?sslmode=allow", nil},
		"postgres://me:@h/db":                {"postgres://me:@h/db", nil},
		"postgres://me:pw@h:1/db":            {"postgres://me:********@h:1/db", []string{"pw"}},
		"postgres://me:p%40w@h/db":           {"postgres://me:********@h/db", []string{"p%40w", "p@w"}},
		"postgres://me:p@w@h/db":             {"postgres://me:********@h/db", []string{"p@w"}},
		"postgres://me:a:b+c@h":              {"postgres://me:********@h", []string{"a:b+c", "a:b c"}},
		"postgres://:0%0a@h/db":              {"postgres://:********@h/db", []string{"0%0a", "0\n"}},
		"postgres:///db?host=/run&password=a%20b&sslpassword=c&x=y": {
			"postgres:///db?host=/run&password=********&sslpassword=********&x=y", []string{"a%20b", "a b", "c"},
		},
		"postgres://h/db?passw%6Frd=x&password=": {"postgres://h/db?passw%6Frd=********&password=", []string{"x"}},
	} {
		p, err := Parse(raw)
		require.NoError(t, err, raw)
		assert.Equal(t, want.shown, p.String())
		assert.Equal(t, want.shown, fmt.Sprintf("%#v", p))
		assert.Equal(t, want.secrets, p.Secrets(), raw)
	}
}

func TestWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "s3cret", "mysql://me:s3cret@h/db", "postgres:s3cret", "Postgres://me:s3cret@h/db", "postgres://me:12/s3cret@h/db",
		"postgres://me:12?s3cret@h/db", "postgres://me:x#s3cret@h/db", "postgres://h/db#s3cret", "postgres://me:s3cret%zz@h/db",
		"postgres://h/db?password=s3cret;x=y", "postgres://me:s3cret\n@h/db",
	} {
		_, err := Parse(raw)
		require.Error(t, err, raw)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
		assert.NotEmpty(t, fault.HintOf(err))
		assert.NotContains(t, err.Error()+fault.HintOf(err), "s3cret")
	}
}

func TestScrub(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "a ******** b ********", Scrub("a p%40w\n\tb p@w", []string{"p", "p@w", "p%40w"}), "the longest first, on one line")
	assert.Equal(t, "a b", Scrub(" a\r\nb ", nil))
}

// FuzzParse shows that no password reaches a text, however it is written.
func FuzzParse(f *testing.F) {
	for _, password := range []string{"secret-pw", "12/secret", "a@b#c?d", "%zz-bad", "p:q:r:s", "  blank ", "\x00\xff\x00\xff", "[::1]:99/", "[secret", "00%0a"} {
		f.Add("me", password, "db.example:5432", "password")
	}
	f.Fuzz(func(t *testing.T, user, password, host, key string) {
		if strings.ContainsAny(user+host, "/?#") {
			return // then the rest is another part of a URL
		}
		for _, parts := range [][3]string{
			{"postgres://" + user + ":", password, "@" + host + "/db"},
			{"postgres://" + user + ":", url.QueryEscape(password), "@" + host + "/db"},
			{"postgres://" + host + "/db?password=", strings.ReplaceAll(password, "&", "%26"), ""}, // a bare & ends it
			{"postgres://" + host + "/db?" + key + "=x&sslpassword=", url.QueryEscape(password), ""},
		} {
			if len(password) < 5 || strings.Contains(parts[0]+mask+parts[2], password) {
				continue // it stands in the open anyway
			}
			raw := strings.Join(parts[:], "")
			p, err := Parse(raw)
			if err != nil {
				assert.Equal(t, fault.KindUsage, fault.KindOf(err))
				shows(t, err.Error()+fault.HintOf(err), password)
				continue
			}
			shows(t, p.String(), password)
			shows(t, Scrub(raw, p.Secrets()), password)
		}
	})
}

func shows(t *testing.T, text, password string) {
	t.Helper()
	if strings.Contains(text, password) {
		t.Errorf("%q shows %q", text, password)
	}
}
