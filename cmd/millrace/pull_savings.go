package main

import (
	"github.com/millrace/millrace/internal/savings"
)

// coefficients are the flags of every command that tells what was saved.
type coefficients struct {
	KWhPerGB        float64 `name:"kwh-per-gb" default:"0.06" placeholder:"N" help:"kWh that the network takes for a GB, for what was saved (default: ${default}). millrace report names the sources of these numbers."`
	BytesPerToken   float64 `name:"bytes-per-token" default:"4" placeholder:"N" help:"Bytes in a token of a model (default: ${default})."`
	HTMLPerText     float64 `name:"html-per-text" default:"14.8" placeholder:"N" help:"Bytes of HTML for a byte of text, for sites whose HTML was not had (default: ${default})."`
	HTMLCompression float64 `name:"html-compression" default:"5.1" placeholder:"N" help:"Bytes of HTML for a byte on the wire, for the same sites (default: ${default})."`
}

func (c *coefficients) values() savings.Coefficients {
	return savings.Coefficients{
		KWhPerGB: c.KWhPerGB, BytesPerToken: c.BytesPerToken, HTMLPerText: c.HTMLPerText, HTMLCompression: c.HTMLCompression,
	}
}

func (c *coefficients) validate() error {
	if err := c.values().Validate(); err != nil {
		return usageError("--" + err.Error())
	}
	return nil
}
