// Package policy writes a [millrace.Policy] in each of the formats in which
// machines read what the content of a site may be used for, and reads it back.
//
//	format                 writer          reader
//	robots.txt             [Robots.Write]  [ReadRobots]
//	Content-Signal, -Usage [Header.Write]  [ReadHeader]
//	RSL 1.0                [WriteRSL]      [ReadRSL]
//	TCT draft-00           [WriteTCT]      [ReadTCT]
//	ARC                    [WriteARC]      [ReadARC]
//
// A reader returns what the writer could say of the policy: no format but ARC has
// words for all of it. What a document does not say is zero.
package policy
