package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:              "it ends too early",
		`{"at":`:        "it ends too early",
		`{"at":}`:       "invalid JSON at byte 7",
		`{"n":"x"}`:     "n must not be of type string",
		`[]`:            "must not be of type array",
		`{"at":"soon"}`: "soon is not a time",
		`{"nosuch":1}`:  `unknown key "nosuch"`,
	} {
		var v struct {
			At time.Time `json:"at"`
			N  int       `json:"n"`
		}
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.DisallowUnknownFields()
		assert.Equal(t, want, Describe(d.Decode(&v)), text)
	}
	assert.Equal(t, "row 3 is null", Describe(errors.New("row 3 is null")))
}
