// Files that somebody else keeps and that an import reads: a bucket, or addresses of a list.

/** What is there, as listed. */
export interface SourceObject {
  /** Its name in the bucket; of an address whatever tells it from the others, without secrets. */
  readonly key: string
  /** Null when it is not said. */
  readonly bytes: number | null
  /** Differs whenever the bytes do, such as an ETag. Null when nothing is said: it cannot be gone on with then. */
  readonly version: string | null
}

export interface ObjectBytes {
  /** Where the bytes begin: what was asked for, or 0 when only the whole can be had. */
  readonly startsAt: number
  readonly bytes: AsyncIterable<Uint8Array>
  /** Lines that a person should see, such as where the bytes come from. */
  readonly notes?: readonly string[]
}

/**
 * Reads only; every method is repeatable. A source that cannot be reached, is busy or is too slow is a `PortError` with
 * `unavailable` or `timeout`; a key, bucket or right that is missing is an `ObjectSourceRefusal`.
 */
export interface ObjectSource {
  /** In the order of their keys where the source has one. Streams: a bucket may have millions. */
  list(signal: AbortSignal): AsyncIterable<SourceObject>
  /**
   * Opens the bytes from an offset on. A body that ends early fails with a `PortError`.
   * @throws PortError `conflict` when the object is no longer the version that was listed.
   */
  open(object: SourceObject, from: number, signal: AbortSignal): Promise<ObjectBytes>
  close(): void
}

/** A person has to change something. The message says what, without secrets. */
export class ObjectSourceRefusal extends Error {}
