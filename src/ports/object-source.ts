// Files stored elsewhere that an import reads, in a bucket or at a list of addresses.

/** A file as listed. */
export interface SourceObject {
  /** The file's name in the bucket; for an address, what distinguishes it from other addresses, without secrets. */
  readonly key: string
  /** Null when unknown. */
  readonly bytes: number | null
  /**
   * A text, such as an ETag, that differs whenever the bytes differ. Null when the source reports none; reading can then
   * not be resumed.
   */
  readonly version: string | null
}

export interface ObjectBytes {
  /** Where the bytes begin: the requested offset, or 0 when only the whole file is available. */
  readonly startsAt: number
  readonly bytes: AsyncIterable<Uint8Array>
  /** Lines to show to the user, such as where the bytes come from. */
  readonly notes?: readonly string[]
}

/**
 * Reads only; every method is repeatable. A source that cannot be reached, is busy or is too slow is a `PortError` with
 * `unavailable` or `timeout`; a missing key, bucket or permission is an `ObjectSourceRefusal`.
 */
export interface ObjectSource {
  /**
   * Lists files in the order of their keys if the source has an order. The list is streamed, because a bucket may have
   * millions of files.
   */
  list(signal: AbortSignal): AsyncIterable<SourceObject>
  /**
   * Opens the bytes from an offset on. A body that ends early fails with a `PortError`.
   * @throws PortError `conflict` when the object is no longer the version that was listed.
   */
  open(object: SourceObject, from: number, signal: AbortSignal): Promise<ObjectBytes>
  close(): void
}

/** A user must change something. The message says what, without secrets. */
export class ObjectSourceRefusal extends Error {}
