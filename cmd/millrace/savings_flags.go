package main

import (
	"github.com/millrace/millrace/internal/savings"
)

// savingsFlags holds the flags of commands that report savings.
type savingsFlags struct {
	KWhPerGB        float64 `name:"kwh-per-gb" default:"0.06" placeholder:"N" help:"Energy use of the network in kWh per GB, to estimate savings (default: ${default}). millrace report names the sources of these numbers."`
	BytesPerToken   float64 `name:"bytes-per-token" default:"4" placeholder:"N" help:"Bytes of text in one token (default: ${default})."`
	HTMLPerText     float64 `name:"html-per-text" default:"14.8" placeholder:"N" help:"Bytes of HTML per byte of text, for pages whose HTML size is unknown (default: ${default})."`
	HTMLCompression float64 `name:"html-compression" default:"5.1" placeholder:"N" help:"Compression ratio of HTML in transfer, for pages whose HTML size is unknown (default: ${default})."`
}

func (c *savingsFlags) values() savings.Coefficients {
	return savings.Coefficients{
		KWhPerGB: c.KWhPerGB, BytesPerToken: c.BytesPerToken, HTMLPerText: c.HTMLPerText, HTMLCompression: c.HTMLCompression,
	}
}

func (c *savingsFlags) validate() error {
	if err := c.values().Validate(); err != nil {
		return usageError("--" + err.Error())
	}
	return nil
}
