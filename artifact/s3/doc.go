// Package s3 implements [artifact.Store] in a bucket of an object store that supports the Amazon S3
// API. Any number of processes on any number of machines may share it.
//
// # Objects
//
// The bucket contains a log. An object of the log contains the changes of a batch, or of a part of a
// large batch, and the bytes of small artifacts. So an edition needs few requests. The objects are
// numbered, and the bucket creates each number only once (If-None-Match), so all processes apply
// the same changes in the same order. A process reads the new objects of the log before each batch,
// and otherwise only when needed.
//
//	PREFIX/owner         identifies the page store to which the artifacts belong
//	PREFIX/log/NUMBER    a line of JSON with changes, then the bytes of small artifacts
//	PREFIX/state/NUMBER  all artifacts after the log up to NUMBER, as JSON
//	PREFIX/file/RANDOM   an artifact of more than 1 MiB
//
// From time to time, a process writes the state, so that a new process need not read the whole log.
// At most once an hour, after deletions, a process deletes the objects that no artifact uses.
//
// A large artifact is uploaded before the log object that names it. So a process that is killed
// never leaves an incomplete artifact, but may leave files that are deleted a day later.
//
// # Cache
//
// Objects that were read or written are cached as files in a local folder, up to a limit in bytes.
// While the bucket is down, the store reads artifacts from this folder, even after a restart.
// Changes, batches and reads of other artifacts return [millrace.ErrUnavailable]. After a failed
// request, all requests fail at once for one second.
//
// # Deviations
//
// If the context of a Put, Delete or Batch is canceled during a request, the change may have taken
// effect. Open may miss an artifact that another process has put within the last second, and Open
// and Stat may find an artifact that another process has deleted within the last second. The
// modification time comes from the clock of the process that changed the artifact.
package s3
