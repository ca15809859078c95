// Package s3 implements [artifact.Store] in a bucket of an object store that speaks the
// protocol of Amazon S3. Any number of processes on any number of machines may share it.
//
// # Objects
//
// The bucket has a log. Each of its objects has the changes of one batch, with the bytes of small
// artifacts, so an edition is few requests. The objects are numbered, and the bucket creates each
// number once (If-None-Match). So all processes apply the same changes in the same order. A process
// reads the new objects of the log before a batch, and otherwise at most once a second.
//
//	PREFIX/owner         the identity of the store of pages that the artifacts belong to
//	PREFIX/log/NUMBER    a line of JSON with changes, then the bytes of small artifacts
//	PREFIX/state/NUMBER  all artifacts after the log up to NUMBER, as JSON
//	PREFIX/file/RANDOM   an artifact of more than 1 MiB
//
// After some objects of the log, a process writes the state, so that a new process reads few of
// them. An hour after deletions, it deletes the objects that have no artifact any more.
//
// A large artifact is uploaded before the object of the log that names it. So a process that is
// killed leaves a whole batch or nothing, and files that are deleted a day later.
//
// # Cache
//
// Objects that were read or written are files of a local folder, up to a limit in bytes. While the
// bucket is down, the store reads what is in the folder, also after a restart. Changes, batches and other artifacts return
// [millrace.ErrUnavailable]. After a request that fails, others fail at once for a second.
//
// # Deviations
//
// A Put, Delete or Batch whose context is cancelled while the bucket answers may have taken
// effect. Open may miss an artifact that another process has put in the last second, and Open and
// Stat may find one that another process has deleted in the last second. The time of modification
// is that of the clock of the process that changed the artifact.
package s3
