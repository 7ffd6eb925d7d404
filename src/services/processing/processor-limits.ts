// Bounds of the worker's main line: how much and how long at a time.

export interface ProcessorLimits {
  /** Records of one chunk. */
  readonly recordCountMax: number
  /** State rows of one transaction; bounded so that no other writer waits long for its lock. */
  readonly rowCountMax: number
  readonly bytesMax: number
  /**
   * Property text that a chunk may load, and that its rows may carry. Small events can belong to persons of any size that a
   * client chose, and parsed text takes up to 14 times its length.
   */
  readonly textBytesMax: number
  /**
   * How long an import chunk may hold its persons, from load to commit, or twice as long as chunks of few live events take;
   * the next chunk's size follows from it.
   */
  readonly importChunkMs: number
  /** The same while no live events come, of which the first one then waits so long: larger parts cost the event store less. */
  readonly loneImportChunkMs: number
  /** Imports count as alone when the last live chunk began so long ago. */
  readonly loneAfterMs: number
  /** How long a chunk may hold live events: one that is cut into parts ends with the part that exceeds this time. */
  readonly liveChunkMs: number
  /** When a stream's next record is older than this, a project that took more than half of a chunk may be deferred. */
  readonly deferringLagMs: number
  /**
   * The same for a project whose events cost about what they look. Deferred projects wait for each other, so a burst of
   * usual events must not end up behind those of a project that takes minutes.
   */
  readonly deferringUsualLagMs: number
  /** The least time after the start of a chunk that was far from full: a trickle must not become a part per event. */
  readonly restMs: number
  /** An insert that takes longer is reported as if the event store were down. */
  readonly slowStoreMs: number
  /** Conflicts in a row before the worker assumes that the other writers to the same persons will not stop. */
  readonly conflictTryCount: number
  /** How long a read waits for records before the worker checks its lag and whether it still owns the streams. */
  readonly pollMs: number
  /** How often the processor reports how far it is, while there is work. */
  readonly reportEveryMs: number
}

export const processorLimits: ProcessorLimits = {
  // A part of the event store costs much the same for 2,000 rows and for 10,000, so large chunks work a lag off faster.
  recordCountMax: 10_000,
  rowCountMax: 2_000,
  bytesMax: 16 * 1024 * 1024,
  textBytesMax: 32 * 1024 * 1024,
  importChunkMs: 50,
  loneImportChunkMs: 500,
  loneAfterMs: 5_000,
  liveChunkMs: 1_000,
  deferringLagMs: 1_000,
  deferringUsualLagMs: 10_000,
  restMs: 100,
  slowStoreMs: 5_000,
  conflictTryCount: 10,
  pollMs: 1_000,
  reportEveryMs: 250,
}
