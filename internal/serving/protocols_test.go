package serving

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/arc"
	"github.com/millrace/millrace/protocol/openfeeder"
	"github.com/millrace/millrace/protocol/scp"
	"github.com/millrace/millrace/protocol/web"
)

// changed returns a value that is not the zero value of a type.
func changed(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Slice:
		v.Set(reflect.Append(v, changed(t, of.Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
		v.SetMapIndex(changed(t, of.Key()), changed(t, of.Elem()))
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
	case reflect.Struct:
		if of == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
			break
		}
		for i := range of.NumField() {
			v.Field(i).Set(changed(t, of.Field(i).Type))
		}
	default:
		t.Fatalf("a field of the type %s", of)
	}
	return v
}

// The key of the editions depends on every option.
func TestProtocolsKey(t *testing.T) {
	key := func(o protocol.PublisherOptions, closed func(string) bool) string {
		t.Helper()
		_, key, err := Protocols(o, closed)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	plain := protocol.PublisherOptions{Policy: new(millrace.Policy)}
	seen := map[string]string{key(protocol.PublisherOptions{}, nil): "no options", key(plain, nil): "an empty policy"}
	note := func(what, key string) {
		t.Helper()
		if was := seen[key]; was != "" {
			t.Errorf("%s has the same key as %s", what, was)
		}
		seen[key] = what
	}
	options := reflect.TypeFor[protocol.PublisherOptions]()
	for i := range options.NumField() {
		switch name := options.Field(i).Name; name {
		case "Auth", "Protocols": // are set by Protocols
		case "Own":
			for _, own := range []any{new(scp.PublisherOptions), new(arc.PublisherOptions), new(web.PublisherOptions), new(openfeeder.PublisherOptions)} {
				note(fmt.Sprintf("%T", own), key(protocol.PublisherOptions{Own: []any{own}}, nil))
				of := reflect.TypeOf(own).Elem()
				for j := range of.NumField() {
					v := reflect.New(of)
					v.Elem().Field(j).Set(changed(t, of.Field(j).Type))
					note(of.String()+"."+of.Field(j).Name, key(protocol.PublisherOptions{Own: []any{v.Interface()}}, nil))
				}
			}
		case "Policy":
			policy := options.Field(i).Type.Elem()
			for j := range policy.NumField() {
				p := new(millrace.Policy)
				reflect.ValueOf(p).Elem().Field(j).Set(changed(t, policy.Field(j).Type))
				note("Policy."+policy.Field(j).Name, key(protocol.PublisherOptions{Policy: p}, nil))
			}
		default:
			var o protocol.PublisherOptions
			reflect.ValueOf(&o).Elem().Field(i).Set(changed(t, options.Field(i).Type))
			note(name, key(o, nil))
		}
	}
	note("a required key", key(protocol.PublisherOptions{}, func(string) bool { return true }))
}

// If all content needs a key, SCP is not published.
func TestProtocolsClosed(t *testing.T) {
	name := scp.Protocol().Name
	published, _, err := Protocols(protocol.PublisherOptions{}, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range published {
		if p.Name == name || !p.Guarded {
			t.Errorf("%s, guarded %t", p.Name, p.Guarded)
		}
	}
	published, _, err = Protocols(protocol.PublisherOptions{}, nil)
	if err != nil || len(published) < 6 || published[0].Guarded {
		t.Errorf("%d protocols, %v", len(published), err)
	}
}
