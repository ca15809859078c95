package webauth

import (
	"crypto/sha256"
	"sync"
	"time"
)

// maxNonces limits each of the two generations of nonces, about 10 MB in total.
const maxNonces = 64 << 10

// nonces stores a limited number of used nonces. When it is full, it drops the older half.
type nonces struct {
	most       int
	mu         sync.Mutex
	young, old map[[16]byte]int64 // expiry by nonce, in Unix seconds
}

func newNonces() *nonces { return &nonces{most: maxNonces, young: make(map[[16]byte]int64)} }

// use stores a nonce of a directory's key, and reports whether the nonce is new.
func (n *nonces) use(directory, keyID, nonce string, until, now time.Time) bool {
	sum := sha256.Sum256([]byte(directory + "\x00" + keyID + "\x00" + nonce))
	id := [16]byte(sum[:16])
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range []map[[16]byte]int64{n.young, n.old} {
		if end, ok := m[id]; ok && end >= now.Unix() {
			return false
		}
	}
	if len(n.young) >= n.most {
		n.young, n.old = make(map[[16]byte]int64), n.young
	}
	n.young[id] = until.Unix()
	return true
}
