package index

import (
	"context"

	"github.com/millrace/millrace/internal/search"
)

// Embedder turns texts into vectors by a model outside of the process: texts
// that mean nearly the same get vectors with nearly the same direction.
// All methods are safe for concurrent use.
type Embedder interface {
	// Model names the model and all that its vectors depend on, such as the
	// prefixes that it wants. Vectors of different names are never compared.
	Model() string
	// Embed returns one vector for each text, in their order, all of one size,
	// with finite numbers and length 1. query reports whether the texts are
	// questions; else they are passages: some models treat the two
	// differently. The number of texts is not bounded: Embed divides them as
	// the model requires. ErrUnavailable: the model does not answer now.
	// ErrInvalid, ErrForbidden: its answer is wrong, or it refuses, and will do
	// so again.
	Embed(ctx context.Context, query bool, texts []string) ([][]float32, error)
}

var _ Embedder = (*search.Embedder)(nil)
