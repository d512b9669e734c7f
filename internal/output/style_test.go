package output

import (
	"image/color"
	"math"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/stretchr/testify/assert"
)

// TestTonesCanBeRead: on the backgrounds of usual themes every tone has the contrast that WCAG 2.1 asks of
// text, 4.5.
func TestTonesCanBeRead(t *testing.T) {
	t.Parallel()
	for background, grounds := range map[Background][]string{
		DarkBackground:  {"#000000", "#1e1e1e", "#282c34", "#002b36", "#2e3440"},
		LightBackground: {"#ffffff", "#fafafa", "#fdf6e3", "#eee8d5"},
	} {
		for _, tone := range []Tone{Good, Warn, Bad, Muted} {
			for _, ground := range grounds {
				assert.GreaterOrEqual(t, contrast(lipgloss.Color(colours(background)[tone]), lipgloss.Color(ground)), 4.5, "tone %d on %s", tone, ground)
			}
		}
	}
}

// contrast is the ratio of WCAG 2.1.
func contrast(a, b color.Color) float64 {
	light, dark := luminance(a), luminance(b)
	if light < dark {
		light, dark = dark, light
	}
	return (light + 0.05) / (dark + 0.05)
}

func luminance(c color.Color) float64 {
	linear := func(v uint32) float64 {
		part := float64(v) / 0xffff
		if part <= 0.03928 {
			return part / 12.92
		}
		return math.Pow((part+0.055)/1.055, 2.4)
	}
	r, g, b, _ := c.RGBA()
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}
