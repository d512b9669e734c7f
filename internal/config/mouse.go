package config

const keyMouse = "mouse"

// The words of `mouse:`.
const (
	mouseOn  = "on"
	mouseOff = "off"
)

// readMouse reads `mouse: on`.
func (d *decoder) readMouse(p pair) {
	text, ok := d.readText(p.value, keyMouse)
	switch {
	case !ok:
	case text == mouseOn || text == mouseOff:
		d.doc.setValue(keyMouse, text, placeOf(p.value))
	default:
		d.addMistake(p.value, "%s must be %s or %s", keyMouse, mouseOn, mouseOff)
	}
}

// resolveMouse reads whether the dashboard takes the mouse.
func (l *loader) resolveMouse() {
	l.layers.byDefault(keyMouse, entry{text: mouseOn, origin: originDefault})
	e, _ := l.layers.lookup(keyMouse)
	l.config.Mouse = e.text == mouseOn
}
