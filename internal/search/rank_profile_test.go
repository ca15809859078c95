package search

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// profileOf returns a profile of n random terms, and the weight of each hash.
func profileOf(r *rand.Rand, n int) (Profile, map[uint32]int) {
	var p profiler
	want := make(map[uint32]int)
	for range n {
		term, weight := fmt.Sprint(r.IntN(1<<22)), 1+r.IntN(1+r.IntN(6))
		p.add(term, uint32(weight))
		h := profileHash(term)
		want[h] = min(want[h]+weight, maxWeight)
	}
	return p.profile(), want
}

func TestProfile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 3, 10, 50, 100, 200, 1000, 20_000} {
		profile, want := profileOf(r, n)
		for hash := uint32(0); hash < 1<<hashBits; hash += 1 + r.Uint32N(uint32(1+n/10)) {
			if got := profile.weight(hash); got != want[hash] {
				t.Fatalf("%d terms: %d has %d, want %d", n, hash, got, want[hash])
			}
		}
		if n == 100 && len(profile) > 220 {
			t.Errorf("%d bytes for %d terms", len(profile), n)
		}
	}
}

// A damaged profile returns arbitrary weights, in little time.
func TestDamagedProfile(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		profile, _ := profileOf(r, 1+r.IntN(30))
		switch at := r.IntN(len(profile)); r.IntN(3) {
		case 0:
			profile = profile[:at]
		case 1:
			profile[at] ^= 1 << r.IntN(8)
		case 2:
			profile = append(binary.AppendUvarint(nil, r.Uint64()>>r.IntN(64)), profile[at:]...)
		}
		for range 20 {
			if got := profile.weight(r.Uint32N(1 << hashBits)); got < 0 || got > maxWeight {
				t.Fatalf("%x: %d", []byte(profile), got)
			}
		}
	}
}

func BenchmarkProfile(b *testing.B) {
	profile, want := profileOf(rand.New(rand.NewPCG(1, 2)), 110)
	var hashes []uint32
	for h := range want {
		hashes = append(hashes, h, h*7919&(1<<hashBits-1))
	}
	i := 0
	for b.Loop() {
		profile.weight(hashes[i%len(hashes)])
		i++
	}
}
