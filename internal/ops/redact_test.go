package ops

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const privateKey = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\nIBAAKCAQEA0Z3VS5JJcds3xfn\n-----END RSA PRIVATE KEY-----"

func TestWhatLooksLikeASecretIsReplaced(t *testing.T) {
	t.Parallel()
	secrets := []string{"known-secret", "abc"}
	for text, want := range map[string]string{
		"nothing":                                                   "nothing",
		"x known-secret y known-secret":                             "x [redacted] y [redacted]",
		"abc is too short":                                          "abc is too short",
		"https://bob:pa55word@host/x":                               "https://[redacted]@host/x",
		"https://host/path@x":                                       "https://host/path@x",
		"postgres://u:p4ss@h/db?a=b":                                "postgres://[redacted]@h/db?a=b",
		"API_TOKEN=abcdef next":                                     "API_TOKEN=[redacted] next",
		`{"password": "hunter2"}`:                                   `{"password": "[redacted]"}`,
		"Authorization: Bearer abc.def":                             "Authorization: Bearer [redacted]",
		"GET /x?sig=0123&y=1":                                       "GET /x?sig=[redacted]&y=1",
		"the token was lost":                                        "the token was lost",
		"key=value":                                                 "key=value",
		"sbx run --token abc123 x":                                  "sbx run --token [redacted] x",
		`x --api-key "a b" y`:                                       `x --api-key [redacted] y`,
		"x --token --yes":                                           "x --token --yes",
		"AKIAIOSFODNN7EXAMPLE was seen":                             "[redacted] was seen",
		"(ghp_" + strings.Repeat("a1", 18) + ")":                    "([redacted])",
		"github_pat_" + strings.Repeat("a1", 20):                    "[redacted]",
		"xoxb-1234567890-abcdefghij":                                "[redacted]",
		"is sk-ant-api03-" + strings.Repeat("aB", 10):               "is [redacted]",
		"task-sk and sk-short and disk-ant-api03-aaaaaaaaaaaaaaaaa": "task-sk and sk-short and disk-ant-api03-aaaaaaaaaaaaaaaaa",
		"a\n" + privateKey + "\nb":                                  "a\n[redacted]\nb",
		"a " + privateKey[:60]:                                      "a [redacted]",
	} {
		got := redactText(text, secrets)
		assert.Equal(t, want, got)
		assert.Equal(t, got, redactText(got, secrets), "what is redacted stays as it is")
	}
}
