package savings

import (
	"fmt"
	"math"

	"github.com/millrace/millrace"
)

// Coefficients are the factors of estimates. Pulls cannot measure them.
type Coefficients struct {
	KWhPerGB        float64 // energy of the network in kWh per 10^9 bytes
	BytesPerToken   float64 // bytes of text or markup per token of a model
	HTMLPerText     float64 // bytes of uncompressed HTML per byte of a page's text
	HTMLCompression float64 // bytes of uncompressed HTML per byte on the wire
}

// Coefficient is a coefficient with its source.
type Coefficient struct {
	Name   string  `json:"name"`   // name of the flag
	Value  float64 `json:"value"`  // value of the coefficient
	Unit   string  `json:"unit"`   // unit of the value
	Source string  `json:"source"` // source of the default
}

// Default returns the default coefficients. [List] names their sources.
func Default() Coefficients {
	return Coefficients{KWhPerGB: 0.06, BytesPerToken: 4, HTMLPerText: 14.8, HTMLCompression: 5.1}
}

// List returns the coefficients with their sources. If a value is not the default, its source is
// the configuration.
func List(c Coefficients) []Coefficient {
	d := Default()
	list := []Coefficient{
		{
			"kwh-per-gb", c.KWhPerGB, "kWh/GB, network alone",
			"Aslan et al. 2018, doi:10.1111/jiec.12630: fixed lines in 2015, halved about every two years; TCT draft-00 says 0.03 (fixed) to 0.14 (mobile)",
		},
		{
			"bytes-per-token", c.BytesPerToken, "bytes/token",
			"OpenAI Help Center, What are tokens and how to count them: 4 characters of English; markup and other languages have more tokens",
		},
		{
			"html-per-text", c.HTMLPerText, "bytes of HTML/byte of text",
			"476 articles of the Web Content Extraction Benchmark (Foley 2026), all their HTML divided by all their text; the median is 12.2",
		},
		{
			"html-compression", c.HTMLCompression, "bytes of HTML/byte on the wire",
			"the HTML of the same articles, compressed by gzip -6; the median is 4.8",
		},
	}
	for i, v := range []float64{d.KWhPerGB, d.BytesPerToken, d.HTMLPerText, d.HTMLCompression} {
		if list[i].Value != v {
			list[i].Source = fmt.Sprintf("configured; the default is %v", v)
		}
	}
	return list
}

// Validate returns ErrInvalid unless each coefficient is finite and positive. KWhPerGB may also
// be 0.
func (c Coefficients) Validate() error {
	for _, k := range List(c) {
		if k.Value < 0 || math.IsNaN(k.Value) || math.IsInf(k.Value, 0) || k.Value == 0 && k.Name != "kwh-per-gb" {
			return millrace.Coded("bad-coefficient", fmt.Errorf("%s %v: %w: want a number above 0, in %s", k.Name, k.Value, millrace.ErrInvalid, k.Unit))
		}
	}
	return nil
}
