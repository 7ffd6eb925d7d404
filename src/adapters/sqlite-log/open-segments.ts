// The segment files that the reader of one stream keeps open. Damage shows when a file is opened or read, so damaged
// files are set aside here.

import type { LogStream } from '#core/events/log-stream.ts'
import { PortError } from '#ports/port-error.ts'
import type { ReadableSegment } from './compressed-segment.ts'
import { moveDamagedSegmentAside } from './move-damaged-segment.ts'
import { openReadableSegment, toSegmentReadError } from './readable-segment.ts'
import { isSegmentDamage, type SegmentName } from './segment-file.ts'

/** Enough for the segment being read, the newest segment, and a few more for reads that jump. */
const openSegmentsMax = 6

/** @param damage `path` is where the file is now. */
export type OnDamage = (damage: { readonly stream: LogStream; readonly path: string; readonly error: unknown }) => void

export class OpenSegments {
  readonly #stream: LogStream
  readonly #onDamage: OnDamage | null
  readonly #mode: 'read' | 'look'
  /** By path, in the order of their last use. */
  readonly #open = new Map<string, ReadableSegment>()

  /**
   * @param onDamage null when another process sets damaged segments aside; reading them here then fails as `corrupt`.
   * @param mode as in `openSegment`.
   */
  constructor(stream: LogStream, onDamage: OnDamage | null, mode: 'read' | 'look') {
    this.#stream = stream
    this.#onDamage = onDamage
    this.#mode = mode
  }

  /**
   * Opens the segment, unless it is open, and reads from it.
   * @throws PortError: `corrupt` for damage; `unavailable` if the file was just set aside: a new listing has it under its
   * new name.
   */
  use<T>(segment: SegmentName, read: (opened: ReadableSegment) => T): T {
    if (segment.form === 'damaged' && this.#onDamage === null) {
      const message = `log segment ${segment.path} is damaged and has been set aside`
      throw new PortError('event-log', 'corrupt', new Error(message))
    }
    try {
      const known = this.#open.get(segment.path)
      const opened = known ?? openReadableSegment(segment, this.#mode)
      // Move the segment to the end: the least recently used one is closed first.
      this.#open.delete(segment.path)
      this.#open.set(segment.path, opened)
      if (known === undefined && this.#open.size > openSegmentsMax) this.close(this.#open.keys().next().value!)
      return read(opened)
    } catch (error) {
      this.close(segment.path)
      const onDamage = this.#onDamage
      if (onDamage === null || !isSegmentDamage(error) || segment.form === 'damaged')
        throw toSegmentReadError(error, segment.path)
      const path = moveDamagedSegmentAside(segment)
      if (path !== null) onDamage({ stream: this.#stream, path, error })
      // The file can be read under its new name, so the caller must list again.
      throw new PortError('event-log', 'unavailable', error)
    }
  }

  /** Like `use`, but returns null when the segment is damaged. */
  useUnlessDamaged<T>(segment: SegmentName, read: (opened: ReadableSegment) => T): T | null {
    try {
      return this.use(segment, read)
    } catch (error) {
      if (error instanceof PortError && error.code === 'corrupt') return null
      throw error
    }
  }

  close(path: string): void {
    this.#open.get(path)?.close()
    this.#open.delete(path)
  }

  /** Closes segments that were deleted or packed: their disk space is freed only when no process has them open. */
  closeAllBut(segments: readonly SegmentName[]): void {
    const paths = new Set(segments.map(({ path }) => path))
    for (const path of this.#open.keys()) if (!paths.has(path)) this.close(path)
  }
}
