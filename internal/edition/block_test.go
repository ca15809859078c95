package edition

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"testing"
)

// Bodies in blocks do not change while others are added and dropped, and blocks have few gaps.
func TestBlocks(t *testing.T) {
	c := newCache(shards << 20)
	s := &c.shards[0]
	rnd := rand.New(rand.NewPCG(1, 2))
	type result struct {
		e    *entry
		body []byte
	}
	release := func(e *entry) {
		for at := range codings {
			s.release(e.reps[at].Load())
		}
	}
	var all []result
	for i := range 20_000 {
		e := &entry{key: key{path: "/" + strconv.Itoa(i)}}
		body := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, rnd.IntN(3000))
		for at := range gzipCoding {
			s.store(e, at, newRep(at, body, len(body)))
		}
		all = append(all, result{e, body})
		if len(all) > 100 { // remove some old bodies, and some new ones
			n := rnd.IntN(len(all))
			release(all[n].e)
			all[n] = all[len(all)-1]
			all = all[:len(all)-1]
		}
	}
	blocks, size := make(map[*block]bool), 0
	for _, k := range all {
		for at := range gzipCoding {
			r := k.e.reps[at].Load()
			if !bytes.Equal(r.body, k.body) || r.coding != at || r.of != k.e || r.block.reps[r.index] != r {
				t.Fatalf("%s in %s: %d bytes, %d before", k.e.key.path, codingTable[at].name, len(r.body), len(k.body))
			}
			blocks[r.block] = true
			size += len(r.body)
		}
	}
	live := 0
	for b := range blocks {
		live += b.live
	}
	if live != size || len(blocks)*s.block > size*4/3+2*s.block {
		t.Errorf("%d bytes in %d blocks, %d counted", size, len(blocks), live)
	}
	for _, k := range all {
		release(k.e)
	}
	for b := range blocks {
		if b.live != 0 && b.reps != nil {
			t.Errorf("%d bytes are counted for an unused block", b.live)
		}
	}
}
