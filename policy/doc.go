// Package policy writes a [millrace.Policy] in each format in which sites declare the
// permitted use of their content, and reads it back.
//
//	format                 writer          reader
//	robots.txt             [Robots.Write]  [ReadSignals]
//	Content-Signal, -Usage [Header.Write]  [ReadHeader]
//	RSL 1.0                [WriteRSL]      [ReadRSL]
//	TCT draft-00           [WriteTCT]      [ReadTCT]
//	ARC                    [WriteARC]      [ReadARC]
//
// A reader returns the fields that its format can express; only ARC can express the whole
// policy. Fields that a document omits are zero.
package policy
