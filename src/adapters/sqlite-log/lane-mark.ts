// How far a lane had come, kept in a small file outside of its folder: a segment that lost its end, by damage or by hand,
// looks exactly like one that never had more. It is written after each commit and never before, so it is at or below the
// truth. It is synced only once a second, since a power cut that sets it back does no harm.
//
// Processes that append to the same lane have places of their own, and the furthest place counts.

import { closeSync, fsyncSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { syncFile, syncFolder } from './segment-file.ts'

const placeCount = 64
/** The offset as a double, and once more negated, so that a damaged place is noticed. A checksum took a fifth of a write. */
const placeBytes = 16

/** The path of a lane's mark, beside the lane's folder. */
export function markPath(laneFolder: string): string {
  return `${laneFolder}.end`
}

/** The end of the lane as its mark has it, 0 when there is no mark. A damaged place in the mark counts as empty. */
export function readLaneMark(laneFolder: string): number {
  let bytes: Buffer
  try {
    bytes = readFileSync(markPath(laneFolder))
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

/** Call it for a log that begins anew. */
export function removeLaneMark(laneFolder: string): void {
  rmSync(markPath(laneFolder), { force: true })
}

export class LaneMark {
  readonly #descriptor: number
  readonly #place = Buffer.alloc(placeBytes)
  readonly #at = (process.pid % placeCount) * placeBytes
  #isSynced = true

  /** @throws system errors. */
  constructor(laneFolder: string) {
    const path = markPath(laneFolder)
    if (statSync(path, { throwIfNoEntry: false })?.size !== placeCount * placeBytes) makeFile(path)
    this.#descriptor = openSync(path, 'r+')
  }

  /** Survives the end of this process at once, a power cut after `sync`. @throws system errors. */
  write(endOffset: number): void {
    this.#place.writeDoubleLE(endOffset)
    this.#place.writeDoubleLE(-endOffset, 8)
    writeSync(this.#descriptor, this.#place, 0, placeBytes, this.#at)
    this.#isSynced = false
  }

  /**
   * Asks the disk even where nothing was written since: a file system that the kernel made read-only says so to a sync alone.
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

/** As large as it gets, so that a full disk does not keep it from being written. Another process may do the same. */
function makeFile(path: string): void {
  try {
    writeFileSync(path, Buffer.alloc(placeCount * placeBytes, 0xff), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  syncFile(path)
  syncFolder(dirname(path))
}
