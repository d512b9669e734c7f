package sandbox

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEqualSeesEveryField: a record that differs in any field, also in one that a later change adds, is another one.
func TestEqualSeesEveryField(t *testing.T) {
	t.Parallel()
	full := func() *Sandbox {
		return &Sandbox{
			Labels: map[string]string{"team": "agents"}, Command: []string{"sleep"},
			Limits: Limits{MemoryBytes: new(int64(1)), CPU: new(1.0), DiskBytes: new(int64(2)), PIDs: new(int64(3))},
		}
	}
	require.True(t, full().Equal(full()))
	var fields func(at []int, of reflect.Type)
	fields = func(at []int, of reflect.Type) {
		for i := range of.NumField() {
			at := append(slices.Clip(at), i)
			if of.Field(i).Type == reflect.TypeFor[Limits]() {
				fields(at, of.Field(i).Type)
				continue
			}
			other := full()
			change(t, reflect.ValueOf(other).Elem().FieldByIndex(at))
			assert.False(t, full().Equal(other), of.Field(i).Name)
			assert.False(t, other.Equal(full()), of.Field(i).Name)
		}
	}
	fields(nil, reflect.TypeFor[Sandbox]())
	none := full()
	none.Labels, none.Command, none.Limits = nil, nil, Limits{}
	empty := full()
	empty.Labels, empty.Command, empty.Limits = map[string]string{}, []string{}, Limits{}
	assert.False(t, none.Equal(full()))
	assert.False(t, none.Equal(empty), "no labels are not the same as none that are known")
	assert.True(t, none.Equal(&Sandbox{}))
}

// change gives a field another value.
func change(t *testing.T, field reflect.Value) {
	t.Helper()
	switch v := field.Addr().Interface().(type) {
	case *time.Time:
		*v = time.Unix(1, 0)
	case *map[string]string:
		*v = map[string]string{"team": "tools"}
	case *[]string:
		*v = []string{"true"}
	case *[]Trouble:
		*v = []Trouble{{ID: "restarts"}}
	case **int64:
		*v = new(int64(7))
	case **float64:
		*v = new(7.0)
	case **Exit:
		*v = &Exit{}
	default:
		switch field.Kind() {
		case reflect.String:
			field.SetString("other")
		case reflect.Int64:
			field.SetInt(7)
		default:
			t.Fatalf("no other value of type %s", field.Type())
		}
	}
}
