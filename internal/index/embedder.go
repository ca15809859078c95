package index

import (
	"context"

	"github.com/millrace/millrace/internal/search"
)

// Embedder computes vectors of texts with a model outside the process. Texts with similar
// content get vectors with similar directions. All methods are safe for concurrent use.
type Embedder interface {
	// Model returns a name that identifies the model and everything else that the vectors depend
	// on, such as prefixes. The index never compares vectors from models with different names.
	Model() string
	// Embed returns one vector for each text, in order. All vectors have the same number of
	// dimensions, finite components and Euclidean norm 1. query reports whether the texts are
	// questions instead of passages, which some models treat differently. Embed accepts any number
	// of texts and divides them into requests. If the model does not respond, Embed returns
	// ErrUnavailable. If the model rejects the request or sends an invalid response, and a retry
	// would not help, Embed returns ErrForbidden or ErrInvalid.
	Embed(ctx context.Context, query bool, texts []string) ([][]float32, error)
}

var _ Embedder = (*search.Embedder)(nil)
