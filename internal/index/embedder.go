package index

import (
	"context"

	"github.com/millrace/millrace/internal/search"
)

// Embedder computes vectors of texts with a model outside the process. Texts of similar
// meaning get vectors of similar direction. All methods are safe for concurrent use.
type Embedder interface {
	// Model returns a name of the model and of all that its vectors depend on, such as
	// prefixes. Vectors of different names are never compared.
	Model() string
	// Embed returns one vector for each text, in order. All vectors have the same size,
	// finite numbers and length 1. query says that the texts are questions, not passages:
	// some models treat them differently. There may be any number of texts; Embed divides
	// them into requests. If the model does not answer now, Embed returns ErrUnavailable. If
	// it refuses or its answer is wrong, and a retry will not help, Embed returns
	// ErrForbidden or ErrInvalid.
	Embed(ctx context.Context, query bool, texts []string) ([][]float32, error)
}

var _ Embedder = (*search.Embedder)(nil)
