package export

import "encoding/json"

// MarshalJSON gives the document as JSON Lines have it.
func (t Terms) MarshalJSON() ([]byte, error) { return json.Marshal(sayings([]Terms{t})[0]) }
