// Limits of the worker's main loop: sizes and durations.

export const processorLimits = {
  /**
   * Records of one chunk. A data part in the event store costs about the same for 2,000 rows as for 10,000, so large chunks
   * reduce a lag faster.
   */
  recordCountMax: 10_000,
  /** State rows of one transaction; limited so that no other writer waits long for the transaction's lock. */
  rowCountMax: 2_000,
  bytesMax: 16 * 1024 * 1024,
  /**
   * Property text that a chunk may load, and that its rows may contain. Small events can belong to persons as large as a
   * client makes them, and parsed text takes up to 14 times its length.
   */
  textBytesMax: 32 * 1024 * 1024,
  /**
   * How long an import chunk may hold its persons, from load to commit, or twice the duration of a chunk of few live
   * events if that is longer. Determines the size of the next chunk.
   */
  importChunkMs: 50,
  /**
   * Replaces `importChunkMs` while no live events arrive; the next live event may wait this long. Larger chunks make larger
   * data parts, which cost the event store less.
   */
  loneImportChunkMs: 500,
  /** Imports count as alone if the last live chunk began this long ago. */
  loneAfterMs: 5_000,
  /**
   * How long a chunk may hold up live events: a chunk that is split into parts ends with the part that exceeds this time.
   */
  liveChunkMs: 1_000,
  /** If a stream's next record is older than this, a project that took more than half of a chunk may be deferred. */
  deferringLagMs: 1_000,
  /**
   * Replaces `deferringLagMs` for a project whose events cost about as much as their size suggests. Deferred projects
   * wait for each other, so a burst of ordinary events must not queue behind a project that takes minutes.
   */
  deferringUsualLagMs: 10_000,
  /**
   * The minimum time between chunks that are far from full: a trickle of events must not create a data part for each event.
   */
  restMs: 100,
  /** An insert that takes longer than this is reported as if the event store were down. */
  slowStoreMs: 5_000,
  /** Conflicts in a row after which the worker assumes that other writers to the same persons will not stop. */
  conflictTryCount: 10,
  /**
   * How long a read of the log waits for records before the worker checks its lag and whether it still owns the streams.
   */
  pollMs: 1_000,
  /** How often the processor reports its progress while there is work. */
  reportEveryMs: 250,
}

export type ProcessorLimits = Readonly<typeof processorLimits>
