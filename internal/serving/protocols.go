package serving

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
)

// Protocols returns a publisher for every protocol that o selects, and the key of their editions,
// which depends on every option. It omits a protocol that is public by design if its content needs
// a key. closed reports whether the content of a protocol needs a key; nil means false. Protocols
// sets the options Auth and Protocols.
func Protocols(o protocol.PublisherOptions, closed func(name string) bool) (published []edition.Protocol, key string, err error) {
	if closed == nil {
		closed = func(string) bool { return false }
	}
	var enabled []protocol.Protocol
	o.Protocols = nil
	for _, p := range all.Published(&o) {
		if !p.Public || !closed(p.Name) {
			enabled, o.Protocols = append(enabled, p), append(o.Protocols, p.Name)
		}
	}
	var every []protocol.PublisherOptions
	for _, p := range enabled {
		its := o
		its.Auth = closed(p.Name)
		published = append(published, edition.Protocol{Name: p.Name, Publisher: p.NewPublisher(&its), Guarded: its.Auth})
		every = append(every, its)
	}
	data, err := json.Marshal(every)
	sum := sha256.Sum256(data)
	return published, hex.EncodeToString(sum[:]), err
}
