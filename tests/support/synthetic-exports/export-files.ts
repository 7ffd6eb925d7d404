// The files of an export, written piece by piece: memory does not grow with their length, except by what the container
// itself holds of one file.

import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { gzipSync } from 'node:zlib'
import { BlobWriter, Uint8ArrayReader, ZipWriter } from '@zip.js/zip.js'
import avsc from 'avsc'
import type { SchemaElement } from 'hyparquet'
import { fileWriter, ParquetWriter } from 'hyparquet-writer'

export interface ExportFile<Row> {
  add(row: Row): void
  /** No rows may be added afterwards. */
  end(): Promise<void>
}

const heldChars = 1024 * 1024

/** @param path ends with `.gz` for a compressed file, with a separate gzip member per mebibyte. */
export function lineFile(path: string): ExportFile<string> {
  mkdirSync(dirname(path), { recursive: true })
  const file = openSync(path, 'w')
  let held = ''
  const flush = () => {
    const bytes = Buffer.from(held)
    if (bytes.length > 0) writeSync(file, path.endsWith('.gz') ? gzipSync(bytes, { level: 1 }) : bytes)
    held = ''
  }
  return {
    add(line) {
      held += `${line}\n`
      if (held.length > heldChars) flush()
    },
    async end() {
      flush()
      closeSync(file)
    },
  }
}

/** @param row null for one with too many cells. */
export function csvLine(row: readonly (string | number | null)[] | null): string {
  return row === null ? 'one,too,many,cells,in,this,row,of,the,export,and,some,more' : row.map(csvCell).join(',')
}

function csvCell(value: string | number | null): string {
  const text = value === null ? '' : String(value)
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** One line of a zip entry; lines with the same entry name form one entry. */
export interface ZipLine {
  readonly entry: string
  readonly line: string
}

/**
 * @param heads the first line of each entry, as in CSV.
 * @param linesMax a new entry begins after this many lines; its number replaces `#` in the name.
 */
export function zipFile(
  path: string,
  {
    heads = {},
    linesMax = Number.POSITIVE_INFINITY,
  }: { heads?: Readonly<Record<string, string>>; linesMax?: number } = {},
): ExportFile<ZipLine> {
  mkdirSync(dirname(path), { recursive: true })
  const done: { readonly name: string; readonly bytes: Buffer }[] = []
  const open = new Map<string, string[]>()
  const close = (entry: string) => {
    const text = Buffer.from(`${open.get(entry)!.join('\n')}\n`)
    const name = entry.replace('#', String(done.length))
    done.push({ name, bytes: name.endsWith('.gz') ? gzipSync(text, { level: 1 }) : text })
    open.delete(entry)
  }
  return {
    add({ entry, line }) {
      const lines = open.get(entry) ?? (heads[entry] === undefined ? [] : [heads[entry]])
      open.set(entry, lines)
      if (lines.push(line) >= linesMax) close(entry)
    },
    async end() {
      for (const entry of [...open.keys()]) close(entry)
      const zip = new ZipWriter(new BlobWriter(), { useWebWorkers: false })
      // Makes the bytes depend only on the seed.
      const at = { lastModDate: new Date('2024-05-01T00:00:00Z') }
      for (const { name, bytes } of done) await zip.add(name, new Uint8ArrayReader(bytes), at)
      writeFileSync(path, Buffer.from(await (await zip.close()).arrayBuffer()))
    },
  }
}

const rowGroupRows = 10_000

/** @param columns which are all optional. */
export function parquetFile<Row extends Readonly<Record<string, unknown>>>(
  path: string,
  columns: readonly SchemaElement[],
): ExportFile<Row> {
  mkdirSync(dirname(path), { recursive: true })
  const root: SchemaElement = { name: 'root', num_children: columns.length }
  const schema = [root, ...columns.map(column => ({ repetition_type: 'OPTIONAL' as const, ...column }))]
  const writer = new ParquetWriter({ writer: fileWriter(path), schema })
  let rows: Row[] = []
  const flush = () => {
    const columnData = columns.map(({ name }) => ({ name, data: rows.map(row => row[name] ?? null) }))
    if (rows.length > 0) writer.write({ columnData })
    rows = []
  }
  return {
    add(row) {
      if (rows.push(row) >= rowGroupRows) flush()
    },
    async end() {
      flush()
      await writer.finish()
    },
  }
}

export function avroFile<Row extends object>(path: string, schema: avsc.Schema): ExportFile<Row> {
  mkdirSync(dirname(path), { recursive: true })
  const encoder = new avsc.streams.BlockEncoder(schema, { codec: 'deflate' } as never)
  const parts: Buffer[] = []
  encoder.on('data', part => parts.push(part))
  return {
    add(row) {
      encoder.write(row)
    },
    async end() {
      encoder.end()
      await once(encoder, 'end')
      writeFileSync(path, Buffer.concat(parts))
    },
  }
}
