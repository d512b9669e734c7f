package picture_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/testkit/picture"
)

func TestEachLookHasItsPlaceAndWidth(t *testing.T) {
	t.Parallel()
	drawn := picture.SVG([]string{"plain \x1b[1mbold <b>\x1b[m  \x1b[38;5;210mred\x1b[m", "", "\x1b[7m key \x1b[0m"}, 20, picture.Dark())
	for _, want := range []string{
		`viewBox="0 0 196 82"`,
		`<text x="14" y="27.5" textLength="42" lengthAdjust="spacingAndGlyphs" fill="#d1d7e0">plain</text>`,
		`<text x="64.4" y="27.5" textLength="67.2" lengthAdjust="spacingAndGlyphs" fill="#d1d7e0" font-weight="bold">bold &lt;b&gt;</text>`,
		`<text x="148.4" y="27.5" textLength="25.2" lengthAdjust="spacingAndGlyphs" fill="#ff8787">red</text>`,
		`<rect x="14" y="50" width="42" height="18" fill="#d1d7e0"/>`,
		`fill="#0d1117"> key </text>`,
	} {
		assert.Contains(t, drawn, want)
	}
	assert.Equal(t, drawn, picture.SVG([]string{"plain \x1b[1mbold <b>\x1b[m  \x1b[38;5;210mred\x1b[m", "", "\x1b[7m key \x1b[0m"}, 20, picture.Dark()))
}
