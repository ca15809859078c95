package memory_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
	"github.com/millrace/millrace/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Engine{Open: func(_ testing.TB, _ string, now func() time.Time) store.Store {
		return memory.New(&store.Options{Now: now})
	}})
}
