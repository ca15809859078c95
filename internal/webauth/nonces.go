package webauth

import (
	"crypto/sha256"
	"slices"
	"sync"
	"time"
)

// maxNonces limits each of the two generations of nonces, about 10 MB in total.
const maxNonces = 64 << 10

// nonce is a used nonce.
type nonce struct {
	id  [16]byte // hash of the directory, the key and the nonce
	end int64    // expiry in Unix seconds
}

// nonces stores a limited number of used nonces. When it is full, it drops the older half.
type nonces struct {
	most       int
	mu         sync.Mutex
	young, old map[[16]byte]int64 // expiry by nonce, in Unix seconds

	shared bool     // use also adds new nonces to fresh, for other processes
	fresh  []nonce  // nonces that are not stored yet
	read   position // position in the store; only share uses it
}

func newNonces() *nonces { return &nonces{most: maxNonces, young: make(map[[16]byte]int64)} }

// use stores a nonce of a directory's key, and reports whether the nonce is new.
func (n *nonces) use(directory, keyID, text string, until, now time.Time) bool {
	sum := sha256.Sum256([]byte(directory + "\x00" + keyID + "\x00" + text))
	is := nonce{[16]byte(sum[:16]), until.Unix()}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range []map[[16]byte]int64{n.young, n.old} {
		if end, ok := m[is.id]; ok && end >= now.Unix() {
			return false
		}
	}
	n.add(is)
	if n.shared {
		n.fresh = append(n.fresh[max(0, len(n.fresh)-n.most+1):], is)
	}
	return true
}

// add stores a nonce. The caller holds the lock.
func (n *nonces) add(is nonce) {
	if len(n.young) >= n.most {
		n.young, n.old = make(map[[16]byte]int64), n.young
	}
	n.young[is.id] = is.end
}

// take returns the nonces that are not stored yet, which the caller stores or gives back.
func (n *nonces) take() []nonce {
	n.mu.Lock()
	defer n.mu.Unlock()
	fresh := n.fresh
	n.fresh = nil
	return fresh
}

// giveBack undoes a take.
func (n *nonces) giveBack(fresh []nonce) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fresh = slices.Concat(fresh, n.fresh)
}
