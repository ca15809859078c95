package kit

import (
	"encoding/json"
	"errors"
	"iter"
	"reflect"

	"github.com/millrace/millrace"
)

// ErrStop is the error of a consumer that stops the stream.
var ErrStop = errors.New("stopped")

// Yield is the consumer of the changes of a source.
type Yield func(millrace.Change, error) bool

// Stream returns the changes that f yields, then its error unless it is [ErrStop].
func Stream(f func(y Yield) error) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		if err := f(yield); err != nil && !errors.Is(err, ErrStop) {
			yield(millrace.Change{}, err)
		}
	}
}

// Send yields a change or, if err is not nil, the error. It returns [ErrStop] if the consumer
// stops.
func (y Yield) Send(c millrace.Change, err error) error {
	if !y(c, err) {
		return ErrStop
	}
	return nil
}

// Checkpoint yields the checkpoint that the function [Checkpoint] returns.
func (y Yield) Checkpoint(state any, complete bool, section string) error {
	return y.Send(Checkpoint(state, complete, section), nil)
}

// Checkpoint returns a checkpoint with the [Cursor] of a state.
func Checkpoint(state any, complete bool, section string) millrace.Change {
	m := &millrace.Checkpoint{Cursor: Cursor(state), Complete: complete, Section: section}
	return millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: m}
}

// Cursor encodes the state of a reader, which consists of strings, numbers and times. The cursor of
// the zero value is "", the start of the stream.
func Cursor(state any) millrace.Cursor {
	if reflect.ValueOf(state).IsZero() {
		return ""
	}
	b, err := json.Marshal(state)
	if err != nil {
		panic("kit: cannot encode cursor: " + err.Error())
	}
	return millrace.Cursor(b)
}
