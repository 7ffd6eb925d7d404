// The second half of staging: sorts the lines of one event day by time. A day that does not fit into memory is sorted in
// chunks, which are then merged.

import { createReadStream, rmSync, statSync, writeFileSync } from 'node:fs'
import { unlimitedSpace } from '#importer/read/disk-space.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { splitRecords } from '../read/split-records.ts'
import { nameDayFile } from './spill.ts'
import { compareKeys, decodeLineKey, type LineKey } from './staged-line.ts'

const sortedBytesMax = 24 * 1024 * 1024

export interface SortedLine {
  /** Includes the line end. */
  readonly bytes: Buffer
  readonly key: LineKey
}

/** @param bytesMax how much to sort in memory at once. */
export async function* readSortedDay(
  folder: JobFolder,
  day: string,
  bytesMax = sortedBytesMax,
  waitForSpace = unlimitedSpace,
): AsyncGenerator<SortedLine> {
  const path = nameDayFile(folder, day)
  if (statSync(path).size <= bytesMax) {
    yield* sortLines(await collectAll(readLines(path)))
    return
  }
  const stretches: string[] = []
  try {
    for await (const lines of readChunks(path, bytesMax)) {
      await waitForSpace()
      const stretch = `${path}.${stretches.length}`
      stretches.push(stretch)
      rmSync(stretch, { force: true })
      const bytes = Buffer.concat(sortLines(lines).map(each => each.bytes))
      writeFileSync(stretch, bytes, { flag: 'wx', mode: 0o600 })
    }
    yield* mergeSorted(stretches)
  } finally {
    for (const stretch of stretches) rmSync(stretch, { force: true })
  }
}

async function* readLines(path: string): AsyncGenerator<Buffer> {
  for await (const { bytes } of splitRecords(createReadStream(path, { highWaterMark: 1 << 18 }), 'json', Infinity))
    yield bytes as Buffer
}

async function* readChunks(path: string, bytesMax: number): AsyncGenerator<Buffer[]> {
  let lines: Buffer[] = []
  let bytes = 0
  for await (const line of readLines(path)) {
    if (bytes > 0 && bytes + line.length > bytesMax) {
      yield lines
      lines = []
      bytes = 0
    }
    lines.push(line)
    bytes += line.length
  }
  yield lines
}

async function collectAll<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

function sortLines(lines: readonly Buffer[]): SortedLine[] {
  return lines.map(addSortKey).sort((a, b) => compareKeys(a.key, b.key))
}

function addSortKey(bytes: Buffer): SortedLine {
  return { bytes, key: decodeLineKey(bytes) }
}

async function* mergeSorted(paths: readonly string[]): AsyncGenerator<SortedLine> {
  const readers = paths.map(path => readLines(path))
  const heads: { reader: AsyncGenerator<Buffer>; line: SortedLine }[] = []
  const take = async (reader: AsyncGenerator<Buffer>) => {
    const { value, done } = await reader.next()
    if (done === true) return
    const line = addSortKey(value)
    // Chunks are few and mostly already in time order, so the search from the end is short.
    let at = heads.length
    while (at > 0 && compareKeys(heads[at - 1]!.line.key, line.key) < 0) at--
    heads.splice(at, 0, { reader, line })
  }
  try {
    for (const reader of readers) await take(reader)
    for (let head = heads.pop(); head !== undefined; head = heads.pop()) {
      yield head.line
      await take(head.reader)
    }
  } finally {
    for (const reader of readers) await reader.return(undefined)
  }
}
