// Package policy writes a [millrace.Policy] in the formats in which sites declare the permitted use
// of their content, and reads these formats.
//
//	format                 writer          reader
//	robots.txt             [Robots.Write]  [ReadSignals]
//	Content-Signal, -Usage [Header.Write]  [ReadHeader]
//	RSL 1.0                [WriteRSL]
//	TCT draft-00           [WriteTCT]      [ReadTCT]
//	ARC                    [WriteARC]      [ReadARC]
//
// A reader returns the fields that its format can express. Only ARC can express the whole policy.
// Fields that are absent from a document are zero.
package policy
