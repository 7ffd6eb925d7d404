// Records the end of a stream in a small file outside its folder: a segment that lost its end, by damage or by an
// operator's change, looks exactly like a segment that never had more. It is written only after each commit, so it never
// exceeds the true end. It is synced only once a second, since a power cut that sets it back does no harm.
//
// Each process that appends to the stream writes to a separate slot, and the largest offset counts.

import { closeSync, fsyncSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { syncFile, syncSegmentFolder } from './segment-file.ts'

const placeCount = 64
/**
 * The offset as a double, followed by its negation, which reveals damage. A checksum would take a fifth of the time of a
 * write.
 */
const placeBytes = 16

/** The path of a stream's mark, next to the stream's folder. */
export function buildMarkPath(streamFolder: string): string {
  return `${streamFolder}.end`
}

/** The end of the stream according to its mark; 0 when there is no mark. A damaged slot counts as empty. */
export function readStreamMark(streamFolder: string): number {
  let bytes: Buffer
  try {
    bytes = readFileSync(buildMarkPath(streamFolder))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0
    throw error
  }
  let end = 0
  for (let at = 0; at + placeBytes <= bytes.length; at += placeBytes) {
    const offset = bytes.readDoubleLE(at)
    const isSound = Number.isSafeInteger(offset) && bytes.readDoubleLE(at + 8) === -offset
    if (isSound) end = Math.max(end, offset)
  }
  return end
}

/** Removes a stream's mark. Call it for a log that starts again empty. */
export function removeStreamMark(streamFolder: string): void {
  rmSync(buildMarkPath(streamFolder), { force: true })
}

export class StreamMark {
  readonly #descriptor: number
  readonly #place = Buffer.alloc(placeBytes)
  readonly #at = (process.pid % placeCount) * placeBytes
  #isSynced = true

  /** @throws system errors. */
  constructor(streamFolder: string) {
    const path = buildMarkPath(streamFolder)
    if (statSync(path, { throwIfNoEntry: false })?.size !== placeCount * placeBytes) makeFile(path)
    this.#descriptor = openSync(path, 'r+')
  }

  /** Writes an offset. It survives the death of this process, and after `sync` also a power cut. @throws system errors. */
  write(endOffset: number): void {
    this.#place.writeDoubleLE(endOffset)
    this.#place.writeDoubleLE(-endOffset, 8)
    writeSync(this.#descriptor, this.#place, 0, placeBytes, this.#at)
    this.#isSynced = false
  }

  /**
   * Syncs even when nothing was written since the last sync: only a sync shows that the kernel made the file system
   * read-only.
   * @throws system errors.
   */
  sync(): void {
    fsyncSync(this.#descriptor)
    this.#isSynced = true
  }

  /** @throws system errors. */
  close(): void {
    if (!this.#isSynced) fsyncSync(this.#descriptor)
    closeSync(this.#descriptor)
  }
}

/**
 * Creates the file at its final size, so that a full disk cannot prevent later writes. Several processes may call it at
 * once.
 */
function makeFile(path: string): void {
  try {
    writeFileSync(path, Buffer.alloc(placeCount * placeBytes, 0xff), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  syncFile(path)
  syncSegmentFolder(dirname(path))
}
